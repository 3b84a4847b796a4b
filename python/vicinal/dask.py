"""Searches, votes, outlier scores and k-means of Dask arrays, with the bits of one process (docs/distributed.md).

Tables are two-dimensional arrays of Dask with known chunks. `knn`, `radius`, `count`, `classify` and `regress` give
Dask arrays, which are computed when Dask computes them, by whatever scheduler there is; `kmeans` and `lof` compute at
once. A task searches a chunk of queries in a chunk of rows, so chunks decide how the work is divided; chunks of some
10,000 rows or more are best. `threads` of a task is 1 by default, because Dask runs a task on each of its threads.

Needs dask with array support (`vicinal[dask]`).
"""

from __future__ import annotations

import math
import os
import uuid
from typing import Any, Callable, Mapping, Unpack

import dask
import dask.array as da
import numpy as np

from vicinal import _core
from vicinal._clusters import KMeans
from vicinal._errors import InvalidArgument
from vicinal._neighbors import NeighborGraph
from vicinal._options import (
    ClassifyOptions,
    KMeansOptions,
    LofOptions,
    NearestOptions,
    RadiusOptions,
    RegressionOptions,
)
from vicinal._outliers import lof as lof_of_graph
from vicinal.distributed import _tasks
from vicinal.distributed._clusters import ask_in_turns
from vicinal.distributed._search import split_scores, split_votes
from vicinal.distributed._tables import refuse_masked
from vicinal.distributed._tasks import Share

__all__ = ["classify", "count", "kmeans", "knn", "lof", "radius", "regress"]


class _Chunks:
    """The rows of an array as one delayed value for each chunk of rows."""

    rows: int
    sizes: tuple[int, ...]
    cuts: list[tuple[int, int]]
    blocks: list[Any]

    def __init__(self, value: Any, name: str, like: _Chunks | None = None) -> None:
        array = _array(value, name)
        if any(math.isnan(size) for sizes in array.chunks for size in sizes):
            raise InvalidArgument(f"{name}: has chunks of unknown sizes; call its compute_chunk_sizes before")
        if like is None and array.ndim != 2:
            raise InvalidArgument(f"{name}: {array.ndim} dimensions; expected 2, rows and columns")
        if like is not None and (array.ndim != 1 or array.shape[0] != like.rows):
            raise InvalidArgument(f"{name}: has shape {list(array.shape)}; expected [{like.rows}]")
        array = array.rechunk({1: -1}) if like is None else array.rechunk({0: like.sizes})
        if 0 in array.shape:
            raise InvalidArgument(f"{name}: has no rows or no columns")
        self.array = array
        self.rows = int(array.shape[0])
        self.sizes = tuple(int(size) for size in array.chunks[0])
        ends = np.cumsum((0, *self.sizes)).tolist()
        kept = [i for i, size in enumerate(self.sizes) if size > 0]
        self.cuts = [(ends[i], ends[i + 1]) for i in kept]
        delayed = array.to_delayed().ravel()
        self.blocks = [delayed[i] for i in kept]

    def named(self, number: int, noun: str) -> str:
        begin, end = self.cuts[number]
        return f"{noun} {begin} to {end - 1}"


class _Search:
    """The parts of a search, delayed: for each chunk of queries, one for each chunk of rows."""

    def __init__(self, kind: str, table: Any, queries: Any, options: Mapping[str, Any]) -> None:
        given = {name: value for name, value in options.items() if value is not None}
        if given.pop("progress", None) is not None:
            raise InvalidArgument("progress: Dask has progress bars of its own")
        self.share = _share(given)
        self.rows = _Chunks(table, "table")
        self.queries = self.rows if queries is None else _Chunks(queries, "queries")
        # Indexes are values of the graph, so that they are of the chunks that it computes this time, and end with them.
        indexed = [_delayed(_tasks.Indexed)(block) for block in self.rows.blocks]
        asked = indexed if queries is None else self.queries.blocks
        wanted = self._vector(given, "filter", self.rows)
        excluded = self._vector(given, "exclude", self.queries)
        radii = self._vector(given, "radius", self.queries) if np.ndim(given.get("radius", 0)) else None
        self.parts = []
        for q, (begin, _) in enumerate(self.queries.cuts):
            parts = []
            for r, (first, _) in enumerate(self.rows.cuts):
                place = (first, begin, queries is None, self.rows.rows, 0)
                name = f"{self.rows.named(r, 'rows')}, {self.queries.named(q, 'queries')}"
                parts.append(
                    _delayed(_tasks.named)(
                        name,
                        _tasks.search,
                        kind,
                        ("", r),
                        indexed[r],
                        asked[q],
                        None if wanted is None else wanted.blocks[r],
                        None if excluded is None else excluded.blocks[q],
                        None if radii is None else radii.blocks[q],
                        place,
                        given,
                        self.share,
                        self.share.tasks + 1,
                    )
                )
            self.parts.append(parts)

    @staticmethod
    def _vector(given: dict[str, Any], name: str, like: _Chunks) -> _Chunks | None:
        value = given.pop(name, None)
        return None if value is None else _Chunks(value, name, like)

    def of_queries(self, function: Callable[..., Any], dtype: Any, width: int | None, *arguments: Any) -> da.Array:
        """A function of the parts of each chunk of queries, as an array [m] or [m, width]."""
        blocks = []
        for parts, (begin, end) in zip(self.parts, self.queries.cuts, strict=True):
            shape = (end - begin,) if width is None else (end - begin, width)
            blocks.append(da.from_delayed(_delayed(function)(parts, *arguments), shape, dtype))
        return da.concatenate(blocks)


