"""Hooks of scikit-learn's trees, which are built only when something but a query is asked of them."""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.neighbors import _ball_tree, _kd_tree

from vicinal import _neighbors
from vicinal._hooks import engine
from vicinal._hooks.registry import Hook, Place, Settings, Stock, current, expect

__all__ = ["HOOKS"]

_SMALL = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0], [6.0, 8.0]])


@dataclass
class _Rows:
    """What a tree is of, as vicinal searches it."""

    data: NDArray[Any]
    metric: engine.Metric
    index: _neighbors.Index | None = None

    def searched(self, settings: Settings) -> _neighbors.Index:
        with _index_lock:
            if self.index is None:
                self.index = _neighbors.Index(self.data, **engine.common(settings))
            return self.index


_rows: weakref.WeakKeyDictionary[Any, _Rows] = weakref.WeakKeyDictionary()
_rows_lock = threading.Lock()
_index_lock = threading.Lock()
_LAZY = "_vicinal_unbuilt"
_STOCK = {"KDTree": _kd_tree.KDTree, "BallTree": _ball_tree.BallTree}
_lazy_kinds: set[type] = set()
_build_lock = threading.RLock()
_building: list[tuple[dict[str, Any], Any]] = []  # members of trees, and what they are built of


def _in_child() -> None:
    """A process forked while another thread held a lock has no thread that would release it, nor one that would build
    the tree that it was building."""
    global _rows_lock, _index_lock, _build_lock
    _rows_lock, _index_lock, _build_lock = threading.Lock(), threading.Lock(), threading.RLock()
    while _building:
        members, unbuilt = _building.pop()
        members[_LAZY] = unbuilt


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


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
        _building.append((members, unbuilt))
        members[_LAZY] = None
        stock: Any = type(tree).__base__
        try:
            stock.__init__(tree, *args, **keywords)
        except BaseException:
            members[_LAZY] = unbuilt
            raise
        finally:
            _building.pop()
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
    if radii.shape not in ((), (queries,)) or not (radii >= 0).all():
        raise Stock("a radius outside its domain")
    return radii if radii.ndim else float(radii)


def _tree_method(ours: Callable[..., Any]) -> Callable[[Hook, Any], Any]:
    def replace(hook: Hook, before: Any) -> Any:
        def method(self: Any, X: Any, *args: Any, **keywords: Any) -> Any:
            def stock() -> Any:
                _build(self)
                return before(self, X, *args, **keywords)

            return hook.call(current(), lambda settings: ours(settings, self, X, *args, **keywords), stock)

        update_wrapper(method, before)
        # A method of Cython's has the name of its base; by this one pickles find what is in the place.
        method.__module__, method.__qualname__ = hook.places[0]
        return method

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
    if data.dtype != np.float64:
        data = table = data.astype(np.float64)  # as the tree would, which then does not see later changes of the rows
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
    expect(made.get_arrays()[0], _SMALL)
    if _is_lazy(made):
        raise ValueError("it was not built")


def _check_query(stock: Any, query: Any) -> None:
    distances, ids = query(stock(_SMALL), _SMALL[:1], 3)
    expect(ids, [[0, 2, 1]])
    expect(distances, [[0.0, 1.0, 5.0]])


def _check_query_radius(stock: Any, query_radius: Any) -> None:
    tree = stock(_SMALL)
    ids, distances = query_radius(tree, _SMALL[:1], 5.0, return_distance=True)
    expect(ids[0], [0, 1, 2])
    expect(distances[0], [0.0, 5.0, 1.0])
    expect(query_radius(tree, _SMALL[:1], 1.0, count_only=True), [2])


_QUERY = ("self", "X", "k", "return_distance", "dualtree", "breadth_first", "sort_results")
_QUERY_RADIUS = ("self", "X", "r", "return_distance", "count_only", "sort_results")

HOOKS = [
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
