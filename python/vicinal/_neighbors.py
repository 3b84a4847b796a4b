"""Nearest neighbors: knn, radius, count, Index and NeighborGraph."""

from __future__ import annotations

import math
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal import _core, _devices, _plots
from vicinal._errors import InvalidArgument
from vicinal._names import documented
from vicinal._options import Common, IndexOptions, KnnOptions, Metric, RadiusOptions
from vicinal._results import Float64Array, Int32Array, Int64Array, Plan, Record, Result, Saved, SearchStats

__all__ = [
    "DeviceGraph",
    "Index",
    "NeighborCounts",
    "NeighborGraph",
    "count",
    "knn",
    "radius",
    "symmetrize",
    "with_self",
]


class NeighborGraph(Result):
    """The neighbors of m queries among n rows, nearest first, ties by the smaller row number, unless `radius` was asked
    for another order.

    Made by `knn` (arrays [m, k]) and by `radius` and `knn` with `max_radius` (compressed rows: query i has
    ids[offsets[i]:offsets[i + 1]]).
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

    def host(self) -> NeighborGraph:
        """The graph with its lists in host memory: itself, unless they are on a device."""
        return self

    def plot(self, axes: Any = None) -> Any:
        """A histogram of distances, to the nearest and the k-th neighbor, or in a radius to all, on `axes` of
        matplotlib or new ones, which are returned. Needs matplotlib."""
        return _plots.distances(self, axes)

    def __reduce__(self) -> tuple[Any, ...]:
        keywords = {"table_rows": self.table_rows, "metric": self.metric, "p": self.p}
        flat = self.ids.reshape(-1), self.distances.reshape(-1)
        return _graph, (*flat, self.offsets, self.rows, keywords)


class DeviceGraph(NeighborGraph):
    """A graph whose lists are in device memory, as arrays [m, k] of the library that the table came from (CuPy or
    PyTorch). What is computed from it on the host (votes, scores, `csr`, pickles) copies them once, by `host`."""

    def __init__(self, fields: dict[str, Any], ids: Any, distances: Any) -> None:
        for name, kind in self._records.items():
            fields[name] = kind(fields[name])
        Record.__init__(self, {**fields, "ids": ids, "distances": distances, "offsets": None})

    def host(self) -> NeighborGraph:
        """The graph in host memory, whose `copied` are the bytes of its lists; later calls return the same."""
        if "_host" not in self.__dict__:
            ids, distances = _devices.on_host(self.ids), _devices.on_host(self.distances)
            self.__dict__["_host"] = NeighborGraph.of(
                ids, distances, table_rows=self.table_rows, metric=self.metric, p=self.p
            )
        graph: NeighborGraph = self.__dict__["_host"]
        return graph

    @property
    def _native(self) -> _core.Native:  # type: ignore[override]
        return self.host()._native

    def csr(self) -> Any:
        return self.host().csr()

    def umap(self) -> tuple[Int32Array, NDArray[np.float32], None]:
        return self.host().umap()

    def opentsne(self) -> Any:
        return self.host().opentsne()

    def plot(self, axes: Any = None) -> Any:
        return self.host().plot(axes)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.host().__reduce__()


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
    With `max_radius` they are the k nearest of the rows within it (inclusive), or fewer, as compressed rows (see
    NeighborGraph). `table` may be an Index. Of tables of CuPy and PyTorch on a device they are arrays there (DeviceGraph). Distances
    are in the unit of the columns (of "sqeuclidean" in its square).

    Raises InvalidArgument for options outside their domain and queries of another width, BadData naming row and column
    of NaN and infinity, OverMemory before work begins, DeviceUnavailable, KeyboardInterrupt. O(m n d) time by brute
    force, about O((n + m) log n) by kd-tree in few columns; 16 m k bytes for the result, never m x n.
    """
    lists = None if _limits(options.get("max_radius")) else _devices.lists(table, queries, options.get("k"))
    if lists is None:
        return NeighborGraph(_core.knn(table, queries, options))
    ids, distances = lists
    written = _devices.address(ids), _devices.address(distances), ids.shape[0], ids.shape[1]
    return DeviceGraph(_core.knn_into(table, queries, written, options), ids, distances)


def _limits(max_radius: Any) -> bool:
    """Whether lists may be shorter than k."""
    return not (max_radius is None or isinstance(max_radius, float) and max_radius == math.inf)


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


class Index(Saved):
    """A table prepared for queries by any metric: checked, equal rows grouped, its kd-tree kept once it is built.

    It borrows the table (`copied` is then 0), which must not change while the index is in use; `copy=True` owns one.
    Several threads may search it. Raises BadData naming row and column of NaN and infinity, InvalidArgument for a
    table without rows or columns, OverMemory. O(n d) time, O(n + d) memory beside the table.
    """

    _kind = "Index"

    rows: int  #: n
    cols: int  #: d
    dtype: str  #: of the table

    def __init__(self, table: Any, **options: Unpack[IndexOptions]) -> None:
        super().__init__(_core.index(table, options))

    def knn(self, queries: Any = None, **options: Unpack[KnnOptions]) -> NeighborGraph:
        """As the function `knn`."""
        return knn(self, queries, **options)

    def radius(self, queries: Any = None, **options: Unpack[RadiusOptions]) -> NeighborGraph:
        """As the function `radius`."""
        return radius(self, queries, **options)

    def count(self, queries: Any = None, **options: Unpack[RadiusOptions]) -> NeighborCounts:
        """As the function `count`."""
        return count(self, queries, **options)
