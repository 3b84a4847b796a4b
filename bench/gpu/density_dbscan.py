"""DBSCAN of rows that lie on the device, beside cuML's where it is installed, in one run.

    python3 bench/gpu/density_dbscan.py FOLDER [-o FILE.json] [--commit C] [--no-peers] [--no-cpu] [--seconds S]
        [--methods METHOD...] [JOB...]

FOLDER holds libvicinal, its plug-in and libvicinal_bench.so (carry.sh). Every time is that of a whole call that ends in
a synchronization; ours includes checking the rows and making the index, and ends with labels in host memory. Our labels
and core rows are compared with those of the CPU, row by row, unless --no-cpu is given. cuML's labels are compared with
ours where both number clusters by their first rows: `equal_labels` counts rows, `equal_core_labels` core rows, whose
cluster no order decides. cuML gives a border row to any of the clusters around it.
"""

import numpy
import torch

import density_jobs
import measure

# name: (rows, columns, kind of rows, eps, min_samples). Of 180k-d9-all every two rows are neighbors, although the box
# around the rows is wider than eps.
JOBS = {
    "180k-d9-all": (180_000, 9, "gaussian", 14.0, 10),
    "180k-d9": (180_000, 9, "gaussian", 1.0, 10),
    "1M-d3": (1_000_000, 3, "gaussian", 0.05, 10),
    "1M-d3-wide": (1_000_000, 3, "gaussian", 0.5, 10),
    "1M-d3-blobs": (1_000_000, 3, "blobs", 0.2, 10),
    "10M-d3": (10_000_000, 3, "gaussian", 0.02, 10),
    "10M-d3-blobs": (10_000_000, 3, "blobs", 0.1, 10),
    "200k-d64-blobs": (200_000, 64, "blobs", 10.5, 10),
}


def peers():
    """Functions of (table, eps, min_samples) that return labels, by name, and why others are not there."""
    try:
        from cuml.cluster import DBSCAN
    except Exception as error:
        return {}, {"cuml": f"{type(error).__name__}: {error}"}

    def cuml(table, eps, min_samples):
        import cupy
        model = DBSCAN(eps=eps, min_samples=min_samples, output_type="numpy")
        return model.fit_predict(cupy.from_dlpack(table), out_dtype="int64")

    return {"cuml": cuml}, {}


def numbered(labels, core):
    """Labels whose clusters are numbered by their first core rows; what has no core row keeps no number."""
    clusters, first = numpy.unique(numpy.where(core != 0, labels, -1), return_index=True)
    kept = clusters >= 0
    numbers = numpy.full(int(labels.max()) + 2, -1, numpy.int64)
    numbers[clusters[kept][numpy.argsort(first[kept])]] = numpy.arange(int(kept.sum()))
    return numbers[labels]


def run_job(report, ours, host, others, name, options):
    n, d, kind, eps, min_samples = JOBS[name]
    n = n // options.scale
    entry = report.entry("jobs", name)
    entry.update(rows=n, cols=d, kind=kind, eps=eps, min_samples=min_samples)
    results = entry.setdefault("results", {})
    print(name, flush=True)
    torch.manual_seed(report.data["seed"] + sorted(JOBS).index(name))
    table = density_jobs.rows_of(kind, n, d, options.device)
    labels, core = numpy.empty(n, numpy.int64), numpy.empty(n, numpy.uint8)
    seconds = {}

    def measured(method):
        def call():
            seconds["clusters"] = ours.dbscan(table, eps, min_samples, labels, core, method)
        result = measure.timed(call, least=3, seconds=options.seconds)
        result.update(ours.done.stats(n), cluster_ms=1000 * seconds["clusters"], clusters=int(labels.max()) + 1,
                      core_rows=int(core.sum()), noise=int((labels < 0).sum()))
        return result

    for method in ("automatic", *options.methods):
        title = "vicinal" if method == "automatic" else f"vicinal {method}"
        if report.attempt(results, title, lambda: measured(method)):
            print(f"  {title}", results[title], flush=True)

    def on_the_cpu():
        wanted, wanted_core = numpy.empty(n, numpy.int64), numpy.empty(n, numpy.uint8)
        rows = table.cpu()
        ours.dbscan(table, eps, min_samples, labels, core)
        result = measure.timed(lambda: host.dbscan(rows, eps, min_samples, wanted, wanted_core), least=1, seconds=0)
        result.update(same_labels=bool((wanted == labels).all()), same_core_rows=bool((wanted_core == core).all()))
        return result

    if host is not None and report.attempt(results, "cpu", on_the_cpu):
        print("  cpu", results["cpu"], flush=True)

    def other_measured(other):
        found = {}

        def call():
            found["labels"] = other(table, eps, min_samples)
        result = measure.timed(call, least=3, seconds=options.seconds)
        theirs = numpy.asarray(found["labels"]).astype(numpy.int64)
        ours.dbscan(table, eps, min_samples, labels, core)
        equal = numbered(theirs, core) == labels
        result.update(clusters=int(theirs.max()) + 1, noise=int((theirs < 0).sum()), equal_labels=int(equal.sum()),
                      equal_core_labels=int(equal[core != 0].sum()), core_rows=int(core.sum()))
        if "median_ms" in results.get("vicinal", {}):
            result["times_ours"] = result["median_ms"] / results["vicinal"]["median_ms"]
        return result

    for other, call in others.items():
        if report.attempt(results, other, lambda: other_measured(call)):
            print(f"  {other}", results[other], flush=True)
        measure.empty_cache()


if __name__ == "__main__":
    density_jobs.run(__doc__, "DBSCAN, device-resident", JOBS, peers, run_job, "do not label on the CPU, too", 10)
