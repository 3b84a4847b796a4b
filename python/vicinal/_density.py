"""Density clustering: spanning trees, HDBSCAN, DBSCAN and OPTICS, on the CPU whatever devices there are."""

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
    core_distances: Float64Array  #: [n] 0 where a row is the last of its own `min_samples` nearest rows
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
        """A tree of arrays, such as those that the command writes to an .npz; the options are those that it was made
        with. The arrays are copied, O(n).

        Raises InvalidArgument for arrays that do not fit together. That they are a spanning tree, `hdbscan` checks.
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
    """The hierarchy of clusters with at least `min_cluster_size` rows. Cluster 0 has all rows; a cluster has a larger
    number than the one that it is a part of."""

    parents: Int64Array  #: [c] the cluster that each is a part of; -1 of cluster 0
    births: Float64Array  #: [c] the length of the edge without which it is apart; infinity of cluster 0
    sizes: Int64Array  #: [c] rows at its birth
    stabilities: Float64Array  #: [c] excess of mass; may be infinite where rows are equal
    labels: Int64Array  #: [c] the label of a chosen cluster, else -1
    row_clusters: Int64Array  #: [n] the last cluster that each row is in
    row_distances: Float64Array  #: [n] the length of the edge with which the row leaves it


class Hdbscan(Result):
    """Clusters of different densities, and noise."""

    labels: Int64Array  #: [n] -1 for noise; clusters are numbered by their smallest rows
    probabilities: Float64Array  #: [n] from 0 to 1: how firmly a row is in its cluster; 0 for noise
    outlier_scores: Float64Array  #: [n] GLOSH, from 0 to 1; larger is more outlying
    clusters: int
    noise: int  #: rows with label -1
    sizes: Int64Array  #: [clusters] rows of each
    persistences: Float64Array  #: [clusters] from 0 to 1 where no two rows are equal
    exemplar_offsets: Int64Array  #: [clusters + 1] of each cluster in `exemplars`
    exemplars: Int64Array  #: the rows of each cluster that are in its densest places, ascending
    core_distances: Float64Array  #: [n] those of the spanning tree
    memberships: Float64Array | None  #: [n, clusters] from 0 to 1, where requested: how much a row belongs to each
    tree: CondensedTree
    plan: Plan
    stats: SearchStats
    tree_seconds: float  #: of the spanning tree, after the neighbors were found
    cluster_seconds: float  #: after the spanning tree was found

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
        """The rows of a cluster that are in its densest places, ascending. Raises IndexError for another number."""
        if not 0 <= cluster < self.clusters:
            raise IndexError(f"cluster {cluster} of {self.clusters}")
        return self.exemplars[self.exemplar_offsets[cluster] : self.exemplar_offsets[cluster + 1]]

    def plot(self, table: Any = None, axes: Any = None) -> Any:
        """The condensed tree as icicles, chosen clusters colored, or of the table [n, d] its rows on its first two
        principal axes, colored by cluster, noise small and gray. On `axes` of matplotlib or new ones, which are
        returned. Needs matplotlib. Raises InvalidArgument for a table of another number of rows. O(n), and of a table
        O(n d^2)."""
        return _plots.condensed_tree(self.tree, axes) if table is None else _plots.density(self.labels, table, axes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _hdbscan, (_core.hdbscan_state(self), self.memberships)


def _hdbscan(state: dict[str, Any], memberships: Float64Array | None) -> Hdbscan:
    """Clusters from a pickle; their plan and stats are not kept."""
    return Hdbscan(_core.hdbscan_of(state))._with(memberships)


class HdbscanPrediction(Result):
    """Clusters of new rows."""

    labels: Int64Array  #: [m] -1 for noise
    probabilities: Float64Array  #: [m] from 0 to 1: how firmly a row is in its cluster; 0 for noise
    rows: Int64Array  #: [m] the row of the table by which each was placed

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), _kept(self))


class HdbscanModel(Saved):
    """An index and the clusters of its rows: what it takes to find the clusters of other rows.

    One from a file may have been made of scaled or coded columns; its index then has the prepared rows. Raises
    InvalidArgument for clusters of another table.
    """

    _kind = "HdbscanModel"
    _records: ClassVar[dict[str, Callable[[Any], Record]]] = {"index": Index._of, "fitted": Hdbscan}

    index: Index
    fitted: Hdbscan
    columns: list[str]  #: names of the columns of queries, where the model knows them

    def __init__(self, index: Index, fitted: Hdbscan, **options: Unpack[Common]) -> None:
        super().__init__(_core.hdbscan_model(index, fitted, dict(options)))

    def predict(self, queries: Any, **options: Unpack[Common]) -> HdbscanPrediction:
        """The clusters of other rows [m, d], given as the rows that the model was made of: they are prepared as those
        were. Each is placed by the row that it reaches first, and no cluster changes. This is the rule of
        approximate_predict of the package hdbscan, with all rows as candidates. `queries` may be a `Table` of `read`,
        or a path, of which columns are found by their names. Raises InvalidArgument for queries of another width,
        BadData for NaN, infinity and other columns. Cost of `knn` with max(2 min_samples, 10) neighbors."""
        return HdbscanPrediction(_core.hdbscan_predict(self, queries, dict(options)))

    def memberships(self, queries: Any = None, **options: Unpack[Common]) -> Float64Array:
        """How much each row belongs to each cluster, [m, clusters] from 0 to 1: of the model's rows, or of `queries`,
        which are prepared as for `predict`. These are all_points_membership_vectors and membership_vector of the
        package hdbscan, which weigh distances and tree in two ways. Raises as `predict` does. Cost of `knn` with k = 1
        among the exemplars, and of queries also that of `predict`; 8 m clusters bytes."""
        return _core.hdbscan_model_memberships(self, queries, dict(options))


class Dbscan(Result):
    """Clusters of rows that lie densely, and noise."""

    labels: Int64Array  #: [n] -1 for noise; clusters are numbered by their smallest core row
    core: NDArray[np.bool_]  #: [n] whether each is a core row
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
        """The rows of the table [n, d] on its first two principal axes, colored by cluster, noise small and gray, on
        `axes` of matplotlib or new ones, which are returned. Needs matplotlib. Raises InvalidArgument for a table of
        another number of rows. O(n d^2)."""
        return _plots.density(self.labels, table, axes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), _kept(self))


class Optics(Result):
    """The rows of a table in the order of OPTICS. All but `ordering` are by the numbers of rows."""

    ordering: Int64Array  #: [n] row numbers, in the order in which rows are placed
    reachability: Float64Array  #: [n] distances at which rows are reached; infinity where no row reaches
    core_distances: Float64Array  #: [n] infinity where above `max_eps`
    predecessors: Int64Array  #: [n] the row from which each is reached, or -1
    min_samples: int
    max_eps: float
    metric: Metric
    p: float
    plan: Plan
    stats: SearchStats
    order_seconds: float  #: after the neighbors were found

    def plot(self, clusters: OpticsClusters | None = None, axes: Any = None) -> Any:
        """The reachability of each row in the order, colored by `clusters` of it, on `axes` of matplotlib or new ones,
        which are returned. Needs matplotlib."""
        return _plots.reachability(self, clusters, axes)

    def __reduce__(self) -> tuple[Any, ...]:
        keywords = {name: getattr(self, name) for name in ("min_samples", "max_eps", "metric", "p")}
        return _order, (self.ordering, self.reachability, self.core_distances, self.predecessors, keywords)


def _order(*arguments: Any) -> Optics:
    """An order from a pickle; its plan and stats are not kept."""
    return Optics(_core.optics_of(*arguments))


class OpticsClusters(Result):
    """Clusters that were read from an order."""

    labels: Int64Array  #: [n] of each row, or -1 for noise
    clusters: int  #: number of labels
    noise: int  #: rows with label -1
    sizes: Int64Array  #: [clusters] rows of each
    starts: Int64Array  #: of `optics_xi`: the first place in `ordering` of each cluster, also of those without a label
    ends: Int64Array  #: the last place of each

    def hierarchy(self) -> Iterator[tuple[int, int]]:
        """The first and last place in `ordering` of each cluster; of those that end together smaller ones first."""
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
    """The minimum spanning tree of all pairs of rows of a table [n, d] or an Index, by distance, or with `min_samples`
    above 1 by mutual reachability: the largest of a pair's distance and both core distances.

    Edges are ordered by (length, smaller row, larger row), so that there is only one such tree. Raises InvalidArgument
    for options outside their domain, BadData naming row and column of NaN and infinity, OverMemory before work begins,
    DeviceUnavailable for a CUDA device. Cost of `knn` with max(min_samples + 5, 10) neighbors, and of up to log2 n
    searches more; 16 bytes a neighbor and about 150 n bytes.
    """
    return SpanningTree(_core.spanning_tree(table, options))


@documented("HdbscanOptions")
def hdbscan(table: Any, *, memberships: bool = False, **options: Unpack[HdbscanOptions]) -> Hdbscan:
    """The clusters of HDBSCAN (Campello, Moulavi and Sander 2013) of the rows of a table [n, d], of an Index, or of a
    SpanningTree, to try other sizes and selections without another search: `min_samples`, `count_self`, `alpha`,
    `metric`, `p` and `method` are then those of the tree.

    `memberships=True` also finds how much each row belongs to each cluster, [n, clusters]; a tree has no rows for that.
    `min_samples=0` takes `min_cluster_size`. Ties are decided by the order of the tree's edges, so that results are
    the same everywhere. Raises as `minimum_spanning_tree` does, and InvalidArgument for "inner_product". Cost of
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

    Rows are neighbors within `eps`; core rows have at least `min_samples` neighbors, themselves included, or neighbors
    of that weight in all (`weights` [n], finite). Raises InvalidArgument for options outside their domain, BadData
    naming row and column of NaN and infinity, OverMemory before work begins, DeviceUnavailable for a CUDA device. At
    most about the time of `count`, and O(n) memory for every `eps`.
    """
    return Dbscan(_core.dbscan(table, options))


@documented("OpticsOptions")
def optics(table: Any, **options: Unpack[OpticsOptions]) -> Optics:
    """The order of OPTICS (Ankerst et al. 1999) of the rows of a table [n, d] or an Index, from which `optics_xi` and
    `optics_dbscan` read clusters. Of rows that are equally far the smallest comes first.

    Raises InvalidArgument for options outside their domain and "inner_product", BadData naming row and column of NaN
    and infinity, OverMemory before work begins, DeviceUnavailable for a CUDA device. Cost of `knn` with
    max(min_samples + 4, 10) neighbors, then of some searches a row in a kd-tree, or else of all pairs; O(n) memory.
    """
    return Optics(_core.optics(table, options))


@documented("OpticsXiOptions")
def optics_xi(order: Optics, **options: Unpack[OpticsXiOptions]) -> OpticsClusters:
    """Clusters between a steep descent and a steep ascent of the reachability, also clusters within clusters, of which
    the smallest have labels. `min_cluster_size=0` takes `min_samples` of the order. Raises InvalidArgument for options
    outside their domain. O(n), and the square of the number of steep places at most."""
    return OpticsClusters(_core.optics_xi(order, options))


def optics_dbscan(order: Optics, eps: float, **options: Unpack[Common]) -> OpticsClusters:
    """Clusters of one density, `eps` from 0 to `max_eps` of the order: those of `dbscan` but for some border rows.
    Raises InvalidArgument for another `eps`. O(n)."""
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
