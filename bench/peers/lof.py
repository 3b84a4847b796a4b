"""Outlier scores of the command `vicinal lof` beside scikit-learn, PyOD and PyNomaly: are they the same, and how fast.

    lof.py --command build/release/cli/vicinal [-o result.json] [SECTION...]

    sets      the ADBench sets of $VICINAL_DATA: equality with scikit-learn, in-sample and novelty, ties counted; ROC-AUC
    offsets   data far from the origin, against a long double reference
    variants  kNN, COF and LoOP against PyOD and PyNomaly
    time      100,000 x 16 (--rows N, or --table FILE) beside scikit-learn and scikit-learn-intelex, in turns
    packages  10,000 x 8 (--rows N) beside PyOD (LOF, kNN) and, on 1,000 rows, PyOD's COF and PyNomaly's LoOP, in turns
    kdd       KDD Cup 99, 494,021 rows, from the .gz file: time, memory, attacks among the top 1 %

A tolerance that is not kept is an error in the end. What is done is written after every section. It needs the Python of
`vicinal-bench peers lof`; `variants` and `packages` need requirements-outliers.txt.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

K = 20
# In-sample LOF, k = 20, unscaled, of scikit-learn 1.2, from a run that had nothing to do with this one.
REFERENCE_AUC = {"annthyroid": 0.7373, "glass": 0.8114, "musk": 0.4157, "optdigits": 0.5875, "satellite": 0.5428,
                 "shuttle": 0.5601, "thyroid": 0.8075, "wine": 0.9983, "http": 0.353, "smtp": 0.905,
                 "mammography": 0.720, "breastw": 0.389}
SCORES = ("lof", "simplified_lof", "knn", "knn_weighted", "loop", "ldof", "inflo", "cof", "cof_pyod")
POLICIES = ("sklearn", "inf", "one", "cap", "distinct")
failures = []


def require(holds, sentence):
    """NaN fails, too."""
    if not holds:
        failures.append(sentence)
        print("NOT KEPT:", sentence, file=sys.stderr)


class Vicinal:
    def __init__(self, command, folder, threads):
        self.command, self.folder, self.threads = command, folder, threads

    def run(self, *words):
        """Its standard output; seconds, processor seconds and peak bytes are kept as `spent`."""
        words = [self.command, *words, "--threads", self.threads, "--device", "cpu", "--quiet"]
        with open(self.folder / "told", "w+") as told:
            start = time.perf_counter()
            child = subprocess.Popen(list(map(str, words)), stdout=told)
            _, status, usage = os.wait4(child.pid, 0)
            self.spent = {"seconds": time.perf_counter() - start, "cpu": usage.ru_utime + usage.ru_stime,
                          "peak_bytes": usage.ru_maxrss * 1024}
            if status:
                sys.exit(f"failed: {' '.join(map(str, words))}")
            told.seek(0)
            return told.read()

    def save(self, name, rows):
        path = self.folder / f"{name}.npy"
        np.save(path, np.ascontiguousarray(rows))
        return path

    def lof(self, *words):
        out = self.folder / "scores.npy"
        self.run("lof", *words, "-o", out)
        return np.load(out)

    def graph(self, *words):
        out = self.folder / "graph.npz"
        self.run("knn", *words, "-o", out)
        with np.load(out) as found:
            return found["ids"], found["distances"]


def worst(ours, theirs):
    return float(np.max(np.abs(ours - theirs) / np.abs(theirs))) if len(theirs) else 0.0


def auc(labels, scores):
    from scipy.stats import rankdata
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels, rankdata(scores)))  # ranks: a score may be infinite


def sparse(ids, distances, columns):
    from scipy.sparse import csr_matrix

    rows, k = ids.shape
    return csr_matrix((distances.ravel(), ids.ravel(), np.arange(rows + 1) * k), shape=(rows, columns))


def tied(ids, distances, at_k):
    """Rows with a tie at k, given k + 1 neighbors, or with a neighbor that is in `at_k`."""
    own = distances[:, K] - distances[:, K - 1] <= 1e-12 * distances[:, K]
    among = own if at_k is None else at_k
    return own, own | among[ids[:, :K]].any(axis=1)


def equality(ours, rows, queries, jobs):
    """One set: ours and scikit-learn's from our graph, and from the rows by its kd-tree. The worst relative errors."""
    from sklearn.neighbors import LocalOutlierFactor

    n = len(rows)
    table = ours.save("table", rows)
    told = {}
    ids, distances = ours.graph(table, "-k", K + 1)
    at_k, near_ties = tied(ids, distances, None)
    self_first = np.hstack([np.arange(n)[:, None], ids[:, :K]])
    zero_first = np.hstack([np.zeros((n, 1)), distances[:, :K]])
    same_graph = LocalOutlierFactor(n_neighbors=K, metric="precomputed", novelty=queries is not None)
    same_graph.fit(sparse(self_first, zero_first, n))
    end_to_end = LocalOutlierFactor(n_neighbors=K, algorithm="kd_tree", novelty=queries is not None, n_jobs=jobs)
    end_to_end.fit(rows)
    if queries is None:
        scores = ours.lof(table, "-k", K)
        theirs = -same_graph.negative_outlier_factor_, -end_to_end.negative_outlier_factor_
    else:
        asked = ours.save("queries", queries)
        scores = ours.lof(table, asked, "-k", K, "--novelty")
        ids, distances = ours.graph(table, asked, "-k", K + 1)
        _, near_ties = tied(ids, distances, at_k)
        theirs = (-same_graph.score_samples(sparse(ids[:, :K], distances[:, :K], n)),
                  -end_to_end.score_samples(queries))
    told["rows"] = len(scores)
    told["same_graph"] = worst(scores, theirs[0])
    told["tied_rows"] = int(near_ties.sum())
    told["kd_tree"] = worst(scores[~near_ties], theirs[1][~near_ties])
    told["kd_tree_tied"] = worst(scores[near_ties], theirs[1][near_ties])
    return told, scores


