"""Searches of few queries on an index that is ready: vicinal's Index, which keeps packed and pruned rows, beside FAISS'
flat index and its IndexFlatL2Panorama in a rotated space, and PDX-BOND, in turns, in one run.

    ready_index.py --bench build/release/bench/vicinal-bench [-o FILE.json] [--data gaussian,sift,gist,fashion]
                   [-k 10,100] [--threads 1,2] [--queries 1,4,16,64]

Tables of float32:

    gaussian  1,000,000 x 128, normal draws: nothing to prune
    sift      1,000,000 x 128, whole numbers from 0 to 255; deviations before a rotation 60 / (1 + j / 4)
    gist      1,000,000 x 960, deviations before a rotation 1 / j
    fashion   60,000 x 784, Fashion-MNIST of Debian's package dataset-fashion-mnist; queries are its test images

Every call asks other queries than the call before. Each side makes a call to warm up; then the sides take turns, --turns
times, or three times if a call takes more than a second. Each answer is compared with float64 distances that NumPy
computes: `wrong` counts queries that have a row which is farther than the one that brute force has in its place, by more
than the rounding of float32 (FAISS' and PDX' own arithmetic), and for vicinal by more than that of NumPy's float64.
`columns_per_row` is how many columns vicinal reads a row of the table: those of the first screen, and all for rows that
it ranks; finer images of the rows between are not counted. Beside them, from vicinal-bench ready: the rate at which the
same threads read memory, calls of the same shape from C++, and one query of a table of 1,000 x 10, which is too short
to be timed through Python.

It needs faiss-cpu 1.15 (`vicinal-bench peers ready`) and the package `vicinal` of a release build on PYTHONPATH. PDX has no
package: it is measured if the module `pdxearch` can be imported, built with clang++ from
https://github.com/cwida/PDX at 4a2e65e, the last version with PDX-BOND. It searches on one thread only.
"""

import argparse
import gzip
import json
import pathlib
import statistics
import subprocess
import time

import numpy as np
from result import add_options, processor, write

PANORAMA = "PCA{d},FlatL2Panorama{levels}"
LEVELS = 8  # blocks of columns
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
SHAPES = {"gaussian": (1_000_000, 128), "sift": (1_000_000, 128), "gist": (1_000_000, 960)}
# Queries that calls take in turns.
POOL = 320


def images(name):
    with gzip.open(FASHION / f"{name}-images-idx3-ubyte.gz") as file:
        values = np.frombuffer(file.read(), np.uint8, offset=16)
    return values.reshape(-1, 784).astype(np.float32)


def rotated(random, rows, deviations):
    """Normal rows of these deviations, rotated."""
    cols = len(deviations)
    turn = np.linalg.qr(np.random.default_rng(7).standard_normal((cols, cols)))[0].astype(np.float32)
    values = np.empty((rows, cols), np.float32)
    for begin in range(0, rows, 65536):
        part = values[begin : begin + 65536]
        np.matmul(random.standard_normal(part.shape, dtype=np.float32) * deviations, turn, out=part)
    return values


def made(kind, rows, cols, seed):
    random = np.random.default_rng(seed)
    if kind == "gaussian":
        return random.standard_normal((rows, cols), dtype=np.float32)
    columns = np.arange(cols, dtype=np.float32)
    if kind == "gist":
        return rotated(random, rows, 1 / (columns + 1))
    values = rotated(random, rows, 60 / (1 + columns / 4))
    return np.clip(np.rint(values + 30), 0, 255)


def table_and_queries(kind, scale, pool):
    if kind == "fashion":
        return images("train"), images("t10k")[:pool]
    rows, cols = SHAPES[kind]
    return made(kind, int(rows * scale), cols, 1), made(kind, pool, cols, 2)


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
        wrong += not (near <= wanted[: len(row)] + tolerance * (1 + wanted[: len(row)])).all()
    return wrong


class Vicinal:
    threads = None  # any number

    def __init__(self, table):
        import vicinal

        self.about = {"name": "vicinal", "version": vicinal.__version__}
        self.tolerance = 1e-9  # of NumPy's own sums of squares
        self.cols = table.shape[1]
        self.rows = len(table)
        self.index = vicinal.Index(table, packed="now", pruned="automatic")
        self.last = None

    def search(self, queries, k, threads):
        self.last = self.index.knn(queries, k=k, threads=threads)
        return self.last.ids

    def said(self):
        """What the last search read."""
        screens = self.last.plan.screens
        screened = self.cols
        if " rotated columns" in screens:  # "int8 of 32 rotated columns, .."
            screened = int(screens.split(" rotated columns")[0].split()[-1])
        ranked = self.last.stats.survivors / len(self.last.ids)
        return {"screens": screens, "survivors_per_query": ranked,
                "columns_per_row": screened + ranked / self.rows * self.cols}


class Faiss:
    threads = None

    def __init__(self, table, description):
        import faiss

        self.faiss = faiss
        self.about = {"name": f"FAISS {description}", "version": faiss.__version__}
        self.tolerance = 1e-4  # float32
        self.index = faiss.index_factory(table.shape[1], description)
        if not self.index.is_trained:
            self.index.train(table[:100_000])
        self.index.add(table)

    def search(self, queries, k, threads):
        self.faiss.omp_set_num_threads(threads)
        return self.index.search(queries, k)[1]

    def said(self):
        return {}


