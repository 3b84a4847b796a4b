"""How fast the Python package is: compared with C++ on large tables, and with scikit-learn, in turns, in one run.

    python_speed.py --bench build/release/bench/vicinal-bench [-o FILE.json] [SECTION...]
    python_speed.py --page docs/python.md FILE.json

    large   knn through Python and in C++ (vicinal-bench, in a process of its own), on tables of 100 MB
    small   one query and 1,000 queries on 1,000 x 10 rows, k = 5: Index.knn, vicinal.sklearn and the patch compared
            with scikit-learn's fitted estimator
    brute   brute force with the patch and without: 100,000 rows, 10,000 queries, 128 columns of float32, k = 32
    tree    NearestNeighbors() with the patch and without, fit and search: 1,000,000 x 3, 200,000 queries
    kmeans  an iteration of KMeans with the patch and without: 1,000,000 x 64, 64 clusters
    lle     LocallyLinearEmbedding with the patch and without: standard on 30,000 rows, modified on 10,000

Every side of a row makes one call to warm up; then the sides take turns, --turns times. The ratio is that of the
medians: the other side's time divided by that of vicinal, so above 1 vicinal is faster. Answers are checked by float64
distances that NumPy computes, for a sample of the queries; embeddings are compared with scikit-learn's. Rows have a
target, and whether it was met. --quick takes a tenth of the rows and proves nothing but that the script works.

It needs scikit-learn 1.9 and the package `vicinal` of a release build. --page writes the table of a result into the
section "Speed" of a page.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
from result import add_options, processor, write  # noqa: E402

EPS = np.finfo(np.float64).eps
SAMPLE = 64  # queries whose answers are checked


# ---- measuring -------------------------------------------------------------------------------------------------------


def timed(work):
    """(seconds, answer) of a call; a call that measures itself returns a Measured."""
    start = time.perf_counter()
    answer = work()
    seconds = time.perf_counter() - start
    return (answer.seconds, answer.answer) if isinstance(answer, Measured) else (seconds, answer)


class Measured:
    def __init__(self, seconds, answer):
        self.seconds, self.answer = seconds, answer


def take_turns(sides, turns):
    """{side: {"seconds": [of each turn], "answer": of the last}}; the side that begins changes every turn."""
    measured = {name: {"seconds": [], "answer": timed(work)[1]} for name, work in sides.items()}
    names = list(sides)
    for turn in range(turns):
        begin = turn % len(names)
        for name in names[begin:] + names[:begin]:
            seconds, measured[name]["answer"] = timed(sides[name])
            measured[name]["seconds"].append(seconds)
    return measured


def per_call(work, calls):
    """A side that is too short to time alone: the mean of so many calls."""

    def repeated():
        start = time.perf_counter()
        for _ in range(calls):
            answer = work()
        return Measured((time.perf_counter() - start) / calls, answer)

    return repeated


def patched(work):
    """A call with the patch, which is placed before its clock starts."""
    import vicinal as vc

    def call():
        vc.patch_sklearn()
        try:
            return Measured(*timed(work))
        finally:
            vc.unpatch_sklearn()

    return call


def wrong_queries(table, queries, ids, k):
    """Of a sample of queries, how many have a row that is not among the k nearest by squared float64 distance. Two sums
    of d squares that are equal without rounding differ by (d + 2) eps at most, relatively."""
    checked = np.linspace(0, len(queries) - 1, min(SAMPLE, len(queries))).astype(int)
    wrong = 0
    for i in checked:
        keys = ((table.astype(np.float64) - queries[i]) ** 2).sum(axis=1)
        kth = np.partition(keys, k - 1)[k - 1]
        distinct = len(set(ids[i].tolist())) == k
        wrong += not (distinct and (keys[ids[i]] <= kth * (1 + 2 * (table.shape[1] + 2) * EPS)).all())
    return wrong


class Rows:
    """The rows of the result, printed and written as they come."""

    def __init__(self, options):
        self.options, self.rows = options, []

    def add(self, name, what, target, ours, theirs, measured, check, met=None):
        """`target`: the least ratio of `theirs` to `ours`, or None; `met(median of ours)`: one in seconds instead."""
        seconds = {side: measured[side]["seconds"] for side in measured}
        middle = {side: statistics.median(values) for side, values in seconds.items()}
        ratio = middle[theirs] / middle[ours]
        row = {"row": name, "what": what, "ours": ours, "theirs": theirs, "median": middle, "seconds": seconds,
               "ratio": ratio, "target": target,
               "met": met(middle[ours]) if met else target is None or ratio >= target, "check": check}
        self.rows.append(row)
        shown = ", ".join(f"{side} {shown_time(value)}" for side, value in middle.items())
        verdict = "" if target is None else f", target {target} {'met' if row['met'] else 'NOT MET'}"
        print(f"{name}: {shown}; ratio {ratio:.3g}{verdict}; {check}", flush=True)
        about = {"script": "bench/python_speed.py", "processor": processor(), "load": self.options.load,
                 "threads": len(os.sched_getaffinity(0)), "versions": versions(), "turns": self.options.turns,
                 "quick": self.options.quick}
        write(self.options, {**about, "rows": self.rows})


def versions():
    import sklearn

    import vicinal

    return {"vicinal": vicinal.__version__, "scikit-learn": sklearn.__version__, "numpy": np.__version__,
            "python": ".".join(map(str, sys.version_info[:3]))}


# ---- sections --------------------------------------------------------------------------------------------------------


def large(options, rows):
    """The same files, mapped by both; each side is warm when its call is timed."""
    import vicinal as vc

    jobs = [("knn, fused", options.size(200_000), 128, np.float32, 2_000, 10),
            ("knn, kd-tree", options.size(4_166_667), 3, np.float64, 200_000, 10)]
    for name, n, d, dtype, m, k in jobs:
        draw = np.random.default_rng(1)
        with tempfile.TemporaryDirectory() as folder:
            paths = [str(pathlib.Path(folder) / part) for part in ("table.npy", "queries.npy")]
            for path, count in zip(paths, (n, options.size(m))):
                np.save(path, draw.random((count, d), dtype))
            table, queries = (np.load(path, mmap_mode="r") for path in paths)

            def in_cpp():
                words = [options.bench, "knn", "--table-file", paths[0], "--queries-file", paths[1], "-k", k,
                         "--warmup", 1, "--repeat", 1, "--device", "cpu", "--json"]
                told = subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout
                return Measured(json.loads(told)["seconds"]["median"], None)

            def in_python():
                return vc.knn(table, queries, k=k, device="cpu")

            measured = take_turns({"Python": in_python, "C++": in_cpp}, options.turns + 2)
            graph = measured["Python"]["answer"]
            rows.add(f"large, {name}",
                     f"`knn`, {n:,} x {d} {np.dtype(dtype)}, {len(queries):,} queries, k = {k}, compared with C++",
                     0.95, "Python", "C++", measured,
                     {"wrong": wrong_queries(table, queries, graph.ids, k), "copied": graph.copied})


def small(options, rows):
    """scikit-learn's default is the kd-tree here; brute force is its fastest for one query."""
    import vicinal as vc
    import vicinal.sklearn as vs
    from sklearn.neighbors import NearestNeighbors

    draw = np.random.default_rng(2)
    table, all_queries, k = draw.normal(size=(1000, 10)), draw.normal(size=(1000, 10)), 5
    index = vc.Index(table)
    for count, calls in ((1, 200), (1000, 5)):
        queries = all_queries[:count]
        sides = {"Index.knn": per_call(lambda: index.knn(queries, k=k), calls)}
        for algorithm in ("auto", "brute"):
            stock = NearestNeighbors(n_neighbors=k, algorithm=algorithm).fit(table)
            ours = vs.NearestNeighbors(n_neighbors=k, algorithm=algorithm).fit(table)
            sides[f"scikit-learn, {algorithm}"] = per_call(lambda model=stock: model.kneighbors(queries), calls)
            sides[f"vicinal.sklearn, {algorithm}"] = per_call(lambda model=ours: model.kneighbors(queries), calls)
            sides[f"patch, {algorithm}"] = patched(sides[f"scikit-learn, {algorithm}"])
        measured = take_turns(sides, options.turns + 2)
        ids = measured["Index.knn"]["answer"].ids
        wrong = wrong_queries(table, queries, ids, k)
        size = f"on 1,000 x 10, k = {k}"
        plural = "one query" if count == 1 else "1,000 queries"
        theirs = min(("scikit-learn, auto", "scikit-learn, brute"),
                     key=lambda side: statistics.median(measured[side]["seconds"]))
        within = (lambda seconds: seconds < 60e-6) if count == 1 else None
        rows.add(f"small, {plural}, Index", f"`Index.knn`, {plural} {size}", "60 us" if count == 1 else 1.0,
                 "Index.knn", theirs, measured, {"wrong": wrong}, within)
        for algorithm in ("auto", "brute"):
            for way in ("vicinal.sklearn", "patch"):
                same = bool((measured[f"{way}, {algorithm}"]["answer"][1] == ids).all())
                rows.add(f"small, {plural}, {way}, {algorithm}",
                         f"`NearestNeighbors(algorithm=\"{algorithm}\")`, {way}: {plural} {size}",
                         None if count == 1 else 1.0,
                         f"{way}, {algorithm}", f"scikit-learn, {algorithm}",
                         {side: measured[side] for side in (f"{way}, {algorithm}", f"scikit-learn, {algorithm}")},
                         {"ids as Index.knn": same})


