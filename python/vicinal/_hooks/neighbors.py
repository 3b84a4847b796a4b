"""Hooks of sklearn.neighbors and of the pairwise reductions that it and others call."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.neighbors import NearestNeighbors, _ball_tree, _base, _kd_tree

from vicinal import _neighbors
from vicinal._hooks import engine
from vicinal._hooks.registry import Hook, Place, Settings, Stock, current

__all__ = ["HOOKS"]

_REDUCTIONS = "sklearn.metrics._pairwise_distances_reduction._dispatcher"
_SMALL = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0], [6.0, 8.0]])


def _expect(found: Any, expected: Any) -> None:
    if not np.array_equal(np.asarray(found), np.asarray(expected)):
        raise ValueError(f"it answered {found!r}; expected {expected!r}")


# ---- pairwise reductions -----------------------------------------------------------------------------------------------


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
    queries, table = _pair(settings, X, Y, strategy, chunk_size)
    measure = _pair_metric(metric, metric_kwargs, queries, table)
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
    queries, table = _pair(settings, X, Y, strategy, chunk_size)
    measure = _pair_metric(metric, metric_kwargs, queries, table)
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
    queries, table = _pair(settings, X, Y, strategy, chunk_size)
    measure = _pair_metric(metric, metric_kwargs, queries, table)
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
    queries, table = _pair(settings, X, Y, strategy, chunk_size)
    measure = _pair_metric(metric, metric_kwargs, queries, table)
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
    _expect(ids, [[0, 2, 1]])
    _expect(distances, [[0.0, 1.0, 5.0]])


def _check_within(compute: Any) -> None:
    distances, ids = compute(_SMALL[:1], _SMALL, 5.0, return_distance=True)
    _expect(ids[0], [0, 1, 2])
    _expect(distances[0], [0.0, 5.0, 1.0])


def _check_argkmin_mode(compute: Any) -> None:
    labels = np.array([0, 1, 0, 1])
    _expect(compute(_SMALL[:1], _SMALL, 4, "uniform", labels, np.arange(2), metric="manhattan"), [[0.5, 0.5]])


def _check_within_mode(compute: Any) -> None:
    labels = np.array([0, 1, 0, 1])
    shares = compute(_SMALL[:1], _SMALL, 1.0, "uniform", labels, np.arange(2), None, metric="manhattan")
    _expect(shares, [[1.0, 0.0]])


# ---- distances in chunks -----------------------------------------------------------------------------------------------


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
        raise Stock("few pairs of squared distances")
    queries = engine.table_of(X, settings)
    table = queries if X is Y else engine.table_of(Y, settings)
    if queries.shape[1] != table.shape[1]:
        raise Stock("tables that do not fit together")
    engine.enough_pairs(settings, measure, len(queries), len(table))
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
    _expect(ids, [[0, 2], [1, 2], [2, 0], [3, 1]])
    _expect(distances[3], [0.0, 5.0])
    within = partial(model._radius_neighbors_reduce_func, radius=25.0, return_distance=True)
    ((lengths, rows),) = chunked(whole, whole, reduce_func=within, metric="euclidean", n_jobs=1, squared=True)
    _expect(rows[0], [0, 1, 2])
    _expect(lengths[0], [0.0, 5.0, 1.0])


# ---- trees -------------------------------------------------------------------------------------------------------------


@dataclass
class _Rows:
    """What a tree is of, as vicinal searches it."""

    data: NDArray[Any]
    metric: engine.Metric
    index: _neighbors.Index | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def searched(self, settings: Settings) -> _neighbors.Index:
        with self.lock:
            if self.index is None:
                self.index = _neighbors.Index(self.data, **engine.common(settings))
            return self.index


_rows: weakref.WeakKeyDictionary[Any, _Rows] = weakref.WeakKeyDictionary()
_rows_lock = threading.Lock()
_LAZY = "_vicinal_unbuilt"
_STOCK = {"KDTree": _kd_tree.KDTree, "BallTree": _ball_tree.BallTree}
_lazy_kinds: set[type] = set()
_build_lock = threading.RLock()


def _is_lazy(tree: Any) -> bool:
    return type(tree) in _lazy_kinds


def _rows_of(tree: Any) -> _Rows:
    with _rows_lock:
        rows = _rows.get(tree)
    if rows is not None:
        return rows
    if type(tree) not in _STOCK.values():
        raise Stock("a tree of a class of its own")
    state = tree.__getstate__()
    rows = _Rows(np.asarray(state[0]), engine.metric_of(state[11]))
    with _rows_lock:
        return _rows.setdefault(tree, rows)


def _build(tree: Any) -> None:
    """Makes of a tree that is not built yet what scikit-learn would have made."""
    with _build_lock:
        members = object.__getattribute__(tree, "__dict__")
        unbuilt = members.get(_LAZY)
        if not _is_lazy(tree) or unbuilt is None:
            return  # it is built, or this thread builds it
        args, keywords = unbuilt
        members[_LAZY] = None
        stock: Any = type(tree).__base__
        try:
            stock.__init__(tree, *args, **keywords)
        except BaseException:
            members[_LAZY] = unbuilt
            raise
        del members[_LAZY]
        object.__setattr__(tree, "__class__", stock)


def _queries_of(tree: Any, X: Any, settings: Settings) -> tuple[_Rows, NDArray[Any]]:
    rows = _rows_of(tree)
    queries = engine.table_of(X, settings)
    if sparse.issparse(X) or queries.shape[1] != rows.data.shape[1]:
        raise Stock("queries that do not fit the tree")
    return rows, queries


def _query(
    settings: Settings,
    tree: Any,
    X: Any,
    k: Any = 1,
    return_distance: Any = True,
    dualtree: Any = False,
    breadth_first: Any = False,
    sort_results: Any = True,
) -> Any:
    rows, queries = _queries_of(tree, X, settings)
    distances, ids = engine.knn(
        settings, rows.searched(settings), queries, engine.count_of(k, len(rows.data)), rows.metric
    )
    return (distances, ids) if return_distance else ids


def _query_radius(
    settings: Settings,
    tree: Any,
    X: Any,
    r: Any,
    return_distance: Any = False,
    count_only: Any = False,
    sort_results: Any = False,
) -> Any:
    if (count_only and return_distance) or (sort_results and not return_distance):
        raise Stock("arguments outside their domain")
    rows, queries = _queries_of(tree, X, settings)
    radii = _radii(r, len(queries))
    index = rows.searched(settings)
    if count_only:
        keywords: Any = {**rows.metric.keywords(), **engine.common(settings)}
        return index.count(queries, radius=radii, **keywords).counts.astype(np.intp)
    found = engine.radius_lists(settings, index, queries, radii, rows.metric, bool(sort_results))
    ids = engine.lists(found.offsets, found.ids)
    return (ids, engine.lists(found.offsets, found.distances)) if return_distance else ids


def _radii(r: Any, queries: int) -> Any:
    try:
        radii = np.asarray(r, dtype=np.float64)
    except (TypeError, ValueError):
        raise Stock("a radius outside its domain") from None
    if radii.shape == (1,):
        radii = radii[0]
    if radii.shape not in ((), (queries,)) or not ((radii >= 0) & (radii < np.inf)).all():
        raise Stock("a radius outside its domain")
    return radii if radii.ndim else float(radii)


def _tree_method(ours: Callable[..., Any]) -> Callable[[Hook, Any], Any]:
    def replace(hook: Hook, before: Any) -> Any:
        def method(self: Any, X: Any, *args: Any, **keywords: Any) -> Any:
            def stock() -> Any:
                _build(self)
                return before(self, X, *args, **keywords)

            return hook.call(current(), lambda settings: ours(settings, self, X, *args, **keywords), stock)

        return update_wrapper(method, before)

    return replace


class _LazyKind(type):
    """The class of what `_base.KDTree` and `_base.BallTree` are while a hook is in their place: constructors, and the
    right side of `isinstance`."""

    hook: Hook

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        stock = _STOCK[cls.__name__]
        return cls.hook.call(
            current(), lambda settings: _unbuilt(cls, settings, *args, **keywords), lambda: stock(*args, **keywords)
        )

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _STOCK[cls.__name__])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _STOCK[cls.__name__])


def _unbuilt(
    kind: Any, settings: Settings, data: Any, leaf_size: Any = 40, metric: Any = "minkowski", **parameters: Any
) -> Any:
    """A tree whose rows are known, and which is built when something but a query is asked of it."""
    table = engine.table_of(data, settings)
    if not isinstance(data, np.ndarray) or not data.flags.c_contiguous or data.dtype not in (np.float64, np.float32):
        raise Stock("a table that is copied")
    if not isinstance(leaf_size, int) or leaf_size < 1 or "sample_weight" in parameters:
        raise Stock("arguments outside their domain")
    if not np.isfinite(table).all():
        raise Stock("arguments outside their domain")
    stock = _STOCK[kind.__name__]
    # One row shows whether the tree takes the metric.
    try:
        one = stock(table[:1], leaf_size, metric=metric, **parameters)
    except Exception:
        raise Stock("arguments outside their domain") from None
    rows = _Rows(table, engine.metric_of(one.__getstate__()[11]))
    tree = kind.__new__(kind)
    object.__setattr__(tree, _LAZY, ((data, leaf_size), {"metric": metric, **parameters}))
    with _rows_lock:
        _rows[tree] = rows
    return tree


def _lazy_getattribute(self: Any, name: str) -> Any:
    if name == "__class__":
        return object.__getattribute__(self, name)
    if name in ("query", "query_radius") and _is_lazy(self) and current() is not None:
        method = vars(type(self).__base__).get(name)
        if method is not None:
            return method.__get__(self)
    _build(self)
    return object.__getattribute__(self, name)


def _lazy_setattr(self: Any, name: str, value: Any) -> None:
    _build(self)
    object.__setattr__(self, name, value)


def _lazy_tree(hook: Hook, before: Any) -> Any:
    members = {
        "hook": hook,
        "__doc__": before.__doc__,
        "__module__": before.__module__,
        "__qualname__": before.__qualname__,
        "__getattribute__": _lazy_getattribute,
        "__setattr__": _lazy_setattr,
    }
    kind = _LazyKind(before.__name__, (before,), members)
    _lazy_kinds.add(kind)
    return kind


def _check_tree(tree: Any) -> None:
    made = tree(_SMALL, 30, metric="euclidean")
    if not isinstance(made, tree) or not _is_lazy(made):
        raise ValueError("it was built at once")
    _expect(made.get_arrays()[0], _SMALL)
    if _is_lazy(made):
        raise ValueError("it was not built")


def _check_query(stock: Any, query: Any) -> None:
    distances, ids = query(stock(_SMALL), _SMALL[:1], 3)
    _expect(ids, [[0, 2, 1]])
    _expect(distances, [[0.0, 1.0, 5.0]])


def _check_query_radius(stock: Any, query_radius: Any) -> None:
    tree = stock(_SMALL)
    ids, distances = query_radius(tree, _SMALL[:1], 5.0, return_distance=True)
    _expect(ids[0], [0, 1, 2])
    _expect(distances[0], [0.0, 5.0, 1.0])
    _expect(query_radius(tree, _SMALL[:1], 1.0, count_only=True), [2])


# ---- the hooks ---------------------------------------------------------------------------------------------------------

_PAIR = ("X", "Y")
_MANNER = ("metric", "chunk_size", "metric_kwargs", "strategy")
_LABELS = ("weights", "Y_labels", "unique_Y_labels")
_QUERY = ("self", "X", "k", "return_distance", "dualtree", "breadth_first", "sort_results")
_QUERY_RADIUS = ("self", "X", "r", "return_distance", "count_only", "sort_results")

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
    *(
        hook
        for (tree, stock), module in zip(_STOCK.items(), ("_kd_tree", "_ball_tree"), strict=True)
        for hook in (
            Hook(
                f"{tree}.query",
                (Place(f"sklearn.neighbors.{module}", f"{tree}.query"),),
                _QUERY,
                _tree_method(_query),
                partial(_check_query, stock),
            ),
            Hook(
                f"{tree}.query_radius",
                (Place(f"sklearn.neighbors.{module}", f"{tree}.query_radius"),),
                _QUERY_RADIUS,
                _tree_method(_query_radius),
                partial(_check_query_radius, stock),
            ),
            Hook(tree, (Place("sklearn.neighbors._base", tree),), None, _lazy_tree, _check_tree),
        )
    ),
]
