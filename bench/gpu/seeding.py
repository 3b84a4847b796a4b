"""Milliseconds that the first centers of k-means take on rows that lie on the device.

    python3 bench/gpu/seeding.py FOLDER [-o FILE.json] [--commit C] [JOB...]

FOLDER holds libvicinal, its plug-in and libvicinal_bench.so (carry.sh). Over ten seeds after one that warms up; reading
and checking the rows do not count. Inertia beside scikit-learn's: bench/peers/seeding.py.
"""

import statistics

import numpy
import torch

import library
import measure

# name: (rows, columns, clusters, kind of rows, target in milliseconds by the way of drawing)
JOBS = {
    "1M-d64-k1000": (1_000_000, 64, 1000, "normal", {"k-means++": 120, "k-means||": 50}),
    "1M-d64-k1000-blobs": (1_000_000, 64, 1000, "blobs", {"k-means++": 120, "k-means||": 50}),
    "1M-d128-k4096": (1_000_000, 128, 4096, "normal", {}),
}
INITS = ("k-means++", "k-means||")
SEEDS = 10


def rows_of(kind, n, d, k, seed):
    draws = numpy.random.default_rng(seed)
    rows = draws.standard_normal((n, d), numpy.float32)
    if kind == "blobs":
        rows += 4 * draws.standard_normal((k, d), numpy.float32)[draws.integers(0, k, n)]
    return rows


def times(ours, table, k, init, target):
    found = []
    inertia = []
    for seed in range(SEEDS + 1):
        inertia.append(ours.seed(table, k, init, seed))
        found.append(1000 * ours.done.search_seconds)
    return {"median_ms": statistics.median(found[1:]), "least_ms": min(found[1:]), "most_ms": max(found[1:]),
            "target_ms": target, "mean_inertia": statistics.mean(inertia[1:]),
            "planned_device_memory": ours.done.device_memory}


def main():
    parser = measure.arguments(__doc__, seed=1)
    options = parser.parse_intermixed_args()
    report = measure.Report(options.output, measure.about(options, "first centers of k-means, rows on the device"))
    ours = library.Vicinal(options.folder, options.device)
    for name in options.names or JOBS:
        n, d, k, kind, targets = JOBS[name]
        table = torch.from_numpy(rows_of(kind, n, d, k, options.seed)).to(options.device)
        results = report.entry("jobs", name)
        for init in INITS:
            if report.attempt(results, init, lambda: times(ours, table, k, init, targets.get(init))):
                print(name, init, results[init], flush=True)
    report.save()


if __name__ == "__main__":
    main()
