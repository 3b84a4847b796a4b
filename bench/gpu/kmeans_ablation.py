"""What each part of k-means on the device is worth: the same rows and start, one part left out at a time.

    python3 bench/gpu/kmeans_ablation.py FOLDER [-o FILE.json] [--commit C] [JOB...]

Jobs and the time of an iteration are those of kmeans.py. VICINAL_CUDA_PATH=portable leaves out Hopper's float16 screen,
VICINAL_ABLATION the others (src/core/ablation.hpp). Every line's centers must be the first line's, bit
for bit.
"""

import os

import torch

import kmeans
import library
import measure

# What is left out: the variable, and its value.
PARTS = {
    "nothing": (None, None),
    "the float16 screen": ("VICINAL_CUDA_PATH", "portable"),
    "every screen": ("VICINAL_ABLATION", "kmeans-screen"),
    "the second pass": ("VICINAL_ABLATION", "kmeans-second-pass"),
    "ordered changes": ("VICINAL_ABLATION", "kmeans-ordering"),
    "sums of changes alone": ("VICINAL_ABLATION", "kmeans-changes"),
}
JOBS = ["500k-d18-k64", "4.9M-d41-k23-scaled", "1M-d128-k1000", "1M-d512-k1000", "1M-d128-k8192"]


def measured(folder, device, table, start, variable, value, first):
    if variable is not None:
        os.environ[variable] = value
    try:
        with library.Vicinal(folder, device) as ours:
            work = kmeans.Ours(ours, table, start)
            found = kmeans.iteration(work, rounds=1 if value == "kmeans-screen" else 3)
    finally:
        os.environ.pop(variable or "", None)
    centres = first.setdefault("centres", work.centres)
    return {**found, "same_centres": bool((centres == work.centres).all())}


def run_job(report, name, options):
    n, d, k, _, kind = kmeans.JOBS[name]
    n //= options.scale
    entry = report.entry("jobs", name)
    floor = kmeans.floor_ms(report.data["machine"], n, d, k)
    entry.update(rows=n, cols=d, clusters=k, floor_ms=floor)
    results = entry.setdefault("results", {})
    print(name, flush=True)
    torch.manual_seed(report.data["seed"] + JOBS.index(name))
    table = kmeans.rows_of(kind, n, d, options.device)
    start = table[torch.randperm(n, device=options.device)[:k]].contiguous()
    first = {}
    if len(results) < len(PARTS):
        results.pop("nothing", None)  # its centers are wanted again
    for what, (variable, value) in PARTS.items():
        work = lambda: measured(options.folder, options.device, table, start, variable, value, first)
        if report.attempt(results, what, work) and "error" not in results[what]:
            found = results[what]
            print(f"  {what:24} {found['ms_an_iteration']:9.4f} ms an iteration (floor {floor}), "
                  f"{found['rechecked_share']:.2e} rechecked, {found['screens']}"
                  f"{'' if found['same_centres'] else ', OTHER CENTRES'}", flush=True)


def main():
    parser = measure.arguments(__doc__)
    parser.add_argument("--scale", type=int, default=1, help="divides the numbers of rows")
    options = parser.parse_intermixed_args()
    measure.begin()
    report = measure.Report(options.output, measure.about(options, "k-means, one part left out at a time"))
    for name in options.names or JOBS:
        measure.empty_cache()
        run_job(report, name, options)
    report.save()


if __name__ == "__main__":
    main()
