"""Hooks of sklearn.cluster's k-means."""

from __future__ import annotations

import pkgutil
from functools import update_wrapper
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from vicinal._clusters import KMeansSteps
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

    def __reduce__(self) -> str | tuple[Any, ...]:
        place = self._hook.places[0]
        if vars(place.owner()).get(place.attribute) is self:
            return place.name  # the bytes that scikit-learn's own has
        return pkgutil.resolve_name, (f"{place.module}:{place.name}",)


def _replacing(ours: Callable[..., Any]) -> Callable[[Hook, Any], Any]:
    return lambda hook, before: _Function(hook, before, ours)


def _checked(
    settings: Settings, X: Any, sample_weight: Any, centers: Any
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows, weights and centers that scikit-learn's own loop takes, too."""
    table = engine.table_of(X, settings)
    if table.dtype not in (np.float64, np.float32) or not table.flags.c_contiguous:
        raise Stock("no contiguous table of floats")
    for array, shape in ((sample_weight, (len(table),)), (centers, (len(centers), table.shape[1]))):
        if not isinstance(array, np.ndarray) or array.dtype != table.dtype or array.shape != shape:
            raise Stock("arguments outside their domain")
    return table, sample_weight, centers


def _steps(settings: Settings, X: Any, sample_weight: Any, centers: Any, n_threads: Any) -> tuple[KMeansSteps, Any]:
    """A session that has assigned no row yet, and the rows' type."""
    table, weights, centres = _checked(settings, X, sample_weight, centers)
    keywords: Any = engine.common(settings, n_threads)
    steps = KMeansSteps(table, clusters=len(centres), weights=weights, **keywords)
    steps.start(centres)
    return steps, table.dtype


def _labels_inertia(
    settings: Settings, X: Any, sample_weight: Any, centers: Any, n_threads: Any = 1, return_inertia: Any = True
) -> Any:
    steps, _ = _steps(settings, X, sample_weight, centers, n_threads)
    steps.assign()
    return (steps.labels(), steps.inertia()) if return_inertia else steps.labels()


# ---- Lloyd's iterations ---------------------------------------------------------------------------------------------


def _single(period: str) -> Callable[..., Any]:
    """scikit-learn's loop around vicinal's steps: its rows for empty clusters, its ends, its lines, which end with a
    period for Lloyd and without for Elkan. Both algorithms have the same answer."""

    def single(
        settings: Settings,
        X: Any,
        sample_weight: Any,
        centers_init: Any,
        max_iter: Any = 300,
        verbose: Any = False,
        tol: Any = 1e-4,
        n_threads: Any = 1,
    ) -> tuple[NDArray[np.int32], float, NDArray[Any], int]:
        if max_iter < 1 or not period and len(centers_init) == 1:
            raise Stock("arguments outside their domain")
        steps, dtype = _steps(settings, X, sample_weight, centers_init, n_threads)
        centres, before = centers_init, None
        for i in range(max_iter):
            assigned = steps.assign()
            labels = steps.labels()
            if verbose:
                print(f"Iteration {i}, inertia {steps.inertia()}{period}")
            moved = _relocated(steps, sample_weight, labels) if assigned.empty else []
            steps.means()
            centres, previous = _centres(steps, sample_weight, labels, moved, assigned.empty, dtype), centres
            for row, _ in moved:
                steps.move_row(row, int(labels[row]))
            if before is not None and np.array_equal(labels, before):
                if verbose:
                    print(f"Converged at iteration {i}: strict convergence.")
                break
            shift = (np.sqrt(((centres - previous) ** 2).sum(axis=1)) ** 2).sum()
            if shift <= tol and verbose:
                print(f"Converged at iteration {i}: center shift {shift} within tolerance {tol}.")
            if shift <= tol or i == max_iter - 1:
                # So that labels are those of the centers that are returned.
                steps.assign()
                labels = steps.labels()
                break
            before = labels
        return labels, steps.inertia(), centres, i + 1

    return single


def _relocated(steps: KMeansSteps, weights: NDArray[Any], labels: NDArray[np.int32]) -> list[tuple[int, int]]:
    """The rows that scikit-learn gives to empty clusters, in the order of its argpartition, with their clusters."""
    empty = np.flatnonzero(np.bincount(labels, weights, steps.clusters) == 0)
    keys = steps.keys()
    if not len(empty) or keys.max() == 0:
        return []
    farthest = np.argpartition(keys, -len(empty))[: -len(empty) - 1 : -1]
    moved = [(int(row), int(cluster)) for row, cluster in zip(farthest, empty, strict=True) if weights[row] > 0]
    for row, cluster in moved:
        steps.move_row(row, cluster)
    return moved


def _centres(
    steps: KMeansSteps,
    weights: NDArray[Any],
    labels: NDArray[np.int32],
    moved: list[tuple[int, int]],
    empty: int,
    dtype: Any,
) -> NDArray[Any]:
    """The means, in scikit-learn's type. A cluster that is still empty stands where the heaviest one does when it is
    its turn: scikit-learn divides sums in the order of clusters, so one before the heaviest takes its sum."""
    means = steps.centres()
    centres: NDArray[Any] = means.astype(dtype)
    if empty:
        now = labels.copy()
        for row, cluster in moved:
            now[row] = cluster
        total = np.bincount(now, weights, steps.clusters)
        heaviest = int(total.argmax())
        still = np.flatnonzero(total == 0)
        centres[still[still < heaviest]] = centres[heaviest] * total[heaviest]
        centres[still[still > heaviest]] = centres[heaviest]
    if empty or dtype != np.float64:
        steps.set_centres(centres)
    return centres


# ---- the hooks ------------------------------------------------------------------------------------------------------

_ROWS = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]])


