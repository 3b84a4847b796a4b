"""scikit-learn's arguments as calls of vicinal: metrics, tables, threads, neighbors. What is not plainly the same in
both is Stock."""

from __future__ import annotations

import numbers
import os
from typing import Any, Mapping, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import DistanceMetric
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from vicinal import _core, _neighbors
from vicinal._hooks.registry import Settings, Stock
from vicinal._options import Common

__all__ = [
    "COSINE_PAIRS",
    "Metric",
    "common",
    "count_of",
    "knn",
    "lists",
    "metric_of",
    "radius_lists",
    "radius_of",
    "table_of",
]

IntpArray = NDArray[np.intp]
Float64Array = NDArray[np.float64]

MAX_SPARSE_COLUMNS = 4096
#: Fewer pairs by cosine are scikit-learn's: it promises the bits of its own matrix of distances to some callers, and
#: vicinal is exact.
COSINE_PAIRS = 1 << 20


class Metric(NamedTuple):
    """A metric of vicinal's."""

    name: str
    p: float = 2.0

    def keywords(self) -> dict[str, Any]:
        return {"metric": self.name, "p": self.p} if self.name == "minkowski" else {"metric": self.name}


_NAMES = {
    "euclidean": "euclidean",
    "l2": "euclidean",
    "sqeuclidean": "sqeuclidean",
    "manhattan": "manhattan",
    "l1": "manhattan",
    "cityblock": "manhattan",
    "chebyshev": "chebyshev",
    "infinity": "chebyshev",
    "cosine": "cosine",
    "hamming": "hamming",
    "minkowski": "minkowski",
    "p": "minkowski",
}
_CLASSES = {
    "EuclideanDistance": "euclidean",
    "ManhattanDistance": "manhattan",
    "ChebyshevDistance": "chebyshev",
    "HammingDistance": "hamming",
    "MinkowskiDistance": "minkowski",
}


def metric_of(metric: Any, parameters: Mapping[str, Any] | None = None) -> Metric:
    """The metric of a name or a DistanceMetric of scikit-learn, with its parameters."""
    given = {name: value for name, value in (parameters or {}).items() if value is not None}
    if isinstance(metric, str):
        name = _NAMES.get(metric)
        if name is None:
            raise Stock("a metric that vicinal does not have")
        if name != "minkowski":
            if given:
                raise Stock("parameters of the metric")
            return Metric(name)
        p = given.pop("p", 2)
        if given:
            raise Stock("parameters of the metric")
        return _minkowski(p)
    if not isinstance(metric, DistanceMetric):
        raise Stock("a metric that vicinal does not have")
    if given:
        raise Stock("parameters of the metric")
    kind = type(metric)
    name = _CLASSES.get(kind.__name__[:-2]) if kind.__module__ == "sklearn.metrics._dist_metrics" else None
    if name is None:
        raise Stock("a metric that vicinal does not have")
    if name != "minkowski":
        return Metric(name)
    p, weights, _ = metric.__getstate__()
    if len(weights):
        raise Stock("weights of columns")
    return _minkowski(p)


def _minkowski(p: Any) -> Metric:
    exponent = _number(p)
    if not exponent >= 1:
        raise Stock("an exponent below 1")
    names = {1.0: "manhattan", 2.0: "euclidean", np.inf: "chebyshev"}
    return Metric(names.get(exponent, "minkowski"), exponent)


def _number(value: Any) -> float:
    """NaN for what is no number."""
    real = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    return float(value) if real else float("nan")


def threads_of(settings: Settings) -> int:
    """At most those that threadpoolctl, joblib's workers and OMP_NUM_THREADS allow."""
    limits = (_openmp_effective_n_threads(), _core.thread_limit(), settings.threads)
    return min(int(limit) for limit in limits if limit)


def common(settings: Settings, threads: int | None = None) -> Common:
    """The keywords of a call."""
    allowed = threads_of(settings)
    return {
        "device": settings.device,
        "threads": allowed if threads is None else min(threads, allowed),
        "memory_limit": settings.memory_limit,
    }


