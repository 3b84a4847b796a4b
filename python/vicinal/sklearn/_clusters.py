"""Where estimators of clusters differ from scikit-learn's: distances to centers are computed in full, KMeans takes
tables on a device, the hook of DBSCAN is `fit`, and spectral_cocluster finds co-clusters of matrices."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.extmath import make_nonnegative
from sklearn.utils.validation import check_is_fitted

from vicinal import _clusters
from vicinal._coclusters import spectral_cocluster
from vicinal._hooks import registry
from vicinal._hooks.engine import common, table_of
from vicinal.sklearn._engine import keywords
from vicinal.sklearn._tables import Table, host, refuse

__all__ = ["Centres", "CentresOfTables", "Dense", "EdgesOfMatrices"]


def _no_place(*_: Any) -> None:
    """These are called by name."""


TRANSFORM = registry.Hook("KMeans.transform", (), (), _no_place, _no_place)
COCLUSTER = registry.Hook("SpectralCoclustering", (), (), _no_place, _no_place)


class Centres:
    """Distances to centers that are not expanded."""

    def _transform(self: Any, X: Any) -> Any:
        if isinstance(X, Table):
            return _model(self).transform(X.value, **keywords()).copy()
        theirs: Any = super()
        return TRANSFORM.call(
            registry.current(), lambda settings: _distances(self, X, settings), lambda: theirs._transform(X)
        )


class CentresOfTables(Centres):
    """k-means of tables on a device, by vicinal.kmeans: the first centers are its draws, not RandomState's."""

    _takes_tables = True

    def fit(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        theirs: Any = super()
        if not isinstance(X, Table):
            return theirs.fit(X, y, sample_weight)
        self._validate_params()
        given = not isinstance(self.init, str)
        if callable(self.init):
            refuse("callables draw centers from tables in host memory; pass an array, 'k-means++' or 'random'", "init")
        if len(X) < self.n_clusters:
            raise ValueError(f"n_samples={len(X)} should be >= n_clusters={self.n_clusters}.")
        runs = self.n_init if self.n_init != "auto" else 10 if not given and self.init == "random" else 1
        start = {"centres": host(self.init, "init")} if given else {"clusters": self.n_clusters, "init": self.init}
        model = _clusters.kmeans(
            X.value,
            **start,
            runs=1 if given else runs,
            seed=_seed(self.random_state),
            max_iterations=self.max_iter,
            tolerance=self.tol,
            weights=host(sample_weight, "sample_weight"),
            **keywords(),
        )
        if len(model.centres) != self.n_clusters:
            refuse(f"{len(model.centres)} centers; expected n_clusters={self.n_clusters}", "init")
        occupied = len(np.unique(model.labels))
        if occupied < self.n_clusters:
            warnings.warn(
                f"{occupied} clusters have rows, n_clusters is {self.n_clusters}; rows may be equal",
                ConvergenceWarning,
                stacklevel=4,
            )
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_features_in_ = X.shape[1]
        self.cluster_centers_ = model.centres.astype(np.float32 if X.dtype == np.float32 else np.float64)
        self.labels_ = model.labels.copy()
        self.inertia_ = model.inertia
        self.n_iter_ = model.iterations
        self._n_features_out = self.n_clusters
        self._n_threads = _openmp_effective_n_threads()
        return self

    def predict(self: Any, X: Any) -> Any:
        check_is_fitted(self)
        theirs: Any = super()
        if not isinstance(X, Table):
            return theirs.predict(X)
        return _model(self).predict(X.value, **keywords()).copy()

    def score(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        check_is_fitted(self)
        theirs: Any = super()
        if not isinstance(X, Table):
            return theirs.score(X, y, sample_weight)
        return _model(self).score(X.value, weights=host(sample_weight, "sample_weight"), **keywords())

    def _check_test_data(self: Any, X: Any) -> Any:
        theirs: Any = super()
        return X if isinstance(X, Table) else theirs._check_test_data(X)


def _model(estimator: Any) -> _clusters.KMeans:
    return _clusters.KMeans.of(estimator.cluster_centers_)


def _distances(estimator: Any, X: Any, settings: registry.Settings) -> Any:
    # fit_transform passes what it was given.
    table = table_of(X if sparse.issparse(X) else np.asarray(X), settings)
    distances = _model(estimator).transform(table, **common(settings))
    # As scikit-learn's.
    narrow = table.dtype == np.float32 and estimator.cluster_centers_.dtype == np.float32
    return distances.astype(np.float32) if narrow else distances.copy()


def _seed(random_state: Any) -> int:
    """A whole number is the seed itself; of a RandomState it is a draw."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


class Dense:
    """DBSCAN. Its hook replaces `fit` itself, so `fit` is looked up at each call."""

    def fit(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        theirs: Any = super()
        return theirs.fit(X, y, sample_weight)


class EdgesOfMatrices:
    """Co-clusters by vicinal.spectral_cocluster, the elements of a matrix being weights of edges."""

    def _fit(self: Any, X: Any) -> None:
        if not COCLUSTER.call(registry.current(), lambda settings: _cocluster(self, X, settings), lambda: None):
            theirs: Any = super()
            theirs._fit(X)


def _cocluster(estimator: Any, X: Any, settings: registry.Settings) -> bool:
    if estimator.svd_method != "randomized" or estimator.n_svd_vecs is not None:
        raise registry.Stock("svd_method or n_svd_vecs")
    if estimator.mini_batch or not isinstance(estimator.init, str) or estimator.init != "k-means++":
        raise registry.Stock("mini_batch or init")
    clusters = estimator.n_clusters
    if clusters > min(X.shape):
        raise registry.Stock("more clusters than rows or columns")
    matrix = sparse.coo_array(make_nonnegative(X))
    if clusters == 1:
        rows, columns = np.zeros(X.shape[0], np.int32), np.zeros(X.shape[1], np.int32)
    else:
        found = spectral_cocluster(
            matrix.row.astype(np.int64),
            matrix.col.astype(np.int64),
            n_a=X.shape[0],
            n_b=X.shape[1],
            weights=matrix.data,
            clusters=clusters,
            runs=estimator.n_init,
            seed=_seed(estimator.random_state),
            **common(settings),
        )
        rows, columns = found.labels_a.copy(), found.labels_b.copy()
    estimator.row_labels_, estimator.column_labels_ = rows, columns
    estimator.rows_ = np.vstack([rows == cluster for cluster in range(clusters)])
    estimator.columns_ = np.vstack([columns == cluster for cluster in range(clusters)])
    return True
