"""Inertia after the first centers of k-means alone, ours beside scikit-learn's greedy k-means++.

    seeding.py FOLDER [--seeds 10] [--device cpu] [--processes 1] [JOB...]

FOLDER is what bench/gpu/carry.sh makes. Ours are the same on every device. Each seed's inertia is that of all rows to
their nearest first center, in float64; ours over scikit-learn's is told of the means, with the standard error of that
ratio. scikit-learn takes some minutes for a seed of the large jobs, which are left out unless they are named;
--processes draws as many of its seeds at a time, on one thread each. One JSON line on stdout.
"""

import argparse
import datetime
import json
import math
import multiprocessing
import os
import pathlib
import platform
import statistics
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "gpu"))
import library  # noqa: E402

# name: (rows, columns, clusters, standard deviation of the blobs' centers; 0: there are none)
JOBS = {
    "normal-50k-d64-k200": (50_000, 64, 200, 0),
    "blobs-50k-d64-k200": (50_000, 64, 200, 4),
    "blobs-30k-d8-k500": (30_000, 8, 500, 4),
    "normal-20k-d16-k1000": (20_000, 16, 1000, 0),
}
LARGE = {
    "normal-1M-d64-k1000": (1_000_000, 64, 1000, 0),
    "blobs-1M-d64-k1000": (1_000_000, 64, 1000, 4),
}
INITS = ("k-means++", "k-means||")


def rows_of(n, d, k, spread):
    draws = np.random.default_rng(1)
    rows = draws.standard_normal((n, d), np.float32)
    if spread:
        rows += spread * draws.standard_normal((k, d), np.float32)[draws.integers(0, k, n)]
    return rows


wide = None  # the rows in float64, which processes share


def peer_inertia(k, seed):
    from sklearn.cluster import kmeans_plusplus
    from sklearn.metrics import pairwise_distances_argmin_min
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        _, rows = kmeans_plusplus(wide, k, random_state=seed)
        _, keys = pairwise_distances_argmin_min(wide, wide[rows], metric="sqeuclidean")
    return float(keys.sum())


def peer(table, k, seeds, processes):
    """Its seeds' inertia. Processes are forked, so that no device may be open yet."""
    global wide
    wide = table.astype("float64")
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return pool.starmap(peer_inertia, [(k, seed) for seed in range(seeds)], 1)


def ratio(ours, theirs):
    mean, other = statistics.mean(ours), statistics.mean(theirs)
    error = math.sqrt((statistics.stdev(ours) / mean) ** 2 + (statistics.stdev(theirs) / other) ** 2)
    return {"ratio": mean / other, "standard_error": mean / other * error / math.sqrt(len(ours))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_intermixed_args()
    jobs = {name: (JOBS | LARGE)[name] for name in options.names or JOBS}
    tables = {name: rows_of(*job) for name, job in jobs.items()}
    found = {name: {"scikit-learn": peer(tables[name], job[2], options.seeds, options.processes)}
             for name, job in jobs.items()}
    ours = library.Vicinal(options.folder, options.device)
    told = {"what": "inertia after seeding", "seeds": options.seeds, "commit": options.commit, "device": options.device,
            "machine": f"{os.cpu_count()} cores, {platform.machine()}",
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "jobs": {}}
    for name, (_, _, k, _) in jobs.items():
        for init in INITS:
            found[name][init] = [ours.seed(tables[name], k, init, seed) for seed in range(options.seeds)]
        told["jobs"][name] = {"over_scikit_learn": {init: ratio(found[name][init], found[name]["scikit-learn"])
                                                    for init in INITS},
                              "inertia": found[name]}
    print(json.dumps(told))


if __name__ == "__main__":
    sys.exit(main())
