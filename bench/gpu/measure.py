"""What the measurements beside this file share: a report that survives its process, timing, the truth, the roofline."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import torch

RUN_AGAIN = 75  # the exit code of a process whose device was lost: what is left can be measured by another one

# Dense float16 products as the vendor states them, and what was measured on random data: products (8192^3) and bytes a
# second, read and written, of a copy.
CEILINGS = {"NVIDIA H200": {"peak_flops": 989e12, "product_flops": 768e12, "copy_bytes": 4.25e12}}


class Report:
    """A JSON file that is whole after every result. What it holds already is not measured again, so that a process
    that was ended can be followed by another one."""

    def __init__(self, path, about):
        self.path = None if path is None else pathlib.Path(path)
        self.data = {}
        if self.path is not None and self.path.exists():
            self.data = json.loads(self.path.read_text())
        for key, value in about.items():
            self.data.setdefault(key, value)

    def entry(self, *keys):
        """The dictionary under these keys, made where it is not there."""
        found = self.data
        for key in keys:
            found = found.setdefault(key, {})
        return found

    def save(self):
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        written = self.path.with_suffix(".part")
        written.write_text(json.dumps(self.data, indent=1) + "\n")
        os.replace(written, self.path)

    def attempt(self, results, name, work):
        """results[name] = work(), or why there is none. Returns whether it was measured now."""
        if name in results:
            return False
        results[name] = {"error": "the process ended while it ran"}  # what stays, if it does
        self.save()
        try:
            results[name] = work()
        except Exception as error:  # a library may refuse a shape, or fail; the others go on
            results[name] = {"error": f"{type(error).__name__}: {str(error).strip()[:300]}"}
        self.save()
        if "error" in results[name]:
            print(f"  {name:26} {results[name]['error'][:140]}", flush=True)
            require_device()
        return True


def require_device():
    """Ends the process where an error has made the device useless to it."""
    if not torch.cuda.is_available():
        return
    try:
        torch.cuda.synchronize()
    except Exception as error:
        print(f"the device is lost to this process: {str(error)[:140]}", flush=True)
        os._exit(RUN_AGAIN)


def arguments(description, **defaults):
    """A parser of what every measurement takes: FOLDER -o FILE --commit C --seed S, and names of what to measure."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="holds libvicinal_bench.so, the library and its plug-in (carry.sh)")
    parser.add_argument("names", nargs="*", help="what to measure; nothing: all")
    parser.add_argument("-o", "--output", help="the report; what is in it already is not measured again")
    parser.add_argument("--commit", default=os.environ.get("VICINAL_COMMIT", "unknown"))
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000_007)
    parser.add_argument("--device", default="cuda", help="cuda, or cpu to try the script itself")
    parser.add_argument("--threads", type=int, default=0, help="of the host, where the script uses it [all]")
    parser.set_defaults(**defaults)
    return parser


def about(options, what):
    """Head of a report: where, when and of what. It does not touch the device."""
    facts = {"what": what, "machine": "cpu", "date": time.strftime("%Y-%m-%d"), "commit": options.commit,
             "torch": torch.__version__, "seed": options.seed}
    if options.device == "cuda":
        try:
            asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                                   capture_output=True, text=True, timeout=20, check=True)
            facts["machine"], facts["driver"] = asked.stdout.splitlines()[0].split(", ")
        except (OSError, subprocess.SubprocessError, ValueError, IndexError):
            facts["machine"] = torch.cuda.get_device_name()
        facts["cuda"] = torch.version.cuda
    return facts


def limit_threads(options):
    """torch's threads of the host; the library gets its own by library.Vicinal."""
    if options.threads:
        torch.set_num_threads(options.threads)


