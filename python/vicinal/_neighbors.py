"""Nearest neighbors: knn, radius, count, Index and NeighborGraph."""

from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal import _core
from vicinal._errors import InvalidArgument
from vicinal._names import documented
from vicinal._options import Common, IndexOptions, KnnOptions, Metric, RadiusOptions
from vicinal._results import Float64Array, Int32Array, Int64Array, Plan, Result, SearchStats

__all__ = ["Index", "NeighborCounts", "NeighborGraph", "count", "knn", "radius", "symmetrize", "with_self"]


class NeighborGraph(Result):
    """The neighbors of m queries among n rows, nearest first, ties by the smaller row number, unless `radius` was asked
    for another order.

    Made by `knn` (arrays [m, k]) and `radius` (compressed rows: query i has ids[offsets[i]:offsets[i + 1]]).
    """

    rows: int  #: m
    table_rows: int  #: n
    k: int  #: neighbors a query; 0 where lists differ in length
    ids: Int64Array  #: [m, k], or one after the other
    distances: Float64Array  #: like ids, in the metric's unit
    offsets: Int64Array | None  #: [m + 1], or None for [m, k]
    metric: Metric
    p: float
    plan: Plan
    stats: SearchStats

    @classmethod
    def of(
        cls,
        ids: ArrayLike,
        distances: ArrayLike,
        *,
        table_rows: int,
        offsets: ArrayLike | None = None,
        metric: Metric = "euclidean",
        p: float = 2.0,
    ) -> NeighborGraph:
        """A graph of arrays, [m, k] or compressed rows. They are copied, O(m k).

        Raises InvalidArgument for arrays that do not fit together, BadData for ids that are no rows of the table.
        """
        shape = np.shape(ids)
        if len(shape) != (2 if offsets is None else 1):
            raise InvalidArgument(f"ids: {len(shape)} dimensions; expected [m, k], or one with offsets")
        rows = shape[0] if offsets is None else len(np.asarray(offsets)) - 1
        keywords = {"table_rows": table_rows, "metric": metric, "p": p}
        flat = np.asarray(ids).reshape(-1), np.asarray(distances).reshape(-1)
        return cls(_core.graph(*flat, offsets, rows, keywords))

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: int) -> tuple[Int64Array, Float64Array]:
        """The ids and distances of one query."""
        if not -self.rows <= row < self.rows:
            raise IndexError(f"row {row} of a graph of {self.rows}")
        if self.offsets is None:
            return self.ids[row], self.distances[row]
        row %= self.rows
        part = slice(self.offsets[row], self.offsets[row + 1])
        return self.ids[part], self.distances[part]

    def csr(self) -> Any:
        """The distances as a matrix of SciPy (scipy.sparse.csr_array [m, n]), each row in the order of its neighbors,
        for `metric="precomputed"`. The distances are not copied; O(m k) for the indices. Needs SciPy."""
        from scipy import sparse

        at = np.arange(0, self.ids.size + 1, max(self.k, 1)) if self.offsets is None else self.offsets
        matrix = (self.distances.reshape(-1), self.ids.reshape(-1), at)
        csr_array: Any = sparse.csr_array
        return csr_array(matrix, shape=(self.rows, self.table_rows))

    def umap(self) -> tuple[Int32Array, NDArray[np.float32], None]:
        """`precomputed_knn` of umap.UMAP(n_neighbors=k + 1): ids and distances [n, k + 1] with each row before its own
        neighbors. Of a graph of k neighbors of a table within itself. O(n k)."""
        graph = with_self(self)
        if graph.offsets is not None:
            raise InvalidArgument("graph: lists differ in length; umap needs k neighbors for each row")
        return graph.ids.astype(np.int32), graph.distances.astype(np.float32), None

    def opentsne(self) -> Any:
        """openTSNE's nearest neighbors as they are (openTSNE.nearest_neighbors.PrecomputedNeighbors): pass it to
        openTSNE.affinity.PerplexityBasedNN(knn_index=..). Of k neighbors of a table within itself. Needs openTSNE."""
        from openTSNE.nearest_neighbors import PrecomputedNeighbors

        if self.offsets is not None:
            raise InvalidArgument("graph: lists differ in length; openTSNE needs k neighbors for each row")
        return PrecomputedNeighbors(self.ids, self.distances)

    def __reduce__(self) -> tuple[Any, ...]:
        keywords = {"table_rows": self.table_rows, "metric": self.metric, "p": self.p}
        flat = self.ids.reshape(-1), self.distances.reshape(-1)
        return _graph, (*flat, self.offsets, self.rows, keywords)


def _graph(*arguments: Any) -> NeighborGraph:
    """A graph from a pickle; its plan and stats are not kept."""
    return NeighborGraph(_core.graph(*arguments))