class Pdx:
    threads = 1

    def __init__(self, table):
        from pdxearch.index_factory import IndexPDXBONDFlat

        self.about = {"name": "PDX-BOND", "version": "4a2e65e"}
        self.tolerance = 1e-4  # float32
        self.index = IndexPDXBONDFlat(ndim=table.shape[1], normalize=False)
        self.index.add(table)
        self.index.partitions = []  # copies, of which a search needs none

    def search(self, queries, k, threads):
        assert threads == 1
        return [self.index.search(query, k)[0].astype(np.int64) for query in queries]

    def said(self):
        return {}


def sides_of(table, without):
    """Sides by name; one that cannot be made is a sentence."""
    makers = {
        "pdx": lambda: Pdx(table),
        "faiss": lambda: Faiss(table, "Flat"),
        "panorama": lambda: Faiss(table, PANORAMA.format(d=table.shape[1], levels=LEVELS)),
        "vicinal": lambda: Vicinal(table),
    }
    sides, missing = {}, {}
    for name, make in makers.items():
        if name in without:
            missing[name] = "left out"
            continue
        try:
            start = time.perf_counter()
            sides[name] = make()
            sides[name].about["build_seconds"] = time.perf_counter() - start
        except (ImportError, RuntimeError, MemoryError) as error:
            missing[name] = str(error).splitlines()[0]
    return sides, missing


class Asked:
    """Queries of calls, each of which takes others than the call before; their exact distances."""

    def __init__(self, table, queries, k):
        self.table, self.queries = table, queries
        self.exact = exact_distances(table, queries, k)
        self.at = 0

    def next(self, count):
        places = (self.at + np.arange(count)) % len(self.queries)
        self.at += count
        return places

    def wrong(self, places, ids, tolerance):
        return wrong_lists(self.table, self.queries[places], ids, self.exact[places], tolerance)


def measure(sides, asked, count, k, threads, turns):
    """A row of the result: in each turn all sides have the same queries."""
    sides = {name: side for name, side in sides.items() if side.threads in (None, threads)}
    runs = {name: [] for name in sides}
    row = {"threads": threads, "k": k, "queries": count}
    turn = -1  # the warm-up
    while turn < turns:
        places = asked.next(count)
        for name, side in sides.items():
            start = time.perf_counter()
            ids = side.search(asked.queries[places], k, threads)
            took = time.perf_counter() - start
            said = row.setdefault(name, {"wrong": 0})
            said["wrong"] += asked.wrong(places, np.asarray(ids), side.tolerance)
            if turn >= 0:
                runs[name].append(took)
            elif took > 1:
                turns = min(turns, 3)
        turn += 1
    for name, times in runs.items():
        row[name] |= {"median": statistics.median(times), "min": min(times), "max": max(times), "runs": times}
        row[name] |= sides[name].said()
    others = [row[name]["median"] for name in runs if name != "vicinal"]
    if others:
        row["ratio_to_fastest"] = min(others) / row["vicinal"]["median"]
    return row


def ready(args, rows, cols, counts, threads):
    """What vicinal-bench ready says of normal draws."""
    command = [args.bench, "ready", "--rows", rows, "--dims", cols, "--queries", counts, "-k", 10, "--json"]
    command += ["--threads", threads]
    return json.loads(subprocess.run([str(word) for word in command], check=True, capture_output=True).stdout)


def measured_set(args, kind):
    """One table with all its rows of times, printed as they come."""
    table, queries = table_and_queries(kind, args.scale, args.pool)
    asked = Asked(table, queries, max(args.k))
    sides, missing = sides_of(table, args.without)
    result = {"data": kind, "rows": len(table), "dims": table.shape[1], "missing": missing,
              "sides": {name: side.about for name, side in sides.items()}, "results": []}
    print(f"{kind}, {len(table)} x {table.shape[1]}; missing: {missing or 'none'}", flush=True)
    for k in args.k:
        for threads in args.threads:
            for count in args.queries:
                row = measure(sides, asked, count, k, threads, args.turns)
                result["results"].append(row)
                times = "  ".join(f"{name} {row[name]['median'] * 1e3:.2f} ms ({row[name]['wrong']} wrong)"
                                  for name in sides if name in row)
                print(f"k {k:3}  threads {threads}  queries {count:5}  {times}  "
                      f"{row['vicinal']['columns_per_row']:.1f} columns a row", flush=True)
    return result


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="vicinal-bench of a release build")
    parser.add_argument("--data", type=lambda text: text.split(","), default=["gaussian", "sift", "gist", "fashion"])
    parser.add_argument("--queries", type=numbers, default=[1, 4, 16, 64])
    parser.add_argument("-k", type=numbers, default=[10, 100])
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1, help="times the rows of made tables")
    parser.add_argument("--pool", type=int, default=POOL, help="queries that calls take in turns")
    parser.add_argument("--without", type=lambda text: text.split(","), default=[], help="sides to leave out")
    parser.add_argument("--tables-only", action="store_true", help="leave out what vicinal-bench ready says")
    add_options(parser)
    args = parser.parse_args()

    result = {"benchmark": "ready index", "processor": processor(), "sets": []}
    for kind in args.data:
        result["sets"].append(measured_set(args, kind))
        write(args, result)
    if args.tables_only:
        return
    result["alone"] = [ready(args, 1_000_000, 128, "1,24", threads) for threads in args.threads]
    result["small"] = ready(args, 1000, 10, "1", 1)
    write(args, result)


if __name__ == "__main__":
    main()
