"""Hooks of sklearn.cluster's DBSCAN, HDBSCAN and OPTICS: neighbors, spanning trees and orders are vicinal's; clusters
are read from trees and orders by scikit-learn."""

from __future__ import annotations

from functools import update_wrapper
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order
from sklearn.base import _fit_context
from sklearn.cluster import DBSCAN
from sklearn.cluster._hdbscan._linkage import MST_edge_dtype, make_single_linkage
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import _check_sample_weight, validate_data

from vicinal import _density
from vicinal._hooks import engine
from vicinal._hooks.registry import Hook, Place, Settings, Stock, current, expect

__all__ = ["HOOKS"]

_OF_SPARSE = ("cityblock", "cosine", "euclidean", "l1", "l2", "manhattan")
_HDBSCAN = "sklearn.cluster._hdbscan.hdbscan"


def _common(settings: Settings) -> dict[str, Any]:
    """Of OPTICS, whose part of vicinal runs on the CPU; an estimator of vicinal.sklearn whose device is another one is
    told so."""
    keywords: dict[str, Any] = dict(engine.common(settings))
    return keywords if settings.strict else {**keywords, "device": "cpu"}


def _metric_of(metric: Any, p: Any) -> engine.Metric:
    """Of an estimator that has the exponent of minkowski beside its parameters."""
    if metric != "minkowski":
        return engine.metric_of(metric, None)
    if p is None:
        raise Stock("no exponent")
    return engine.metric_of(metric, {"p": p})


def _check_sparse(X: Any, metric: Any) -> None:
    """Leaves to scikit-learn sparse tables by metrics of which it knows no distances between sparse rows."""
    if sparse.issparse(X) and metric not in _OF_SPARSE:
        raise Stock("a metric of dense tables")


def _check_searched(estimator: Any, X: Any) -> None:
    """Leaves to scikit-learn what its search would refuse or warn of; raises the errors of metrics itself."""
    if sparse.issparse(X) and estimator.algorithm not in ("auto", "brute"):
        raise Stock("a tree of a sparse table")
    NearestNeighbors(algorithm=estimator.algorithm, metric=estimator.metric, p=estimator.p)._check_algorithm_metric()


# ---- DBSCAN ---------------------------------------------------------------------------------------------------------


def _replace_fit(hook: Hook, before: Any) -> Any:
    """`fit` with scikit-learn's checks of parameters around it."""
    stock = before.__wrapped__

    def fit(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        return hook.call(
            current(),
            lambda settings: _dbscan(settings, self, X, sample_weight),
            lambda: stock(self, X, y, sample_weight),
        )

    return _fit_context(prefer_skip_nested_validation=False)(update_wrapper(fit, stock))


def _dbscan(settings: Settings, estimator: Any, X: Any, sample_weight: Any) -> Any:
    if estimator.metric_params:
        raise Stock("parameters of the metric")
    metric = _metric_of(estimator.metric, estimator.p)
    _check_sparse(X, metric.name)
    _check_searched(estimator, X)
    X = validate_data(estimator, X, accept_sparse="csr")
    weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
    table = engine.table_of(X, settings)
    engine.enough_pairs(settings, metric, len(table), len(table))
    found = _density.dbscan(
        table,
        eps=float(estimator.eps),
        min_samples=int(estimator.min_samples),
        weights=weights,
        **metric.keywords(),
        **engine.common(settings),
    )
    core = np.flatnonzero(found.core)
    estimator.core_sample_indices_ = core
    estimator.labels_ = found.labels.astype(np.intp)
    estimator.components_ = X[core].copy() if len(core) else np.empty((0, X.shape[1]))
    return estimator


# ---- HDBSCAN --------------------------------------------------------------------------------------------------------


def _replacing(ours: Callable[..., Any]) -> Callable[[Hook, Any], Any]:
    """A function of which vicinal's part is `ours(settings, ..)`."""

    def replace(hook: Hook, before: Any) -> Any:
        def replaced(*arguments: Any, **keywords: Any) -> Any:
            return hook.call(
                current(),
                lambda settings: ours(settings, *arguments, **keywords),
                lambda: before(*arguments, **keywords),
            )

        return update_wrapper(replaced, before)

    return replace


def _linked(
    settings: Settings, X: Any, min_samples: Any, alpha: float, metric: engine.Metric, divides_core: bool
) -> NDArray[Any]:
    """scikit-learn's single linkage of the spanning tree. `divides_core`: core distances, too, are divided by alpha."""
    table = engine.table_of(X, settings)
    engine.enough_pairs(settings, metric, len(table), len(table))
    tree = _density.minimum_spanning_tree(
        table,
        min_samples=engine.count_of(min_samples, len(table)),
        alpha=1.0 if divides_core else float(alpha),
        **metric.keywords(),
        **engine.common(settings),
    )
    edges = np.empty(len(tree.a), MST_edge_dtype)
    # From row 0 outwards, as scikit-learn finds them: the numbers of clusters depend on it.
    ends = (np.ones(len(tree.a)), (tree.a, tree.b))
    before = breadth_first_order(sparse.csr_array(ends, shape=(tree.rows, tree.rows)), 0, directed=False)[1]
    inwards = before[tree.a] == tree.b
    edges["current_node"] = np.where(inwards, tree.b, tree.a)
    edges["next_node"] = np.where(inwards, tree.a, tree.b)
    edges["distance"] = tree.lengths / alpha if divides_core else tree.lengths
    linked: NDArray[Any] = make_single_linkage(edges)
    return linked


def _brute(
    settings: Settings,
    X: Any,
    min_samples: Any = 5,
    alpha: Any = None,
    metric: Any = "euclidean",
    n_jobs: Any = None,
    copy: Any = False,
    **metric_params: Any,
) -> NDArray[Any]:
    _check_sparse(X, metric)
    return _linked(settings, X, min_samples, alpha, engine.metric_of(metric, metric_params), divides_core=True)


def _prims(
    settings: Settings,
    X: Any,
    algo: Any,
    min_samples: Any = 5,
    alpha: Any = 1.0,
    metric: Any = "euclidean",
    leaf_size: Any = 40,
    n_jobs: Any = None,
    **metric_params: Any,
) -> NDArray[Any]:
    if metric == "minkowski" and metric_params.get("p") is None:
        raise Stock("no exponent")
    return _linked(settings, X, min_samples, alpha, engine.metric_of(metric, metric_params), divides_core=False)


# ---- OPTICS ---------------------------------------------------------------------------------------------------------


def _least(min_samples: Any, rows: int) -> int:
    """A number of rows, or a share of all."""
    if isinstance(min_samples, float) and 0 <= min_samples <= 1:
        return max(2, int(min_samples * rows))
    return engine.count_of(min_samples, rows)


def _graph(
    settings: Settings,
    X: Any,
    *,
    min_samples: Any,
    max_eps: Any,
    metric: Any,
    p: Any,
    metric_params: Any,
    algorithm: Any,
    leaf_size: Any,
    n_jobs: Any,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    if metric_params:
        raise Stock("parameters of the metric")
    kind = _metric_of(metric, p)
    _check_sparse(X, metric)
    valid = algorithm in ("auto", "brute") or algorithm in ("kd_tree", "ball_tree") and not sparse.issparse(X)
    if not valid:
        raise Stock("arguments outside their domain")
    NearestNeighbors(algorithm=algorithm, metric=metric, p=p)._check_algorithm_metric()
    table = engine.table_of(X, settings)
    if table.dtype != np.float64:
        raise Stock("elements of another type")
    engine.enough_pairs(settings, kind, len(table), len(table))
    order = _density.optics(
        table,
        min_samples=_least(min_samples, len(table)),
        max_eps=engine.radius_of(max_eps),
        **kind.keywords(),
        **_common(settings),
    )
    if np.isinf(order.reachability).all():
        raise Stock("rows of which none is reached")  # scikit-learn warns
    digits = np.finfo(np.float64).precision
    return (
        order.ordering.astype(np.intp),
        np.around(order.core_distances, digits),
        np.around(order.reachability, digits),
        order.predecessors.astype(np.intp),
    )


# ---- the hooks ------------------------------------------------------------------------------------------------------

_ROWS = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 2.0], [9.0, 9.0]])


