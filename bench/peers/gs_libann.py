"""libann on the sizes of the GS paper's first table: m = 1200 queries, k = 25, n = 2^10 to 2^15, d = 8 to 256.

    gs_libann.py [-o FILE.json] [--repeat N] [--commit C] [--most-rows N]

The paper holds its GPU against this library, which has one thread. Seconds are those of a whole call on the processor
that runs this: building the kd-tree (its defaults, eps 0, float64) and answering all queries; the median of --repeat
calls after one that warms up. Rows are normal random numbers, drawn anew. The answers to 20 queries a size are held
against NumPy's float64 distances. Needs what build_native.py makes. `vicinal-bench papers gs` measures these sizes with
ours.
"""

import argparse
import ctypes
import json
import os
import pathlib
import statistics
import sys
import time

import numpy as np

from result import processor

QUERIES, K, CHECKED = 1200, 25, 20
ROWS = [1 << power for power in range(10, 16)]
COLUMNS = [8, 16, 32, 64, 128, 256]


class Libann:
    def __init__(self):
        self.library = ctypes.CDLL(str(pathlib.Path(sys.prefix) / "lib" / "libnanoflann_ann.so"))
        self.library.libann_version.restype = ctypes.c_char_p
        version = self.library.libann_version()
        if version is None:
            sys.exit("gs_libann.py: libann is not there (libann-dev), or build_native.py ran without it")
        self.version = version.decode()
        self.library.libann_build.restype = ctypes.c_void_p

    def knn(self, table, queries, k):
        """One whole call: ids [m, k] and distances [m, k]."""
        pointer = ctypes.c_void_p
        tree = pointer(self.library.libann_build(pointer(table.ctypes.data), ctypes.c_int64(table.shape[0]),
                                                 ctypes.c_int64(table.shape[1]), ctypes.c_int(1)))
        ids = np.empty((len(queries), k), np.int64)
        distances = np.empty((len(queries), k))
        self.library.libann_query(tree, pointer(queries.ctypes.data), ctypes.c_int64(len(queries)), ctypes.c_int64(k),
                                  ctypes.c_int(1), pointer(ids.ctypes.data), pointer(distances.ctypes.data))
        self.library.libann_free(tree)
        return ids, distances


def right(table, queries, ids):
    """Of the first queries, how many have rows that are all among the k nearest. Two float64 sums of d squares in
    different orders differ by at most (d + 4) 2^-52 of them."""
    slack = (table.shape[1] + 4) * 2.0**-52
    count = 0
    for query, mine in zip(queries[:CHECKED], ids[:CHECKED]):
        keys = ((table - query) ** 2).sum(1)
        count += bool((keys[mine] <= np.sort(keys)[len(mine) - 1] * (1 + slack)).all()) and len(set(mine)) == len(mine)
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--most-rows", type=int, default=ROWS[-1])
    options = parser.parse_args()
    libann = Libann()
    report = {"what": "libann, GS table 1: m 1200, k 25, one thread", "machine": processor(),
              "cores": os.cpu_count(), "date": time.strftime("%Y-%m-%d"), "commit": options.commit,
              "version": libann.version, "lines": []}
    random = np.random.default_rng()
    for n in (rows for rows in ROWS if rows <= options.most_rows):
        for d in COLUMNS:
            table, queries = random.standard_normal((n, d)), random.standard_normal((QUERIES, d))
            seconds = []
            for call in range(options.repeat + 1):
                start = time.perf_counter()
                ids, _ = libann.knn(table, queries, K)
                seconds.append(time.perf_counter() - start)
            seconds = seconds[1:] or seconds
            line = {"n": n, "d": d, "seconds": statistics.median(seconds), "runs": seconds,
                    "right": right(table, queries, ids), "checked": CHECKED}
            report["lines"].append(line)
            print(f"n {n:6} d {d:4} {line['seconds']:9.4f} s  {line['right']} of {CHECKED} right", flush=True)
            if options.output:
                pathlib.Path(options.output).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