def sets(ours, options):
    result = []
    for path in sorted((options.data / "adbench").glob("*.npz"), key=lambda path: int(path.name.split("_")[0])):
        name = path.stem.split("_", 1)[1]
        if options.only and name not in options.only:
            continue
        with np.load(path) as found:
            rows, labels = found["X"].astype(np.float64), found["y"].astype(int)
        told = {"name": name, "rows": len(rows), "cols": rows.shape[1], "outliers": int(labels.sum())}
        told["in_sample"], scores = equality(ours, rows, None, options.threads)
        order = np.random.default_rng(0).permutation(len(rows))
        half = len(rows) // 2
        told["novelty"], _ = equality(ours, rows[order[:half]], rows[order[half:]], options.threads)
        for mode in ("in_sample", "novelty"):
            require(told[mode]["same_graph"] <= 1e-12, f"{name}, {mode}, same graph: {told[mode]['same_graph']}")
            require(told[mode]["kd_tree"] <= 1e-10, f"{name}, {mode}, kd-tree: {told[mode]['kd_tree']}")
        told["auc"] = auc(labels, scores)
        if name in REFERENCE_AUC:
            told["auc_reference"] = REFERENCE_AUC[name]
            digits = 3 if name in ("http", "smtp", "mammography", "breastw") else 4
            told["auc_off"] = abs(told["auc"] - REFERENCE_AUC[name])
            # Ties at k may be cut another way; where there are none the digits are the same.
            if told["in_sample"]["tied_rows"] == 0:
                require(told["auc_off"] <= 0.51 * 10**-digits, f"{name}: ROC-AUC {told['auc']}")
        table = ours.save("table", rows)
        told["auc_by_policy"], told["auc_by_score"] = {}, {}
        for policy in POLICIES:
            if policy == "distinct" and len(np.unique(rows, axis=0)) <= K:
                continue
            told["auc_by_policy"][policy] = auc(labels, ours.lof(table, "-k", K, "--duplicates", policy))
        for score in SCORES:
            told["auc_by_score"][score] = auc(labels, ours.lof(table, "-k", K, "--score", score))
        result.append(told)
        print(f"{name:12} {len(rows):7} same graph {told['in_sample']['same_graph']:.1e} {told['novelty']['same_graph']:.1e}"
              f"  kd-tree {told['in_sample']['kd_tree']:.1e} {told['novelty']['kd_tree']:.1e}  tied "
              f"{told['in_sample']['tied_rows']} {told['novelty']['tied_rows']}  AUC {told['auc']:.4f} "
              f"({REFERENCE_AUC.get(name, '-')})", flush=True)
    return result


def in_long_double(rows):
    rows = rows.astype(np.longdouble)
    n = len(rows)
    ids, distances = np.empty((n, K), int), np.empty((n, K), np.longdouble)
    for i in range(n):
        far = np.sqrt(((rows - rows[i]) ** 2).sum(axis=1))
        far[i] = np.inf
        ids[i] = np.argsort(far, kind="stable")[:K]
        distances[i] = far[ids[i]]
    reach = np.maximum(distances, distances[ids, K - 1])
    density = 1 / (reach.mean(axis=1) + np.longdouble(1e-10))
    return density[ids].mean(axis=1) / density