class NeighborCounts(Result):
    """How many rows are within a radius of each query."""

    counts: Int64Array  #: [m]
    plan: Plan
    stats: SearchStats


@documented("KnnOptions")
def knn(table: Any, queries: Any = None, **options: Unpack[KnnOptions]) -> NeighborGraph:
    """The k nearest rows of `table` [n, d] for each query [m, d], or for each row of the table but itself.

    ids and distances are [m, k], nearest first, ties by the smaller row number, the same bits on every machine.
    `table` may be an Index. Distances are in the unit of the columns (of "sqeuclidean" in its square).

    Raises InvalidArgument for options outside their domain and queries of another width, BadData naming row and column
    of NaN and infinity, OverMemory before work begins, DeviceUnavailable, KeyboardInterrupt. O(m n d) time by brute
    force, about O((n + m) log n) by kd-tree in few columns; 16 m k bytes for the result, never m x n.
    """
    return NeighborGraph(_core.knn(table, queries, options))


@documented("RadiusOptions")
def radius(table: Any, queries: Any = None, **options: Unpack[RadiusOptions]) -> NeighborGraph:
    """All rows of `table` [n, d] within `radius` (inclusive, in reported distances) of each query [m, d], or of each
    row of the table but itself. Lists are compressed rows: see NeighborGraph. `radius` is a number, or an array [m]
    with one for each query; `order="id"` lists neighbors by ascending row number instead of nearest first.

    Raises as `knn` does, and OverMemory when the lists found so far exceed the limit. O(m n d) time by brute force; 16
    bytes for each neighbor.
    """
    return NeighborGraph(_core.radius(table, queries, options))


@documented("RadiusOptions")
def count(table: Any, queries: Any = None, **options: Unpack[RadiusOptions]) -> NeighborCounts:
    """How many rows are within `radius` of each query, or of each row of the table but itself: counts [m].

    Raises as `radius` does. Needs no memory for neighbors: O(n + m).
    """
    return NeighborCounts(_core.count(table, queries, options))


def symmetrize(
    graph: NeighborGraph, *, symmetry: Literal["union", "mutual"] = "union", **options: Unpack[Common]
) -> NeighborGraph:
    """A graph of a table within itself made symmetric: pairs of which one row ("union") or both rows ("mutual") list
    the other, at the smaller of their distances. Raises InvalidArgument for a graph of queries. O(e log k) for e
    neighbors."""
    return NeighborGraph(_core.symmetrize(graph, {"symmetry": symmetry, **options}))


def with_self(graph: NeighborGraph, **options: Unpack[Common]) -> NeighborGraph:
    """A graph of a table within itself with each row before its own neighbors, at distance 0. Raises InvalidArgument
    for a graph of queries. O(e) for e neighbors."""
    return NeighborGraph(_core.with_self(graph, dict(options)))


class Index(Result):
    """A table prepared for queries by any metric: checked, equal rows grouped, its kd-tree kept once it is built.

    It borrows the table (`copied` is then 0), which must not change while the index is in use; `copy=True` owns one.
    Several threads may search it. Raises BadData naming row and column of NaN and infinity, InvalidArgument for a
    table without rows or columns, OverMemory. O(n d) time, O(n + d) memory beside the table.
    """

    rows: int  #: n
    cols: int  #: d
    dtype: str  #: of the table

    def __init__(self, table: Any, **options: Unpack[IndexOptions]) -> None:
        super().__init__(_core.index(table, options))

    @classmethod
    def _of(cls, answer: tuple[_core.Native, dict[str, Any]]) -> Index:
        index = cls.__new__(cls)
        Result.__init__(index, answer)
        return index

    def knn(self, queries: Any = None, **options: Unpack[KnnOptions]) -> NeighborGraph:
        """As the function `knn`."""
        return knn(self, queries, **options)

    def radius(self, queries: Any = None, **options: Unpack[RadiusOptions]) -> NeighborGraph:
        """As the function `radius`."""
        return radius(self, queries, **options)

    def count(self, queries: Any = None, **options: Unpack[RadiusOptions]) -> NeighborCounts:
        """As the function `count`."""
        return count(self, queries, **options)

    def save(self, path: str | os.PathLike[str], **options: Unpack[Common]) -> None:
        """Writes table and index to one file, which the command and C++ read, too; whole or not at all. O(n d)."""
        _core.save_index(self, os.fspath(path), dict(options))

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Unpack[Common]) -> Index:
        """Reads a saved index. Raises FileError, and BadData for anything that `save` did not write. O(n d)."""
        return cls._of(_core.load_index(os.fspath(path), dict(options)))

    def __reduce__(self) -> tuple[Any, ...]:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "index")
            self.save(path)
            return _index, (path.read_bytes(),)


def _index(content: bytes) -> Index:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "index")
        path.write_bytes(content)
        return Index.load(path)
