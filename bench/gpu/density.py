"""Minimum spanning trees and HDBSCAN of rows that lie on the device, beside cuML's and FlashLib's HDBSCAN where they
are installed, in one run.

    python3 bench/gpu/density.py FOLDER [-o FILE.json] [--commit C] [--no-peers] [--no-cpu] [--seconds S] [JOB...]

FOLDER holds libvicinal, its plug-in and libvicinal_bench.so (carry.sh). Every time is that of a whole call that ends in
a synchronization; ours includes checking the rows and making the index, and ends with labels or edges in host memory.
Our tree is compared with that of the CPU, edge by edge and bit by bit, unless --no-cpu is given. `certified`: tree
edges drawn at random are cut, and of both ends of each, float64 distances to all rows on the other side must not be
shorter, by mutual reachability, than the edge. The labels of other libraries are compared with ours by the adjusted
Rand index.
"""

import numpy
import torch

import density_jobs
import measure
from peers import import_flashlib

# name: (rows, columns, kind of rows, min_samples, min_cluster_size)
JOBS = {
    "1M-d16-m5": (1_000_000, 16, "gaussian", 5, 50),
    "1M-d16-m10": (1_000_000, 16, "gaussian", 10, 50),
    "1M-d16-blobs-m10": (1_000_000, 16, "blobs", 10, 50),
    "10M-d3-m5": (10_000_000, 3, "gaussian", 5, 100),
    "10M-d3-m10": (10_000_000, 3, "gaussian", 10, 100),
    "10M-d3-blobs-m10": (10_000_000, 3, "blobs", 10, 100),
}
CUTS = 20  # tree edges of a job that are held against all rows


def peers():
    """Functions of (table, min_samples, min_cluster_size) that return labels, by name, and why others are not there."""
    found, missing = {}, {}
    try:
        from cuml.cluster import HDBSCAN

        def cuml(table, min_samples, size):
            import cupy
            # Ours, as scikit-learn's, counts the row itself; cuML's and FlashLib's do not.
            model = HDBSCAN(min_samples=min_samples - 1, min_cluster_size=size, output_type="numpy")
            model.fit(cupy.from_dlpack(table))
            return model.labels_

        found["cuml"] = cuml
    except Exception as error:
        missing["cuml"] = f"{type(error).__name__}: {error}"
    try:
        import_flashlib()
        from flashlib import flash_hdbscan

        def flashlib(table, min_samples, size):
            labels = flash_hdbscan(table, min_cluster_size=size, min_samples=min_samples - 1)
            return labels.cpu().numpy() if hasattr(labels, "cpu") else numpy.asarray(labels)

        found["flashlib"] = flashlib
    except Exception as error:
        missing["flashlib"] = f"{type(error).__name__}: {error}"
    return found, missing


def adjusted_rand(a, b):
    """Of two labelings; noise is a cluster like others."""
    _, a = numpy.unique(a, return_inverse=True)
    _, b = numpy.unique(b, return_inverse=True)
    _, both = numpy.unique(a.astype(numpy.int64) * (b.max() + 1) + b, return_counts=True)
    pairs = [float((counts.astype(numpy.float64) * (counts - 1) / 2).sum())
             for counts in (both, numpy.bincount(a), numpy.bincount(b))]
    expected = pairs[1] * pairs[2] / (len(a) * (len(a) - 1) / 2)
    most = (pairs[1] + pairs[2]) / 2
    return 1.0 if most == expected else (pairs[0] - expected) / (most - expected)


class Tree:
    def __init__(self, n):
        self.a, self.b = numpy.empty(n - 1, numpy.int64), numpy.empty(n - 1, numpy.int64)
        self.lengths = numpy.empty(n - 1)

    def arrays(self):
        return self.a, self.b, self.lengths

    def same_as(self, other):
        return bool((self.a == other.a).all() and (self.b == other.b).all()
                    and (self.lengths.view(numpy.uint64) == other.lengths.view(numpy.uint64)).all())


