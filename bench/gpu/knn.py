"""Exact k nearest neighbors of rows that lie on the device, beside torch, FlashLib, FAISS, cuVS and, of three columns,
jz-tree, in one run.

    python3 bench/gpu/knn.py FOLDER [-o FILE.json] [--commit C] [--threads N] [--no-peers] [--fashion FOLDER] [JOB...]

FOLDER holds libvicinal, its plug-in and libvicinal_bench.so (carry.sh). Every time is that of a whole call that ends in
a synchronization; ours includes checking the rows and making the index, but for `vicinal index`, which asks an index
that was made before. Every library's answers to 200 random queries
are held against float64 distances of all rows in the same run. --seconds is how long the peers may take of each job,
warm-ups apart: none begins another call after its share of it.
"""

import gzip
import os

import numpy
import torch

import library
import measure
import peers

# name: (rows, queries (0: the rows themselves), columns, k, target in milliseconds; None: a shape that nobody tuned)
JOBS = {
    "1Mx10k-d128": (1_000_000, 10_000, 128, 32, 5.0),
    "1Mx10k-d41": (1_000_000, 10_000, 41, 20, 3.0),
    "1Mx10k-d512": (1_000_000, 10_000, 512, 32, 18.0),
    "100k-self-d41": (100_000, 0, 41, 20, 5.0),
    "300k-self-d128": (300_000, 0, 128, 10, 40.0),
    "1Mx100k-d64": (1_000_000, 100_000, 64, 10, 30.0),
    "32kx1200-d256": (32_768, 1_200, 256, 25, 0.15),
    "2Mx5k-d96-k100": (2_000_000, 5_000, 96, 100, None),
    "500kx20k-d17-k1": (500_000, 20_000, 17, 1, None),
    "200kx3k-d777-k7": (200_000, 3_000, 777, 7, None),
    "1M-self-d41": (1_000_000, 0, 41, 32, 400.0),
    "1Mx1-d128": (1_000_000, 1, 128, 10, None),
    "1Mx4-d128": (1_000_000, 4, 128, 10, None),
    "1Mx8-d128": (1_000_000, 8, 128, 10, None),
    "1Mx16-d128": (1_000_000, 16, 128, 10, None),
    "1Mx23-d128": (1_000_000, 23, 128, 10, None),
    "1M-self-d8": (1_000_000, 0, 8, 16, None),
    "10M-self-d3": (10_000_000, 0, 3, 16, None),
    "100M-self-d3": (100_000_000, 0, 3, 16, None),
}
# Tables that TF32 sums resolve badly: (clusters, whether the rows of a cluster follow each other, whether all queries
# are of one cluster). The deviation within a cluster is a hundredth of that of the centers.
CLUSTERS = {
    "8-clusters": (8, False, False),
    "2-clusters-one-asked": (2, False, True),
    "8-clusters-in-order": (8, True, False),
    "1000-clusters-in-order": (1000, True, False),
}
FEW_OF_CLUSTERS = {f"1Mx{m}-d128-{kind}": (1_000_000, m, 128, 10, None) for kind in CLUSTERS for m in (1, 8, 24)}
JOBS |= {"1Mx24-d128": (1_000_000, 24, 128, 10, None), **FEW_OF_CLUSTERS}
SLOW_PAIRS = 2e11  # above which torch's two passes over all scores are not waited for
BRUTE_PAIRS = 2e13  # above which only trees are


def is_asked(other, n, m, d):
    """Whether a library can do a job and would end it."""
    if other == "jztree":
        return m == 0 and d in (2, 3)
    return (m or n) * n <= (SLOW_PAIRS if other.startswith("torch") else BRUTE_PAIRS)


def rows_of(name, n, m, d, device):
    """The table and the queries, or None for the table within itself."""
    if name not in FEW_OF_CLUSTERS:
        return torch.randn((n, d), device=device), torch.randn((m, d), device=device) if m else None
    clusters, in_order, one_asked = CLUSTERS[name.split("-d128-")[1]]
    centers = torch.randn((clusters, d), device=device)
    own = torch.randint(clusters, (n,), device=device)
    asked = torch.randint(1 if one_asked else clusters, (m,), device=device)
    if in_order:
        own = own.sort().values
    return tuple(centers[which] + 0.01 * torch.randn((len(which), d), device=device) for which in (own, asked))