def offsets(ours, options):
    from sklearn.neighbors import LocalOutlierFactor

    rows = np.random.default_rng(0).standard_normal((2000, 16))
    result = []
    for offset in (0.0, 1e4, 1e6, 1e8):
        moved = rows + offset
        exact = in_long_double(moved)
        told = {"offset": offset, "ours": worst(ours.lof(ours.save("table", moved), "-k", K), exact)}
        for algorithm in ("brute", "kd_tree"):
            fitted = LocalOutlierFactor(n_neighbors=K, algorithm=algorithm).fit(moved)
            told[f"sklearn_{algorithm}"] = worst(-fitted.negative_outlier_factor_, exact)
        told = {key: float(value) for key, value in told.items()}
        require(told["ours"] <= 1e-9, f"offset {offset}: {told['ours']}")
        result.append(told)
        print("  ".join(f"{key} {value:.1e}" for key, value in told.items()), flush=True)
    return result


def variants(ours, options):
    from PyNomaly.loop import LocalOutlierProbability
    from pyod.models.cof import COF
    from pyod.models.knn import KNN
    from pyod.models.lof import LOF

    draws = np.random.default_rng(1)
    data = {"gaussian": draws.standard_normal((600, 8)), "clusters": np.vstack(
        [draws.standard_normal((300, 4)) * width + shift for width, shift in ((0.1, 0), (1, 4), (5, -20))])}
    for name in ("14_glass", "45_wine", "38_thyroid"):
        with np.load(options.data / "adbench" / f"{name}.npz") as found:
            data[name.split("_")[1]] = found["X"].astype(np.float64)
    result = []
    for name, rows in data.items():
        table = ours.save("table", rows)
        ids, distances = ours.graph(table, "-k", K + 1)
        _, near_ties = tied(ids, distances, None)
        # The chain of cof_pyod goes in the order of the distances: any two that are equal may be swapped.
        swapped = (np.diff(distances, axis=1) <= 1e-12 * distances[:, 1:]).any(axis=1)
        swapped |= swapped[ids[:, :K]].any(axis=1)
        kept = ~near_ties
        told = {"name": name, "rows": len(rows), "tied_rows": int(near_ties.sum())}
        told["knn"] = worst(ours.lof(table, "-k", K, "--score", "knn")[kept],
                            KNN(n_neighbors=K, method="largest").fit(rows).decision_scores_[kept])
        told["knn_weighted"] = worst(ours.lof(table, "-k", K, "--score", "knn_weighted")[kept],
                                     K * KNN(n_neighbors=K, method="mean").fit(rows).decision_scores_[kept])
        told["lof"] = worst(ours.lof(table, "-k", K)[kept],
                            LOF(n_neighbors=K, algorithm="kd_tree", novelty=False).fit(rows).decision_scores_[kept])
        if len(rows) <= 1000:
            told["cof_pyod"] = worst(ours.lof(table, "-k", K, "--score", "cof_pyod")[~swapped],
                                     COF(n_neighbors=K, method="fast").fit(rows).decision_scores_[~swapped])
            told["cof_rows"] = int((~swapped).sum())
        loop = LocalOutlierProbability(distance_matrix=distances[:, :K], neighbor_matrix=ids[:, :K], n_neighbors=K)
        theirs = np.asarray(loop.fit().local_outlier_probabilities, dtype=float)
        # Probabilities: the absolute error, because theirs takes 1 from a quotient before it asks how far that is from 0.
        told["loop"] = float(np.max(np.abs(ours.lof(table, "-k", K, "--score", "loop") - theirs)))
        for score in ("knn", "knn_weighted", "lof", "cof_pyod", "loop"):
            require(told.get(score, 0) <= 1e-12 * (100 if score == "lof" else 1), f"{name}, {score}: {told.get(score)}")
        result.append(told)
        print(told, flush=True)
    return result


