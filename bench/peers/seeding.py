"""Inertia after the first centres of k-means alone, ours beside scikit-learn's greedy k-means++.

    seeding.py FOLDER [--seeds 10] [JOB...]

FOLDER is what bench/gpu/carry.sh makes. Ours are drawn on the CPU; they are the same on every device. Each seed's inertia
is that of all rows to their nearest first centre, in float64; ours over scikit-learn's is told of the means, with the
standard error of that ratio. One JSON line on stdout.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "gpu"))
import library  # noqa: E402

# name: (rows, columns, clusters, standard deviation of the blobs' centres; 0: there are none)
JOBS = {
    "normal-50k-d64-k200": (50_000, 64, 200, 0),
    "blobs-50k-d64-k200": (50_000, 64, 200, 4),
    "blobs-30k-d8-k500": (30_000, 8, 500, 4),
    "normal-20k-d16-k1000": (20_000, 16, 1000, 0),
}
INITS = ("k-means++", "k-means||")


def rows_of(n, d, k, spread):
    draws = np.random.default_rng(1)
    rows = draws.standard_normal((n, d), np.float32)
    if spread:
        rows += spread * draws.standard_normal((k, d), np.float32)[draws.integers(0, k, n)]
    return rows


def peer_inertia(table, k, seed):
    from sklearn.cluster import kmeans_plusplus
    from sklearn.metrics import pairwise_distances_argmin_min

    wide = table.astype(np.float64)
    _, rows = kmeans_plusplus(table, k, random_state=seed)
    _, keys = pairwise_distances_argmin_min(wide, wide[rows], metric="sqeuclidean")
    return float(keys.sum())


def ratio(ours, theirs):
    mean, other = statistics.mean(ours), statistics.mean(theirs)
    error = math.sqrt((statistics.stdev(ours) / mean) ** 2 + (statistics.stdev(theirs) / other) ** 2)
    return {"ratio": mean / other, "standard_error": mean / other * error / math.sqrt(len(ours))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    ours = library.Vicinal(options.folder, "cpu")
    told = {"what": "inertia after seeding", "seeds": options.seeds, "jobs": {}}
    for name in options.names or JOBS:
        n, d, k, spread = JOBS[name]
        table = rows_of(n, d, k, spread)
        found = {init: [ours.seed(table, k, init, seed) for seed in range(options.seeds)] for init in INITS}
        found["scikit-learn"] = [peer_inertia(table, k, seed) for seed in range(options.seeds)]
        told["jobs"][name] = {"over_scikit_learn": {init: ratio(found[init], found["scikit-learn"]) for init in INITS},
                              "inertia": found}
    print(json.dumps(told))


if __name__ == "__main__":
    sys.exit(main())