def synchronize():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def empty_cache():
    """Gives back the device memory that torch keeps for later, which others may need now."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def timed(call, before=lambda: None, least=5, seconds=float("inf")):
    """Times of whole calls that end in a synchronization, after one that warms up: at least `least` of them and a tenth
    of a second, but none begins after `seconds`. `before` runs ahead of each, outside the clock."""
    before()
    call()
    times = []
    while not times or ((len(times) < least or (sum(times) < 0.1 and len(times) < 50)) and sum(times) < seconds):
        before()
        synchronize()
        start = time.perf_counter()
        call()
        synchronize()
        times.append(time.perf_counter() - start)
    return {"median_ms": 1000 * statistics.median(times), "least_ms": 1000 * min(times), "most_ms": 1000 * max(times),
            "calls": len(times)}


def measured_ceilings():
    """Float16 products and copied bytes a second on this device, now: best of ten, on random data."""
    def best(call):
        call()
        times = []
        for _ in range(10):
            torch.cuda.synchronize()
            start = time.perf_counter()
            call()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        return min(times)
    a, b = (torch.randn((8192, 8192), device="cuda", dtype=torch.float16) for _ in range(2))
    product = torch.empty_like(a)
    rows = torch.randn(1 << 28, device="cuda")
    copy = torch.empty_like(rows)
    return {"product_flops": 2 * 8192**3 / best(lambda: torch.mm(a, b, out=product)),
            "copy_bytes": 2 * 4 * len(rows) / best(lambda: copy.copy_(rows))}


def packed_columns(d):
    """Columns of the screen's product: the data's, five that carry norm and bound, rounded up to the matrix unit's."""
    return -(-(d + 5) // 16) * 16


def roofline(machine, n, m, d, k, bytes_a_value, milliseconds):
    """The least time that the products and the bytes allow, and the share of it that was reached. Bytes: each input is
    read once, each answer written once."""
    flops = 2 * m * n * packed_columns(d)
    moved = (n + m) * d * bytes_a_value + 16 * m * k
    found = {"columns": packed_columns(d), "flops": flops, "bytes": moved,
             "useful_tflops": 2e-9 * m * n * d / milliseconds}
    ceilings = CEILINGS.get(machine)
    if ceilings is None:
        return found
    by_bytes = 1000 * moved / ceilings["copy_bytes"]
    for name, rate in (("peak", ceilings["peak_flops"]), ("measured", ceilings["product_flops"])):
        floor = max(1000 * flops / rate, by_bytes)
        found[f"floor_{name}_ms"] = floor
        found[f"fraction_of_{name}"] = floor / milliseconds
    return found


class Truth:
    """The k-th float64 distances of some random queries, from the keys of all rows. `queries` None: the table within
    itself. Torch adds up the squares in an order of its own: two such sums of d rounded squares differ by at most
    (d + 4) 2^-52 of them."""

    def __init__(self, table, queries, k, count=200):
        m = len(table) if queries is None else len(queries)
        self.table, self.k = table, k
        self.sample = torch.randperm(m, device=table.device)[:count]
        self.asked = (table if queries is None else queries)[self.sample]
        self.own = self.sample if queries is None else torch.full_like(self.sample, -1)
        self.slack = (table.shape[1] + 4) * 2.0**-52
        self.kth = torch.stack([self.keys(x, own).topk(k, largest=False).values[-1]
                                for x, own in zip(self.asked, self.own.tolist())])

    def keys(self, query, own):
        step = max(1, (1 << 27) // self.table.shape[1])
        keys = torch.cat([(rows.double() - query.double()).square().sum(1) for rows in self.table.split(step)])
        if own >= 0:
            keys[own] = torch.inf
        return keys

    def check(self, ids, distances=None):
        """ids [m, k] of all queries, and distances where they are to be held against float64, too. A query is right
        when each of its rows is among the k nearest, ties with the k-th included, and none comes twice."""
        ids = ids[self.sample].to(self.table.device)
        inside = (ids >= 0) & (ids < len(self.table))
        rows = self.table[ids.clamp(0, len(self.table) - 1)]
        keys = (rows.double() - self.asked[:, None].double()).square().sum(2)
        near = inside & (ids != self.own[:, None]) & (keys <= self.kth[:, None] * (1 + self.slack))
        ordered = ids.sort(1).values
        right = near.all(1) & (ordered[:, 1:] != ordered[:, :-1]).all(1)
        found = {"checked": len(ids), "right": int(right.sum()), "recall": float(near.double().mean())}
        if distances is not None:
            distances = distances[self.sample].to(self.table.device)
            close = (distances.square() - keys).abs() <= (self.slack + 2.0**-51) * keys
            rising = distances.diff(dim=1, prepend=distances[:, :1]) >= 0
            found["distances_right"] = int((close & rising).all(1).sum())
        return found


def lists(m, k, device="cuda"):
    """Room for answers, poisoned, so that what was not written shows."""
    ids = torch.full((m, k), -1, dtype=torch.int64, device=device)
    return ids, torch.full((m, k), torch.nan, dtype=torch.float64, device=device)


def measure_ours(library, table, queries, k, truth, machine, method="automatic", index=None, **limits):
    """Time, statistics, roofline and exactness of whole calls of the library; with an index, of calls that ask it."""
    m = len(table) if queries is None else len(queries)
    ids, distances = lists(m, k, table.device)

    def poison():
        ids.fill_(-1)
        distances.fill_(torch.nan)

    def call():
        if index is None:
            library.knn_into(table, queries, k, ids, distances, method)
        else:
            index(queries, k, ids, distances, method)
    found = timed(call, before=poison, **limits)
    found.update(library.done.stats(m))
    found["roofline"] = roofline(machine, len(table), m, table.shape[1], k, table.element_size(), found["median_ms"])
    found.update(truth.check(ids, distances))
    return found


def line(name, found):
    """One result for people."""
    text = f"  {name:26} {found['median_ms']:10.3f} ms (least {found['least_ms']:10.3f} of {found['calls']})  "
    text += f"{found['right']} of {found['checked']} right"
    if "survivors_per_query" in found:
        share = found["roofline"].get("fraction_of_peak")
        text += f"  {found['method']}, {found['survivors_per_query']:.1f} survivors, "
        text += f"{100 * found['ladder_share']:.2f} % again, {100 * found['certified_share']:.2f} % certified"
        text += "" if share is None else f", {100 * share:.0f} % of the roofline"
    print(text, flush=True)


def begin():
    """Lines are seen when they are printed, also where output is a file."""
    sys.stdout.reconfigure(line_buffering=True)