def run_job(report, ours, others, name, options):
    n, m, d, k, target = JOBS[name]
    n, m = n // options.scale, m // options.scale
    entry = report.entry("jobs", name)
    entry.update(rows=n, queries=m or n, self=not m, cols=d, k=k, target_ms=target)
    results = entry.setdefault("results", {})
    names = [other for other in others if is_asked(other, n, m, d)]
    if all(one in results for one in ["vicinal", "vicinal index", *names]):
        return
    print(name, flush=True)
    # The same rows where a process takes over from one that ended.
    torch.manual_seed(report.data["seed"] + sorted(JOBS).index(name))
    table, queries = rows_of(name, n, m, d, options.device)
    truth = measure.Truth(table, queries, k)

    def ours_measured(index=None):
        return measure.measure_ours(ours, table, queries, k, truth, report.data["machine"], index=index)

    def other_measured(knn):
        found = {}

        def call():
            found["ids"] = None  # its memory is free for the next ones
            found["ids"] = knn(table, queries, k)
        result = measure.timed(call, seconds=options.seconds / max(1, len(names)))
        result.update(truth.check(found["ids"]))
        if "vicinal" in results and "median_ms" in results["vicinal"]:
            result["times_ours"] = result["median_ms"] / results["vicinal"]["median_ms"]
        return result

    if report.attempt(results, "vicinal", ours_measured) and "error" not in results["vicinal"]:
        measure.line("vicinal", results["vicinal"])
    if report.attempt(results, "vicinal index", lambda: ours_measured(ours.index(table))):
        if "error" not in results["vicinal index"]:
            measure.line("vicinal index", results["vicinal index"])
    for other in names:
        if report.attempt(results, other, lambda: other_measured(others[other])) and "error" not in results[other]:
            measure.line(other, results[other])
        measure.empty_cache()


def fashion(ours, folder, device):
    """Classification of Fashion-MNIST, its images on the device as the bytes they are and as float32. folder: the four
    idx files, gzip or not."""
    def read(name, skip):
        path = os.path.join(folder, name)
        raw = gzip.open(path + ".gz").read() if os.path.exists(path + ".gz") else open(path, "rb").read()
        return numpy.frombuffer(raw, numpy.uint8, offset=skip)
    table = torch.tensor(read("train-images-idx3-ubyte", 16).reshape(-1, 784), device=device)
    queries = torch.tensor(read("t10k-images-idx3-ubyte", 16).reshape(-1, 784), device=device)
    labels = read("train-labels-idx1-ubyte", 8).astype(numpy.int64)
    wanted = read("t10k-labels-idx1-ubyte", 8)
    codes = numpy.empty(len(wanted), numpy.int32)
    found = {}
    for name, rows, asked in (("uint8", table, queries), ("float32", table.float(), queries.float())):
        found[name] = measure.timed(lambda: ours.classify(rows, asked, 5, labels, codes),
                                    before=lambda: codes.fill(-1))
        found[name].update(ours.done.stats(len(wanted)), accuracy=float((codes == wanted).mean()), target_ms=15.0)
        print(f"  Fashion-MNIST {name}: classified in {found[name]['median_ms']:.3f} ms (least "
              f"{found[name]['least_ms']:.3f}), accuracy {found[name]['accuracy']}")
    return found


def main():
    parser = measure.arguments(__doc__)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--seconds", type=float, default=35)
    parser.add_argument("--fashion", help="folder of Fashion-MNIST's idx files")
    parser.add_argument("--scale", type=int, default=1, help="divides the numbers of rows and queries")
    options = parser.parse_intermixed_args()
    measure.begin()
    measure.limit_threads(options)
    report = measure.Report(options.output, measure.about(options, "exact kNN, device-resident"))
    ours = library.Vicinal(options.folder, options.device, threads=options.threads)
    others, missing = ({}, {}) if options.no_peers else peers.libraries()
    report.entry("not_there").update(missing)
    for name, why in missing.items():
        print(f"no {name}: {why[:200]}")
    if options.device == "cuda":
        report.attempt(report.data, "ceilings", measure.measured_ceilings)
    if options.fashion:
        report.attempt(report.data, "fashion", lambda: fashion(ours, options.fashion, options.device))
    for name in options.names or JOBS:
        measure.empty_cache()
        run_job(report, ours, others, name, options)
    report.save()


if __name__ == "__main__":
    main()
