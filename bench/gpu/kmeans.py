"""Milliseconds of one Lloyd iteration on rows in device memory, compared with torch in float32 and TF32, flash-kmeans
and cuML.

    python3 bench/gpu/kmeans.py FOLDER [-o FILE.json] [--commit C] [--threads N] [--no-peers] [JOB...]

FOLDER holds libvicinal, its plug-in and libvicinal_bench.so (carry.sh). All start from the same rows in the same run.
An iteration is the difference between a run of 25 and a run of 5, divided by 20, least of each kind, so that reading,
checking and the last assignment do not count. The labels of each library's longest run are compared with float64
distances to the centers that made them, for every row. flash-kmeans returns centers that are updated once more after
its labels were made, so the labels of one more iteration from these centers are compared instead, outside of the time.
"""

import time

import numpy
import torch

import library
import measure

# name: (rows, columns, clusters, target in milliseconds, kind of rows)
JOBS = {
    "500k-d18-k64": (500_000, 18, 64, 0.04, "normal"),
    "4.9M-d41-k23-scaled": (4_900_000, 41, 23, 0.25, "scaled"),
    "1M-d128-k1000": (1_000_000, 128, 1000, 0.6, "normal"),
    "1M-d128-k1000-shifted": (1_000_000, 128, 1000, 0.6, "shifted"),
    "1M-d512-k1000": (1_000_000, 512, 1000, 2.4, "normal"),
    "1M-d128-k4096": (1_000_000, 128, 4096, None, "normal"),
    "1M-d128-k8192": (1_000_000, 128, 8192, 4.0, "normal"),
    "8M-d128-k1024": (8_000_000, 128, 1024, 4.8, "normal"),
    "10M-d128-k1000-host": (10_000_000, 128, 1000, None, "host"),
}
HOST_LIMIT = 2 << 30  # bytes of the device's memory for rows of the host's: they pass through
FEW, MANY = 5, 25


def rows_of(kind, n, d, device):
    if kind == "host":
        rows = torch.empty((n, d))
        for begin in range(0, n, 1_000_000):
            part = rows[begin:begin + 1_000_000]
            part.copy_(torch.randn(part.shape, device=device))
        return rows
    rows = torch.randn((n, d), device=device)
    if kind == "shifted":
        rows += 10
    if kind == "scaled":  # columns of 1e-2 to 1e4, most rows near each other, as KDD's
        rows *= torch.logspace(-2, 4, d, device=device)
        rows *= torch.rand((n, 1), device=device) ** 4
    return rows


class Ours:
    def __init__(self, vicinal, table, start):
        self.vicinal, self.table, self.start = vicinal, table, start.cpu().double().numpy()
        self.labels = numpy.empty(len(table), numpy.int32)

    def run(self, iterations):
        self.centres = self.start.copy()
        self.labels.fill(-1)
        self.vicinal.kmeans(self.table, self.centres, iterations, self.labels)
        return self.vicinal.done.search_seconds, self.vicinal.done.escalated

    def about(self):
        done = self.vicinal.done
        return {"rechecked_share": done.survivors / done.distinct_rows, "screens": done.screens.decode(),
                "iterations": done.escalated, "planned_device_memory": done.device_memory}


