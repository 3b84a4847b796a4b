"""Writes docs/metrics.md: which metrics run where, found out by calling the library with every metric, method and device.
With --check it writes nothing and fails where the page says something else.

Usage: metrics_page.py --package FOLDER [--check]. Columns of a CUDA device need one, or the tests' fake device
(VICINAL_CUDA_PLUGIN); without it they stay as they are in the page, and a line says so.
"""

import argparse
import pathlib
import sys
import typing

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/metrics.md"
HEAD = """# Which metrics run where

<!-- Written by tests/docs/metrics_page.py, which calls the library with each of them; a test compares. -->

This page answers two questions: does an operation take a metric, and does a method take a metric? A metric that an
operation or a method does not take is an error. Where several methods or devices take it, all give the same neighbors,
distances and scores. [neighbors.md](neighbors.md#which-option-when) says what each metric is for;
[contract.md](contract.md#1-the-key) defines them. Every metric takes every type of element: uint8, float16, bfloat16,
float32 and float64.
"""
SCORES = ("lof", "simplified_lof", "knn", "knn_weighted", "loop", "ldof", "inflo", "cof", "cof_pyod")


def operations(vc, rows, labels):
    """By name what calls the operation with a metric and a device."""
    found = {
        "`knn`": lambda **o: vc.knn(rows, k=3, **o),
        "`radius`": lambda **o: vc.radius(rows, radius=0.9, **o),
        "`count`": lambda **o: vc.count(rows, radius=0.9, **o),
        "`classify`": lambda **o: vc.classify(rows, rows, labels, k=3, **o),
        "`classify`, weights by distance": lambda **o: vc.classify(rows, rows, labels, k=3, weights="distance", **o),
        "`regress`": lambda **o: vc.regress(rows, rows, rows[:, 0].copy(), k=3, **o),
        "`cross_validate`": lambda **o: vc.cross_validate(rows, labels, k=1, k_to=3, folds=3, **o),
    }
    for score in SCORES:
        found[f"`lof`, score {score}"] = lambda score=score, **o: vc.lof(rows, k=5, score=score, **o)
    found["`lof`, duplicates distinct"] = lambda **o: vc.lof(rows, k=5, duplicates="distinct", **o)
    found["`lle`: neighbors"] = lambda **o: vc.lle(rows, k=6, dim=2, **o)
    found["`kmeans`"] = lambda **o: vc.kmeans(rows, clusters=3, **{k: v for k, v in o.items() if k != "p"})
    return found


def runs(vc, call, **options):
    """The plan of a call, or None where the metric or the method is refused."""
    try:
        return call(**options).plan
    except (vc.InvalidArgument, TypeError):
        return None


def row(name, cells):
    return f"| {name} | " + " | ".join(cells) + " |"


def table(head, rows):
    return [row(head[0], head[1:]), row("---", ["---"] * (len(head) - 1)), *rows]


def sections(vc, device):
    """Lines of the page by part: what an operation takes, methods on the CPU, and methods on a device or None."""
    import numpy as np
    from vicinal._options import Method, Metric

    metrics = typing.get_args(Metric)
    methods = [method for method in typing.get_args(Method) if method != "automatic"]
    draw = np.random.default_rng(3)
    rows = draw.random((48, 4)) + 0.25
    labels = np.arange(48) % 3
    calls = operations(vc, rows, labels)
    searches = {name: calls[f"`{name}`"] for name in ("knn", "radius", "count")}

    taken = []
    for name, call in calls.items():
        cells = []
        for metric in metrics:
            there = {where: runs(vc, call, metric=metric, p=3.0, device=where) for where in ("cpu", "cuda") if device}
            on = [where for where, plan in there.items() if plan and plan.device.startswith(where)]
            cells.append("both" if len(on) == 2 else ", ".join(on) or "-")
        taken.append(row(name, cells))

    def by_method(where):
        lines = []
        for method in methods:
            cells = []
            for metric in metrics:
                served = []
                for name, call in searches.items():
                    # The tests' fake device takes `fused` where a device does, and computes all keys.
                    plan = runs(vc, call, metric=metric, p=3.0, device=where, method=method)
                    assert plan is None or where == "cuda" or plan.method == method, plan
                    served += [name] if plan else []
                cells.append("all" if len(served) == len(searches) else ", ".join(served) or "-")
            lines.append(row(f"`{method}`", cells))
        return lines

    head = [f"`{metric}`" for metric in metrics]
    return {
        "operations": table(["operation", *head], taken) if device else None,
        "cpu": table(["method", *head], by_method("cpu")),
        "cuda": table(["method", *head], by_method("cuda")) if device else None,
    }


def part(text, name):
    """The table below the mark `name` of a page."""
    begin = text.index(f"<!-- {name} -->\n\n") + len(f"<!-- {name} -->\n\n")
    return text[begin:].split("\n\n")[0].splitlines()


def page(found):
    parts = {name: "\n".join(lines) for name, lines in found.items()}
    return f"""{HEAD}
## Operations

`both` means that the operation takes the metric on the CPU and on a CUDA device, `-` that it does not take it. The
table was made with the exponent 3 for `minkowski`. In `lle` the metric only decides which rows are neighbors; the
weights are Euclidean.

<!-- operations -->

{parts["operations"]}

Some operations are not in the table. `minimum_spanning_tree` and `dbscan` take every metric, `hdbscan` and `optics`
every metric but `inner_product` ([density.md](density.md)). `silhouette_scores` (C++) and `validity` take
every metric but `inner_product`. Imputation has its own distance, over the columns in which both rows have a value
([imputation.md](imputation.md)).

## Methods on the CPU

`all` means `knn`, `radius` and `count`; `knn` means only this one. `automatic`, the default, chooses among the methods
that take the metric.

<!-- cpu -->

{parts["cpu"]}

## Methods on a CUDA device

<!-- cuda -->

{parts["cuda"]}

`fused` drops most pairs by products of matrices, so it takes the metrics that such products can bound. `kdtree` takes
the metrics that are computed from the differences of columns. `direct` takes all metrics. The other methods are those
of papers, for comparison ([papers.md](papers.md)). On a device, `fused` needs the Turing generation or later. It also
takes `radius` and `count` there if the packed rows of the table fit into device memory
([limits.md](limits.md#cuda-devices)). The table does not show this, because the device of the tests
(`tests/fake_device`) does not do it.
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--package", type=pathlib.Path, required=True)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.package.resolve()))
    import vicinal as vc

    try:
        vc.knn([[0.0], [1.0]], k=1, device="cuda")
        device = True
    except vc.DeviceUnavailable as error:
        device = False
        print(f"The columns of a CUDA device were not checked: {error}")
    found = sections(vc, device)
    there = PAGE.read_text() if PAGE.exists() else ""
    for name, lines in found.items():
        if lines is None:
            found[name] = part(there, name)
    wanted = page(found)
    if not arguments.check:
        PAGE.write_text(wanted)
        return 0
    if there == wanted:
        return 0
    print("docs/metrics.md differs from what the library does: run tests/docs/metrics_page.py with a device")
    return 1


if __name__ == "__main__":
    sys.exit(main())
