"""What the scripts of the peers write, in one shape.

An adapter takes the script's JSON and gives (vicinal, lines). `vicinal` is {seconds, exactness, exact} or, where the
script has several cases, absent. A line is {peer, case, version, seconds, our_seconds, exactness, share} or {peer,
reason}. `exactness` says in words how right the peer's answer is, compared with float64 in the same run; `share` is the
share of right answers or, where the measure is an error (`measure`), that error. `at_least` of a peer that was ended is
what the ratio is above. `exact` of vicinal is None where the script has no oracle for it.
"""

import statistics

# Libraries that have one thread, whatever --threads says: their lines say so.
ONE_THREAD = ("libann", "geopandas", "METIS", "pdx", "pandas", "pyod cof", "pynomaly loop")
# Of an embedding, relative to the norm of M: clause 17 of docs/contract.md.
MAX_RESIDUAL = 1e-14


def share_line(peer, version, seconds, ours, right, total, what, **more):
    return {"peer": peer, "version": version, "seconds": seconds, "our_seconds": ours, "share": right / total,
            "exactness": f"{right:,} of {total:,} {what}", **more}


def error_line(peer, version, seconds, ours, error, exactness, **more):
    return {"peer": peer, "version": version, "seconds": seconds, "our_seconds": ours, "share": error,
            "measure": "error", "exactness": exactness, **more}


def unended(peer, seconds, ours, **more):
    """A library that was ended after so many seconds, while ours took `ours`."""
    return {"peer": peer, "reason": f"did not end in {seconds:.0f} s; ours took {ours:.3g} s",
            "at_least": seconds / ours, **more}


def failed(peer, reason, **more):
    return {"peer": peer, "reason": one_line(reason), **more}


def say_one_thread(line):
    """The line, which says so if its library has only one thread."""
    if line["peer"] not in ONE_THREAD or "reason" in line:
        return line
    return {**line, "exactness": f"{line['exactness']}; one thread"}


def one_line(text):
    return " ".join(str(text).split())[:300]


def knn(told):
    ours = told["seconds"]["median"]
    checked, wrong = told["verified_queries"], told["wrong_queries"]
    vicinal = {"seconds": ours, "exact": checked > 0 and wrong == 0,
               "exactness": f"{checked - wrong:,} of {checked:,} sampled queries right"}
    lines = [failed(peer["name"], peer["error"]) if "error" in peer else
             share_line(peer["name"], peer["version"], peer["total"]["median"], ours, peer["correct_rows"],
                        told["queries"], "queries right") for peer in told["peers"]]
    return vicinal, lines


def kmeans(told):
    job = told["jobs"][0]
    own = job["vicinal"]

    def times(peer):
        """Seconds of an iteration of the two; of whole runs where these are too short for a difference of runs."""
        pair = [one["ms_an_iteration"] / 1e3 for one in (peer, own)]
        return (pair, "") if min(pair) > 0 else ([peer["run_seconds"], own["run_seconds"]], "; times of whole runs")

    (ours, _), note = times(own)
    rows, wrong = job["rows"], own["wrong_labels"]
    vicinal = {"seconds": ours, "exact": wrong == 0, "exactness": f"{rows - wrong:,} of {rows:,} labels right" + note}
    lines = []
    for name in ("sklearn", "sklearnex", "faiss", "superkmeans"):
        peer = job.get(name)
        if peer is None or "error" in peer:
            lines += [failed(name, peer["error"])] if peer else []
            continue
        off = peer["inertia"] / own["inertia"] - 1
        (theirs, ours), note = times(peer)
        text = f"inertia {100 * off:+.4f} % of ours, {100 * peer['labels_as_ours']:.2f} % of the labels{note}"
        lines.append(error_line(name, peer.get("version"), theirs, ours, off, text))
    return vicinal, lines