def compare_patch(options, rows, name, what, target, work, check):
    """A row of the same call with the patch and without; `check(ours, theirs)` of their answers."""
    measured = take_turns({"patch": patched(work), "scikit-learn": work}, options.turns)
    rows.add(name, what, target, "patch", "scikit-learn", measured,
             check(measured["patch"]["answer"], measured["scikit-learn"]["answer"]))


def neighbors_check(table, queries, k):
    def check(ours, theirs):
        return {"wrong": wrong_queries(table, queries, ours[1], k),
                "scikit-learn wrong": wrong_queries(table, queries, theirs[1], k)}

    return check


def brute(options, rows):
    from sklearn.neighbors import NearestNeighbors

    draw = np.random.default_rng(3)
    n, m, d, k = options.size(100_000), options.size(10_000), 128, 32
    table, queries = (draw.standard_normal((count, d), np.float32) for count in (n, m))
    model = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(table)
    compare_patch(options, rows, "brute", f"`NearestNeighbors(algorithm=\"brute\")`, {n:,} rows, {m:,} queries, {d} "
                  f"columns of float32, k = {k}", 5, lambda: model.kneighbors(queries),
                  neighbors_check(table, queries, k))


def tree(options, rows):
    from sklearn.neighbors import NearestNeighbors

    draw = np.random.default_rng(4)
    n, m = options.size(1_000_000), options.size(200_000)
    table, queries = draw.random((n, 3)), draw.random((m, 3))
    compare_patch(options, rows, "tree", f"`NearestNeighbors().fit` and `kneighbors`, {n:,} x 3 float64, {m:,} queries",
                  3, lambda: NearestNeighbors().fit(table).kneighbors(queries), neighbors_check(table, queries, 5))


