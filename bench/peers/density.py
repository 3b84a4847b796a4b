"""Density clustering of the command `vicinal` and of other packages: whether they agree, their memory and their time.

    density.py --command build/release/cli/vicinal [-o result.json] [SECTION...]

    agreement  the 15 ADBench sets of $VICINAL_DATA: DBSCAN (ten eps, with and without weights), HDBSCAN and OPTICS
    memory     peak memory: jobs `dbscan` (within 4 GB) and `hdbscan`, 10,000,000 x 3; job `neighbors`, dbscan of
               180,000 x 9 where every row is a neighbor of every other, compared with counting these neighbors
    dbscan     CPU seconds of dbscan on 180,000 x 9 for four eps, and of counting all neighbors
    optics     wall seconds of optics, and of scikit-learn where it ends
    time       HDBSCAN in turns with quitefastmst, fast_hdbscan, hdbscan and scikit-learn, each in a process of its own.
               vicinal is called from Python, too, if its package is found (PYTHONPATH=build/release/python); otherwise
               the command is timed, with reading its table and writing its answer

An answer that differs without a reason is an error in the end. The result is written after every line. It needs a
Python with bench/peers/requirements-density.txt. The timings need an idle machine; --scale 0.01 tries them with a
hundredth of the rows.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import signal
import sys
import tempfile
import time
import warnings

import numpy as np
import result
from density_checks import (NEAR, Vicinal, failures, lengths_by_prim, rand_index, require, same_partition, sample_of,
                            wrong_edges)
from density_times import times

# Of larger tables a sample is compared: rows that DBSCAN gets, where there are too many pairs of neighbors for
# scikit-learn, those of HDBSCAN for scikit-learn and for the package hdbscan, and those of OPTICS.
SAMPLED = {"table": 100_000, "dbscan": 6_000, "hdbscan": 10_000, "package": 100_000, "optics": 3_000,
           "pairs": 20_000_000}
LIMIT = 4_000_000_000


# ---------------------------------------------------------------------------------------------------------- agreement


def ten_eps(ours, table, rows):
    """From distances to the fifth neighbor, a little more than each, so that no distance is equal to an eps."""
    queries = ours.save("some.npy", sample_of(rows, 2_000))
    _, lists = ours.arrays("knn", table, queries, "-k", min(6, len(rows)))
    fifth = np.sort(lists["distances"][:, -1])
    fifth = fifth[fifth > 0] if (fifth > 0).any() else np.array([1.0])
    at = (np.array([0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 1]) * (len(fifth) - 1)).astype(int)
    eps = [*fifth[at], 2 * fifth[-1], 8 * fifth[-1]]
    return [float(x) * (1 + 1e-7) for x in eps]


def dbscan_of(ours, name, rows):
    from sklearn.cluster import DBSCAN

    whole, rows = len(rows), sample_of(rows, SAMPLED["table"])
    table = ours.save("table.npy", rows)
    small = sample_of(rows, SAMPLED["dbscan"])
    draws = np.random.default_rng(5).integers(-1, 5, len(rows)).astype(float)
    lines = []
    for turn, eps in enumerate(ten_eps(ours, table, rows)):
        pairs = int(ours.run("radius", table, "-r", eps, "--count", "-o", "counts.npy")["neighbors"])
        compared = rows if pairs <= SAMPLED["pairs"] else small
        ours.save("compared.npy", compared)
        weights = draws[: len(compared)]
        ours.save("weights.npy", weights)
        least = 2 + turn % 7
        line = {"eps": eps, "min_samples": least, "rows": len(compared), "sampled": len(compared) < whole}
        for weighted in (False, True):
            theirs = DBSCAN(eps=eps, min_samples=least).fit(compared, sample_weight=weights if weighted else None)
            words = ["--weights", "weights.npy"] if weighted else []
            told, found = ours.arrays("dbscan", "compared.npy", "--eps", repr(eps), "--min-samples", least, *words)
            same = bool((found["labels"] == theirs.labels_).all())
            same_core = bool((np.flatnonzero(found["core"]) == theirs.core_sample_indices_).all())
            require(same and same_core, f"{name}: dbscan with eps {eps}{', weighted' if weighted else ''}")
            line["weighted" if weighted else "plain"] = {"clusters": told["clusters"], "noise": told["noise"],
                                                         "same_labels": same, "same_core": same_core}
        lines.append(line)
    return lines


def ties_of(tree, size):
    """Edges whose length another edge has, and levels where the order of such edges may change clusters.

    At a level three parts or more join at one length. Two of them, or groups of them that some order joins first, have
    at least the minimum size: else every order leaves the same clusters."""
    order = np.argsort(tree["lengths"], kind="stable")
    a, b, lengths = tree["a"][order], tree["b"][order], tree["lengths"][order]
    starts = np.flatnonzero(np.r_[True, np.diff(lengths) > NEAR * lengths[1:]])
    ends = np.r_[starts[1:], len(lengths)]
    tied = int((ends - starts)[ends - starts > 1].sum())
    parent, sizes = np.arange(len(lengths) + 1), np.ones(len(lengths) + 1, int)

    def root(row):
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    deciding = 0
    for start, end in zip(starts, ends):
        parts = {}  # of each part that has joined others: the sizes of these
        for edge in range(start, end):
            x, y = root(a[edge]), root(b[edge])
            parts[x] = parts.pop(x, [int(sizes[x])]) + parts.pop(y, [int(sizes[y])])
            parent[y] = x
            sizes[x] += sizes[y]
        for joined in parts.values():
            large = sum(part >= size for part in joined)
            small = sum(part for part in joined if part < size)
            deciding += len(joined) > 2 and large + small // size >= 2
    return tied, int(deciding)


def hdbscan_of(ours, name, rows):
    import hdbscan
    from sklearn.cluster import HDBSCAN
    from sklearn.cluster._hdbscan import _linkage
    from sklearn.cluster._hdbscan._tree import tree_to_labels

    def merged(tree):
        edges = np.zeros(len(tree["a"]), _linkage.MST_edge_dtype)
        edges["current_node"], edges["next_node"], edges["distance"] = tree["a"], tree["b"], tree["lengths"]
        return _linkage.make_single_linkage(edges)

    lines = []
    whole, small = sample_of(rows, SAMPLED["package"]), sample_of(rows, SAMPLED["hdbscan"])
    for compared in [small] if len(whole) == len(small) else [small, whole]:
        table = ours.save("compared.npy", compared)
        for size, least in ((5, 5), (25, 10), (10, 1)):
            words = [table, "--min-samples", least]
            told, found = ours.arrays("hdbscan", *words, "--min-cluster-size", size)
            _, tree = ours.arrays("spanning-tree", *words)
            tied, deciding = ties_of(tree, size)
            line = {"rows": len(compared), "sampled": len(compared) < len(rows), "min_cluster_size": size,
                    "min_samples": least, "clusters": told["clusters"], "noise": told["noise"], "tied_edges": tied,
                    "deciding_levels": deciding}
            line["wrong_edges"], line["joins_all_rows"] = wrong_edges(compared, tree, least)
            require(line["wrong_edges"] == 0, f"{name}: {line['wrong_edges']} edges with wrong lengths, {size} {least}")
            require(line["joins_all_rows"], f"{name}: the edges are no tree of all rows, {size} {least}")
            made, _ = tree_to_labels(merged(tree), size)
            line["same_from_our_tree"] = same_partition(found["labels"], made)
            require(line["same_from_our_tree"], f"{name}: other clusters of our tree, {size} {least}")
            peers = {"hdbscan": hdbscan.HDBSCAN(size, min_samples=least - 1 or 1, approx_min_span_tree=False,
                                                core_dist_n_jobs=1)}
            if least == 1:  # the package counts without the row itself, and has no 0
                del peers["hdbscan"]
            if compared is small:
                expected = lengths_by_prim(compared, least)
                off = np.abs(np.sort(tree["lengths"]) - expected) / np.maximum(expected, np.finfo(float).tiny)
                line["length_error"] = float(off.max())
                require(line["length_error"] <= NEAR, f"{name}: lengths of the tree, {line['length_error']}")
                peers["sklearn"] = HDBSCAN(size, min_samples=least, algorithm="kd_tree", copy=True)
            for peer, model in peers.items():
                labels = model.fit(compared).labels_
                same = same_partition(found["labels"], labels)
                line[peer] = {"same": same, "rand_index": 1.0 if same else rand_index(found["labels"], labels)}
                require(same or deciding > 0, f"{name}: {peer} has other clusters, and no tie decides, {size} {least}")
            lines.append(line)
    return lines


def optics_of(ours, name, rows):
    from sklearn.cluster import OPTICS, cluster_optics_dbscan

    compared = sample_of(rows, SAMPLED["optics"])
    table = ours.save("compared.npy", compared)
    lines = []
    for least, metric in ((5, "euclidean"), (10, "manhattan")):
        theirs = OPTICS(min_samples=least, metric=metric).fit(compared)
        told, found = ours.arrays("optics", table, "--min-samples", least, "--metric", metric)
        same = bool((found["ordering"] == theirs.ordering_).all())
        line = {"rows": len(compared), "sampled": len(compared) < len(rows), "min_samples": least, "metric": metric,
                "same_ordering": same}
        if same:
            both = np.isfinite(theirs.reachability_)
            line["same_infinite"] = bool((np.isfinite(found["reachability"]) == both).all())
            errors = np.abs(found["reachability"] - theirs.reachability_)[both]
            line["reachability_error"] = float(errors.max(initial=0))
            other, untied = other_predecessors(compared, found, theirs, metric)
            line |= {"same_predecessors": other == 0, "other_predecessors": other, "untied_predecessors": untied}
            require(untied == 0, f"{name}: other predecessors of optics, and no tie decides, {line}")
            line["same_labels"] = bool((found["labels"] == theirs.labels_).all())
            eps = float(np.median(found["reachability"][both])) * (1 + 1e-7)
            expected = cluster_optics_dbscan(reachability=theirs.reachability_, core_distances=theirs.core_distances_,
                                             ordering=theirs.ordering_, eps=eps)
            _, extracted = ours.arrays("optics", table, "--min-samples", least, "--metric", metric, "--clusters",
                                       "dbscan", "--eps", repr(eps))
            line["same_dbscan_labels"] = bool((extracted["labels"] == expected).all())
            # scikit-learn rounds distances to 15 decimals.
            scale = max(1.0, float(np.abs(theirs.reachability_[both]).max(initial=0)))
            require(line["same_infinite"] and line["reachability_error"] <= NEAR * scale, f"{name}: optics, {line}")
            require(line["same_dbscan_labels"], f"{name}: clusters by eps of optics, {line}")
        else:
            line |= first_difference(compared, found, theirs, metric)
            require(line["tie_decides"], f"{name}: another order of optics, {line}")
        lines.append(line)
    return lines


def equal_but_for_rounding(x, y):
    return abs(x - y) <= max(NEAR * max(x, y), 2e-15)  # decimals that scikit-learn keeps


def other_predecessors(rows, found, theirs, metric):
    """Rows with another predecessor in the same order, and those of them that their two do not reach equally far."""
    from scipy.spatial.distance import cdist

    other, untied = np.flatnonzero(found["predecessors"] != theirs.predecessor_), 0
    place = np.argsort(theirs.ordering_)
    for row in other:
        both = np.array([found["predecessors"][row], theirs.predecessor_[row]])
        earlier = (both >= 0).all() and (place[both] < place[row]).all()  # -1: has none
        if earlier:
            far = cdist(rows[both], rows[[row]], "cityblock" if metric == "manhattan" else "euclidean")[:, 0]
            reach = np.maximum(far, theirs.core_distances_[both])
        untied += not (earlier and equal_but_for_rounding(*reach))
    return len(other), untied


def first_difference(rows, found, theirs, metric):
    """Where the orders differ first, and whether both rows are reached at equal distances there, but for rounding."""
    from scipy.spatial.distance import cdist

    place = int(np.flatnonzero(found["ordering"] != theirs.ordering_)[0])
    before = found["ordering"][:place]
    both = [int(found["ordering"][place]), int(theirs.ordering_[place])]
    far = cdist(rows[both], rows[before], "cityblock" if metric == "manhattan" else "euclidean")
    reach = np.maximum(far, theirs.core_distances_[before]).min(axis=1) if place else np.zeros(2)
    near = equal_but_for_rounding(*reach)
    rows_apart = int((found["ordering"] != theirs.ordering_).sum())
    order = np.sort(found["reachability"][np.isfinite(found["reachability"])])
    ties = int((np.diff(order) <= NEAR * order[1:]).sum())
    return {"first_difference": place, "tie_decides": bool(near), "rows_apart": rows_apart, "tied_reachabilities": ties}


def agreement(ours, options, keep):
    lines = []
    for path in sorted((options.data / "adbench").glob("*.npz"), key=lambda path: int(path.name.split("_")[0])):
        name = path.stem.split("_", 1)[1]
        if options.only and name not in options.only:
            continue
        with np.load(path) as found:
            rows = np.ascontiguousarray(found["X"], np.float64)
        line = {"name": name, "rows": len(rows), "cols": rows.shape[1]}
        for kind, compare in (("dbscan", dbscan_of), ("hdbscan", hdbscan_of), ("optics", optics_of)):
            start = time.perf_counter()
            line[kind] = compare(ours, name, rows)
            keep([*lines, line])
            print(f"{name:12} {len(rows):7} x {rows.shape[1]:<4} {kind:8} {told_of(kind, line[kind])}"
                  f"  ({time.perf_counter() - start:.0f} s)", flush=True)
        lines.append(line)
    return lines


def told_of(kind, lines):
    """A line about the lines of an operation."""
    if kind == "dbscan":
        same = sum(line[way]["same_labels"] for line in lines for way in ("plain", "weighted"))
        sampled = sum(line["sampled"] for line in lines)
        return f"{same} of {2 * len(lines)} labelings equal" + (f", {sampled} eps on a sample" if sampled else "")
    if kind == "hdbscan":
        pairs = [(line, line[peer]) for line in lines for peer in ("sklearn", "hdbscan") if peer in line]
        parts = [f"{sum(told['same'] for _, told in pairs)} of {len(pairs)} partitions equal"]
        parts.append(f"ties may decide in {sum(line['deciding_levels'] > 0 for line, _ in pairs)}")
        parts.append(f"from our tree {sum(line['same_from_our_tree'] for line in lines)} of {len(lines)} equal")
        return ", ".join(parts)
    return ", ".join("the same order" if line["same_ordering"] else f"another from place {line['first_difference']} on"
                     for line in lines)


# ------------------------------------------------------------------------------------------------------------- memory


def neighbors_of_all(ours, options, add):
    """Every row is a neighbor of every other."""
    rows = int(180_000 * options.scale)
    table = np.random.default_rng(0).standard_normal((rows, 9))
    ours.save("all.npy", table)
    eps = 2 * float(np.sqrt((table**2).sum(axis=1)).max()) * 1.01
    base = ours.run("info", "all.npy") and ours.spent["peak_bytes"]
    told = ours.run("dbscan", "all.npy", "--eps", eps, "--min-samples", 10)
    line = {"rows": rows, "cols": 9, "table_bytes": table.nbytes, "eps": eps, "clusters": told["clusters"],
            "dbscan": dict(ours.spent), "info": {"peak_bytes": base}}
    add(line)
    peak = line["dbscan"]["peak_bytes"]
    require(peak <= table.nbytes + 200_000_000, f"dbscan of {rows} rows: {peak} bytes")
    counted = ours.run("radius", "all.npy", "-r", eps, "--count", "-o", "counts.npy", timeout=options.timeout)
    line = {"rows": rows, "cols": 9, "eps": eps, "count": dict(ours.spent)}
    if counted:
        line["every_row_is_a_neighbor"] = counted["neighbors"] in (rows * (rows - 1), rows * rows)
        require(line["every_row_is_a_neighbor"], f"{counted['neighbors']} neighbors of {rows} rows")
    add(line)


def memory(ours, options, keep):
    lines = []

    def add(line):
        lines.append(line | {"load": os.getloadavg()[0]})
        keep(lines)
        print(json.dumps(lines[-1]), flush=True)

    if not options.only or "neighbors" in options.only:
        neighbors_of_all(ours, options, add)
    if options.only and not {"dbscan", "hdbscan"} & set(options.only):
        return lines
    rows = int(10_000_000 * options.scale)
    ours.run("generate", "blobs", "-n", rows, "-d", 3, "--centers", 100, "-o", "large.npy")
    for words in (["dbscan", "large.npy", "--eps", 0.1, "--min-samples", 10],
                  ["hdbscan", "large.npy", "--min-cluster-size", 100, "--min-samples", 10]):
        if options.only and words[0] not in options.only:
            continue
        limit = LIMIT if words[0] == "dbscan" else None  # hdbscan keeps lists of neighbors
        told = ours.run(*words, limit=limit)
        add({"rows": rows, "cols": 3, "limit_bytes": limit, "words": words, **ours.spent,
             "clusters": told["clusters"], "noise": told["noise"], "plan": told["plan"]})
        peak = ours.spent["peak_bytes"]
        require(limit is None or peak <= limit, f"{words[0]} of {rows} rows: {peak} bytes")
    return lines


# ------------------------------------------------------------------------------------------------- tables of the page


def dbscan_times(ours, options, keep):
    rows = int(180_000 * options.scale)
    ours.save("normal.npy", np.random.default_rng(0).standard_normal((rows, 9)))
    ours.threads, lines = 1, []
    for eps in (1, 1.5, 2, 3):
        spent = []
        for _ in range(options.repeat):
            told = ours.run("dbscan", "normal.npy", "--eps", eps, "--min-samples", 10)
            spent.append(ours.spent["cpu_seconds"])
        inside = 1 - told["noise"] / rows
        lines.append({"rows": rows, "cols": 9, "eps": eps, "in_clusters": inside, "cpu_seconds": spent})
        keep(lines)
        print(json.dumps(lines[-1]), flush=True)
    for method in ("fused", "kdtree"):
        ours.run("radius", "normal.npy", "-r", 2, "--count", "--method", method, "-o", "counts.npy")
        spent = [ours.spent["cpu_seconds"]]
        lines.append({"rows": rows, "cols": 9, "eps": 2, "count_by": method, "cpu_seconds": spent})
        keep(lines)
        print(json.dumps(lines[-1]), flush=True)
    return lines


def optics_times(ours, options, keep):
    draws = np.random.default_rng(0)
    centers = draws.uniform(-100, 100, (30, 2))
    blobs = int(250_000 * options.scale)
    tables = {"normal 3": draws.standard_normal((int(10_000 * options.scale), 3)),
              "normal 9": draws.standard_normal((int(45_000 * options.scale), 9)),
              "blobs 2": centers[draws.integers(0, 30, blobs)] + draws.standard_normal((blobs, 2))}
    lines = []
    for name, rows in tables.items():
        if options.only and name not in options.only:
            continue
        table = ours.save("rows.npy", rows)
        line = {"table": name, "rows": len(rows), "cols": rows.shape[1], "min_samples": 5, "threads": ours.threads}
        for method in ("kdtree", "direct"):
            if name == "blobs 2" and method == "direct":
                continue
            # The whole command, which reads the table and writes the order, too.
            ours.arrays("optics", table, "--min-samples", 5, "--method", method)
            line[f"{method}_seconds"] = ours.spent["seconds"]
        if name == "normal 3":
            from sklearn.cluster import OPTICS
            from threadpoolctl import threadpool_limits

            _, found = ours.arrays("optics", table, "--min-samples", 5)
            model = OPTICS(min_samples=5, n_jobs=ours.threads)
            with threadpool_limits(ours.threads):
                model.fit(rows[:100])  # what is loaded at the first call
                start = time.perf_counter()
                theirs = model.fit(rows)
                line["sklearn_seconds"] = time.perf_counter() - start
            line["same_order"] = bool((theirs.ordering_ == found["ordering"]).all())
        lines.append(line)
        keep(lines)
        print(json.dumps(line), flush=True)
    return lines


def version_of(package):
    """None: it is not installed, and whatever needs it says so."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


