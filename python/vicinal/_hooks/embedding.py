"""The hook of sklearn.manifold's locally linear embedding."""

from __future__ import annotations

from functools import update_wrapper
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.utils._arpack import _init_arpack_v0

from vicinal import _embedding, _neighbors
from vicinal._hooks import engine
from vicinal._hooks.registry import Hook, Place, Settings, Stock, current

__all__ = ["HOOKS"]

_VARIANTS = {"standard": "standard", "modified": "modified", "hessian": "hessian_sklearn", "ltsa": "ltsa"}


def _replace(hook: Hook, before: Any) -> Any:
    def _locally_linear_embedding(X: Any, **keywords: Any) -> Any:
        return hook.call(current(), lambda settings: _embedded(settings, X, **keywords), lambda: before(X, **keywords))

    return update_wrapper(_locally_linear_embedding, before)


def _embedded(
    settings: Settings,
    X: Any,
    *,
    n_neighbors: int,
    n_components: int,
    reg: float = 1e-3,
    eigen_solver: str = "auto",
    tol: float = 1e-6,
    max_iter: int = 100,
    method: str = "standard",
    hessian_tol: float = 1e-4,
    modified_tol: float = 1e-12,
    random_state: Any = None,
    n_jobs: Any = None,
) -> tuple[NDArray[np.float64], float]:
    table = engine.table_of(_rows_of(X), settings)
    rows, cols = table.shape
    variant = _VARIANTS.get(method)
    if table.dtype == np.float32 and method == "standard":
        raise Stock("weights of float32")  # whose embedding is of that type, too
    if variant is None or eigen_solver not in ("auto", "arpack", "dense"):
        raise Stock("arguments outside their domain")
    if hessian_tol != 1e-4 or modified_tol != 1e-12:
        raise Stock("tolerances of the method")
    if not n_components < n_neighbors < rows or n_components > cols:
        raise Stock("as many dimensions as neighbors")
    keywords: Any = engine.common(settings)
    graph = _neighbors.knn(table, k=n_neighbors, **keywords).host()
    if not (graph.distances[:, 0] > 0).all():
        # scikit-learn then takes some rows for their own neighbors.
        raise Stock("equal rows")
    options: Any = {"dim": n_components, "variant": variant, "reg": reg, "pieces": "refuse"}
    made = _embedding.lle(table, graph, **options, **keywords)
    if made.warning:
        raise Stock("an embedding with a warning")
    if eigen_solver == "arpack" or eigen_solver == "auto" and rows > 200 and n_components + 1 < 10:
        # The draws that scikit-learn would have made, for those that follow.
        _init_arpack_v0(rows, random_state)
    return made.embedding.copy(), np.float64(made.eigenvalue_sum)


def _rows_of(X: Any) -> Any:
    """The table of an estimator by the metric that the hooked function searches with."""
    if isinstance(X, NearestNeighbors):
        if X.effective_metric_ != "euclidean":
            raise Stock("neighbors by another metric")
        return X._fit_X
    if not isinstance(X, np.ndarray):
        raise Stock("no NumPy array")
    return X


def _check(embedding: Any) -> None:
    angle = np.linspace(0.0, 3.0, 30)
    table = np.column_stack([np.cos(angle), np.sin(angle), 0.1 * angle])
    place, _ = embedding(table, n_neighbors=4, n_components=1, random_state=0)
    if place.shape != (30, 1) or not abs(float((place**2).sum()) - 1) < 1e-9:
        raise ValueError("its embedding is not of length one")
    steps = np.diff(place[:, 0])
    if not ((steps > 0).all() or (steps < 0).all()):
        raise ValueError("its embedding does not keep the order of a curve")


HOOKS = [
    Hook(
        "_locally_linear_embedding",
        (Place("sklearn.manifold._locally_linear", "_locally_linear_embedding"),),
        (
            "X",
            "n_neighbors",
            "n_components",
            "reg",
            "eigen_solver",
            "tol",
            "max_iter",
            "method",
            "hessian_tol",
            "modified_tol",
            "random_state",
            "n_jobs",
        ),
        _replace,
        _check,
    )
]
