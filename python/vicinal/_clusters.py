"""k-means."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, Literal, NamedTuple, Unpack

from vicinal import _core, _plots
from vicinal._names import documented
from vicinal._options import Common, KMeansOptions
from vicinal._results import Float64Array, Int32Array, Int64Array, Plan, Record, Result, Saved

__all__ = ["KMeans", "KMeansSteps", "kmeans", "predict"]


class KMeansStats(Record):
    """What k-means did."""

    assigned: int  #: rows looked at, over all iterations and runs
    skipped: int  #: of these, rows whose bounds said that nothing can have changed
    rechecked: int  #: of these, rows that float64 keys decided
    seed_seconds: float
    iterate_seconds: float


class KMeans(Saved):
    """Clusters: centers, and the labels of the rows they were made of. One from a file has no labels; where its columns
    were scaled or coded, tables are prepared as they were, and may be a `Table` of `read` or a path."""

    _kind = "KMeans"
    _records: ClassVar[dict[str, Callable[[Any], Record]]] = {"plan": Plan, "stats": KMeansStats}

    clusters: int
    cols: int
    metric: Literal["euclidean", "cosine"]
    centres: Float64Array  #: [clusters, cols]
    labels: Int32Array  #: [n]
    sizes: Int64Array  #: [clusters]
    inertia: float  #: sum of weight times squared (or cosine) distance
    iterations: int
    stopped: str  #: "labels", "shift", "changed_share", "max_iterations", "no_improvement"
    prepared: bool  #: whether columns of tables are scaled, coded or filled before rows are measured
    history: Float64Array  #: with history=True, the inertia of each iteration
    plan: Plan
    stats: KMeansStats

    @classmethod
    def of(
        cls, centres: Any, *, metric: Literal["euclidean", "cosine"] = "euclidean", **options: Unpack[Common]
    ) -> KMeans:
        """A model of given centers [clusters, d], which are copied."""
        return cls._of(_core.kmeans_of(centres, {"metric": metric, **options}))

    def predict(self, table: Any, **options: Unpack[Common]) -> Int32Array:
        """The cluster of each row of a table [m, d]: [m]. Raises InvalidArgument for another width. O(m k d)."""
        return _core.kmeans_predict(self, table, dict(options))

    def transform(self, table: Any, **options: Unpack[Common]) -> Float64Array:
        """Distances [m, clusters] of each row to each center, by the model's metric. O(m k d)."""
        return _core.kmeans_transform(self, table, dict(options))

    def score(self, table: Any, *, weights: Any = None, **options: Unpack[Common]) -> float:
        """Minus the inertia of a table's rows. O(m k d)."""
        return _core.kmeans_score(self, table, {"weights": weights, **options})

    def plot(self, table: Any, axes: Any = None) -> Any:
        """The rows of a table [n, d] on its first two principal axes, colored by cluster, and the centers, on `axes` of
        matplotlib or new ones, which are returned. Needs matplotlib. Raises InvalidArgument for a model of a file whose
        columns were scaled, coded or filled. O(n d clusters)."""
        return _plots.clusters(self, table, axes)

    def __reduce__(self) -> tuple[Any, ...]:
        left_out = ("_native", "plan", "stats", "copied")
        return _kmeans, (self._content(), {name: value for name, value in vars(self).items() if name not in left_out})


def _kmeans(content: bytes, kept: dict[str, Any]) -> KMeans:
    """A model from a pickle, with what its file lacks; its plan and stats are not kept."""
    model = KMeans._from(content)
    model.__dict__.update(kept)
    return model


@documented("KMeansOptions")
def kmeans(table: Any, **options: Unpack[KMeansOptions]) -> KMeans:
    """Clusters the rows of a table [n, d] by Lloyd's algorithm; the same bits for every thread count and device.

    Raises InvalidArgument for options outside their domain, BadData naming row and column of NaN, infinity and values
    whose squared distances may overflow, OverMemory before work begins. O(n k d) an iteration at most; O(n + k d)
    memory a thread beside the table.
    """
    return KMeans(_core.kmeans(table, options))