def _check_labels_inertia(function: Any) -> None:
    centers = np.array([[4.0, 0.0], [0.0, 0.0]])
    labels, inertia = function(_ROWS, np.ones(4), centers)
    if labels.tolist() != [1, 1, 0, 0] or inertia != 2.0:
        raise ValueError(f"it answered {labels}, {inertia}; expected 1, 1, 0, 0 and 2")


def _check_single(function: Any) -> None:
    labels, inertia, centers, iterations = function(_ROWS, np.ones(4), _ROWS[:3].copy())
    # The third cluster is alone with two rows, then the means are those of their labels.
    if labels.tolist() != [0, 1, 2, 2] or (inertia, iterations) != (0.5, 2) or centers.tolist()[2] != [4.0, 0.5]:
        raise ValueError(f"it answered {labels}, {inertia}, {centers}, {iterations}")


_LABELS = ("X", "sample_weight", "centers", "n_threads", "return_inertia")
_SINGLE = ("X", "sample_weight", "centers_init", "max_iter", "verbose", "tol", "n_threads")


def _everywhere(name: str) -> tuple[Place, ...]:
    return Place(_KMEANS, name), Place(_BISECTING, name)


HOOKS = [
    Hook(
        "_labels_inertia",
        (Place(_KMEANS, "_labels_inertia"),),
        _LABELS,
        _replacing(_labels_inertia),
        _check_labels_inertia,
    ),
    Hook(
        "_labels_inertia_threadpool_limit",
        _everywhere("_labels_inertia_threadpool_limit"),
        _LABELS,
        _replacing(_labels_inertia),
        _check_labels_inertia,
    ),
    Hook(
        "_kmeans_single_lloyd",
        _everywhere("_kmeans_single_lloyd"),
        _SINGLE,
        _replacing(_single(".")),
        _check_single,
    ),
    Hook(
        "_kmeans_single_elkan",
        _everywhere("_kmeans_single_elkan"),
        _SINGLE,
        _replacing(_single("")),
        _check_single,
    ),
]