def lof(told):
    found, about = told["time"]["result"], told["time"]["about"]
    ours, off = found["least"]["vicinal"]["seconds"], found["off_float64"]
    # NaN: every row of the sample had a tie at k.
    ties = "all sampled rows have ties"
    vicinal = {"seconds": ours, "exact": off <= 1e-9 if off == off else None,
               "exactness": f"sampled scores within {off:.0e} of float64" if off == off else ties}
    packages = about["packages"]
    lines = [failed(name, why) for name, why in found["missing"].items()]
    for name, package in (("sklearn_brute", "scikit-learn"), ("sklearnex_float32", "scikit-learn-intelex")):
        if name in found["least"]:
            error = found[f"off_{name}"]
            lines.append(error_line(name, packages.get(package), found["least"][name]["seconds"], ours, error,
                                    f"scores within {error:.0e} of ours"))
    return vicinal, lines


def lof_packages(told):
    packages = told["packages"]["about"]["packages"]
    lines, checks = [], []
    for line in told["packages"]["result"]:
        name = line["peer"]
        if "error" in line:
            lines.append(failed(name, line["error"]))
            continue
        checks += [line["off_float64"]] if "off_float64" in line else []
        package = "pyod" if name.startswith("pyod") else "PyNomaly"
        lines.append(error_line(name, packages.get(package), line["theirs"]["seconds"], line["vicinal"]["seconds"],
                                line["off"], f"scores within {line['off']:.0e} of ours"))
    off = max(checks, default=float("nan"))
    exact = off <= 1e-9 if off == off else None
    return {"exact": exact, "exactness": f"sampled scores within {off:.0e} of float64" if exact is not None else
            "compared with the peers only"}, lines


def lle(told):
    found = told["paired"][0]
    ours, own = statistics.median(found["seconds"]["vicinal"]), found["error"]["vicinal"]
    vicinal = {"seconds": ours, "exact": found["off_eigenvalues"] <= 1e-6,
               "exactness": f"error {own:.3e}, within {found['off_eigenvalues']:.0e} of the eigenvalues"}
    lines = [failed(name, why) for name, why in found["failed"].items()]
    for name in ("sklearn", "tapkee"):
        if found["seconds"].get(name):
            off = found["error"][name] / own - 1
            lines.append(error_line(name, told.get(name), statistics.median(found["seconds"][name]), ours, off,
                                    f"error {100 * off:+.2g} % of ours"))
    return vicinal, lines


def ordering(told):
    found = told["results"][0]
    own, theirs = found["vicinal"], found["metis_cholmod"]
    fill = f"fill {own['fill']:,}"
    vicinal = {"seconds": own["order_seconds"] + own["factor_seconds"], "exact": own["residual"] <= MAX_RESIDUAL,
               "exactness": f"{fill}, residual {own['residual']:.0e} of the norm"}
    if "error" in theirs:
        return vicinal, [failed(name, theirs["error"]) for name in ("METIS", "CHOLMOD")]
    factor = theirs["symbolic_seconds"] + theirs["factor_seconds"]
    return vicinal, [
        error_line("METIS", theirs.get("metis"), theirs["metis_seconds"], own["order_seconds"],
                   theirs["fill"] / own["fill"] - 1, f"fill {theirs['fill']:,.0f}, {fill} with our order"),
        error_line("CHOLMOD", theirs.get("cholmod"), factor, own["factor_seconds"], theirs["residual"],
                   f"residual of a solve {theirs['residual']:.0e}")]


