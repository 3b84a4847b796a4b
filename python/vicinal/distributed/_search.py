"""Searches divided into blocks of rows and blocks of queries, and what is computed from their merged lists."""

from __future__ import annotations

import math
import os
import uuid
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal import _core
from vicinal._errors import InvalidArgument
from vicinal._neighbors import NeighborCounts, NeighborGraph
from vicinal._options import ClassifyOptions, LofOptions, NearestOptions, RadiusOptions, RegressionOptions
from vicinal._outliers import Lof
from vicinal._outliers import lof as lof_of_graph
from vicinal._supervised import Classification, Regression, _outputs
from vicinal.distributed import _tasks
from vicinal.distributed._engines import Engine, Task, engine_of, run
from vicinal.distributed._tables import Held, Range, cuts_of, held, held_vector, hold_all, refuse_masked, text_of
from vicinal.distributed._tasks import Share

__all__ = ["Division", "classify", "count", "knn", "lof", "radius", "regress"]

BLOCK_BYTES = 1 << 30  # of rows, by default
LIST_BYTES = 1 << 28  # of the lists of a task, by default
TASKS_PER_WORKER = 2


class Division(TypedDict, total=False):
    """How work is divided among the workers of an executor."""

    rows_per_task: int  #: rows of the table in a block; default: as many as take 1 GiB
    queries_per_task: int  #: queries in a block; default: so that there are two tasks for each worker
    workers: int  #: tasks that run at once; default: what the executor says, else the cores of this process
    folder: str  #: where arrays are written for workers that are processes; default: the folder for temporary files
    stall_limit: float  #: seconds without the end of any task after which the call ends with an error; default: none


class _KnnOptions(NearestOptions, Division, total=False):
    pass


class _RadiusOptions(RadiusOptions, Division, total=False):
    pass


class _ClassifyOptions(ClassifyOptions, Division, total=False):
    pass


class _RegressOptions(RegressionOptions, Division, total=False):
    pass


class _LofOptions(LofOptions, Division, total=False):
    pass


class Job:
    """What is common to the calls of this package: the engine, the division, and what a task may take."""

    def __init__(self, executor: Any, options: dict[str, Any]) -> None:
        self.division = {name: options.pop(name, None) for name in Division.__annotations__}
        self.progress = options.pop("progress", None)
        threads, memory = options.pop("threads", None), options.pop("memory_limit", None)
        self.name = uuid.uuid4().hex
        self.engine: Engine = engine_of(executor, self.division["workers"], self.division["folder"])
        tasks = getattr(executor, "tasks_per_host", self.engine.tasks_per_host)
        self.share = Share(tasks, threads, memory)

    def run(self, tasks: Sequence[Callable[[], Task]], stage: str) -> Iterator[tuple[int, Any]]:
        return run(self.engine, tasks, stage=stage, progress=self.progress, stall_limit=self.division["stall_limit"])

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _tasks.forget(self.name)
        self.engine.close(failed=kind is not None)


def _vector(options: dict[str, Any], name: str, size: int, kind: type) -> NDArray[Any] | None:
    """An option with a value for each row or query, of which each task gets a range; taken out of the options."""
    value = options.get(name)
    if value is None or (name == "radius" and np.ndim(value) == 0):
        return None
    del options[name]
    refuse_masked(value, name)
    array = np.asarray(value)
    if array.ndim != 1 or len(array) != size:
        raise InvalidArgument(f"{name}: has shape {list(array.shape)}; expected [{size}]")
    if kind is bool and array.dtype != np.bool_:
        raise InvalidArgument(f"{name}: expected an array of bools, one for each row of the table")
    if kind is int and array.dtype.kind not in "iu":
        raise InvalidArgument(f"{name}: elements of type {array.dtype}; expected whole numbers")
    return array if kind is bool else array.astype(np.int64 if kind is int else np.float64)