class Torch:
    """Lloyd with a matrix product a block of rows, and sums by index_add."""

    def __init__(self, table, start, tf32):
        self.table, self.start, self.tf32 = table, start, tf32

    def run(self, iterations):
        torch.backends.cuda.matmul.allow_tf32 = self.tf32
        centres = self.start.clone()
        step = max(1, (1 << 29) // len(centres))
        measure.synchronize()
        begin = time.perf_counter()
        for _ in range(iterations):
            before = centres
            half = centres.square().sum(1) / 2
            labels = torch.cat([(half - rows @ centres.T).argmin(1) for rows in self.table.split(step)])
            sums = torch.zeros_like(centres).index_add_(0, labels, self.table)
            counts = torch.bincount(labels, minlength=len(centres))
            centres = torch.where(counts[:, None] > 0, sums / counts[:, None], centres)
        measure.synchronize()
        self.labels, self.centres = labels, before
        torch.backends.cuda.matmul.allow_tf32 = False
        return time.perf_counter() - begin, iterations

    def about(self):
        return {}


class Flash:
    def __init__(self, table, start):
        from flash_kmeans import batch_kmeans_Euclid
        self.work, self.table, self.start = batch_kmeans_Euclid, table[None], start[None]

    def run(self, iterations):
        measure.synchronize()
        begin = time.perf_counter()
        found = self.work(self.table, n_clusters=self.start.shape[1], max_iters=iterations, tol=-1.0,
                          init_centroids=self.start.clone())
        measure.synchronize()
        seconds = time.perf_counter() - begin
        self.centres = found[1][0]
        return seconds, iterations

    @property
    def labels(self):
        """Those that `centres` make: the labels of a run are made by the centers before its last update."""
        return self.work(self.table, n_clusters=self.start.shape[1], max_iters=1, tol=-1.0,
                         init_centroids=self.centres[None].clone())[0][0]

    def about(self):
        return {"labels_of": "one more iteration from the centers of the longest run"}


class CuML:
    def __init__(self, table, start):
        import cuml

        self.KMeans, self.table, self.start = cuml.KMeans, table, start.cpu().numpy()
        self.version = cuml.__version__

    def run(self, iterations):
        model = self.KMeans(n_clusters=len(self.start), init=self.start, n_init=1, max_iter=iterations, tol=0.0,
                            output_type="numpy")
        measure.synchronize()
        begin = time.perf_counter()
        model.fit(self.table)
        measure.synchronize()
        seconds = time.perf_counter() - begin
        self.labels, self.centres = model.labels_, model.cluster_centers_
        return seconds, int(model.n_iter_)

    def about(self):
        return {"version": self.version}


def iteration(work, rounds=3):
    work.run(2)
    times = {count: [] for count in (FEW, MANY)}
    for _ in range(rounds):
        for count in times:
            times[count].append(work.run(count))
    (least, few), (most, many) = min(times[FEW]), min(times[MANY])
    return {"ms_an_iteration": 1000 * (most - least) / max(1, many - few), "few_ms": 1000 * least,
            "many_ms": 1000 * most, **work.about()}


def wrong_labels(table, centres, labels, device):
    """Rows whose label is not the first of the least float64 distances. Torch adds squares in an order of its own, so
    that a row is right when no center is nearer by more than what such sums may differ by."""
    centres = torch.as_tensor(centres).to(device).double()
    labels = torch.as_tensor(labels).to(device).long()
    half = centres.square().sum(1)
    wrong = 0
    step = max(1, (1 << 27) // max(len(centres), table.shape[1]))
    for begin in range(0, len(table), step):
        rows = table[begin:begin + step].to(device).double()
        own = labels[begin:begin + step]
        nearest = (half - 2 * rows @ centres.T).argmin(1)
        key = (rows - centres[own]).square().sum(1)
        least = (rows - centres[nearest]).square().sum(1)
        wrong += int((key > least * (1 + 2.0**-46)).sum())
    return wrong


def floor_ms(machine, n, d, k):
    """The least time of one reading of the rows as float32, and of the products at the float16 rate."""
    ceilings = measure.CEILINGS.get(machine)
    if ceilings is None:
        return None
    return 1000 * max(4 * n * d / ceilings["copy_bytes"], 2 * n * k * measure.packed_columns(d) / ceilings["peak_flops"])


def run_job(report, ours, name, options):
    n, d, k, target, kind = JOBS[name]
    n //= options.scale
    entry = report.entry("jobs", name)
    floor = floor_ms(report.data["machine"], n, d, k)
    entry.update(rows=n, cols=d, clusters=k, target_ms=target, floor_ms=floor)
    results = entry.setdefault("results", {})
    print(name, flush=True)
    torch.manual_seed(report.data["seed"] + sorted(JOBS).index(name))
    table = rows_of(kind, n, d, options.device)
    start = table[torch.randperm(n, device=table.device)[:k]].contiguous()
    if kind == "host":
        ours = library.Vicinal(options.folder, options.device, device_memory_limit=HOST_LIMIT,
                               threads=options.threads)

    def checked(work):
        found = iteration(work)
        found["wrong_labels"] = wrong_labels(table, work.centres, work.labels, options.device)
        return found

    def ours_measured():
        work = Ours(ours, table, start)
        found = iteration(work, rounds=1 if kind == "host" else 3)
        found["wrong_labels"] = wrong_labels(table, work.centres, work.labels, options.device)
        return found

    works = {"vicinal": ours_measured}
    if not options.no_peers and kind != "host":
        works["torch float32"] = lambda: checked(Torch(table, start, False))
        works["torch TF32"] = lambda: checked(Torch(table, start, True))
        works["flash-kmeans"] = lambda: checked(Flash(table, start))
        works["cuml"] = lambda: checked(CuML(table, start))
    for who, work in works.items():
        if not report.attempt(results, who, work) or "error" in results[who]:
            continue
        found = results[who]
        text = f"  {who:16} {found['ms_an_iteration']:9.4f} ms an iteration (target {target}, floor {floor})"
        if who == "vicinal":
            text += f", {found['wrong_labels']} wrong, {found['rechecked_share']:.2e} rechecked, {found['screens']}"
        print(text, flush=True)
        measure.empty_cache()


def main():
    parser = measure.arguments(__doc__)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--scale", type=int, default=1, help="divides the numbers of rows")
    options = parser.parse_intermixed_args()
    measure.begin()
    measure.limit_threads(options)
    report = measure.Report(options.output, measure.about(options, "k-means, one Lloyd iteration, device-resident"))
    ours = library.Vicinal(options.folder, options.device, threads=options.threads)
    for name in options.names or JOBS:
        measure.empty_cache()
        run_job(report, ours, name, options)
    report.save()


if __name__ == "__main__":
    main()
