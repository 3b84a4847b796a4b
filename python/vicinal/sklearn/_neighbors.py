"""What estimators of neighbors do otherwise than scikit-learn's: no row is its own neighbor, also among duplicates, and
tables on a device are searched there."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import neighbors
from sklearn.neighbors._base import NeighborsBase
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_y, check_consistent_length, check_is_fitted

from vicinal._hooks.engine import metric_of
from vicinal._hooks.registry import Stock
from vicinal._neighbors import Index, NeighborGraph
from vicinal.sklearn._engine import keywords
from vicinal.sklearn._tables import Table, host, refuse

__all__ = ["ListsOfTables", "Neighbors", "NeighborsOfTables", "ScoresOfTables"]


class Neighbors:
    """Excludes each row by its number."""

    def kneighbors(self: Any, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        theirs: Any = super()
        if X is not None:
            return theirs.kneighbors(X, n_neighbors, return_distance)
        distances, ids = theirs.kneighbors(None, n_neighbors, True)
        _exclude_by_id(self, distances, ids)
        return (distances, ids) if return_distance else ids


def _exclude_by_id(estimator: Any, distances: Any, ids: Any) -> None:
    """scikit-learn asks for one neighbor more and drops the row itself, or, where more than k rows are equal to it and
    it is not among them, the first. These rows are asked for again, and lose the last."""
    rows = np.flatnonzero(((distances == 0) & (ids < np.arange(len(ids))[:, None])).all(axis=1))
    if len(rows) == 0:
        return
    # Of the same table, and without names of columns, which a part of the table has not.
    plain = neighbors.NearestNeighbors(
        metric=estimator.metric, p=estimator.p, metric_params=estimator.metric_params, n_jobs=estimator.n_jobs
    ).fit(estimator)
    # Of a fitted tree it is a memoryview.
    table = estimator._fit_X if sparse.issparse(estimator._fit_X) else np.asarray(estimator._fit_X)
    found_distances, found = plain.kneighbors(table[rows], ids.shape[1] + 1)
    others = found != rows[:, None]
    others[others.all(axis=1), -1] = False
    ids[rows] = found[others].reshape(len(rows), -1)
    distances[rows] = found_distances[others].reshape(len(rows), -1)


class _OfTable(NeighborsBase):
    """What `_fit` takes the place of a fitted table from: an index of a table on a device."""

    def __init__(self, table: Table, index: Index) -> None:
        self._fit_X = table
        self._tree = index
        self._fit_method = "device"
        self.n_samples_fit_ = len(table)


class NeighborsOfTables(Neighbors):
    """Searches tables on a device, and answers in host memory."""

    _takes_tables = True

    def _fit(self: Any, X: Any, y: Any = None) -> Any:
        theirs: Any = super()
        if not isinstance(X, Table):
            return theirs._fit(X, y)
        if self.__sklearn_tags__().target_tags.required:
            if y is None:
                raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
            y = _check_y(host(y, "y"), multi_output=True, estimator=self)
            check_consistent_length(X, y)
        self.n_features_in_ = X.shape[1]
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        theirs._fit(_OfTable(X, Index(X.value, **keywords())), y)
        _words(self)
        return self

    def kneighbors(self: Any, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        check_is_fitted(self)
        if not _is_searched_here(self, X):
            return super().kneighbors(X, n_neighbors, return_distance)
        k: Any = self.n_neighbors if n_neighbors is None else n_neighbors
        most = self.n_samples_fit_ - (X is None)
        if not isinstance(k, Integral) or not 1 <= int(k) <= most:
            raise ValueError(f"n_neighbors: {k!r}; expected a whole number from 1 to {most}")
        graph = self._tree.knn(_queries(X), k=int(k), **_words(self), **keywords()).host()
        return (graph.distances.copy(), graph.ids.copy()) if return_distance else graph.ids.copy()

    def __getstate__(self: Any) -> dict[str, Any]:
        """A pickle has the table, in host memory."""
        theirs: Any = super()
        state: dict[str, Any] = dict(theirs.__getstate__())
        if state.get("_fit_method") == "device" and state["_fit_X"].value is not None:
            state["_tree"] = Index(host(state["_fit_X"].value, "X"))
        return state


class ListsOfTables(NeighborsOfTables):
    """And by radius."""

    def radius_neighbors(
        self: Any, X: Any = None, radius: Any = None, return_distance: bool = True, sort_results: bool = False
    ) -> Any:
        check_is_fitted(self)
        if not _is_searched_here(self, X):
            theirs: Any = super()
            return theirs.radius_neighbors(X, radius, return_distance, sort_results)
        if sort_results and not return_distance:
            raise ValueError("return_distance must be True if sort_results is True.")
        r = float(self.radius if radius is None else radius)
        graph = self._tree.radius(_queries(X), radius=r, **_words(self), **keywords())
        return _lists(graph, return_distance, sort_results)


class ScoresOfTables(NeighborsOfTables):
    """Scores of rows on a device."""

    @available_if(lambda self: self._check_novelty_score_samples())
    def score_samples(self: Any, X: Any) -> Any:
        if not isinstance(X, Table):
            theirs: Any = super()
            return theirs.score_samples(X)
        distances, ids = self.kneighbors(X, n_neighbors=self.n_neighbors_)
        if X.dtype == np.float32:
            distances = distances.astype(np.float32)
        density = self._local_reachability_density(distances, ids)
        return -np.mean(self._lrd[ids] / density[:, None], axis=1)


def _is_searched_here(estimator: Any, queries: Any) -> bool:
    here: bool = estimator._fit_method == "device"
    if isinstance(queries, Table) and not here:
        refuse("it is in device memory, but fit was given a table in host memory")
    return here


def _queries(X: Any) -> Any:
    return X.value if isinstance(X, Table) else X


def _words(estimator: Any) -> dict[str, Any]:
    """The metric as keywords of vicinal."""
    try:
        return metric_of(estimator.effective_metric_, estimator.effective_metric_params_).keywords()
    except Stock:
        refuse(f"metric {estimator.metric!r} is computed by scikit-learn, in host memory; pass a NumPy array")


def _lists(graph: NeighborGraph, with_distances: bool, by_distance: bool) -> Any:
    """Arrays of arrays, by id unless asked for by distance."""
    assert graph.offsets is not None
    ids = np.empty(graph.rows, dtype=object)
    distances = np.empty(graph.rows, dtype=object)
    for row in range(graph.rows):
        at = slice(graph.offsets[row], graph.offsets[row + 1])
        order = slice(None) if by_distance else np.argsort(graph.ids[at])
        ids[row] = graph.ids[at][order].copy()
        distances[row] = graph.distances[at][order].copy()
    return (distances, ids) if with_distances else ids