def off_float64(rows, scores, count=2):
    """The largest relative difference between some scores and those that float64 distances of all rows give, of rows
    whose neighborhoods have no tie at k."""
    lists = {}

    def list_of(i):
        if i not in lists:
            squares = np.zeros(len(rows))
            for column, value in zip(rows.T, rows[i]):
                squares += (column - value) ** 2
            squares[i] = np.inf
            near = np.argpartition(squares, K)[: K + 1]
            near = near[np.lexsort((near, squares[near]))]
            lists[i] = near[:K], np.sqrt(squares[near[:K]]), squares[near[K]] <= squares[near[K - 1]] * (1 + 1e-12)
        return lists[i]

    def density_of(i):
        near, distances, tied = list_of(i)
        reach = [max(distance, list_of(j)[1][K - 1]) for j, distance in zip(near, distances)]
        return 1 / (np.mean(reach) + 1e-10), tied or any(list_of(j)[2] for j in near)

    off = []
    for i in np.random.default_rng(4).choice(len(rows), min(5 * count, len(rows)), replace=False):
        densities = [density_of(j) for j in list_of(i)[0]]
        own, tied = density_of(i)
        if not tied and not any(tied for _, tied in densities):
            off.append(abs(scores[i] * own / np.mean([density for density, _ in densities]) - 1))
        if len(off) == count:
            break
    return float(max(off, default=np.nan))


def packages(ours, options):
    """Each library's own scores in turns with ours, and the largest difference between the two. PyOD's COF and PyNomaly
    have one thread."""
    from threadpoolctl import threadpool_limits

    draws = np.random.default_rng(2)
    many, few = draws.standard_normal((options.rows or 10_000, 8)), draws.standard_normal((1_000, 8))

    def of_pyod(module, name, **words):
        def make(rows):
            model = getattr(__import__(f"pyod.models.{module}", fromlist=[name]), name)(n_neighbors=K, **words)
            return lambda: model.fit(rows).decision_scores_
        return make

    def of_pynomaly(rows):
        from PyNomaly.loop import LocalOutlierProbability

        return lambda: np.asarray(LocalOutlierProbability(rows, n_neighbors=K).fit().local_outlier_probabilities, float)

    jobs = {"pyod lof": (many, "lof", of_pyod("lof", "LOF", algorithm="kd_tree", novelty=False,
                                               n_jobs=options.threads)),
            "pyod knn": (many, "knn", of_pyod("knn", "KNN", method="largest", n_jobs=options.threads)),
            "pyod cof": (few, "cof_pyod", of_pyod("cof", "COF", method="fast")),
            "pynomaly loop": (few, "loop", of_pynomaly)}
    result = []
    for name, (rows, score, make) in jobs.items():
        line = {"peer": name, "rows": len(rows), "cols": rows.shape[1], "score": score}
        result.append(line)
        try:
            call = make(rows)
            with threadpool_limits(options.threads):
                call()  # what is compiled at the first call
        except Exception as error:  # a library that is not there, or that fails
            line["error"] = f"{type(error).__name__}: {error}"
            continue
        table, spent = ours.save("table", rows), {"vicinal": [], "theirs": []}
        for _ in range(options.repeat):
            scores = ours.lof(table, "-k", K, "--score", score)
            spent["vicinal"].append(ours.spent["seconds"])
            with threadpool_limits(options.threads):
                start = time.perf_counter()
                theirs = call()
                spent["theirs"].append(time.perf_counter() - start)
        # Probabilities: the absolute error.
        line["off"] = float(np.max(np.abs(scores - theirs))) if score == "loop" else worst(scores, theirs)
        line |= {who: {"seconds": float(np.median(times)), "runs": times} for who, times in spent.items()}
        if score == "lof":
            line["off_float64"] = off_float64(rows, scores)
            require(line["off_float64"] <= 1e-9, f"packages: scores differ from float64 by {line['off_float64']}")
        print(json.dumps(line), flush=True)
    return result


def timed(call):
    start, cpu = time.perf_counter(), time.process_time()
    call()
    return {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}


