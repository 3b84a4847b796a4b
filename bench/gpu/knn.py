"""Exact k nearest neighbors of rows that lie on the device, beside torch and FlashLib, in one run.

    python3 bench/gpu/knn.py FOLDER [-o FILE.json] [--commit C] [JOB...]

FOLDER holds libvicinal, its plug-in and libvicinal_bench.so (bench/gpu/resident.cpp). Every time is that of a whole
call that ends in a synchronisation, the median of `repeats` after a warm-up; ours includes checking the rows and making
the index. Every library's answers to 200 random queries are held against float64 distances of all rows: a query counts
as right when every row returned is among the k nearest, rounding aside.
"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import time

import torch

# name: (rows, queries (0: the rows themselves), columns, k, repeats, target in milliseconds)
JOBS = {
    "1Mx10k-d128": (1_000_000, 10_000, 128, 32, 5, 5.0),
    "1Mx10k-d41": (1_000_000, 10_000, 41, 20, 5, 3.0),
    "1Mx10k-d512": (1_000_000, 10_000, 512, 32, 5, 18.0),
    "100k-self-d41": (100_000, 0, 41, 20, 5, 5.0),
    "300k-self-d128": (300_000, 0, 128, 10, 3, 40.0),
    "1Mx100k-d64": (1_000_000, 100_000, 64, 10, 3, 30.0),
    "32kx1200-d256": (32_768, 1_200, 256, 25, 9, 0.15),
    "1M-self-d41": (1_000_000, 0, 41, 32, 1, 400.0),
    "2Mx5k-d96-k100": (2_000_000, 5_000, 96, 100, 3, None),
    "500kx20k-d17-k1": (500_000, 20_000, 17, 1, 3, None),
    "200kx3k-d777-k7": (200_000, 3_000, 777, 7, 3, None),
}


class Vicinal:
    def __init__(self, folder):
        self.library = ctypes.CDLL(os.path.join(folder, "libvicinal_bench.so"))

    def knn(self, table, queries, k):
        m = len(table) if queries is None else len(queries)
        ids = torch.empty((m, k), dtype=torch.int64, device="cuda")
        distances = torch.empty((m, k), dtype=torch.float64, device="cuda")
        self.stats = (ctypes.c_int64 * 3)()
        failed = self.library.vicinal_bench_knn(
            ctypes.c_void_p(table.data_ptr()), ctypes.c_int64(len(table)), ctypes.c_int64(table.shape[1]),
            ctypes.c_void_p(None if queries is None else queries.data_ptr()), ctypes.c_int64(m), ctypes.c_int64(k),
            b"automatic", ctypes.c_void_p(ids.data_ptr()), ctypes.c_void_p(distances.data_ptr()), self.stats)
        if failed:
            sys.exit("vicinal failed")
        return ids

    def classify(self, table, queries, k, labels):
        """Predicted codes on the host, and the median and least milliseconds of nine calls."""
        codes = (ctypes.c_int32 * len(queries))()
        host = (ctypes.c_int64 * len(labels))(*labels)

        def call():
            if self.library.vicinal_bench_classify(
                    ctypes.c_void_p(table.data_ptr()), ctypes.c_int64(len(table)), ctypes.c_int64(table.shape[1]),
                    ctypes.c_void_p(queries.data_ptr()), ctypes.c_int64(len(queries)), ctypes.c_int64(k), host, codes):
                sys.exit("vicinal failed")
        _, median, least = timed(call, 9)
        return list(codes), median, least


def torch_knn(tf32):
    def knn(table, queries, k):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        asked = table if queries is None else queries
        norms = table.square().sum(1)
        step = max(1, 4_000_000_000 // len(table))
        found = []
        for begin in range(0, len(asked), step):
            scores = torch.addmm(norms[None, :], asked[begin:begin + step], table.T, alpha=-2)
            if queries is None:
                scores[torch.arange(len(scores)), torch.arange(begin, begin + len(scores))] = torch.inf
            found.append(scores.topk(k, dim=1, largest=False).indices)
        return torch.cat(found)
    return knn


def flashlib_knn(dtype, backend):
    from flashlib import flash_knn
    if backend == "cutedsl":
        import cutlass  # noqa: F401  (its Hopper path; takes a multiple of 16 columns)

    def knn(table, queries, k):
        asked = table if queries is None else queries
        more = k if queries is not None else k + 1
        asked, rows = asked[None].to(dtype), table[None].to(dtype)
        if backend == "cutedsl" and rows.shape[2] % 16:
            padding = (0, 16 - rows.shape[2] % 16)
            asked, rows = torch.nn.functional.pad(asked, padding), torch.nn.functional.pad(rows, padding)
        ids = flash_knn(asked, rows, more, backend=backend)[1][0].long()
        if queries is not None:
            return ids
        own = ids == torch.arange(len(ids), device="cuda")[:, None]
        own[~own.any(1), -1] = True
        return ids[~own].view(-1, k)
    return knn


def kth_distances(table, asked, own, k):
    """The float64 squared distance of each sampled query's k-th nearest row."""
    kth = []
    for q, x in zip(own, asked):
        keys = torch.cat([(rows.double() - x.double()).square().sum(1) for rows in table.split(1 << 17)])
        if q >= 0:
            keys[q] = torch.inf
        kth.append(keys.topk(k, largest=False).values[-1])
    return torch.stack(kth)


