"""Outlier scores on a device: whole jobs with rows in device memory, what comes after the search, ranges of k, every
score; and whether the CPU gives the same bits for the same neighbors.

  python3 lof.py FOLDER [--json FILE]

FOLDER: made by carry.sh. Scores of whole jobs are compared with those that the CPU makes of the lists that the device
found; the lists themselves are what knn.py checks.
"""

import argparse
import pathlib
import time

import numpy as np
import torch

from library import Vicinal
from measure import Report

# rows, columns, k, k_to, milliseconds to reach for the whole job, or after the search
JOBS = {
    "100k-d16-k20": (100_000, 16, 20, 0, {"whole_ms": 20}),
    "1M-d16-k20": (1_000_000, 16, 20, 0, {"whole_ms": 300, "score_ms": 10}),
    "1M-d16-k10-50": (1_000_000, 16, 10, 50, {"score_ms": 200}),
    "1M-d3-k20": (1_000_000, 3, 20, 0, {}),
}
SCORES = ["simplified_lof", "knn", "knn_weighted", "loop", "ldof", "inflo", "cof", "cof_pyod"]


def best_of(repeats, work):
    """The least wall time, and the least of what `work` returns, in milliseconds."""
    pairs = []
    for _ in range(repeats):
        start = time.perf_counter()
        after = work()
        pairs.append((1000 * (time.perf_counter() - start), 1000 * after))
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def measure(device, host, rows, cols, k, k_to, wanted, score="lof", repeats=4):
    generator = torch.Generator(device="cuda").manual_seed(rows + cols)
    table = torch.randn(rows, cols, generator=generator, device="cuda", dtype=torch.float32)
    scores = np.empty(rows)
    device.lof(table, k, scores, k_to, score)  # the first call pays for modules and memory
    whole, after = best_of(repeats, lambda: device.lof(table, k, scores, k_to, score))
    found = device.done.stats(rows)

    width = max(k, k_to)
    ids = torch.empty(rows, width, dtype=torch.int64, device="cuda")
    distances = torch.empty(rows, width, dtype=torch.float64, device="cuda")
    device.knn_into(table, None, width, ids, distances)
    start = time.perf_counter()
    device.knn_into(table, None, width, ids, distances)
    search = 1000 * (time.perf_counter() - start)
    again = np.empty(rows)
    lists = ids.cpu().numpy(), distances.cpu().numpy()
    seconds = host.lof(table.cpu(), k, again, k_to, score, lists)
    other = int(np.count_nonzero(scores.view(np.uint64) != again.view(np.uint64)))
    return {"whole_ms": whole, "score_ms": after, "search_alone_ms": search, "cpu_score_ms": 1000 * seconds,
            "rows_with_other_bits_than_the_cpu": other, "targets": wanted, "method": found["method"],
            "reason": found["reason"], "planned_device_memory": found["planned_device_memory"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    report = Report(arguments.json, {
        "what": "outlier scores, rows in device memory, scores in host memory", "date": time.strftime("%Y-%m-%d"),
        "machine": torch.cuda.get_device_name(),
        "commit": (pathlib.Path(arguments.folder) / "commit").read_text().strip()})
    with Vicinal(arguments.folder) as device, Vicinal(arguments.folder, "cpu") as host:
        for name, job in JOBS.items():
            report.attempt(report.entry("jobs"), name, lambda: measure(device, host, *job))
            print(name, report.entry("jobs")[name], flush=True)
        for score in SCORES:
            work = lambda: measure(device, host, 100_000, 16, 20, 0, {}, score, 2)  # noqa: E731
            report.attempt(report.entry("scores at 100k x 16, k = 20"), score, work)
            print(score, report.entry("scores at 100k x 16, k = 20")[score], flush=True)
    report.save()


if __name__ == "__main__":
    main()