def cut_check(table, tree, core, generator):
    """Of tree edges drawn at random, without which the tree has two sides: how many ends have a row on the other side
    that is nearer by mutual reachability than the edge is long. Float64 distances of all rows."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    n = len(table)
    kept, violations = numpy.ones(n - 1, bool), 0
    wide = table.double()
    cores = torch.tensor(core, device=table.device)
    for edge in generator.choice(n - 1, size=min(CUTS, n - 1), replace=False):
        kept[edge] = False
        graph = coo_matrix((numpy.ones(n - 2, numpy.int8), (tree.a[kept], tree.b[kept])), shape=(n, n))
        _, side = connected_components(graph, directed=False)
        kept[edge] = True
        sides = torch.tensor(side, device=table.device)
        for end in (tree.a[edge], tree.b[edge]):
            reach = torch.maximum((wide - wide[end]).square().sum(1).sqrt(), torch.maximum(cores, cores[end]))
            least = reach[sides != sides[end]].min().item()
            # Sums in another order: a few units in the last place.
            violations += not least >= tree.lengths[edge] * (1 - 1e-12)
    return {"cut_edges": min(CUTS, n - 1), "violations": int(violations)}


def run_job(report, ours, host, others, name, options):
    n, d, kind, min_samples, size = JOBS[name]
    n = n // options.scale
    entry = report.entry("jobs", name)
    entry.update(rows=n, cols=d, kind=kind, min_samples=min_samples, min_cluster_size=size)
    results = entry.setdefault("results", {})
    print(name, flush=True)
    torch.manual_seed(report.data["seed"] + sorted(JOBS).index(name))
    table = density_jobs.rows_of(kind, n, d, options.device)
    tree = Tree(n)
    seconds = {}

    def tree_measured(method):
        def call():
            seconds["tree"] = ours.spanning_tree(table, min_samples, *tree.arrays(), method)
        result = measure.timed(call, least=3, seconds=options.seconds)
        result.update(ours.done.stats(n), tree_ms=1000 * seconds["tree"], total_length=float(tree.lengths.sum()))
        return result

    for method in ("automatic", *options.methods):
        if report.attempt(results, f"tree {method}", lambda: tree_measured(method)):
            print("  tree", method, results[f"tree {method}"], flush=True)

    def certified():
        ours.spanning_tree(table, min_samples, *tree.arrays())
        ids = torch.empty((n, min_samples - 1), dtype=torch.int64, device=table.device)
        distances = torch.empty((n, min_samples - 1), dtype=torch.float64, device=table.device)
        ours.knn_into(table, None, min_samples - 1, ids, distances)
        core = distances[:, -1].cpu().numpy()
        return cut_check(table, tree, core, numpy.random.default_rng(report.data["seed"]))

    if report.attempt(results, "certified", certified):
        print("  certified", results["certified"], flush=True)

    def on_the_cpu():
        wanted = Tree(n)
        rows = table.cpu()
        ours.spanning_tree(table, min_samples, *tree.arrays())
        result = measure.timed(lambda: host.spanning_tree(rows, min_samples, *wanted.arrays()), least=1, seconds=0)
        result.update(same_bits=tree.same_as(wanted), total_length=float(wanted.lengths.sum()))
        return result

    if host is not None and report.attempt(results, "tree cpu", on_the_cpu):
        print("  tree cpu", results["tree cpu"], flush=True)

    labels = numpy.empty(n, numpy.int64)

    def clusters_measured():
        def call():
            seconds["clusters"] = ours.hdbscan(table, size, min_samples, labels)
        result = measure.timed(call, least=3, seconds=options.seconds)
        result.update(tree_ms=1000 * seconds["clusters"][0], cluster_ms=1000 * seconds["clusters"][1],
                      clusters=int(labels.max()) + 1, noise=int((labels < 0).sum()))
        return result

    if report.attempt(results, "vicinal", clusters_measured):
        print("  vicinal", results["vicinal"], flush=True)

    def other_measured(other):
        found = {}

        def call():
            found["labels"] = other(table, min_samples, size)
        result = measure.timed(call, least=3, seconds=options.seconds)
        theirs = numpy.asarray(found["labels"])
        ours.hdbscan(table, size, min_samples, labels)
        result.update(clusters=int(theirs.max()) + 1, noise=int((theirs < 0).sum()),
                      adjusted_rand_with_ours=adjusted_rand(theirs, labels))
        if "median_ms" in results.get("vicinal", {}):
            result["times_ours"] = result["median_ms"] / results["vicinal"]["median_ms"]
        return result

    for other, call in others.items():
        if report.attempt(results, other, lambda: other_measured(call)):
            print(f"  {other}", results[other], flush=True)
        measure.empty_cache()


if __name__ == "__main__":
    density_jobs.run(__doc__, "density clustering, device-resident", JOBS, peers, run_job,
                     "do not make the tree on the CPU, too", 20)
