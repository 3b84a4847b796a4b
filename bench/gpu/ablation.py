"""What each idea of the search on the device is worth: the same rows, one idea left out at a time.

    python3 bench/gpu/ablation.py FOLDER [-o FILE.json] [--commit C] [--without IDEA,...] [JOB...]

Two things are left out from outside: the screen (method direct: every key in float64) and Hopper's own instructions
(VICINAL_CUDA_PATH=portable). Ideas inside the plug-in go by the names in src/core/ablation.hpp, of which
VICINAL_ABLATION takes one when a context is made; their lists come to the host, so the line that they are held against
does so, too. What is not known by such a name is an error in the report and no time. Every line's answers are held against
float64 distances, and must be those of the first line, bit for bit.
"""

import os

import torch

import library
import measure
from data_sets import Draw, clusters, gaussian

# name: (k, rows and queries)
JOBS = {
    "gaussian 1Mx10k-d128": (32, gaussian(1_000_000, 128)),
    "gaussian 1Mx10k-d41": (20, gaussian(1_000_000, 41)),
    "10 clusters of 1e-2, 500kx10k-d41": (20, clusters(10, 0.01, 500_000)),
}
IDEAS = "fusion,sample,tightening,grouping,balls,centring"


def run_job(report, folder, name, options):
    k, make = JOBS[name]
    entry = report.entry("jobs", name)
    results = entry.setdefault("results", {})
    table, queries = make(Draw(options.device, report.data["seed"]))
    if options.scale > 1:
        table, queries = table[: len(table) // options.scale].clone(), queries[: len(queries) // options.scale].clone()
    entry.update(rows=len(table), queries=len(queries), cols=table.shape[1], k=k)
    print(name, flush=True)
    truth = measure.Truth(table, queries, k)
    first = {}

    def compared(ids, distances):
        """Whether these are the first line's answers."""
        answers = (ids.cpu(), distances.cpu())
        true = first.setdefault("answers", answers)
        return bool((answers[0] == true[0]).all() and (answers[1] == true[1]).all())

    def with_lists_on_device(method="automatic", path=None):
        if path is not None:
            os.environ["VICINAL_CUDA_PATH"] = path
        try:
            with library.Vicinal(folder, options.device) as ours:
                found = measure.measure_ours(ours, table, queries, k, truth, report.data["machine"], method, seconds=15)
                ids, distances = measure.lists(len(queries), k, table.device)
                ours.knn_into(table, queries, k, ids, distances, method)
        finally:
            os.environ.pop("VICINAL_CUDA_PATH", None)
        return {**found, "same_answers": compared(ids, distances)}

    def with_lists_on_host(without="nothing"):
        ids, distances = measure.lists(len(queries), k, "cpu")
        os.environ["VICINAL_ABLATION"] = without
        try:
            with library.Vicinal(folder, options.device) as ours:
                found = measure.timed(lambda: ours.knn_on_host(table, queries, k, ids, distances), seconds=15)
                found.update(ours.done.stats(len(queries)))
        finally:
            del os.environ["VICINAL_ABLATION"]
        found["roofline"] = measure.roofline(report.data["machine"], len(table), len(queries), table.shape[1], k,
                                             table.element_size(), found["median_ms"])
        ids, distances = ids.to(table.device), distances.to(table.device)
        return {**found, **truth.check(ids, distances), "same_answers": compared(ids, distances)}

    works = {"nothing": with_lists_on_device,
             "the screen": lambda: with_lists_on_device(method="direct"),
             "Hopper's instructions": lambda: with_lists_on_device(path="portable"),
             "nothing, lists on the host": with_lists_on_host}
    for idea in filter(None, options.without.split(",")):
        works[idea] = lambda idea=idea: with_lists_on_host(idea)
    if any(what not in results for what in works) and "nothing" in results:
        del results["nothing"]  # its answers are wanted again
    for what, work in works.items():
        if report.attempt(results, what, work) and "error" not in results[what]:
            measure.line(what, results[what])
            if not results[what]["same_answers"]:
                print("    OTHER ANSWERS than the first line's")


def main():
    parser = measure.arguments(__doc__)
    parser.add_argument("--without", default=IDEAS, help="ideas to leave out, by commas")
    parser.add_argument("--scale", type=int, default=1, help="divides the numbers of rows and queries")
    options = parser.parse_intermixed_args()
    measure.begin()
    report = measure.Report(options.output, measure.about(options, "one idea left out at a time, device-resident"))
    for name in options.names or JOBS:
        measure.empty_cache()
        run_job(report, options.folder, name, options)
    report.save()


if __name__ == "__main__":
    main()