def table_of(value: Any, settings: Settings) -> NDArray[Any]:
    """A table of numbers; CSR made dense where that is within the memory limit."""
    if sparse.issparse(value):
        return _dense(value, settings)
    array = value if isinstance(value, np.ndarray) else _of_buffer(value)
    if type(array) not in (np.ndarray, np.memmap):
        raise Stock("an array of a class of its own")
    if array.ndim != 2 or array.size == 0:
        raise Stock("no table of rows and columns")
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise Stock("elements of another type")
    return array


def _of_buffer(value: Any) -> NDArray[Any]:
    """Trees show their rows as a memoryview, of Python's or Cython's own class."""
    if isinstance(value, memoryview) or type(value).__name__ in ("_memoryviewslice", "memoryview"):
        return np.asarray(value)
    if isinstance(value, list):
        try:
            return np.asarray(value)
        except ValueError:
            raise Stock("no table of rows and columns") from None
    raise Stock("no NumPy array")


def _dense(matrix: Any, settings: Settings) -> NDArray[Any]:
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise Stock("no table of rows and columns")
    if matrix.dtype.kind not in "fiub" or matrix.dtype.itemsize > 8:
        raise Stock("elements of another type")
    if matrix.shape[1] > MAX_SPARSE_COLUMNS:
        raise Stock("a sparse table of many columns")
    if matrix.shape[0] * matrix.shape[1] * matrix.dtype.itemsize > _room(settings) / 2:
        raise Stock("a sparse table beyond the memory limit")
    dense: NDArray[Any] = np.ascontiguousarray(matrix.toarray())
    return dense


def _room(settings: Settings) -> float:
    """Bytes that may be used: the limit, else 80 % of what the machine has free."""
    if settings.memory_limit is not None:
        return settings.memory_limit
    return 0.8 * os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def count_of(k: Any, rows: int) -> int:
    """A number of neighbors."""
    if not isinstance(k, numbers.Integral) or not 1 <= _number(k) <= rows:
        raise Stock("a number of neighbors outside its domain")
    return int(k)


def radius_of(radius: Any) -> float:
    value = _number(radius)
    if not value >= 0:
        raise Stock("a radius outside its domain")
    return value


def enough_pairs(settings: Settings, metric: Metric, queries: int, rows: int) -> None:
    if metric.name == "cosine" and queries * rows < COSINE_PAIRS and not settings.strict:
        raise Stock("few pairs by cosine")


def knn(
    settings: Settings, table: Any, queries: Any, k: int, metric: Metric, threads: int | None = None
) -> tuple[Float64Array, IntpArray]:
    """distances and ids [m, k] that the caller owns. `table` may be an Index."""
    keywords: Any = {**metric.keywords(), **common(settings, threads)}
    graph = _neighbors.knn(table, queries, k=k, **keywords).host()
    return graph.distances.copy(), graph.ids.astype(np.intp)


class Lists(NamedTuple):
    """Neighbors of m queries, one after the other: those of query i at offsets[i] to offsets[i + 1]. Read-only."""

    offsets: IntpArray
    distances: Float64Array
    ids: IntpArray


def radius_lists(settings: Settings, table: Any, queries: Any, radius: Any, metric: Metric, by_distance: bool) -> Lists:
    """All neighbors within a radius, or one a query; by (distance, id), or by id."""
    keywords: Any = {**metric.keywords(), **common(settings)}
    graph = _neighbors.radius(table, queries, radius=radius, order="key" if by_distance else "id", **keywords)
    assert graph.offsets is not None
    return Lists(graph.offsets, graph.distances, graph.ids)


def lists(offsets: IntpArray, flat: NDArray[Any]) -> NDArray[np.object_]:
    """An array of arrays, one a query, that the caller owns."""
    rows = np.empty(len(offsets) - 1, object)
    ends = offsets.tolist()
    for i in range(len(rows)):
        rows[i] = flat[ends[i] : ends[i + 1]].copy()
    return rows