def right(table, asked, own, kth, ids):
    keys = (table[ids].double() - asked[:, None].double()).square().sum(2)
    distinct = torch.tensor([len(set(row)) == len(row) for row in ids.tolist()], device="cuda")
    return int(((keys <= kth[:, None] * (1 + 1e-12)).all(1) & distinct & (ids != own[:, None]).all(1)).sum())


def timed(call, repeats):
    result = call()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = call()
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    return result, statistics.median(times), min(times)


def fashion(ours, folder):
    """Classification of Fashion-MNIST, its images on the device. folder: the four idx files, gzip or not."""
    import gzip

    import numpy

    def read(name, skip):
        path = os.path.join(folder, name)
        raw = gzip.open(path + ".gz").read() if os.path.exists(path + ".gz") else open(path, "rb").read()
        return numpy.frombuffer(raw, numpy.uint8, offset=skip)
    table = torch.tensor(read("train-images-idx3-ubyte", 16).reshape(-1, 784), device="cuda").float()
    queries = torch.tensor(read("t10k-images-idx3-ubyte", 16).reshape(-1, 784), device="cuda").float()
    labels = read("train-labels-idx1-ubyte", 8).tolist()
    wanted = read("t10k-labels-idx1-ubyte", 8).tolist()
    codes, median, least = ours.classify(table, queries, 5, labels)
    accuracy = sum(a == b for a, b in zip(codes, wanted)) / len(wanted)
    print(f"Fashion-MNIST classified in {median:.3f} ms (least {least:.3f}), accuracy {accuracy}")
    return {"median_ms": median, "least_ms": least, "accuracy": accuracy}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("jobs", nargs="*")
    parser.add_argument("-o", "--output")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--fashion", help="folder of Fashion-MNIST's idx files")
    arguments = parser.parse_args()
    ours = Vicinal(arguments.folder)
    libraries = {"vicinal": ours.knn}
    if not arguments.no_peers:
        libraries["torch float32"] = torch_knn(False)
        libraries["torch tf32"] = torch_knn(True)
        for name, dtype, backend in (("flashlib triton tf32", torch.float32, "triton"),
                                     ("flashlib triton bfloat16", torch.bfloat16, "triton"),
                                     ("flashlib hopper bfloat16", torch.bfloat16, "cutedsl")):
            try:
                libraries[name] = flashlib_knn(dtype, backend)
            except ImportError as error:
                print("no", name, error)
    report = {"machine": torch.cuda.get_device_name(), "date": time.strftime("%Y-%m-%d"), "commit": arguments.commit,
              "torch": torch.__version__, "jobs": {}}
    if arguments.fashion:
        report["fashion"] = fashion(ours, arguments.fashion)
    for name in arguments.jobs or JOBS:
        n, m, d, k, repeats, target = JOBS[name]
        table = torch.randn((n, d), device="cuda")
        queries = torch.randn((m, d), device="cuda") if m else None
        sample = torch.randperm(m or n, device="cuda")[:200]
        asked = (table if queries is None else queries)[sample]
        own = sample if queries is None else torch.full_like(sample, -1)
        kth = kth_distances(table, asked, own, k)
        entry = {"rows": n, "queries": m or n, "self": not m, "cols": d, "k": k, "target_ms": target, "results": {}}
        for library, knn in libraries.items():
            if library != "vicinal" and (m or n) * n > 2e11:
                continue
            try:
                ids, median, least = timed(lambda: knn(table, queries, k), repeats)
            except Exception as error:  # a peer may refuse a shape
                print(f"{name:18} {library:26} {type(error).__name__}: {str(error)[:80]}")
                continue
            good = right(table, asked, own, kth, ids[sample])
            entry["results"][library] = {"median_ms": median, "least_ms": least, "right_of_200": good}
            note = ""
            if library == "vicinal":
                survivors, escalated, uncertified = ours.stats
                entry.update(survivors=survivors / (m or n), escalated=escalated / (m or n),
                             uncertified=uncertified / (m or n), tflops=2e-9 * n * (m or n) * d / median)
                note = (f" {entry['tflops']:.0f} TFLOP/s, {entry['survivors']:.1f} survivors, "
                        f"{100 * entry['escalated']:.2f} % again, {100 * entry['uncertified']:.2f} % float64")
            print(f"{name:18} {library:26} {median:9.3f} ms (least {least:9.3f})  {good} of 200 right{note}", flush=True)
            del ids
        report["jobs"][name] = entry
        del table, queries
    if arguments.output:
        with open(arguments.output, "w") as file:
            json.dump(report, file, indent=1)


main()