def predict(model: KMeans, table: Any, **options: Unpack[Common]) -> Int32Array:
    """The cluster of each row: KMeans.predict."""
    return model.predict(table, **options)


class Assigned(NamedTuple):
    """What an assignment did."""

    changed: int  #: rows whose label is another one than before; of the first one since `start`, all of them
    empty: int  #: clusters that have no row with a weight above 0


class KMeansSteps(Result):
    """Iterations of k-means one step at a time, for loops that decide for themselves what empty clusters take and when
    to stop. Each step has the bits that it has in `kmeans`::

        steps = vicinal.KMeansSteps(table, clusters=8)
        steps.start(table[:8])
        while steps.assign().changed:
            steps.means()
        labels, inertia = steps.labels(), steps.inertia()

    The rows of `table` [n, d] are borrowed and must not change; `weights` [n] are finite and at least 0. Rows of weight
    0 get labels and keys, and count for nothing else: not for `sizes`, `means`, `inertia` or `changed`. `metric` is
    "euclidean", or "cosine": then rows, centers and means are brought to length one.

    One thread at a time; a second one gets InvalidArgument. A session that was interrupted cannot go on. Raises
    InvalidArgument for options outside their domain, BadData naming row and column of NaN, infinity and values whose
    squared distances may overflow, OverMemory before work begins. Memory O(n + k d) a thread beside the table, and a
    copy of the rows if the metric is cosine or a weight is 0.
    """

    rows: int  #: n
    cols: int  #: d
    clusters: int
    metric: Literal["euclidean", "cosine"]
    plan: Plan

    def __init__(
        self,
        table: Any,
        *,
        clusters: int,
        weights: Any = None,
        metric: Literal["euclidean", "cosine"] = "euclidean",
        **options: Unpack[Common],
    ) -> None:
        keywords = {"clusters": clusters, "weights": weights, "metric": metric, **options}
        super().__init__(_core.kmeans_steps(table, keywords))

    def start(self, centres: Any) -> None:
        """Takes first centers [clusters, d] of host memory, which are copied, and forgets all labels. Raises
        InvalidArgument for another shape, BadData for NaN, infinity and values too large. O(k d)."""
        _core.kmeans_steps_centres(self, centres, True)

    def set_centres(self, centres: Any) -> None:
        """Puts other centers in the place of those that there are; labels stay. Raises as `start`. O(k d)."""
        _core.kmeans_steps_centres(self, centres, False)

    def assign(self) -> Assigned:
        """Gives each row the label of its nearest center, ties to the smaller one. Needs `start`. O(n k d) at most;
        what bounds decide is not looked at again."""
        return Assigned(*_core.kmeans_steps_assign(self))

    def move_row(self, row: int, cluster: int) -> None:
        """Gives a row of a weight above 0 another label, before `means`. Needs `assign`. O(d)."""
        _core.kmeans_steps_move(self, row, cluster)

    def means(self) -> float:
        """Replaces the center of each cluster that has rows by their mean, S / W with exact sums. Returns the shift,
        the sum of squared distances of the old centers to the new ones. Needs `assign`. O(k d)."""
        return _core.kmeans_steps_means(self)

    def centres(self) -> Float64Array:
        """The centers as they are: [clusters, d]."""
        return _core.kmeans_steps_centres_of(self)

    def labels(self) -> Int32Array:
        """The label of each row: [n], a copy that later steps do not change. Needs `assign`."""
        return _core.kmeans_steps_labels(self)

    def sizes(self) -> Int64Array:
        """How many rows of a weight above 0 each cluster has: [clusters]. Needs `assign`."""
        return _core.kmeans_steps_sizes(self)

    def keys(self) -> Float64Array:
        """The squared distance of each row to the center of its label, as both are now (cosine: of both brought to
        length one, twice the cosine distance): [n]. Needs `assign`. O(n d)."""
        return _core.kmeans_steps_keys(self)

    def inertia(self) -> float:
        """The exact sum of weight times squared (or cosine) distance to the center of the label, as both are now. Needs
        `assign`. O(n d)."""
        return _core.kmeans_steps_inertia(self)
