"""What every engine must show: the bits of one process."""

import os
import pathlib
import re
import signal

import numpy as np

import vicinal as vc
from vicinal import distributed

DIVISION = {"rows_per_task": 150, "queries_per_task": 170}  # the last block has fewer rows


def same(left, right):
    """Equal arrays, bit for bit; or both None."""
    if left is None or right is None:
        assert left is right
        return
    left, right = np.asarray(left), np.asarray(right)
    assert left.dtype == right.dtype and left.shape == right.shape, (left.dtype, right.dtype, left.shape, right.shape)
    assert left.tobytes() == right.tobytes()


def same_graph(left, right):
    for name in ("ids", "distances", "offsets"):
        same(getattr(left, name), getattr(right, name))
    assert (left.rows, left.table_rows, left.k, left.metric) == (right.rows, right.table_rows, right.k, right.metric)


def filter_of(rows):
    return np.arange(len(rows)) % 3 != 1


def exclude_of(queries):
    return np.where(np.arange(len(queries)) % 2 == 0, np.arange(len(queries)), -1)


def check_knn(executor, rows, queries, **division):
    division = {**DIVISION, **division}
    for asked, options in (
        (None, {"k": 7}),
        (queries, {"k": 7, "metric": "sqeuclidean"}),
        (queries, {"k": 5, "filter": filter_of(rows), "exclude": exclude_of(queries)}),
        (None, {"k": 160, "metric": "manhattan"}),
    ):
        same_graph(
            distributed.knn(rows, asked, executor=executor, **options, **division), vc.knn(rows, asked, **options)
        )


def check_radius(executor, rows, queries, **division):
    division = {**DIVISION, **division}
    each = np.linspace(0, 2, len(queries))
    for asked, options in (
        (None, {"radius": 0.9}),
        (queries, {"radius": each, "order": "id", "filter": filter_of(rows)}),
    ):
        got = distributed.radius(rows, asked, executor=executor, **options, **division)
        same_graph(got, vc.radius(rows, asked, **options))
    counted = distributed.count(rows, queries, executor=executor, radius=0.9, **division)
    same(counted.counts, vc.count(rows, queries, radius=0.9).counts)


def check_votes(executor, rows, queries, **division):
    division = {**DIVISION, **division}
    labels = np.array(["ape", "bee", "cat"])[np.arange(len(rows)) % 3]
    targets = rows[:, :2] * 3
    for options in ({"k": 9, "weights": "distance"}, {"radius": 0.5}):
        got = distributed.classify(rows, queries, labels, executor=executor, probabilities=True, **options, **division)
        wanted = vc.classify(rows, queries, labels, probabilities=True, **options)
        same(got.codes, wanted.codes)
        same(got.probabilities, wanted.probabilities)
        assert got.classes.tolist() == wanted.classes.tolist()
        got = distributed.regress(rows, queries, targets, executor=executor, **options, **division)
        wanted = vc.regress(rows, queries, targets, **options)
        same(got.values, wanted.values)
        assert got.outliers == wanted.outliers


def check_lof(executor, rows, **division):
    division = {**DIVISION, **division}
    for options in ({"k": 9}, {"score": "loop", "k": 12, "contamination": 0.1}, {"k": 4, "k_to": 8}, {"score": "ldof"}):
        got = distributed.lof(rows, executor=executor, **options, **division)
        wanted = vc.lof(rows, **options)
        same(got.scores, wanted.scores)
        assert (got.threshold, got.outliers, got.duplicates) == (wanted.threshold, wanted.outliers, wanted.duplicates)


def check_kmeans(executor, rows, **division):
    """Few iterations: of some engines a round takes long."""
    division = {"rows_per_task": 150, **division}
    weights = np.where(np.arange(len(rows)) % 5 == 0, 0.0, 1 + 0.37 * (np.arange(len(rows)) % 4))
    far = np.concatenate([rows[:6], 1e3 + np.arange(16.0).reshape(4, 4)])
    options = {
        "k-means||": {"clusters": 9, "init": "k-means||", "seed": 5, "runs": 2, "max_iterations": 3},
        "random": {"clusters": 6, "init": "random", "history": True, "max_iterations": 4},
        "weights": {"clusters": 7, "init": "k-means||", "weights": weights, "max_iterations": 4},
        "cosine": {"clusters": 5, "init": "first-k", "metric": "cosine", "max_iterations": 4},
        "empty": {"centres": far, "max_iterations": 3},
    }
    for kind, given in options.items():
        got = distributed.kmeans(rows, executor=executor, **given, **division)
        wanted = vc.kmeans(rows, **given)
        for name in ("centres", "labels", "sizes", "history"):
            same(getattr(got, name), getattr(wanted, name))
        assert (got.inertia, got.iterations, got.stopped) == (wanted.inertia, wanted.iterations, wanted.stopped), kind


def check_all(executor, rows, queries, **division):
    for check in CHECKS.values():
        check(executor, rows, queries, **division)


CHECKS = {
    "knn": check_knn,
    "radius": check_radius,
    "votes": check_votes,
    "lof": lambda executor, rows, queries, **division: check_lof(executor, rows, **division),
    "kmeans": lambda executor, rows, queries, **division: check_kmeans(executor, rows, **division),
}


class KillOnce:
    """An executor that passes tasks on, of which the `at`-th one kills its worker before it begins: once (a file says
    that it did), or each time."""

    def __init__(self, executor, mark, at=1, always=False):
        self._executor, self._mark, self._at, self._always = executor, str(mark), at, always
        self._submitted = 0

    def __getattr__(self, name):
        return getattr(self._executor, name)

    def submit(self, function, *arguments):
        self._submitted += 1
        if self._submitted == self._at or (self._always and self._submitted > self._at):
            return self._executor.submit(die_once, self._mark, self._always, function, *arguments)
        return self._executor.submit(function, *arguments)


def die_once(mark, always, function, *arguments):
    if always or not os.path.exists(mark):
        if mark:
            with open(mark, "w"):
                pass
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments)


class KillingSearch:
    """Takes the place of what Spark's tasks run: the first of them kills its Python worker, or the executor whose
    worker it is."""

    def __init__(self, mark, who):
        self.mark, self.who = mark, who

    def __call__(self, asked, batches):
        from vicinal import spark

        for batch in batches:
            if not os.path.exists(self.mark):
                with open(self.mark, "w"):
                    pass
                os.kill(java_above(os.getpid()) if self.who == "executor" else os.getpid(), signal.SIGKILL)
                signal.pause()
            yield from spark._search(asked, iter([batch]))


def java_above(process):
    """The nearest process above this one that is a JVM."""
    while process > 1:
        with open(f"/proc/{process}/stat") as stat:
            name, rest = stat.read().rsplit(")", 1)
        if name.endswith("(java"):
            return process
        process = int(rest.split()[1])
    raise AssertionError("no JVM above this process")


def block_of_docs(section):
    """The first block of Python in a section of docs/distributed.md."""
    page = pathlib.Path(__file__).parents[3] / "docs/distributed.md"
    text = page.read_text().split(f"\n## {section}\n", 1)[1]
    return re.search(r"^```python[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL).group(1)