SECTIONS = {"agreement": agreement, "memory": memory, "dbscan": dbscan_times, "optics": optics_times,
            "time": times}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="all where none is named")
    parser.add_argument("--command", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="a set, table, or job of memory; may be repeated")
    parser.add_argument("--peer", action="append", default=[], dest="peers", metavar="NAME",
                        help="a peer that is timed; may be repeated [all]")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=600, help="seconds of all calls of a peer, of a count")
    parser.add_argument("--scale", type=float, default=1, help="share of the rows of tables that are drawn")
    parser.add_argument("--sample", type=float, default=1, help="share of the rows of samples in agreement")
    result.add_options(parser)
    options = parser.parse_args()
    for section in options.sections:
        if section not in SECTIONS:
            parser.error(f"there is no section {section}")
    options.data = pathlib.Path(os.environ.get("VICINAL_DATA", ""))
    for kind in SAMPLED:
        SAMPLED[kind] = int(SAMPLED[kind] * options.sample)
    sections = options.sections or list(SECTIONS)
    if "agreement" in sections and not (options.data / "adbench").is_dir():
        sys.exit("density.py: VICINAL_DATA does not name the folder that holds adbench/")
    warnings.filterwarnings("ignore")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("density.py: it was ended"))  # so that peers are ended, too
    packages = ("scikit-learn", "hdbscan", "fast_hdbscan", "quitefastmst", "numba", "numpy", "scipy")
    versions = {name: version_of(name) for name in packages}
    measured = {"processor": result.processor(), "packages": versions, "sample": options.sample}
    with tempfile.TemporaryDirectory() as folder:
        for section in sections:
            ours = Vicinal(options.command, pathlib.Path(folder), options.threads)
            measured[section] = SECTIONS[section](
                ours, options, lambda lines, of=section: result.write(options, measured | {of: lines}))
    if failures:
        sys.exit("density.py: " + "; ".join(failures))


if __name__ == "__main__":
    main()