def _array(value: Any, name: str) -> da.Array:
    """An array of Dask, which has no mask."""
    refuse_masked(value._meta if isinstance(value, da.Array) else value, name)
    return value if isinstance(value, da.Array) else da.from_array(np.asarray(value))


def _delayed(function: Callable[..., Any]) -> Any:
    return dask.delayed(function, pure=False, traverse=True)


def _share(given: dict[str, Any]) -> Share:
    threads, memory = given.pop("threads", None), given.pop("memory_limit", None)
    return Share(len(os.sched_getaffinity(0)), 1 if threads is None else threads, memory)


def _blocks_per_process(blocks: int) -> int:
    """How many of a job's blocks a process keeps between rounds: all, or twice its share of those of a cluster."""
    client: Any = getattr(dask.base.get_scheduler(), "__self__", None)
    if client is None or not hasattr(client, "scheduler_info"):
        return blocks
    processes = max(len(client.scheduler_info(n_workers=-1)["workers"]), 1)
    return min(blocks, 2 * math.ceil(blocks / processes))


def _item(values: Any, number: int) -> Any:
    return values[number]


def _lists(search: _Search, width: int | None) -> tuple[list[Any], da.Array, da.Array]:
    """The delayed lists of each chunk of queries; ids and distances as arrays."""
    found = [_delayed(_tasks.lists)(parts) for parts in search.parts]
    arrays = []
    for number, dtype in ((1, np.int64), (2, np.float64)):
        blocks = []
        for lists, (begin, end) in zip(found, search.queries.cuts, strict=True):
            shape = (math.nan,) if width is None else (end - begin, width)
            blocks.append(da.from_delayed(_delayed(_item)(lists, number), shape, dtype))
        arrays.append(da.concatenate(blocks, allow_unknown_chunksizes=True))
    return found, arrays[0], arrays[1]


def _lengths(lists: Any) -> Any:
    return np.diff(lists[0])


def knn(table: Any, queries: Any = None, **options: Unpack[NearestOptions]) -> tuple[da.Array, da.Array]:
    """The k nearest rows of a Dask array `table` [n, d] for each query [m, d], or for each row of the table but itself:
    (ids, distances), both Dask arrays [m, k] with the chunks of the queries, and the bits of `vicinal.knn`.

    Keywords are those of `vicinal.knn` but `max_radius` and `progress`; `filter` [n] and `exclude` [m] may be Dask
    arrays. Raises InvalidArgument for arrays of other dimensions or with unknown chunks; what `vicinal.knn` raises is
    raised when the arrays are computed, with the block in front. Each task gives 16 bytes for each of its neighbors.
    """
    k = options.get("k")
    width = int(_core.defaults()["KnnOptions"]["k"] if k is None else k)
    _, ids, distances = _lists(_Search("knn", table, queries, options), width)
    return ids, distances


def radius(table: Any, queries: Any = None, **options: Unpack[RadiusOptions]) -> tuple[da.Array, da.Array, da.Array]:
    """All rows of a Dask array `table` [n, d] within `radius` of each query [m, d], or of each row of the table but
    itself: (counts [m], ids, distances), where ids and distances are the lists of all queries, one after the other, in
    chunks of unknown sizes. The bits of `vicinal.radius`. `radius` may be an array [m]. As `knn`."""
    search = _Search("radius", table, queries, options)
    found, ids, distances = _lists(search, None)
    counts = [
        da.from_delayed(_delayed(_lengths)(lists), (end - begin,), np.int64)
        for lists, (begin, end) in zip(found, search.queries.cuts, strict=True)
    ]
    return da.concatenate(counts), ids, distances