def density(told):
    lines, exact, errors = [], True, []
    for found in told["time"]:
        sample, case = found["sample"], f"min_samples {found['min_samples']}"
        exact &= sample["length_error"] <= 1e-12 and sample["wrong_edges"] == 0 and sample["joins_all_rows"]
        errors.append(sample["length_error"])
        for name in ("quitefastmst", "fast_hdbscan", "hdbscan", "sklearn"):
            peer = found.get(name, {})
            version = told["packages"].get({"sklearn": "scikit-learn"}.get(name, name))
            ours = found["vicinal_tree" if name == "quitefastmst" else "vicinal"]
            if "ended_after_seconds" in peer:
                lines.append(unended(name, peer["ended_after_seconds"], ours["seconds"], case=case))
            elif "error" in peer:
                lines.append(failed(name, peer["error"], case=case))
            elif name == "quitefastmst" and "seconds" in peer:
                off = peer["total_over_ours"]
                lines.append(error_line(name, version, peer["seconds"], ours["seconds"], off,
                                        "tree as long as ours" if off == 0 else f"tree {off:+.0e} longer than ours",
                                        case=case))
            elif "seconds" in peer:
                agreement = f"adjusted Rand index {peer['rand_index']:.4f} with our clusters"
                lines.append({"peer": name, "case": case, "version": version, "seconds": peer["seconds"],
                              "our_seconds": ours["seconds"], "share": peer["rand_index"],
                              "exactness": "same clusters" if peer["same"] else agreement})
    return {"exact": exact, "exactness": f"tree of a sample within {max(errors):.0e} of all pairs in float64"}, lines


def optics(told):
    found = told["optics"][0]
    ours, same = found["kdtree_seconds"], found["same_order"]
    # The order is scikit-learn's, which compares all pairs in float64; ties may part them.
    vicinal = {"seconds": ours, "exact": True if same else None,
               "exactness": "the order of scikit-learn" if same else "another order than scikit-learn's"}
    return vicinal, [{"peer": "sklearn", "version": told["packages"].get("scikit-learn"),
                      "seconds": found["sklearn_seconds"], "our_seconds": ours, "share": float(same),
                      "exactness": "same order" if same else "another order"}]


def match(told):
    ours = statistics.median(told["seconds"]["vicinal_csv"])
    errors = told["area_errors"]
    pairs, wrong = errors["pairs"], errors["above_1e-9"] + errors["only_vicinal"]
    vicinal = {"seconds": ours, "exact": wrong == 0,
               "exactness": f"{pairs - wrong:,} of {pairs:,} areas within 1e-9 of GEOS"}
    theirs = statistics.median(told["seconds"]["geopandas_csv"])
    lines = [share_line("geopandas", told["geopandas"], theirs, ours, pairs, pairs, "areas by GEOS in float64")]
    topo = told["topo_tools"]
    if "error" in topo or "similarity_error" not in topo:
        return vicinal, [*lines, failed("topo-tools", topo.get("error") or topo["not_compared"])]
    off = topo["similarity_error"]
    text = f"similarities of {topo['pairs']:,} pairs within {off:.0e} of the IoU by GEOS"
    return vicinal, [*lines, error_line("topo-tools", topo["version"], statistics.median(topo["seconds"]), ours, off,
                                        text)]


def ready(told):
    found = told["sets"][0]
    lines = [failed(name, why) for name, why in found["missing"].items()]
    checked = wrong = 0
    for line in found["results"]:
        own = line["vicinal"]
        # The warm-up and every turn.
        queries = line["queries"] * (len(own["runs"]) + 1)
        checked, wrong = checked + queries, wrong + own["wrong"]
        case = f"{line['queries']} queries, k {line['k']}, {line['threads']} threads"
        lines += [share_line(name, found["sides"][name]["version"], line[name]["median"], own["median"],
                             queries - line[name]["wrong"], queries, "queries right", case=case)
                  for name in ("faiss", "panorama", "pdx") if name in line]
    if "pdx" in found["sides"] and not any("pdx" in line for line in found["results"]):
        lines.append(failed("pdx", "it has one thread, and all searches of this size had more"))
    right = f"{checked - wrong:,} of {checked:,} queries right"
    return {"exact": checked > 0 and wrong == 0, "exactness": right}, lines