def times(ours, options):
    from sklearn.neighbors import LocalOutlierFactor
    from threadpoolctl import threadpool_limits

    try:
        from sklearnex.neighbors import LocalOutlierFactor as Intelex
    except ImportError as error:
        Intelex, missing = None, {"sklearnex_float32": f"{type(error).__name__}: {error}"}
    else:
        missing = {}
    if options.table:
        rows = np.load(options.table).astype(np.float64)[: options.rows]
    else:
        rows = np.random.default_rng(0).standard_normal((options.rows or 100_000, 16))
    table, narrow = ours.save("table", rows), rows.astype(np.float32)
    result = {"rows": len(rows), "cols": rows.shape[1], "k": K, "threads": options.threads, "load": os.getloadavg()[0]}
    # Ours is the whole command, which reads the table and writes the scores, too.
    runs = {"vicinal": [], "sklearn_brute": [], **({"sklearnex_float32": []} if Intelex else {})}
    with threadpool_limits(options.threads):
        for turn in range(options.repeat):
            told = json.loads(ours.run("lof", table, "-k", K, "--json", "-o", ours.folder / "scores.npy"))
            runs["vicinal"].append({**ours.spent, "lof_seconds": told["score_seconds"]})
            if Intelex:
                model = Intelex(n_neighbors=K, algorithm="brute", n_jobs=options.threads)
                runs["sklearnex_float32"].append(timed(lambda: model.fit(narrow)))
            if turn < options.repeat_slow:
                brute = LocalOutlierFactor(n_neighbors=K, algorithm="brute", n_jobs=options.threads)
                runs["sklearn_brute"].append(timed(lambda: brute.fit(rows)))
    scores = np.load(ours.folder / "scores.npy")
    result["off_sklearn_brute"] = worst(scores, -brute.negative_outlier_factor_)
    if Intelex:
        result["off_sklearnex_float32"] = worst(scores, -np.asarray(model.negative_outlier_factor_, np.float64))
    result["missing"] = missing
    result["off_float64"] = off_float64(rows, scores)
    # Densities of equal rows are sums of rounding errors; else sums of k numbers, and the roots in them, differ little.
    require(result["off_float64"] <= 1e-9, f"time: scores differ from float64 by {result['off_float64']}")
    result["least"] = {peer: {key: min(run[key] for run in runs[peer]) for key in ("seconds", "cpu")} for peer in runs}
    result["runs"] = runs
    print(json.dumps(result), flush=True)
    return result


def kdd(ours, options):
    source = options.data / "kddcup99" / "kddcup.data_10_percent.gz"
    result = []
    for words in ([], ["--scale", "standard"], ["--scale", "standard", "--duplicates", "distinct"],
                  ["--scale", "standard", "--score", "knn"]):
        report = ours.folder / "report.html"
        told = json.loads(ours.run("lof", source, "-k", K, "--categories", "ordinal", "--label", options.kdd_label, "--normal",
                                   "normal.", "--top-share", 0.01, "--json", "--report", report, *words))
        del told["top"]
        result.append({"options": words, "load": os.getloadavg()[0], **ours.spent, "told": told})
        print(json.dumps(result[-1]), flush=True)
    return result


SECTIONS = {"sets": sets, "offsets": offsets, "variants": variants, "time": times, "packages": packages, "kdd": kdd}
PACKAGES = ("scikit-learn", "scikit-learn-intelex", "pyod", "PyNomaly")


def versions():
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def about(options):
    import sklearn

    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    version = subprocess.run([options.command, "--version"], capture_output=True, text=True).stdout.strip()
    return {"version": version, "commit": options.commit, "cpu": cpu, "cores": os.cpu_count(), "k": K,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "sklearn": sklearn.__version__, "numpy": np.__version__, "packages": versions()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="all where none is named")
    parser.add_argument("--command", required=True)
    parser.add_argument("--commit", default="", help="of the command, to be written down")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], help="names of sets")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--repeat-slow", type=int, default=1, help="turns of scikit-learn's brute")
    parser.add_argument("--kdd-label", default="41")
    parser.add_argument("--rows", type=int, help="of the tables of time and packages")
    parser.add_argument("--table", help="rows of time instead of normal draws (.npy)")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    for section in options.sections:
        if section not in SECTIONS:
            parser.error(f"there is no section {section}")
    options.data = pathlib.Path(os.environ["VICINAL_DATA"]) if "VICINAL_DATA" in os.environ else None
    if options.data is None and set(options.sections or SECTIONS) - {"offsets", "time", "packages"}:
        sys.exit("lof.py: VICINAL_DATA does not name the folder that holds adbench/ and kddcup99/")
    result = json.loads(options.output.read_text()) if options.output and options.output.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        ours = Vicinal(options.command, pathlib.Path(name), options.threads)
        for section in options.sections or SECTIONS:
            told = about(options)
            result |= {"machine": f"{told['cpu']}, {told['cores']} cores"} | {key: told[key] for key in ("date", "commit")}
            result[section] = {"about": told, "result": SECTIONS[section](ours, options)}
            if options.output:
                options.output.write_text(json.dumps(result, indent=1) + "\n")
    if failures:
        sys.exit("lof.py: " + "; ".join(failures))


if __name__ == "__main__":
    main()
