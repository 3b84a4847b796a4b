"""The first centres of k-means: milliseconds on rows that lie on the device, or their inertia beside scikit-learn's.

    python3 bench/gpu/seeding.py FOLDER [-o FILE.json] [--commit C] [--device cuda|cpu] [--peer] [JOB...]

FOLDER holds libvicinal, its plug-in and libvicinal_bench.so (carry.sh). A job's milliseconds are those of the seeding
alone, rows on the device, over ten seeds after one that warms up. With --peer the jobs are smaller ones, and inertia
after seeding is told for ten seeds of ours and of scikit-learn's kmeans_plusplus: our centres are the same on every
device, so that --device cpu will do.
"""

import statistics

import numpy

import library

# name: (rows, columns, clusters, kind of rows, target in milliseconds by the way of drawing)
JOBS = {
    "1M-d64-k1000": (1_000_000, 64, 1000, "normal", {"k-means++": 120, "k-means||": 50}),
    "1M-d64-k1000-blobs": (1_000_000, 64, 1000, "blobs", {"k-means++": 120, "k-means||": 50}),
    "1M-d128-k4096": (1_000_000, 128, 4096, "normal", {}),
}
PEER_JOBS = {
    "50k-d64-k200": (50_000, 64, 200, "normal"),
    "50k-d64-k200-blobs": (50_000, 64, 200, "blobs"),
    "50k-d8-k1000-blobs": (50_000, 8, 1000, "blobs"),
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


def peer_inertia(table, k):
    from sklearn.cluster import kmeans_plusplus
    from sklearn.metrics import pairwise_distances_argmin_min
    all_ = []
    for seed in range(SEEDS):
        centres, _ = kmeans_plusplus(table, k, random_state=seed)
        _, keys = pairwise_distances_argmin_min(table.astype(numpy.float64), centres.astype(numpy.float64),
                                                metric="sqeuclidean")
        all_.append(float(keys.sum()))
    return all_


def beside_peer(ours, table, k):
    told = {"scikit-learn": peer_inertia(table, k)}
    for init in INITS:
        told[init] = [ours.seed(table, k, init, seed) for seed in range(SEEDS)]
    mean = statistics.mean(told["scikit-learn"])
    told["over_scikit_learn"] = {init: statistics.mean(told[init]) / mean for init in INITS}
    return told


def main():
    import measure
    parser = measure.arguments(__doc__, seed=1)
    parser.add_argument("--peer", action="store_true", help="inertia beside scikit-learn's")
    options = parser.parse_intermixed_args()
    report = measure.Report(options.output, measure.about(options, "first centres of k-means"))
    ours = library.Vicinal(options.folder, options.device)
    jobs = PEER_JOBS if options.peer else JOBS
    for name in options.names or jobs:
        n, d, k, kind = jobs[name][:4]
        table = rows_of(kind, n, d, k, options.seed)
        results = report.entry("inertia" if options.peer else "jobs", name)
        if options.peer:
            if report.attempt(results, "after seeding", lambda: beside_peer(ours, table, k)):
                print(name, results["after seeding"].get("over_scikit_learn"), flush=True)
            continue
        if options.device == "cuda":
            import torch
            table = torch.from_numpy(table).cuda()
        for init in INITS:
            target = jobs[name][4].get(init)
            if report.attempt(results, init, lambda: times(ours, table, k, init, target)):
                print(name, init, results[init], flush=True)
    report.save()


if __name__ == "__main__":
    main()
