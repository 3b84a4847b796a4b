"""Hooks of sklearn.cluster's k-means."""

from __future__ import annotations

import pkgutil
from functools import update_wrapper
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from vicinal._clusters import KMeans
from vicinal._hooks import engine
from vicinal._hooks.registry import Hook, Place, Settings, Stock, current

__all__ = ["HOOKS"]

_KMEANS = "sklearn.cluster._kmeans"
_BISECTING = "sklearn.cluster._bisect_k_means"


class _Function:
    """A function in the place of scikit-learn's. Estimators keep it, so a pickle names scikit-learn's."""

    def __init__(self, hook: Hook, before: Any, ours: Callable[..., Any]) -> None:
        self._hook = hook
        self._before = before
        self._ours = ours
        update_wrapper(self, before)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._hook.call(
            current(),
            lambda settings: self._ours(settings, *args, **keywords),
            lambda: self._before(*args, **keywords),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        place = self._hook.places[0]
        return pkgutil.resolve_name, (f"{place.module}:{place.name}",)


def _replacing(ours: Callable[..., Any]) -> Callable[[Hook, Any], Any]:
    return lambda hook, before: _Function(hook, before, ours)


def _checked(
    settings: Settings, X: Any, sample_weight: Any, centers: Any
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows, weights and centres that scikit-learn's own loop takes, too."""
    table = engine.table_of(X, settings)
    if table.dtype not in (np.float64, np.float32) or not table.flags.c_contiguous:
        raise Stock("no contiguous table of floats")
    for array, shape in ((sample_weight, (len(table),)), (centers, (len(centers), table.shape[1]))):
        if not isinstance(array, np.ndarray) or array.dtype != table.dtype or array.shape != shape:
            raise Stock("arguments outside their domain")
    return table, sample_weight, centers


def _labels_inertia(
    settings: Settings,
    X: Any,
    sample_weight: Any,
    centers: Any,
    n_threads: Any = 1,
    return_inertia: Any = True,
) -> Any:
    table, weights, centres = _checked(settings, X, sample_weight, centers)
    keywords: Any = engine.common(settings, n_threads)
    model = KMeans.of(centres, **keywords)
    labels = model.predict(table, **keywords).copy()
    if not return_inertia:
        return labels
    return labels, -model.score(table, weights=weights, **keywords)


_ROWS = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]])


def _check_labels_inertia(function: Any) -> None:
    centers = np.array([[4.0, 0.0], [0.0, 0.0]])
    labels, inertia = function(_ROWS, np.ones(4), centers)
    if labels.tolist() != [1, 1, 0, 0] or inertia != 2.0:
        raise ValueError(f"it answered {labels}, {inertia}; expected 1, 1, 0, 0 and 2")


HOOKS = [
    Hook(
        name,
        places,
        ("X", "sample_weight", "centers", "n_threads", "return_inertia"),
        _replacing(_labels_inertia),
        _check_labels_inertia,
    )
    for name, places in (
        ("_labels_inertia", (Place(_KMEANS, "_labels_inertia"),)),
        (
            "_labels_inertia_threadpool_limit",
            (
                Place(_KMEANS, "_labels_inertia_threadpool_limit"),
                Place(_BISECTING, "_labels_inertia_threadpool_limit"),
            ),
        ),
    )
]