def count(table: Any, queries: Any = None, **options: Unpack[RadiusOptions]) -> da.Array:
    """How many rows of a Dask array `table` [n, d] are within `radius` of each query, or of each row of the table but
    itself: a Dask array [m] with the bits of `vicinal.count`. As `knn`."""
    return _Search("count", table, queries, options).of_queries(_tasks.counts, np.int64, None)


def classify(table: Any, queries: Any, labels: Any, **options: Unpack[ClassifyOptions]) -> da.Array:
    """The labels [m] that the k nearest rows (or all within `radius`) vote for, a Dask array with the bits of
    `vicinal.classify(...).labels`. `labels` [n], of NumPy or Dask, go to each task that votes. As `knn`; a query
    without neighbors is an error."""
    searched, votes, kind = split_votes(options)
    if votes.pop("probabilities", None):
        raise InvalidArgument("probabilities: vicinal.dask gives labels only; use vicinal.distributed.classify")
    search = _Search(kind, table, queries, searched)
    known = labels if hasattr(labels, "dtype") else np.asarray(labels)
    return search.of_queries(_tasks.voted, known.dtype, None, _whole(known, "labels"), votes)


def regress(table: Any, queries: Any, targets: Any, **options: Unpack[RegressionOptions]) -> da.Array:
    """The means [m, outputs] of the targets of the k nearest rows (or of all within `radius`), a Dask array with the
    bits of `vicinal.regress(...).values`. `targets` [n] or [n, outputs], of NumPy or Dask, go to each task that
    averages."""
    searched, votes, kind = split_votes(options)
    search = _Search(kind, table, queries, searched)
    array = _array(targets, "targets")
    outputs = array[:, None] if array.ndim == 1 else array
    return search.of_queries(_tasks.averaged, np.float64, int(outputs.shape[1]), _whole(outputs, "targets"), votes)


def _whole(values: Any, name: str) -> Any:
    """All values of an array as one delayed value."""
    refuse_masked(values._meta if isinstance(values, da.Array) else values, name)
    array = values if isinstance(values, da.Array) else da.from_array(np.asarray(values), chunks=-1)
    return array.rechunk(-1).to_delayed().ravel()[0]


def lof(table: Any, **options: Unpack[LofOptions]) -> da.Array:
    """The outlier score of each row of a Dask array `table` [n, d], a Dask array [n] with the chunks of the table and
    the bits of `vicinal.lof(...).scores`. Tasks find the k neighbors; this process gathers the lists, 16 n k bytes,
    which it holds twice while it joins them, and computes the scores at once. Not for "ldof" and "cof",
    `duplicates="distinct"` and `ties="all"`, which need the whole table."""
    searched, scored = split_scores(options, (), has_rows=False)
    search = _Search("knn", table, None, searched)
    _, ids, distances = _lists(search, int(searched["k"]))
    found = dask.compute(ids, distances)
    described = {name: scored[name] for name in ("metric", "p") if name in scored}
    graph = NeighborGraph.of(*found, table_rows=search.rows.rows, **described)
    return da.from_array(np.array(lof_of_graph(graph, **scored).scores), chunks=(search.rows.sizes,))


def kmeans(table: Any, **options: Unpack[KMeansOptions]) -> tuple[KMeans, da.Array]:
    """k-means of a Dask array `table` [n, d], at once, with the bits of `vicinal.kmeans`: the model, and its labels as
    a Dask array [n] with the chunks of the table.

    An iteration is one task for each chunk (see `vicinal.distributed.kmeans`); the table is persisted meanwhile.
    `weights` [n] may be a Dask array. The default of `init` is "k-means||"; "k-means++" and mini-batches are refused.
    """
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    progress = given.pop("progress", None)
    share = _share(given)
    rows = _Chunks(_array(table, "table").persist(), "table")
    weights = None
    if given.get("weights") is not None:
        weights = _Chunks(given["weights"], "weights", rows)
        given["weights"] = np.asarray(weights.array.compute(), np.float64)
    job = uuid.uuid4().hex
    most = _blocks_per_process(len(rows.cuts))

    def answers(question: bytes) -> list[bytes]:
        asked = [
            _delayed(_tasks.named)(
                rows.named(block, "rows"),
                _tasks.answer,
                (job, block),
                rows.blocks[block],
                None if weights is None else weights.blocks[block],
                begin,
                question,
                share,
                most,
            )
            for block, (begin, _) in enumerate(rows.cuts)
        ]
        return list(dask.compute(*asked))

    try:
        model = ask_in_turns([end - begin for begin, end in rows.cuts], rows.array.shape[1], answers, given, progress)
    finally:
        _tasks.forget(job)
    return model, da.from_array(np.array(model.labels), chunks=(rows.sizes,))