def kmeans(options, rows):
    """An iteration is the difference of a fit of 25 iterations and one of 5, divided by 20: what comes before the first
    and after the last does not count."""
    from sklearn.cluster import KMeans

    for dtype in (np.float32, np.float64):
        draw = np.random.default_rng(5)
        n, d, clusters = options.size(1_000_000), 64, 64
        table = draw.standard_normal((n, d), dtype)
        centres = table[draw.choice(n, clusters, replace=False)]

        def iteration():
            seconds, models = [], []
            for limit in (5, 25):
                model = KMeans(clusters, init=centres, n_init=1, max_iter=limit, tol=0, algorithm="lloyd")
                seconds.append(timed(lambda: model.fit(table))[0])
                models.append(model)
            return Measured((seconds[1] - seconds[0]) / (models[1].n_iter_ - models[0].n_iter_), models[1])

        def check(ours, theirs):
            return {"wrong": wrong_labels(table, ours), "scikit-learn wrong": wrong_labels(table, theirs),
                    "inertia of vicinal to scikit-learn's": float(ours.inertia_ / theirs.inertia_),
                    "iterations": [int(ours.n_iter_), int(theirs.n_iter_)]}

        compare_patch(options, rows, f"kmeans, {np.dtype(dtype)}",
                      f"`KMeans`, an iteration, {n:,} x {d} {np.dtype(dtype)}, {clusters} clusters", 2.4, iteration,
                      check)


def wrong_labels(table, model):
    """Of 10,000 rows, how many are of a center that is farther than the nearest by float64 distance. Estimators of
    float32 rows subtract the mean first, and their centers are rounded afterwards: that moves a distance by as much."""
    rows = table[np.linspace(0, len(table) - 1, 10_000).astype(int)].astype(np.float64)
    labels = model.labels_[np.linspace(0, len(table) - 1, 10_000).astype(int)]
    keys = ((rows[:, None, :] - model.cluster_centers_.astype(np.float64)) ** 2).sum(axis=2)
    room = 8 * np.finfo(table.dtype).eps * np.abs(rows).max() ** 2 * table.shape[1]
    return int((keys[np.arange(len(rows)), labels] > keys.min(axis=1) + room).sum())


