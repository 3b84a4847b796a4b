"""Searches of few queries on an index that is ready: vicinal's Index, whose rows are packed, beside FAISS' flat index
and its IndexFlatL2Panorama in a rotated space, in turns, in one run.

    ready_index.py --bench build/release/bench/vicinal-bench [-o FILE.json]

Table and queries are normal draws of float32. Every side makes two calls to warm up; then the sides take turns, --turns
times. Each answer is compared with float64 distances that NumPy computes: `wrong` counts queries whose k-th distance is
larger than that of brute force by more than the rounding of float32 (FAISS' own arithmetic), and for vicinal by more
than that of float64. Beside them, from vicinal-bench ready: the rate at which the same threads read memory, calls of
the same shape from C++, and one query of a table of 1,000 x 10, which is too short to be timed through Python.

It needs faiss-cpu 1.15 (`./dev bench --peers`) and the package `vicinal` of a release build on PYTHONPATH.
"""

import argparse
import json
import statistics
import subprocess
import time

import numpy as np
from result import add_options, write

PANORAMA = "PCA{d},FlatL2Panorama{levels}"
LEVELS = 8  # blocks of columns


def exact_distances(table, queries, k):
    """[m, k] squared distances in float64, ascending."""
    found = np.full((len(queries), k), np.inf)
    squares = (queries.astype(np.float64) ** 2).sum(1)[:, None]
    for begin in range(0, len(table), 65536):
        rows = table[begin : begin + 65536].astype(np.float64)
        near = squares + (rows**2).sum(1) - 2 * queries.astype(np.float64) @ rows.T
        found = np.partition(np.hstack([found, near]), k - 1, axis=1)[:, :k]
    return np.sort(found, axis=1)


def wrong_lists(table, queries, ids, exact, tolerance):
    """How many queries have a list with a row that is farther away than it should be."""
    wrong = 0
    for query, row, wanted in zip(queries.astype(np.float64), ids, exact):
        if (row < 0).any() or len(set(row)) < len(row):
            wrong += 1
            continue
        near = np.sort(((table[row].astype(np.float64) - query) ** 2).sum(1))
        wrong += not (near <= wanted + tolerance * (1 + wanted)).all()
    return wrong


class Vicinal:
    def __init__(self, table, threads):
        import vicinal

        self.about = {"name": "vicinal", "version": vicinal.__version__}
        self.tolerance = 1e-9  # of NumPy's own sums of squares
        self.threads = threads
        self.index = vicinal.Index(table, packed="now", threads=threads)

    def search(self, queries, k):
        return self.index.knn(queries, k=k, threads=self.threads).ids


class Faiss:
    def __init__(self, table, threads, description):
        import faiss

        faiss.omp_set_num_threads(threads)
        self.about = {"name": f"FAISS {description}", "version": faiss.__version__}
        self.tolerance = 1e-4  # float32
        self.index = faiss.index_factory(table.shape[1], description)
        if not self.index.is_trained:
            self.index.train(table)
        self.index.add(table)

    def search(self, queries, k):
        return self.index.search(queries, k)[1]


def sides_of(table, threads):
    """Sides by name; one that cannot be made is a sentence."""
    makers = {
        "vicinal": lambda: Vicinal(table, threads),
        "faiss": lambda: Faiss(table, threads, "Flat"),
        "panorama": lambda: Faiss(table, threads, PANORAMA.format(d=table.shape[1], levels=LEVELS)),
    }
    sides, missing = {}, {}
    for name, make in makers.items():
        try:
            start = time.perf_counter()
            sides[name] = make()
            sides[name].about["build_seconds"] = time.perf_counter() - start
        except (ImportError, RuntimeError) as error:
            missing[name] = str(error).splitlines()[0]
    return sides, missing


def timed(side, queries, k):
    start = time.perf_counter()
    ids = side.search(queries, k)
    return time.perf_counter() - start, ids


def measure(sides, table, queries, args):
    """A row of the result: all sides with the same queries."""
    exact = exact_distances(table, queries, args.k)
    seconds = {name: [] for name in sides}
    row = {"queries": len(queries)}
    for side in sides.values():
        for _ in range(2):
            side.search(queries, args.k)
    for _ in range(args.turns):
        for name, side in sides.items():
            took, ids = timed(side, queries, args.k)
            seconds[name].append(took)
            row.setdefault(name, {})["wrong"] = wrong_lists(table, queries, np.asarray(ids), exact, side.tolerance)
    for name, runs in seconds.items():
        row[name] |= {"median": statistics.median(runs), "min": min(runs), "max": max(runs), "runs": runs}
    return row


def ready(args, rows, cols, counts):
    """What vicinal-bench ready says."""
    command = [args.bench, "ready", "--rows", rows, "--dims", cols, "--queries", counts, "-k", args.k, "--json"]
    command += ["--threads", args.threads]
    return json.loads(subprocess.run([str(word) for word in command], check=True, capture_output=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="vicinal-bench of a release build")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dims", type=int, default=128)
    parser.add_argument("--queries", default="1,4,16,23,24,64,256,1024")
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=7)
    add_options(parser)
    args = parser.parse_args()

    counts = [int(count) for count in args.queries.split(",")]
    random = np.random.default_rng(1)
    table = random.standard_normal((args.rows, args.dims), dtype=np.float32)
    asked = random.standard_normal((max(counts), args.dims), dtype=np.float32)
    sides, missing = sides_of(table, args.threads)
    result = {
        "benchmark": "ready index",
        "rows": args.rows,
        "dims": args.dims,
        "k": args.k,
        "threads": args.threads,
        "sides": {name: side.about for name, side in sides.items()},
        "missing": missing,
        "results": [],
    }
    for count in counts:
        row = measure(sides, table, asked[:count], args)
        result["results"].append(row)
        print(f"{count:6}  " + "  ".join(f"{name} {row[name]['median'] * 1e3:.2f} ms" for name in sides), flush=True)
    del sides
    result["alone"] = ready(args, args.rows, args.dims, "1,24")
    result["small"] = ready(args, 1000, 10, "1")
    write(args, result)


if __name__ == "__main__":
    main()