def _check_fit(fit: Any) -> None:
    model = fit(DBSCAN(eps=2.0, min_samples=2), _ROWS)
    expect(model.labels_, [0, 0, 1, 1, -1])
    expect(model.core_sample_indices_, [0, 1, 2, 3])
    model = fit(DBSCAN(eps=2.0, min_samples=2), _ROWS, sample_weight=np.array([0.5, 0.5, 1.0, 1.0, 2.0]))
    expect(model.labels_, [-1, -1, 0, 0, 1])


def _check_linked(linked: NDArray[Any], last: float) -> None:
    expect(linked["value"], [1.0, 2.0, 4.0, last])
    expect(linked["cluster_size"], [2, 2, 4, 5])


def _check_brute(function: Any) -> None:
    _check_linked(function(_ROWS, min_samples=1, alpha=1.0), float(np.sqrt(74)))


def _check_prims(function: Any) -> None:
    _check_linked(function(_ROWS, "kd_tree", min_samples=1), float(np.sqrt(74)))


def _check_graph(function: Any) -> None:
    keywords = {"metric": "manhattan", "p": 2, "metric_params": None, "algorithm": "auto", "leaf_size": 30}
    order, core, reach, predecessors = function(_ROWS, min_samples=2, max_eps=np.inf, n_jobs=None, **keywords)
    expect(order, [0, 1, 2, 3, 4])
    expect(core, [1.0, 1.0, 2.0, 2.0, 12.0])
    expect(reach, [np.inf, 1.0, 4.0, 2.0, 12.0])
    expect(predecessors, [-1, 0, 0, 2, 3])


HOOKS = [
    Hook(
        "DBSCAN.fit",
        (Place("sklearn.cluster._dbscan", "DBSCAN.fit"),),
        ("self", "X", "y", "sample_weight"),
        _replace_fit,
        _check_fit,
    ),
    Hook(
        "_hdbscan_brute",
        (Place(_HDBSCAN, "_hdbscan_brute"),),
        ("X", "min_samples", "alpha", "metric", "n_jobs", "copy", "metric_params"),
        _replacing(_brute),
        _check_brute,
    ),
    Hook(
        "_hdbscan_prims",
        (Place(_HDBSCAN, "_hdbscan_prims"),),
        ("X", "algo", "min_samples", "alpha", "metric", "leaf_size", "n_jobs", "metric_params"),
        _replacing(_prims),
        _check_prims,
    ),
    Hook(
        "compute_optics_graph",
        (Place("sklearn.cluster._optics", "compute_optics_graph"), Place("sklearn.cluster", "compute_optics_graph")),
        (
            "X",
            "min_samples",
            "max_eps",
            "metric",
            "p",
            "metric_params",
            "algorithm",
            "leaf_size",
            "n_jobs",
        ),
        _replacing(_graph),
        _check_graph,
    ),
]