def lle(options, rows):
    import vicinal as vc
    from sklearn.manifold import LocallyLinearEmbedding

    for method, n, target in (("standard", options.size(30_000), 6), ("modified", options.size(10_000), 25)):
        table = vc.generate("swiss_roll", rows=n, seed=6).points

        def embed():
            return LocallyLinearEmbedding(n_neighbors=12, n_components=2, method=method, random_state=0).fit(table)

        def check(ours, theirs):
            cosines = np.linalg.svd(ours.embedding_.T @ theirs.embedding_)[1]
            return {"least cosine to scikit-learn's plane": float(cosines.min()),
                    "errors of reconstruction": [float(model.reconstruction_error_) for model in (ours, theirs)]}

        compare_patch(options, rows, f"lle, {method}",
                      f"`LocallyLinearEmbedding(method=\"{method}\")`, Swiss roll of {n:,} rows, 12 neighbors", target,
                      embed, check)


SECTIONS = {"large": large, "small": small, "brute": brute, "tree": tree, "kmeans": kmeans, "lle": lle}


# ---- the page --------------------------------------------------------------------------------------------------------


def shown_time(seconds):
    for unit, length in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= length or unit == "us":
            return f"{seconds / length:.3g} {unit}"


def table_of(result):
    lines = ["| call | vicinal | compared with | its time | ratio |", "| --- | --- | --- | --- | --- |"]
    for row in result["rows"]:
        ours, theirs = (shown_time(row["median"][row[side]]) for side in ("ours", "theirs"))
        other = "C++" if row["theirs"] == "C++" else "scikit-learn"
        ratio = f"{row['ratio']:.0f}" if row["ratio"] >= 10 else f"{row['ratio']:.2g}"
        lines.append(f"| {row['what']} | {ours} | {other} | {theirs} | {ratio} |")
    return "\n".join(lines)


def write_page(page, path):
    """Replaces the section "Speed" of a page, which stands before "Limits" where there is none yet."""
    result = json.loads(path.read_text())
    if result["quick"]:
        sys.exit(f"{path}: made with --quick, so its figures mean nothing")
    versions = result["versions"]
    told = (
        f"Medians of calls that took turns in one run: {result['processor']}, {result['threads']} threads, Python "
        f"{versions['python']}, scikit-learn {versions['scikit-learn']}, commit {result['commit']}, "
        f"{result['date'][:10]}. The ratio is the other's time divided by vicinal's; \"patch\" is scikit-learn's class "
        "with [the patch](scikit-learn.md). `bench/python_speed.py` writes this section from its result "
        f"([JSON](../bench/results/{path.name})), which also says how many of the answers that were checked are wrong.")
    lines = textwrap.fill(told, 120, break_long_words=False, break_on_hyphens=False)
    section = f"## Speed\n\n{lines}\n\n{table_of(result)}\n\n"
    text = page.read_text()
    start = re.search(r"^## Speed$", text, re.MULTILINE) or re.search(r"^## Limits$", text, re.MULTILINE)
    if start is None:
        sys.exit(f"{page}: has no section Speed or Limits")
    rest = text[start.start():]
    if rest.startswith("## Speed"):
        following = re.search(r"^## ", rest[3:], re.MULTILINE)
        rest = rest[3 + following.start():] if following else ""
    page.write_text(text[:start.start()] + section + rest)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--bench", help="vicinal-bench, for `large`")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--page", type=pathlib.Path, help="write the table of a result into this page, measure nothing")
    parser.add_argument("words", nargs="*", metavar="SECTION")
    options = parser.parse_args()
    if options.page:
        return write_page(options.page, pathlib.Path(options.words[0]))
    wanted = options.words or list(SECTIONS)
    unknown = [word for word in wanted if word not in SECTIONS]
    if unknown:
        parser.error(f"unknown section {unknown[0]}; expected one of {', '.join(SECTIONS)}")
    if "large" in wanted and not options.bench:
        parser.error("--bench is needed for the section large")
    options.size = lambda rows: rows // 10 if options.quick else rows
    options.load = os.getloadavg()[0]
    if options.load > 0.5:
        print(f"load {options.load:.1f}: the machine is not idle, and the times mean little", file=sys.stderr)
    rows = Rows(options)
    for word in wanted:
        SECTIONS[word](options, rows)
    return 0 if all(row["met"] for row in rows.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