class _Search:
    """The tasks of one search: for each block of queries, one for each block of rows."""

    def __init__(self, job: Job, kind: str, table: Any, queries: Any, options: dict[str, Any]) -> None:
        self.job = job
        self.kind = kind
        self.rows: Held = held(job.engine, table, "table")
        self.is_self = queries is None
        self.queries: Held = self.rows if queries is None else held(job.engine, queries, "queries")
        n, m = self.rows.rows, self.queries.rows
        self.filter = held_vector(job.engine, _vector(options, "filter", n, bool))
        self.exclude = held_vector(job.engine, _vector(options, "exclude", m, int))
        self.radii = held_vector(job.engine, _vector(options, "radius", m, float))
        self.options = options
        blocks = math.ceil(n * self.rows.row_bytes / BLOCK_BYTES)
        self.row_cuts = cuts_of(n, job.division["rows_per_task"], blocks, "rows_per_task")
        wanted = math.ceil(TASKS_PER_WORKER * job.engine.workers / len(self.row_cuts))
        if kind == "knn":
            k = options.get("k")
            listed = 16 * m * (k if isinstance(k, (int, np.integer)) and k > 0 else 1)
            wanted = max(wanted, math.ceil(listed / LIST_BYTES))
        self.query_cuts = cuts_of(m, job.division["queries_per_task"], wanted, "queries_per_task")

    def _task(self, query_block: int, row_block: int) -> Task:
        first, end = self.row_cuts[row_block]
        begin, last = self.query_cuts[query_block]
        # Blocks of queries are merged one by one, so a part does not say how many queries there are.
        place = (first, begin, self.is_self, self.rows.rows, 0)
        arguments = (
            self.kind,
            (self.job.name, row_block),
            self.rows(first, end),
            self.queries(begin, last),
            self.filter(first, end),
            self.exclude(begin, last),
            self.radii(begin, last),
            place,
            self.options,
            self.job.share,
            self.job.engine.tasks_per_process + 1,
        )
        name = f"{text_of(self.row_cuts, row_block, 'rows')}, {text_of(self.query_cuts, query_block, 'queries')}"
        return Task(_tasks.search, arguments, name)

    def parts(self) -> Iterator[tuple[int, list[bytes]]]:
        """(block of queries, its parts), as blocks are complete."""
        across = len(self.row_cuts)
        for held_rows in (self.rows, self.filter):
            hold_all(held_rows, self.row_cuts)
        for held_queries in (self.queries, self.exclude, self.radii):
            hold_all(held_queries, self.query_cuts)
        tasks = [
            lambda q=q, r=r: self._task(q, r)
            for q in range(len(self.query_cuts))
            for r in range(across)
        ]
        found: dict[int, list[bytes]] = {}
        for number, part in self.job.run(tasks, "search"):
            parts = found.setdefault(number // across, [])
            parts.append(part)
            if len(parts) == across:
                yield number // across, found.pop(number // across)

    def graph(self) -> NeighborGraph:
        merged: list[NeighborGraph | None] = [None] * len(self.query_cuts)
        for block, parts in self.parts():
            merged[block] = NeighborGraph(_core.merge(parts, {}))
        return merged[0] if len(merged) == 1 and merged[0] else NeighborGraph(_core.join(merged, {}))

    def counts(self) -> NeighborCounts:
        return NeighborCounts(_core.merge_counts([part for _, parts in self.parts() for part in parts], {}))


def knn(table: Any, queries: Any = None, *, executor: Any, **options: Unpack[_KnnOptions]) -> NeighborGraph:
    """`vicinal.knn` by the workers of an executor, with the same bits: the k nearest rows of `table` [n, d] for each
    query [m, d], or for each row of the table but itself. There is no `max_radius`.

    A task searches a block of queries in a block of rows; the calling process merges what they find. `table` and
    `queries` are paths, which the workers open, or arrays. Keywords are those of `vicinal.knn`, where `threads` and
    `memory_limit` are of a task (default: an equal share of its host), and those of `vicinal.distributed.Division`.

    Raises what `vicinal.knn` raises, with the block in front of the sentence; TaskFailed for a task whose worker died
    four times, or which raised another error; KeyboardInterrupt after it has cancelled what has not begun. Time of
    `vicinal.knn` divided by the workers. Each task answers with 16 bytes for each neighbor, and about 1 kB; this
    process holds 16 m k bytes for the lists of all blocks of queries, 32 m k while it joins more than one block, and
    those of some tasks.
    """
    with Job(executor, given := dict(options)) as job:
        return _Search(job, "knn", table, queries, given).graph()


def radius(table: Any, queries: Any = None, *, executor: Any, **options: Unpack[_RadiusOptions]) -> NeighborGraph:
    """`vicinal.radius` by the workers of an executor, with the same bits: all rows of `table` [n, d] within `radius` of
    each query [m, d], or of each row of the table but itself. As `knn`; 16 bytes for each neighbor found, and 8 for
    each query and task."""
    with Job(executor, given := dict(options)) as job:
        return _Search(job, "radius", table, queries, given).graph()


def count(table: Any, queries: Any = None, *, executor: Any, **options: Unpack[_RadiusOptions]) -> NeighborCounts:
    """`vicinal.count` by the workers of an executor, with the same bits: how many rows are within `radius` of each
    query, counts [m]. As `radius`; 8 bytes for each query and task."""
    with Job(executor, given := dict(options)) as job:
        return _Search(job, "count", table, queries, given).counts()


_OF_VOTES = ("weights", "probabilities", "outlier")


def split_votes(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The options of a search, those of what is computed from its lists, and which search it is."""
    given = {name: value for name, value in options.items() if value is not None}
    votes = {name: given.pop(name) for name in _OF_VOTES if name in given}
    if "k" in given and "radius" in given:
        raise InvalidArgument("radius: expected either k or radius, not both")
    return given, votes, "radius" if "radius" in given else "knn"


_SCORES_OF_ROWS = ("ldof", "cof", "cof_pyod")  # which compare rows with each other


def split_scores(
    options: Mapping[str, Any], of_search: Iterable[str], *, has_rows: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the search whose lists give outlier scores, and those of the scores. `of_search` names options
    that only the search has, besides what it may take. Refuses what needs the whole table in one process, with which
    scores of rows (`has_rows`) are computed."""
    given = {name: value for name, value in options.items() if value is not None}
    scores = () if has_rows else _SCORES_OF_ROWS
    for name, words in (("score", scores), ("duplicates", ("distinct",)), ("ties", ("all",))):
        if given.get(name) in words:
            raise InvalidArgument(f"{name}: {given[name]!r} needs the whole table in one process; use vicinal.lof")
    alone = {*of_search, "threads", "memory_limit"}
    searched = {name: value for name, value in given.items() if name in alone | {"metric", "p", "method", "device"}}
    searched["k"] = max(given.get("k", _core.defaults()["LofOptions"]["k"]), given.get("k_to") or 0)
    return searched, {name: value for name, value in given.items() if name not in alone}


def _neighbors(
    table: Any, queries: Any, executor: Any, options: Mapping[str, Any]
) -> tuple[NeighborGraph, dict[str, Any]]:
    """The lists that vote, and the options of the vote."""
    given, votes, kind = split_votes(options)
    with Job(executor, given) as job:
        return _Search(job, kind, table, queries, given).graph(), votes


def classify(
    table: Any, queries: Any, labels: ArrayLike, *, executor: Any, **options: Unpack[_ClassifyOptions]
) -> Classification:
    """`vicinal.classify` with the search divided among the workers of an executor, and the same bits. `labels` [n] are
    those of the table's rows. The vote is taken in this process. As `knn` (or `radius`), and O(m k)."""
    graph, votes = _neighbors(table, queries, executor, options)
    native, fields = _core.vote(graph, labels, votes)
    return Classification((native, {**fields, "plan": vars(graph.plan), "stats": vars(graph.stats)}))


def regress(table: Any, queries: Any, targets: Any, *, executor: Any, **options: Unpack[_RegressOptions]) -> Regression:
    """`vicinal.regress` with the search divided among the workers of an executor, and the same bits. `targets` [n] or
    [n, outputs] are those of the table's rows. As `classify`."""
    graph, votes = _neighbors(table, queries, executor, options)
    values = _core.average(graph, _outputs(targets), votes)
    outliers = 0 if graph.offsets is None else int((np.diff(graph.offsets) == 0).sum())
    fields = {"values": values, "outliers": outliers, "copied": graph.copied}
    return Regression((graph._native, {**fields, "plan": vars(graph.plan), "stats": vars(graph.stats)}))


def lof(table: Any, *, executor: Any, **options: Unpack[_LofOptions]) -> Lof:
    """`vicinal.lof` with the search divided among the workers of an executor, and the same bits: an outlier score for
    each row of a table [n, d].

    Scores are computed in this process from the merged lists, O(n k). "ldof" and "cof" compare rows with each other, so
    this process reads the whole table. `duplicates="distinct"` and `ties="all"` are refused: their neighborhoods need
    the whole table. As `knn` with k (or k_to) neighbors."""
    searched, scored = split_scores(options, (*Division.__annotations__, "progress"), has_rows=True)
    if scored.get("metric") == "inner_product":
        raise InvalidArgument("metric: inner_product has distances below 0, which no outlier score can use")
    graph = knn(table, executor=executor, **searched)
    rows = table if scored.get("score") in _SCORES_OF_ROWS else None
    if isinstance(rows, os.PathLike):
        rows = os.fspath(rows)
    return lof_of_graph(graph, rows, **scored)
