"""Searches in shards of a table, and their merge: knn_part, radius_part, count_part, merge (docs/scale.md)."""

from __future__ import annotations

import os
from typing import Any, Iterable, Literal, Unpack

from vicinal import _core
from vicinal._names import documented
from vicinal._neighbors import NeighborCounts, NeighborGraph
from vicinal._options import Common, KnnPartOptions, Metric, RadiusPartOptions
from vicinal._results import Float64Array, Int64Array, Plan, Saved, SearchStats

__all__ = ["Part", "count_part", "knn_part", "merge", "radius_part"]


class Part(Saved):
    """What a search in a shard, a range of a table's rows, found for some queries. Made by `knn_part`, `radius_part` and
    `count_part`; `merge` makes the result of the whole table of all parts.

    Ids are those of the whole table. Lists have keys, by which rows are ordered (such as squared distances), instead of
    distances. Parts pickle, and `save` and `load` files, which the command reads, too.
    """

    _kind = "Part"

    kind: Literal["knn", "radius", "count"]
    first_id: int  #: id of the shard's first row
    rows: int  #: of the shard
    total_rows: int  #: of the whole table; 0: unknown
    first_query: int  #: number of the first query
    queries: int  #: m
    total_queries: int  #: 0: unknown
    self_excluded: bool  #: queries are rows of the table, and no row is its own neighbor
    cols: int
    metric: Metric
    p: float
    k: int  #: neighbors a query in the whole search; 0 within a radius
    ids: Int64Array  #: one list after the other
    keys: Float64Array  #: like ids
    offsets: Int64Array | None  #: [m + 1] list i is ids[offsets[i]:offsets[i + 1]]; None: each has k
    counts: Int64Array  #: [m] of `count_part`; else empty
    plan: Plan
    stats: SearchStats


@documented("KnnOptions", "PartOptions")
def knn_part(shard: Any, queries: Any, **options: Unpack[KnnPartOptions]) -> Part:
    """The k nearest rows of `shard` [n', d], rows `first_id` and following of a table, for each query [m, d].

    A list is shorter than k if the shard has fewer rows. `filter` is of the shard's rows; `exclude` has ids of the whole
    table. `shard` may be an Index. Raises as `knn` does; only `merge` finds that k is too large for the table. Time of
    `knn`; 16 m k bytes.
    """
    return Part._of(_core.knn_part(shard, queries, options))


@documented("RadiusOptions", "PartOptions")
def radius_part(shard: Any, queries: Any, **options: Unpack[RadiusPartOptions]) -> Part:
    """All rows of `shard` within `radius` of each query: as `radius` and `knn_part`."""
    return Part._of(_core.radius_part(shard, queries, options))


@documented("RadiusOptions", "PartOptions")
def count_part(shard: Any, queries: Any, **options: Unpack[RadiusPartOptions]) -> Part:
    """How many rows of `shard` are within `radius` of each query: as `count` and `knn_part`."""
    return Part._of(_core.count_part(shard, queries, options))


def merge(parts: Iterable[Part | str | os.PathLike[str]], **options: Unpack[Common]) -> NeighborGraph | NeighborCounts:
    """The result of the whole table from the parts of all its shards, or the paths of their files, in any order: the same
    bits as `knn`, `radius` or `count` of the table.

    Raises InvalidArgument for parts that do not fit together, for rows and queries that two parts have or that are
    missing, and for a k that is too large; BadData for files that hold no part, FileError, OverMemory. O(m k log s) for s
    shards.
    """
    given = [part if isinstance(part, Part) else os.fspath(part) for part in parts]
    native, fields = _core.merge(given, dict(options))
    return NeighborCounts((native, fields)) if "counts" in fields else NeighborGraph((native, fields))
