"""Density clustering: spanning trees, HDBSCAN, DBSCAN and OPTICS. OPTICS computes on the CPU only."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, Iterator, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal import _core, _plots
from vicinal._errors import InvalidArgument
from vicinal._names import documented
from vicinal._neighbors import Index
from vicinal._options import (
    Common,
    DbscanOptions,
    HdbscanOptions,
    Metric,
    OpticsOptions,
    OpticsXiOptions,
    SpanningTreeOptions,
    ValidityOptions,
)
from vicinal._results import Float64Array, Int64Array, Plan, Record, Result, Saved, SearchStats

__all__ = [
    "CondensedTree",
    "Dbscan",
    "Hdbscan",
    "HdbscanModel",
    "HdbscanPrediction",
    "Optics",
    "OpticsClusters",
    "SpanningTree",
    "Validity",
    "dbscan",
    "hdbscan",
    "minimum_spanning_tree",
    "optics",
    "optics_dbscan",
    "optics_xi",
    "validity",
]

_Found = TypeVar("_Found", bound=Result)

#: What a pickle leaves out.
_OF_A_CALL = ("_native", "plan", "stats")


class SpanningTree(Result):
    """A tree that joins n rows by n - 1 edges, the shortest first."""

    rows: int  #: n
    a: Int64Array  #: [n - 1] the smaller row of each edge
    b: Int64Array  #: [n - 1] the larger one
    lengths: Float64Array  #: [n - 1] ascending
    core_distances: Float64Array  #: [n] distances to the `min_samples`-th nearest rows; 0 if that is the row itself
    min_samples: int
    count_self: bool
    alpha: float
    metric: Metric
    p: float
    plan: Plan
    stats: SearchStats
    tree_seconds: float  #: after the neighbors were found

    @classmethod
    def of(
        cls,
        a: ArrayLike,
        b: ArrayLike,
        lengths: ArrayLike,
        core_distances: ArrayLike,
        **options: Unpack[SpanningTreeOptions],
    ) -> SpanningTree:
        """A tree from arrays, such as those that the command writes to an .npz, and from the options with which it was
        made. The arrays are copied, O(n).

        Raises InvalidArgument for arrays whose lengths do not fit together. `hdbscan` checks that they are a spanning
        tree.
        """
        return cls(_core.spanning_tree_of(a, b, lengths, core_distances, options))

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("min_samples", "count_self", "alpha", "metric", "p")
        keywords = {name: getattr(self, name) for name in names}
        return _tree, (self.a, self.b, self.lengths, self.core_distances, keywords)


def _tree(*arguments: Any) -> SpanningTree:
    """A tree from a pickle; its plan and stats are not kept."""
    return SpanningTree(_core.spanning_tree_of(*arguments))


class CondensedTree(Record):
    """The hierarchy of clusters with at least `min_cluster_size` rows. Cluster 0 has all rows. A cluster has a larger
    number than the cluster that it is a part of."""

    parents: Int64Array  #: [c] the cluster that each is a part of; -1 for cluster 0
    births: Float64Array  #: [c] length of the edge whose removal separates the cluster; infinity for cluster 0
    sizes: Int64Array  #: [c] number of rows at its birth
    stabilities: Float64Array  #: [c] excess of mass; may be infinite where rows are equal
    labels: Int64Array  #: [c] the label of a chosen cluster, else -1
    row_clusters: Int64Array  #: [n] the last cluster that each row is in
    row_distances: Float64Array  #: [n] length of the edge whose removal separates the row from that cluster


class Hdbscan(Result):
    """Clusters of different densities, and noise."""

    labels: Int64Array  #: [n] -1 for noise; clusters are numbered by their smallest rows
    probabilities: Float64Array  #: [n] from 0 to 1: how firmly a row is in its cluster; 0 for noise
    outlier_scores: Float64Array  #: [n] GLOSH, from 0 to 1; larger is more outlying
    clusters: int
    noise: int  #: rows with label -1
    sizes: Int64Array  #: [clusters] rows of each
    persistences: Float64Array  #: [clusters] from 0 to 1 where no two rows are equal
    exemplar_offsets: Int64Array  #: [clusters + 1] where the rows of each cluster begin in `exemplars`
    exemplars: Int64Array  #: the rows in the densest places of each cluster, ascending within a cluster
    core_distances: Float64Array  #: [n] those of the spanning tree
    memberships: Float64Array | None  #: [n, clusters] from 0 to 1, where requested: how much a row belongs to each
    tree: CondensedTree
    plan: Plan
    stats: SearchStats
    tree_seconds: float  #: for the spanning tree, after the neighbors were found
    cluster_seconds: float  #: for the clusters, after the spanning tree was found

    def __init__(self, answer: tuple[_core.Native, dict[str, Any]]) -> None:
        fields = answer[1]
        fields["tree"] = CondensedTree({name: fields.pop(f"tree_{name}") for name in CondensedTree.__annotations__})
        fields["memberships"] = None
        super().__init__(answer)

    def _with(self, memberships: Float64Array | None) -> Hdbscan:
        if memberships is not None:
            memberships.flags.writeable = False
        vars(self)["memberships"] = memberships
        return self

    def exemplars_of(self, cluster: int) -> Int64Array:
        """The rows in the densest places of a cluster, ascending. Raises IndexError if there is no such cluster."""
        if not 0 <= cluster < self.clusters:
            raise IndexError(f"cluster {cluster} of {self.clusters}")
        return self.exemplars[self.exemplar_offsets[cluster] : self.exemplar_offsets[cluster + 1]]

    def plot(self, table: Any = None, axes: Any = None) -> Any:
        """Draws the condensed tree as icicles, in which chosen clusters are colored; or, with a table [n, d], its rows
        on the first two principal axes, colored by cluster (noise is small and gray). Draws on `axes` of matplotlib or
        on new ones, and returns them. Needs matplotlib. Raises InvalidArgument for a table with another number of rows.
        O(n); with a table O(n d^2)."""
        return _plots.condensed_tree(self.tree, axes) if table is None else _plots.density(self.labels, table, axes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _hdbscan, (_core.hdbscan_state(self), self.memberships)


def _hdbscan(state: dict[str, Any], memberships: Float64Array | None = None) -> Hdbscan:
    """Clusters from a pickle; their plan and stats are not kept."""
    return Hdbscan(_core.hdbscan_of(state))._with(memberships)


class HdbscanPrediction(Result):
    """Clusters of new rows."""

    labels: Int64Array  #: [m] -1 for noise
    probabilities: Float64Array  #: [m] from 0 to 1: how firmly a row is in its cluster; 0 for noise
    rows: Int64Array  #: [m] the row of the table whose clusters each query was placed in

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), _kept(self))


class HdbscanModel(Saved):
    """An index and the clusters of its rows, to find the clusters of new rows.

    A model that the command saved may have scaled or coded columns; its index then has the prepared rows. Raises
    InvalidArgument if the clusters are not those of the index's rows.
    """

    _kind = "HdbscanModel"
    _records: ClassVar[dict[str, Callable[[Any], Record]]] = {"index": Index._of, "fitted": Hdbscan}

    index: Index
    fitted: Hdbscan
    columns: list[str]  #: names of the columns of queries, where the model knows them

    def __init__(self, index: Index, fitted: Hdbscan, **options: Unpack[Common]) -> None:
        super().__init__(_core.hdbscan_model(index, fitted, dict(options)))

    def predict(self, queries: Any, **options: Unpack[Common]) -> HdbscanPrediction:
        """The clusters of new rows [m, d], which do not change the clusters. The rows are prepared (scaled, coded) as
        those of the model were.

        Each query is placed in the clusters of the row with the smallest reachability from it: in the innermost one
        that exists at this distance. This is the rule of approximate_predict of the package hdbscan, but with all rows
        as candidates. `queries` may be a `Table` of `read` or a path, whose columns are found by their names. Raises
        InvalidArgument for queries with another number of columns, BadData for NaN, infinity and missing columns. Cost
        of `knn` with max(2 min_samples, 10) neighbors."""
        return HdbscanPrediction(_core.hdbscan_predict(self, queries, dict(options)))

    def memberships(self, queries: Any = None, **options: Unpack[Common]) -> Float64Array:
        """How much each row belongs to each cluster, [m, clusters] from 0 to 1: of the model's rows, or of `queries`,
        which are prepared as for `predict`. These are all_points_membership_vectors and membership_vector of the
        package hdbscan, which weigh distances and tree in two ways. Raises as `predict` does. Cost of `knn` with k = 1
        among the exemplars, and of queries also that of `predict`; 8 m clusters bytes."""
        return _core.hdbscan_model_memberships(self, queries, dict(options))


class Dbscan(Result):
    """Clusters of one density, and noise."""

    labels: Int64Array  #: [n] -1 for noise; clusters are numbered by their smallest core row
    core: NDArray[np.bool_]  #: [n] whether each row is a core row
    clusters: int
    sizes: Int64Array  #: [clusters] rows of each
    core_rows: int
    noise: int  #: rows with label -1
    plan: Plan
    stats: SearchStats
    prepare_seconds: float
    cluster_seconds: float

    def __init__(self, answer: tuple[_core.Native, dict[str, Any]]) -> None:
        answer[1]["core"] = answer[1]["core"].view(np.bool_)
        super().__init__(answer)

    def plot(self, table: Any, axes: Any = None) -> Any:
        """Draws the rows of the table [n, d] on the first two principal axes, colored by cluster (noise is small and
        gray), on `axes` of matplotlib or on new ones, and returns them. Needs matplotlib. Raises InvalidArgument for a
        table with another number of rows. O(n d^2)."""
        return _plots.density(self.labels, table, axes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), _kept(self))


class Optics(Result):
    """The rows of a table in the order of OPTICS. Element i of each array but `ordering` is about row i."""

    ordering: Int64Array  #: [n] row numbers, in the order in which rows are placed
    reachability: Float64Array  #: [n] distance at which the row is reached; infinity if no row reaches it
    core_distances: Float64Array  #: [n] infinity if above `max_eps`
    predecessors: Int64Array  #: [n] the row from which the row is reached, or -1
    min_samples: int
    max_eps: float
    metric: Metric
    p: float
    plan: Plan
    stats: SearchStats
    order_seconds: float  #: after the neighbors were found

    def plot(self, clusters: OpticsClusters | None = None, axes: Any = None) -> Any:
        """Draws the reachability of the rows in their order, colored by `clusters` that were read from this order, on
        `axes` of matplotlib or on new ones, and returns them. Needs matplotlib."""
        return _plots.reachability(self, clusters, axes)

    def __reduce__(self) -> tuple[Any, ...]:
        keywords = {name: getattr(self, name) for name in ("min_samples", "max_eps", "metric", "p")}
        return _order, (self.ordering, self.reachability, self.core_distances, self.predecessors, keywords)


def _order(*arguments: Any) -> Optics:
    """An order from a pickle; its plan and stats are not kept."""
    return Optics(_core.optics_of(*arguments))


class OpticsClusters(Result):
    """Clusters that were read from an order."""

    labels: Int64Array  #: [n] the cluster of each row, or -1 for noise
    clusters: int  #: number of labels
    noise: int  #: rows with label -1
    sizes: Int64Array  #: [clusters] rows of each
    starts: Int64Array  #: `optics_xi` only: first place in `ordering` of each cluster, also of those without a label
    ends: Int64Array  #: `optics_xi` only: last place of each cluster

    def hierarchy(self) -> Iterator[tuple[int, int]]:
        """The first and last place in `ordering` of each cluster of `optics_xi`; of clusters that end in the same steep
        ascent, smaller ones come first."""
        return zip(self.starts.tolist(), self.ends.tolist())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), _kept(self))


class Validity(Result):
    """How well clusters fit the densities of a table."""

    index: float | None  #: from -1 to 1; None unless two clusters have two rows or more
    clusters: Float64Array  #: [clusters] from -1 to 1: validity of each; 0 of fewer than two rows
    sizes: Int64Array  #: [clusters] rows of each
    sparseness: Float64Array  #: [clusters] the longest edge within each
    separations: Float64Array  #: [clusters] the shortest way to another cluster; infinity where there is none

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), _kept(self))


def _kept(result: Result) -> dict[str, Any]:
    return {name: value for name, value in vars(result).items() if name not in _OF_A_CALL}


def _restored(kind: type[_Found], fields: dict[str, Any]) -> _Found:
    """A result from a pickle that no function takes; its plan and stats are not kept."""
    made = kind.__new__(kind)
    for value in fields.values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    Record.__init__(made, fields)
    return made


@documented("SpanningTreeOptions")
def minimum_spanning_tree(table: Any, **options: Unpack[SpanningTreeOptions]) -> SpanningTree:
    """The minimum spanning tree of the rows of a table [n, d] or an Index. An edge is as long as the distance of its
    rows; with `min_samples` above 1, as the largest of this distance and both core distances (mutual reachability).

    Edges are ordered by (length, smaller row, larger row), so there is only one such tree. Raises InvalidArgument for
    options outside their domain, BadData naming row and column of NaN and infinity, OverMemory before work begins, also
    for a table that does not fit into a device's memory, and DeviceUnavailable for several devices. Time of `knn` with
    min_samples + 5 neighbors, and of up to log2 n further searches; memory, of the device where there is one,
    of 16 bytes per neighbor, about 200 n bytes, and that of the kd-tree's boxes once more. On the CPU, with "euclidean"
    and "sqeuclidean" in a kd-tree of 8 columns or more, another 50 n bytes and what a search by screens takes: 100 MB
    for float32, up to 300 MB for very narrow or wide rows.
    """
    return SpanningTree(_core.spanning_tree(table, options))


@documented("HdbscanOptions")
def hdbscan(table: Any, *, memberships: bool = False, **options: Unpack[HdbscanOptions]) -> Hdbscan:
    """The clusters of HDBSCAN (Campello, Moulavi and Sander 2013) of the rows of a table [n, d] or an Index.

    A SpanningTree in place of the table tries other sizes and selections without another search. `min_samples`,
    `count_self`, `alpha`, `metric`, `p` and `method` are then those of the tree and cannot be given.

    `memberships=True` also finds how much each row belongs to each cluster, [n, clusters]; a tree has no rows for that.

    `min_samples=0` takes `min_cluster_size`. The order of the tree's edges decides ties, so results are the same
    everywhere. Raises as `minimum_spanning_tree` does, and InvalidArgument for "inner_product". Time of
    `minimum_spanning_tree`, and O(n log n); of memberships that of `knn` with k = 1 of all rows among the exemplars.
    """
    if isinstance(table, SpanningTree):
        if memberships:
            raise InvalidArgument("memberships: need the rows, which a tree does not have; give a table or an Index")
        of_the_tree = [name for name in _OF_THE_TREE if options.get(name) is not None]
        if of_the_tree:
            raise InvalidArgument(f"{of_the_tree[0]}: is that of the tree; leave it out, or make another tree")
    found = Hdbscan(_core.hdbscan(table, options))
    if not memberships:
        return found
    common = {name: value for name, value in options.items() if name in Common.__annotations__}
    return found._with(_core.hdbscan_memberships(table, found, common))


_OF_THE_TREE = ("min_samples", "count_self", "alpha", "metric", "p", "method")


@documented("DbscanOptions")
def dbscan(table: Any, **options: Unpack[DbscanOptions]) -> Dbscan:
    """The clusters of DBSCAN (Ester et al. 1996) of the rows of a table [n, d] or an Index, with scikit-learn's labels.

    Rows are neighbors if their distance is at most `eps`. Core rows have at least `min_samples` neighbors, themselves
    included; with `weights` ([n], finite), neighbors whose weights sum to at least `min_samples`. Raises
    InvalidArgument for options outside their domain, BadData naming row and column of NaN and infinity, OverMemory
    before work begins, also for a table that does not fit into a device's memory, and DeviceUnavailable for several
    devices. Time of `count` or less with a kd-tree, of up to three radius searches on a device without one; O(n) memory
    for every `eps`.
    """
    return Dbscan(_core.dbscan(table, options))


@documented("OpticsOptions")
def optics(table: Any, **options: Unpack[OpticsOptions]) -> Optics:
    """The order of OPTICS (Ankerst et al. 1999) of the rows of a table [n, d] or an Index, from which `optics_xi` and
    `optics_dbscan` read clusters. Of rows that are equally far, the one with the smaller number comes first.

    Raises InvalidArgument for options outside their domain and "inner_product", BadData naming row and column of NaN
    and infinity, OverMemory before work begins, DeviceUnavailable for a CUDA device. Time of `knn` with
    min_samples + 4 neighbors, and of some searches per row in a kd-tree, or else of all pairs of rows; O(n)
    memory, without a kd-tree O(n d).
    """
    return Optics(_core.optics(table, options))


@documented("OpticsXiOptions")
def optics_xi(order: Optics, **options: Unpack[OpticsXiOptions]) -> OpticsClusters:
    """Clusters between a steep descent and a steep ascent of the reachability, also clusters within clusters. Labels
    are those of the innermost clusters. `min_cluster_size=0` takes `min_samples` of the order. Raises InvalidArgument
    for options outside their domain. Time O(n), plus at most the square of the number of steep areas."""
    return OpticsClusters(_core.optics_xi(order, options))


def optics_dbscan(order: Optics, eps: float, **options: Unpack[Common]) -> OpticsClusters:
    """Clusters of one density: those of `dbscan` with this `eps`, except for some border rows. `eps` is from 0 to
    `max_eps` of the order. Raises InvalidArgument for another `eps`. O(n)."""
    return OpticsClusters(_core.optics_dbscan(order, eps, dict(options)))


@documented("ValidityOptions")
def validity(table: Any, labels: ArrayLike, **options: Unpack[ValidityOptions]) -> Validity:
    """The density-based validity (DBCV, Moulavi et al. 2014) of clusters with noise, such as the labels of `dbscan`,
    `hdbscan` and `optics_xi`, of the rows of a table [n, d] or an Index. `labels` [n] are -1 for noise, else from 0.

    A cluster is valid if the sparsest place within it is denser than the densest place between it and any other one;
    the index is the mean over all rows, noise being 0. A cluster of one row counts as noise. Raises InvalidArgument
    for "inner_product" and labels outside their domain, BadData naming row and column of NaN and infinity, OverMemory
    before work begins. O(n^2 d) time, O(n d) memory; runs on the host.
    """
    return Validity(_core.validity(table, labels, options))
