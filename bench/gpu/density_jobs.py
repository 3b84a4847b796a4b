"""What the measurements of density clustering share: rows, options, and the run over the jobs."""

import torch

import library
import measure


def rows_of(kind, n, d, device):
    rows = torch.randn((n, d), device=device)
    if kind == "blobs":
        centers = 20 * torch.rand((100, d), device=device)
        rows += centers[torch.randint(0, 100, (n,), device=device)]
    return rows


def run(description, what, jobs, peers, run_job, cpu_help, seconds):
    """Measures the jobs that the command line names, or all. `peers()` returns functions of other libraries by name,
    and why others are not there; `run_job` takes report, our library, the CPU's or None, the others, name and options;
    `seconds` is the default of --seconds."""
    parser = measure.arguments(description)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--no-cpu", action="store_true", help=cpu_help)
    parser.add_argument("--methods", nargs="*", default=[], help="beside the one that is chosen")
    parser.add_argument("--seconds", type=float, default=seconds, help="none begins another call of a result after it")
    parser.add_argument("--scale", type=int, default=1, help="divides the numbers of rows")
    options = parser.parse_intermixed_args()
    measure.begin()
    report = measure.Report(options.output, measure.about(options, what))
    ours = library.Vicinal(options.folder, options.device)
    host = None if options.no_cpu else library.Vicinal(options.folder, "cpu")
    others, missing = ({}, {}) if options.no_peers else peers()
    report.entry("not_there").update(missing)
    for name, why in missing.items():
        print(f"no {name}: {why[:200]}")
    for name in options.names or jobs:
        measure.empty_cache()
        run_job(report, ours, host, others, name, options)
    report.save()
