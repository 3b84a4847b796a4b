"""Sizes beyond 32 bits, beyond the device's memory, and beside a process that has taken nearly all of it.

    python3 bench/gpu/large.py FOLDER CASE [-o FILE.json] [--commit C] [--rows N --dims D --queries M -k K]

values    n d above 2^31: bytes and float32 on the device
answers   m k above 2^31 within a table, answers on the device
pairs     m n above 2^31 within a table of few columns
stream    rows that are made when they are asked for, 10^9 x 100 float32 (400 GB) unless --rows and --dims say another
          shape, with --device-limit and --host-limit gigabytes; they pass twice, to be checked and to be searched
little    a table in host memory while another process leaves 2 GB of the device (--leave)

Answers to 100 random queries are held against float64 distances of all rows. One case a call, since one case's memory
is in another's way; --rows and the others change a case's shape.
"""

import resource
import subprocess
import sys
import threading
import time

import numpy
import torch

import library
import measure

GB = 1_000_000_000
CHECKED = 100


def shape(options, rows, dims, queries, k):
    """The case's own shape, where the command line has no other."""
    return (options.rows or rows, options.dims or dims, options.queries if options.queries is not None else queries,
            options.k or k)


def resident_bytes():
    """Of this process, now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


class Watch:
    """The most memory that was taken while it watched, of the device by whoever and of the host by this process."""

    def __enter__(self):
        self.on_device = torch.cuda.is_available()
        self.free_before = self.least_free = torch.cuda.mem_get_info()[0] if self.on_device else 0
        self.before = self.most = resident_bytes()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()
        return self

    def look(self):
        while not self.stop.wait(0.01):
            self.most = max(self.most, resident_bytes())
            if self.on_device:
                self.least_free = min(self.least_free, torch.cuda.mem_get_info()[0])

    def __exit__(self, *error):
        self.stop.set()
        self.thread.join()

    def found(self):
        return {"device_bytes_taken": self.free_before - self.least_free, "host_bytes_grown": self.most - self.before}


def resident(report, options, ours, name, table, queries, k):
    """One search of rows on the device: the clock, the answers, the truth."""
    results = report.entry("cases", name)
    m = len(table) if queries is None else len(queries)

    def work():
        truth = measure.Truth(table, queries, k, CHECKED)
        found = {"rows": len(table), "cols": table.shape[1], "queries": m, "k": k,
                 "values": len(table) * table.shape[1], "answers": m * k, "pairs": m * len(table)}
        ids, distances = measure.lists(m, k, options.device)
        found.update(measure.timed(lambda: ours.knn_into(table, queries, k, ids, distances), least=3, seconds=20))
        found.update(ours.done.stats(m))
        found["roofline"] = measure.roofline(report.data["machine"], len(table), m, table.shape[1], k,
                                             table.element_size(), found["median_ms"])
        found.update(truth.check(ids, distances))
        return found
    print(f"{name}: {len(table)} x {table.shape[1]}, {m} queries, k {k}", flush=True)
    if report.attempt(results, "found", work) and "error" not in results["found"]:
        measure.line("vicinal", results["found"])


def normal(n, d, device):
    return torch.randn((n, d), device=device)


def values(report, options, ours):
    n, d, m, k = shape(options, 20_000_000, 128, 1_000, 10)
    resident(report, options, ours, "values, float32", normal(n, d, options.device), normal(m, d, options.device), k)
    measure.empty_cache()
    n, d, m, k = shape(options, 50_000_000, 64, 1_000, 10)
    bytes_table, bytes_queries = (
        torch.randint(0, 256, (rows, d), dtype=torch.uint8, device=options.device) for rows in (n, m))
    resident(report, options, ours, "values, bytes", bytes_table, bytes_queries, k)


def answers(report, options, ours):
    n, d, _, k = shape(options, 2_200_000, 16, 0, 1_000)
    resident(report, options, ours, "answers", normal(n, d, options.device), None, k)


def pairs(report, options, ours):
    n, d, _, k = shape(options, 500_000, 8, 0, 10)
    resident(report, options, ours, "pairs", normal(n, d, options.device), None, k)


def made_truth(made, queries, k, device):
    """ids and distances [m, k] in float64 of rows that are made. Of each part of the table an expanded product in
    float64 gives the candidates, whose distances are then computed from the differences. The product errs by about
    2^-50 of the squared norms, far less than what lies between the k-th and the candidate after twice as many."""
    base = torch.tensor(made.base, device=device)
    shifts = torch.tensor(made.shifts, device=device)
    asked = torch.tensor(queries, device=device).double()
    best_keys = torch.full((len(asked), 0), torch.inf, dtype=torch.float64, device=device)
    best_ids = torch.empty((len(asked), 0), dtype=torch.int64, device=device)
    step = max(1, (1 << 28) // base.shape[1])
    for part in range(len(shifts)):
        for begin in range(0, len(base), step):
            first = part * len(base) + begin
            rows = base[begin:begin + min(step, made.rows - first)] + shifts[part] if first < made.rows else base[:0]
            if len(rows) == 0:
                continue
            wide = rows.double()
            scores = torch.addmm(wide.square().sum(1)[None, :], asked, wide.T, alpha=-2)
            near = scores.topk(min(2 * k + 16, len(rows)), dim=1, largest=False).indices
            keys = (wide[near] - asked[:, None]).square().sum(2)
            best_keys = torch.cat([best_keys, keys], 1)
            best_ids = torch.cat([best_ids, near + first], 1)
            best_keys, order = best_keys.sort(1)
            best_keys, best_ids = best_keys[:, :k], best_ids.gather(1, order)[:, :k]
    return best_ids.cpu().numpy(), best_keys.cpu().numpy()


def keys_of(rows_at, queries, ids):
    """Squared float64 distances of the rows that were returned."""
    return numpy.stack([((rows_at(row).astype(numpy.float64) - x) ** 2).sum(1) for row, x in zip(ids, queries)])


def stream(report, options):
    n, d, m, k = shape(options, 1_000_000_000, 100, 1_000, 10)
    random = numpy.random.default_rng(report.data["seed"])
    period = min(n, 4_000_000)
    base = random.standard_normal((period, d), dtype=numpy.float32)
    parts = -(-n // period)
    made = library.Made(base, 0.5 * random.standard_normal((parts, d), dtype=numpy.float32), n)
    queries = random.standard_normal((m, d), dtype=numpy.float32)
    ids, distances = numpy.full((m, k), -1, numpy.int64), numpy.full((m, k), numpy.nan)
    limits = {"device_memory_limit": int(options.device_limit * GB), "memory_limit": int(options.host_limit * GB)}
    found = {"rows": n, "cols": d, "queries": m, "k": k, "table_bytes": 4 * n * d, **limits}
    print(f"stream: {n} x {d} float32, {4 * n * d / GB:.0f} GB, {m} queries, k {k}", flush=True)

    def source_rate():
        block = numpy.empty((min(n, 40_000), d), numpy.float32)
        last = n - len(block)
        for begin in (0, last):
            ours.make(made, begin, begin + len(block), block)
            rows = numpy.arange(begin, begin + len(block))
            if not (block == base[rows % period] + made.shifts[rows // period]).all():
                raise RuntimeError("rows are not made as they are said to be")
        start = time.perf_counter()
        for number in range(50):
            begin = number * len(block) % (last + 1)
            ours.make(made, begin, begin + len(block), block)
        return {"bytes_per_s": 50 * block.nbytes / (time.perf_counter() - start)}

    def search():
        with Watch() as watch:
            start = time.perf_counter()
            ours.knn_into(made, queries, k, ids, distances)
            seconds = time.perf_counter() - start
        done = ours.done.stats(m)
        return {**found, "seconds": seconds, "table_bytes_per_s": found["table_bytes"] / seconds,
                "searched_bytes_per_s": 1000 * found["table_bytes"] / done["search_ms"], **done, **watch.found()}

    def check():
        sample = random.permutation(m)[:CHECKED]
        true_ids, true_keys = made_truth(made, queries[sample], k, options.device)
        keys = keys_of(lambda row: base[row % period] + made.shifts[row // period], queries[sample], ids[sample])
        slack = (d + 4) * 2.0**-52
        right = (keys <= true_keys[:, -1:] * (1 + slack)).all(1)
        close = (numpy.abs(distances[sample] ** 2 - keys) <= (slack + 2.0**-51) * keys).all(1)
        return {"checked": len(sample), "right": int(right.sum()), "distances_right": int(close.sum()),
                "same_ids": int((ids[sample] == true_ids).all(1).sum())}

    results = report.entry("cases", "stream")
    with library.Vicinal(options.folder, options.device, **limits) as ours:
        report.attempt(results, "source", source_rate)
        now = report.attempt(results, "found", search)
    if now and "error" not in results["found"]:
        taken = results["found"]
        print(f"  {taken['seconds']:.1f} s, {taken['table_bytes_per_s'] / GB:.1f} GB/s (rows are made at "
              f"{results['source'].get('bytes_per_s', 0) / GB:.1f}), {taken['device_bytes_taken'] / GB:.2f} GB of the "
              f"device taken, host memory grown by {taken['host_bytes_grown'] / GB:.2f} GB", flush=True)
        report.attempt(results, "truth", check)
        print(f"  {results['truth']}", flush=True)


HOG = """
import sys, torch
free, total = torch.cuda.mem_get_info()
taken = torch.empty(max(0, free - int(float(sys.argv[1]) * 1e9)), dtype=torch.uint8, device="cuda")
print(torch.cuda.mem_get_info()[0], total, flush=True)
sys.stdin.read()
"""


def little(report, options):
    """Torch may not touch the device in this process before the search is done: it would take of what is left."""
    n, d, m, k = shape(options, 4_000_000, 128, 2_000, 10)
    random = numpy.random.default_rng(report.data["seed"])
    table = random.standard_normal((n, d), dtype=numpy.float32)
    queries = random.standard_normal((m, d), dtype=numpy.float32)
    ids, distances = numpy.full((m, k), -1, numpy.int64), numpy.full((m, k), numpy.nan)
    results = report.entry("cases", "little")
    found = {"rows": n, "cols": d, "queries": m, "k": k, "table_bytes": table.nbytes}
    print(f"little: {n} x {d} float32 on the host, {m} queries, k {k}, {options.leave} GB of the device", flush=True)

    def search():
        with subprocess.Popen([sys.executable, "-c", HOG, str(options.leave)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as hog:
            try:
                free, total = map(int, hog.stdout.readline().split())
                with library.Vicinal(options.folder, options.device) as ours:
                    start = time.perf_counter()
                    ours.knn_into(table, queries, k, ids, distances)
                    seconds = time.perf_counter() - start
                    done = ours.done.stats(m)
            finally:
                hog.stdin.close()
        return {**found, "device_bytes_free": free, "device_bytes": total, "seconds": seconds, **done}

    def check():
        sample = random.permutation(m)[:CHECKED]
        rows = torch.tensor(table, device=options.device)
        truth = measure.Truth(rows, torch.tensor(queries[sample], device=options.device), k, len(sample))
        return truth.check(*(torch.tensor(found[sample], device=options.device) for found in (ids, distances)))

    if report.attempt(results, "found", search) and "error" not in results["found"]:
        taken = results["found"]
        print(f"  {taken['seconds']:.2f} s by {taken['method']} ({taken['screens']}), "
              f"{taken['device_bytes_free'] / GB:.2f} GB free, {taken['planned_device_memory'] / GB:.2f} GB planned")
        report.attempt(results, "truth", check)
        print(f"  {results['truth']}", flush=True)


def main():
    parser = measure.arguments(__doc__)
    for name in ("--rows", "--dims", "--queries", "-k"):
        parser.add_argument(name, type=int)
    parser.add_argument("--device-limit", type=float, default=16, help="gigabytes of the device that a stream may take")
    parser.add_argument("--host-limit", type=float, default=2, help="gigabytes of working memory on the host, likewise")
    parser.add_argument("--leave", type=float, default=2, help="gigabytes that the other process leaves")
    options = parser.parse_intermixed_args()
    measure.begin()
    if len(options.names) != 1 or options.names[0] not in ("values", "answers", "pairs", "stream", "little"):
        parser.error("one case: values, answers, pairs, stream or little")
    case = options.names[0]
    report = measure.Report(options.output, measure.about(options, "large tables"))
    torch.manual_seed(report.data["seed"])
    if case in ("stream", "little"):
        {"stream": stream, "little": little}[case](report, options)
    else:
        ours = library.Vicinal(options.folder, options.device)
        {"values": values, "answers": answers, "pairs": pairs}[case](report, options, ours)
    report.save()


if __name__ == "__main__":
    main()