def read_csv(told):
    bits, ours = told["different_bits"], told["median"]["vicinal"]["seconds"]
    numbers = bits["numbers"]
    wrong = bits["pyarrow"] + bits["pandas_round_trip"]
    vicinal = {"seconds": ours, "exact": wrong == 0,
               "exactness": f"{numbers:,} numbers, {wrong} unlike pyarrow's or correctly rounded ones"}
    return vicinal, [share_line("pandas", told["versions"]["pandas"], told["median"]["pandas"]["seconds"], ours,
                                numbers - bits["pandas_default"], numbers, "numbers right"),
                     share_line("pyarrow", told["versions"]["pyarrow"], told["median"]["pyarrow"]["seconds"], ours,
                                numbers - bits["pyarrow"], numbers, "numbers right")]


def missing(told):
    ours, theirs = (statistics.median(told[name]["seconds"]) for name in ("vicinal", "scikit_learn"))
    filled, differing = told["filled"], told["differing"]
    # Rounding of scikit-learn's may decide ties; a normal table has next to none.
    vicinal = {"seconds": ours, "exact": differing == 0,
               "exactness": f"{filled - differing:,} of {filled:,} values agree"}
    return vicinal, [share_line("sklearn", told["scikit_learn"]["version"], theirs, ours, filled - differing, filled,
                                "values agree")]


def gpu_knn(told):
    found = next(iter(told["jobs"].values()))["results"]
    lines = [failed(name, why) for name, why in told.get("not_there", {}).items()]
    own = found["vicinal"]
    if "error" in own:
        return {"exact": False, "exactness": own["error"]}, lines
    ours = own["median_ms"] / 1e3
    for name, peer in found.items():
        if name.startswith("vicinal"):
            continue
        lines.append(failed(name, peer["error"]) if "error" in peer else
                     share_line(name, peer.get("version"), peer["median_ms"] / 1e3, ours, peer["right"],
                                peer["checked"], "sampled queries right"))
    return {"seconds": ours, "exact": own["right"] == own["checked"] == own["distances_right"],
            "exactness": f"{own['right']} of {own['checked']} sampled queries right"}, lines


def gpu_kmeans(told):
    job = next(iter(told["jobs"].values()))
    rows, found = job["rows"], job["results"]
    own = found["vicinal"]
    if "error" in own:
        return {"exact": False, "exactness": own["error"]}, []
    ours, lines = own["ms_an_iteration"] / 1e3, []
    for name, peer in found.items():
        if name == "vicinal":
            continue
        if "error" in peer or "wrong_labels" not in peer:
            lines.append(failed(name, peer.get("error", "the script did not check its labels")))
            continue
        lines.append(share_line(name, peer.get("version"), peer["ms_an_iteration"] / 1e3, ours,
                                rows - peer["wrong_labels"], rows, "labels right"))
    return {"seconds": ours, "exact": own["wrong_labels"] == 0,
            "exactness": f"{rows - own['wrong_labels']:,} of {rows:,} labels right"}, lines


def cudss(told):
    found = told["results"][0]
    own = found.get("vicinal", {"refused": "the script did not run it"})
    if "refused" in own:
        return {"exact": False, "exactness": one_line(own["refused"])}, []
    ours = own["order_seconds"] + own["factor_seconds"]
    vicinal = {"seconds": ours, "exact": own["residual"] <= MAX_RESIDUAL,
               "exactness": f"fill {own['fill']:,}, residual {own['residual']:.0e} of the norm"}
    lines = []
    for one in found["results"]:
        if "backward_error" not in one:
            lines.append(failed("cuDSS", found.get("ended", "it did not end")))
            continue
        seconds = one["order_seconds"] + one["symbolic_seconds"] + one["factor_seconds"]
        lines.append(error_line("cuDSS", one["cudss"], seconds, ours, one["backward_error"],
                                f"backward error {one['backward_error']:.0e}"))
    return vicinal, lines or [failed("cuDSS", found.get("ended", "it printed nothing"))]


ADAPTERS = {"knn": knn, "kmeans": kmeans, "lof": lof, "lof_packages": lof_packages, "lle": lle, "ordering": ordering,
            "density": density, "optics": optics, "match": match, "ready": ready, "read": read_csv, "missing": missing,
            "gpu_knn": gpu_knn, "gpu_kmeans": gpu_kmeans, "cudss": cudss}
