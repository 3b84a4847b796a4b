"""Hooks of sklearn.neighbors and of the pairwise reductions that it and others call."""

from __future__ import annotations

from functools import partial, update_wrapper
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.neighbors import NearestNeighbors, _base

from vicinal._hooks import engine, trees
from vicinal._hooks.registry import Hook, Place, Settings, Stock, current, expect

__all__ = ["HOOKS"]

_REDUCTIONS = "sklearn.metrics._pairwise_distances_reduction._dispatcher"
_SMALL = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0], [6.0, 8.0]])


# ---- pairwise reductions --------------------------------------------------------------------------------------------


def _reduced(method: Callable[..., Any]) -> Callable[[Hook, Any], Any]:
    """A class method `compute` of which vicinal's part is `method(settings, X, Y, ..)`."""

    def replace(hook: Hook, before: Any) -> Any:
        stock = before.__func__

        def compute(cls: Any, X: Any, Y: Any, *args: Any, **kwargs: Any) -> Any:
            return hook.call(
                current(),
                lambda settings: method(settings, X, Y, *args, **kwargs),
                lambda: stock(cls, X, Y, *args, **kwargs),
            )

        update_wrapper(compute, stock)
        return classmethod(compute)

    return replace


def _pair(settings: Settings, X: Any, Y: Any, strategy: Any, chunk_size: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Two tables that scikit-learn's reductions take, too."""
    if strategy not in (None, "auto", "parallel_on_X", "parallel_on_Y") or not (
        chunk_size is None or isinstance(chunk_size, int) and chunk_size > 0
    ):
        raise Stock("arguments outside their domain")
    for table in (X, Y):
        if sparse.issparse(table):
            if table.format != "csr":
                raise Stock("a sparse table of another format")
        elif not isinstance(table, np.ndarray) or not table.flags.c_contiguous:
            raise Stock("no contiguous NumPy array")
        if table.dtype not in (np.float64, np.float32):
            raise Stock("elements of another type")
    if X.dtype != Y.dtype or X.ndim != 2 or Y.ndim != 2 or X.shape[1] != Y.shape[1]:
        raise Stock("tables that do not fit together")
    same = X is Y
    queries = engine.table_of(X, settings)
    return queries, queries if same else engine.table_of(Y, settings)


def _pair_metric(metric: Any, parameters: Any, X: Any, Y: Any) -> engine.Metric:
    """The metric; norms that the caller knows are not needed."""
    left = dict(parameters or {})
    if isinstance(metric, str) and metric in ("euclidean", "sqeuclidean"):
        for name, table in (("X_norm_squared", X), ("Y_norm_squared", Y)):
            norms = left.pop(name, None)
            if norms is not None and np.shape(norms) not in ((len(table),), (len(table), 1), (1, len(table))):
                raise Stock("arguments outside their domain")
    if left and not isinstance(metric, str):
        raise Stock("parameters of the metric")
    return engine.metric_of(metric, left)


def _asked(
    settings: Settings, X: Any, Y: Any, metric: Any, metric_kwargs: Any, strategy: Any, chunk_size: Any
) -> tuple[NDArray[Any], NDArray[Any], engine.Metric]:
    """What every reduction is asked: queries, table and metric."""
    queries, table = _pair(settings, X, Y, strategy, chunk_size)
    return queries, table, _pair_metric(metric, metric_kwargs, queries, table)


def _argkmin(
    settings: Settings,
    X: Any,
    Y: Any,
    k: Any,
    metric: Any = "euclidean",
    chunk_size: Any = None,
    metric_kwargs: Any = None,
    strategy: Any = None,
    return_distance: Any = False,
) -> Any:
    queries, table, measure = _asked(settings, X, Y, metric, metric_kwargs, strategy, chunk_size)
    distances, ids = engine.knn(settings, table, queries, engine.count_of(k, len(table)), measure)
    return (distances, ids) if return_distance else ids


def _within(
    settings: Settings,
    X: Any,
    Y: Any,
    radius: Any,
    metric: Any = "euclidean",
    chunk_size: Any = None,
    metric_kwargs: Any = None,
    strategy: Any = None,
    return_distance: Any = False,
    sort_results: Any = False,
) -> Any:
    queries, table, measure = _asked(settings, X, Y, metric, metric_kwargs, strategy, chunk_size)
    found = engine.radius_lists(settings, table, queries, engine.radius_of(radius), measure, bool(sort_results))
    ids = engine.lists(found.offsets, found.ids)
    return (engine.lists(found.offsets, found.distances), ids) if return_distance else ids


def _classes(Y_labels: Any, unique_Y_labels: Any, weights: Any, rows: int) -> tuple[NDArray[np.intp], int]:
    """Positions of classes; scikit-learn's own classes weigh by distance elsewhere."""
    if not isinstance(weights, str) or weights != "uniform":
        raise Stock("votes weighted by distance")
    labels = np.asarray(Y_labels)
    classes = len(unique_Y_labels)
    if labels.ndim != 1 or len(labels) != rows or labels.dtype.kind not in "iu":
        raise Stock("labels that are not positions of classes")
    if not ((labels >= 0) & (labels < classes)).all():
        raise Stock("labels that are not positions of classes")
    return labels.astype(np.intp, copy=False), classes


def _argkmin_mode(
    settings: Settings,
    X: Any,
    Y: Any,
    k: Any,
    weights: Any,
    Y_labels: Any,
    unique_Y_labels: Any,
    metric: Any = "euclidean",
    chunk_size: Any = None,
    metric_kwargs: Any = None,
    strategy: Any = None,
) -> Any:
    queries, table, measure = _asked(settings, X, Y, metric, metric_kwargs, strategy, chunk_size)
    labels, classes = _classes(Y_labels, unique_Y_labels, weights, len(table))
    _, ids = engine.knn(settings, table, queries, engine.count_of(k, len(table)), measure)
    return _shares(np.repeat(np.arange(len(ids)), ids.shape[1]), labels[ids.ravel()], len(ids), classes)


def _within_mode(
    settings: Settings,
    X: Any,
    Y: Any,
    radius: Any,
    weights: Any,
    Y_labels: Any,
    unique_Y_labels: Any,
    outlier_label: Any,
    metric: Any = "euclidean",
    chunk_size: Any = None,
    metric_kwargs: Any = None,
    strategy: Any = None,
) -> Any:
    queries, table, measure = _asked(settings, X, Y, metric, metric_kwargs, strategy, chunk_size)
    labels, classes = _classes(Y_labels, unique_Y_labels, weights, len(table))
    found = engine.radius_lists(settings, table, queries, engine.radius_of(radius), measure, True)
    if (np.diff(found.offsets) == 0).any():
        raise Stock("queries without neighbors")
    query = np.repeat(np.arange(len(queries)), np.diff(found.offsets))
    return _shares(query, labels[found.ids], len(queries), classes)


def _shares(query: NDArray[np.intp], label: NDArray[np.intp], queries: int, classes: int) -> NDArray[np.float64]:
    """The share of each class among the neighbors of each query, all of which have some."""
    votes = np.bincount(query * classes + label, minlength=queries * classes).reshape(queries, classes)
    shares: NDArray[np.float64] = votes / votes.sum(axis=1, keepdims=True)
    return shares


def _check_argkmin(compute: Any) -> None:
    distances, ids = compute(_SMALL[:1], _SMALL, 3, return_distance=True)
    expect(ids, [[0, 2, 1]])
    expect(distances, [[0.0, 1.0, 5.0]])


def _check_within(compute: Any) -> None:
    distances, ids = compute(_SMALL[:1], _SMALL, 5.0, return_distance=True)
    expect(ids[0], [0, 1, 2])
    expect(distances[0], [0.0, 5.0, 1.0])


def _check_argkmin_mode(compute: Any) -> None:
    labels = np.array([0, 1, 0, 1])
    expect(compute(_SMALL[:1], _SMALL, 4, "uniform", labels, np.arange(2), metric="manhattan"), [[0.5, 0.5]])


def _check_within_mode(compute: Any) -> None:
    labels = np.array([0, 1, 0, 1])
    shares = compute(_SMALL[:1], _SMALL, 1.0, "uniform", labels, np.arange(2), None, metric="manhattan")
    expect(shares, [[1.0, 0.0]])


# ---- distances in chunks --------------------------------------------------------------------------------------------


def _chunked(hook: Hook, before: Any) -> Any:
    def pairwise_distances_chunked(X: Any, Y: Any = None, **keywords: Any) -> Any:
        return hook.call(
            current(),
            lambda settings: iter([_reduced_chunk(settings, X, Y, **keywords)]),
            lambda: before(X, Y, **keywords),
        )

    return update_wrapper(pairwise_distances_chunked, before)


def _reduced_chunk(
    settings: Settings,
    X: Any,
    Y: Any,
    *,
    reduce_func: Any = None,
    metric: Any = "euclidean",
    n_jobs: Any = None,
    working_memory: Any = None,
    **parameters: Any,
) -> Any:
    """What scikit-learn's own functions make of a matrix of distances, without one."""
    method = getattr(getattr(reduce_func, "func", None), "__func__", None)
    if not isinstance(reduce_func, partial) or reduce_func.args or Y is None:
        raise Stock("a reduction that is not scikit-learn's")
    squared = parameters.pop("squared", False)
    if squared is not (metric == "euclidean"):
        raise Stock("parameters of the metric")
    measure = engine.metric_of(metric, parameters)
    if measure.name == "sqeuclidean" and not settings.strict:
        raise Stock("squared distances in chunks")
    queries = engine.table_of(X, settings)
    table = queries if X is Y else engine.table_of(Y, settings)
    if queries.shape[1] != table.shape[1]:
        raise Stock("tables that do not fit together")
    engine.enough_pairs(settings, measure, len(queries), len(table))
    if X is Y and measure.name == "cosine" and not queries.any(axis=1).all():
        raise Stock("a row of zeros by cosine")  # which scikit-learn then says is at 0 from itself
    wanted = dict(reduce_func.keywords)
    told = wanted.pop("return_distance", False)
    # scikit-learn's own distances have the type of their tables, SciPy's float64.
    narrow = queries.dtype == np.float32 and table.dtype == np.float32 and measure.name in ("euclidean", "cosine")
    if method is _base.KNeighborsMixin._kneighbors_reduce_func and set(wanted) == {"n_neighbors"}:
        k = engine.count_of(wanted["n_neighbors"], len(table))
        distances, ids = engine.knn(settings, table, queries, k, measure)
        return ((distances.astype(np.float32) if narrow else distances), ids) if told else ids
    if method is _base.RadiusNeighborsMixin._radius_neighbors_reduce_func and set(wanted) == {"radius"}:
        # Of squares where scikit-learn compares squares.
        compared = engine.Metric("sqeuclidean") if squared else measure
        radius = engine.radius_of(wanted["radius"])
        found = engine.radius_lists(settings, table, queries, radius, compared, False)
        within = list(engine.lists(found.offsets, found.ids))
        if not told:
            return within
        reported = np.sqrt(found.distances) if squared else found.distances
        return list(engine.lists(found.offsets, reported.astype(np.float32) if narrow else reported)), within
    raise Stock("a reduction that is not scikit-learn's")


def _check_chunked(chunked: Any) -> None:
    whole = _SMALL.astype(np.int64)
    model = NearestNeighbors()
    model.effective_metric_ = "euclidean"
    nearest = partial(model._kneighbors_reduce_func, n_neighbors=2, return_distance=True)
    ((distances, ids),) = chunked(whole, whole, reduce_func=nearest, metric="euclidean", n_jobs=1, squared=True)
    expect(ids, [[0, 2], [1, 2], [2, 0], [3, 1]])
    expect(distances[3], [0.0, 5.0])
    within = partial(model._radius_neighbors_reduce_func, radius=25.0, return_distance=True)
    ((lengths, rows),) = chunked(whole, whole, reduce_func=within, metric="euclidean", n_jobs=1, squared=True)
    expect(rows[0], [0, 1, 2])
    expect(lengths[0], [0.0, 5.0, 1.0])


# ---- the hooks ------------------------------------------------------------------------------------------------------

_PAIR = ("X", "Y")
_MANNER = ("metric", "chunk_size", "metric_kwargs", "strategy")
_LABELS = ("weights", "Y_labels", "unique_Y_labels")

HOOKS = [
    Hook(
        "ArgKmin.compute",
        (Place(_REDUCTIONS, "ArgKmin.compute"),),
        (*_PAIR, "k", *_MANNER, "return_distance"),
        _reduced(_argkmin),
        _check_argkmin,
    ),
    Hook(
        "RadiusNeighbors.compute",
        (Place(_REDUCTIONS, "RadiusNeighbors.compute"),),
        (*_PAIR, "radius", *_MANNER, "return_distance", "sort_results"),
        _reduced(_within),
        _check_within,
    ),
    Hook(
        "ArgKminClassMode.compute",
        (Place(_REDUCTIONS, "ArgKminClassMode.compute"),),
        (*_PAIR, "k", *_LABELS, *_MANNER),
        _reduced(_argkmin_mode),
        _check_argkmin_mode,
    ),
    Hook(
        "RadiusNeighborsClassMode.compute",
        (Place(_REDUCTIONS, "RadiusNeighborsClassMode.compute"),),
        (*_PAIR, "radius", *_LABELS, "outlier_label", *_MANNER),
        _reduced(_within_mode),
        _check_within_mode,
    ),
    Hook(
        "pairwise_distances_chunked",
        (Place("sklearn.neighbors._base", "pairwise_distances_chunked"),),
        ("X", "Y", "reduce_func", "metric", "n_jobs", "working_memory", "kwds"),
        _chunked,
        _check_chunked,
    ),
    *trees.HOOKS,
]
