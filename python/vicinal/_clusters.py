"""k-means."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Literal, Unpack

from vicinal import _core
from vicinal._names import documented
from vicinal._options import Common, KMeansOptions
from vicinal._results import Float64Array, Int32Array, Int64Array, Plan, Record, Result

__all__ = ["KMeans", "kmeans", "predict"]


class KMeansStats(Record):
    """What k-means did."""

    assigned: int  #: rows looked at, over all iterations and runs
    skipped: int  #: of these, rows whose bounds said that nothing can have changed
    rechecked: int  #: of these, rows that float64 keys decided
    seed_seconds: float
    iterate_seconds: float


class KMeans(Result):
    """Clusters: centres, and the labels of the rows they were made of."""

    _records: ClassVar[dict[str, type[Record]]] = {"plan": Plan, "stats": KMeansStats}

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
        return cls(_core.kmeans_of(centres, {"metric": metric, **options}))

    def predict(self, table: Any, **options: Unpack[Common]) -> Int32Array:
        """The cluster of each row of a table [m, d]: [m]. Raises InvalidArgument for another width. O(m k d)."""
        return _core.kmeans_predict(self, table, dict(options))

    def transform(self, table: Any, **options: Unpack[Common]) -> Float64Array:
        """Distances [m, clusters] of each row to each centre, by the model's metric. O(m k d)."""
        return _core.kmeans_transform(self, table, dict(options))

    def score(self, table: Any, *, weights: Any = None, **options: Unpack[Common]) -> float:
        """Minus the inertia of a table's rows. O(m k d)."""
        return _core.kmeans_score(self, table, {"weights": weights, **options})

    def save(self, path: str | os.PathLike[str], **options: Unpack[Common]) -> None:
        """Writes centres, metric, sizes, inertia and iterations to a file, which the command and C++ read, too."""
        _core.save_kmeans(self, os.fspath(path), dict(options))

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Unpack[Common]) -> KMeans:
        """Reads a saved model, which has no labels. Raises BadData for another file, InvalidArgument for one of the
        command whose columns were scaled or coded."""
        return cls(_core.load_kmeans(os.fspath(path), dict(options)))

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {name: value for name, value in self.__dict__.items() if name not in ("_native", "plan", "stats")}
        return _kmeans, (kept,)


def _kmeans(kept: dict[str, Any]) -> KMeans:
    """A model from a pickle; its plan and stats are not kept."""
    model = KMeans.of(kept["centres"], metric=kept["metric"])
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
