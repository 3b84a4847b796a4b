"""k-means."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, Literal, Unpack

from vicinal import _core, _plots
from vicinal._names import documented
from vicinal._options import Common, KMeansOptions
from vicinal._results import Float64Array, Int32Array, Int64Array, Plan, Record, Saved

__all__ = ["KMeans", "kmeans", "predict"]


class KMeansStats(Record):
    """What k-means did."""

    assigned: int  #: rows looked at, over all iterations and runs
    skipped: int  #: of these, rows whose bounds said that nothing can have changed
    rechecked: int  #: of these, rows that float64 keys decided
    seed_seconds: float
    iterate_seconds: float


class KMeans(Saved):
    """Clusters: centres, and the labels of the rows they were made of. One from a file has no labels; where its columns
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
    history: Float64Array  #: with history=True, the inertia of each iteration
    plan: Plan
    stats: KMeansStats

    @classmethod
    def of(
        cls, centres: Any, *, metric: Literal["euclidean", "cosine"] = "euclidean", **options: Unpack[Common]
    ) -> KMeans:
        """A model of given centres [clusters, d], which are copied."""
        return cls._of(_core.kmeans_of(centres, {"metric": metric, **options}))

    def predict(self, table: Any, **options: Unpack[Common]) -> Int32Array:
        """The cluster of each row of a table [m, d]: [m]. Raises InvalidArgument for another width. O(m k d)."""
        return _core.kmeans_predict(self, table, dict(options))

    def transform(self, table: Any, **options: Unpack[Common]) -> Float64Array:
        """Distances [m, clusters] of each row to each centre, by the model's metric. O(m k d)."""
        return _core.kmeans_transform(self, table, dict(options))

    def score(self, table: Any, *, weights: Any = None, **options: Unpack[Common]) -> float:
        """Minus the inertia of a table's rows. O(m k d)."""
        return _core.kmeans_score(self, table, {"weights": weights, **options})

    def plot(self, table: Any, axes: Any = None) -> Any:
        """The rows of a table [n, d] on its first two principal axes, colored by cluster, and the centres, on `axes` of
        matplotlib or new ones, which are returned. Needs matplotlib. O(n d)."""
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
