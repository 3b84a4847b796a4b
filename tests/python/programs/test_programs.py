"""Programs that begin with neighbors, given vicinal's, against what they find themselves: umap-learn, openTSNE, hdbscan,
scanpy and scikit-learn's DBSCAN. Each is asked for its exact search, so that the neighbors are the same ones."""

import numpy as np
import pytest
import vicinal as vc

pytest.importorskip("umap", reason="./dev test installs umap-learn and the others in .venv-sklearn")

ROWS, COLS, K = 600, 8, 15


@pytest.fixture(scope="module")
def rows():
    """Five groups without equal rows or equal distances."""
    draw = np.random.default_rng(11)
    return draw.normal(size=(ROWS, COLS)) + 12 * (np.arange(ROWS) % 5)[:, None] * np.eye(COLS)[np.arange(ROWS) % 5]


def largest_difference(left, right):
    """Of two sparse matrices; an entry that one of them lacks counts as 0 there."""
    difference = abs(left.tocsr() - right.tocsr())
    return difference.max() if difference.nnz else 0.0


def test_umap(rows):
    import umap

    # Below 4,096 rows UMAP computes all distances itself. n_epochs: the graph is what is compared.
    options = {"n_neighbors": K + 1, "random_state": 0, "n_epochs": 2}
    own = umap.UMAP(**options).fit(rows)
    ours = umap.UMAP(**options, precomputed_knn=vc.knn(rows, k=K).umap()).fit(rows)
    assert own.graph_.nnz == ours.graph_.nnz
    # A row's weights grow with its bandwidth, for which their sum is within 1e-5 of log2(k): two such rows differ by 2e-5
    # in no weight, and a + b - ab by 4e-5. Distances in float32, relative 6e-8 each, add less than 1e-6.
    assert not largest_difference(own.graph_, ours.graph_) > 4.1e-5
    assert np.isfinite(ours.embedding_).all()


def test_opentsne(rows):
    from openTSNE import TSNEEmbedding, affinity

    perplexity = K / 3
    own = affinity.PerplexityBasedNN(rows, perplexity=perplexity, method="exact", random_state=0)
    ours = affinity.PerplexityBasedNN(perplexity=perplexity, knn_index=vc.knn(rows, k=K).opentsne())
    assert own.P.nnz == ours.P.nnz
    # Bandwidths by bisection until the entropy is within 1e-8; P sums to 1.
    assert not largest_difference(own.P, ours.P) > 1e-8
    start = np.random.default_rng(0).normal(size=(ROWS, 2)) * 1e-4
    places = TSNEEmbedding(start, ours, random_state=0, negative_gradient_method="bh").optimize(5)
    assert np.isfinite(places).all()


def test_hdbscan(rows):
    import hdbscan
    from scipy import sparse
    from sklearn.metrics import adjusted_rand_score

    # All pairs: then the graph holds every edge that a spanning tree may take.
    matrix = vc.knn(rows, k=ROWS - 1).csr()
    own = hdbscan.HDBSCAN(min_cluster_size=20, algorithm="generic").fit(rows)
    ours = hdbscan.HDBSCAN(min_cluster_size=20, metric="precomputed").fit(sparse.csr_matrix(matrix))
    assert own.labels_.max() + 1 == ours.labels_.max() + 1 == 5
    assert adjusted_rand_score(own.labels_, ours.labels_) == 1


def test_dbscan(rows):
    from sklearn.cluster import DBSCAN

    eps = 3.0
    own = DBSCAN(eps=eps, min_samples=8).fit(rows)
    ours = DBSCAN(eps=eps, min_samples=8, metric="precomputed").fit(vc.radius(rows, radius=eps).csr())
    assert own.labels_.max() + 1 == 5 and (own.labels_ == -1).any()
    assert (own.labels_ == ours.labels_).all()
    assert (own.core_sample_indices_ == ours.core_sample_indices_).all()


def test_scanpy(rows):
    import anndata
    import scanpy
    from scipy import sparse
    from sklearn.base import BaseEstimator, TransformerMixin

    class Ours(TransformerMixin, BaseEstimator):
        def __init__(self, n_neighbors=K + 1):  # scanpy asks for it
            self.n_neighbors = n_neighbors

        def fit(self, rows, y=None):
            return self

        def transform(self, rows):
            return sparse.csr_matrix(vc.with_self(vc.knn(rows, k=K)).csr())

    found = []
    for transformer in ("sklearn", Ours()):
        cells = anndata.AnnData(rows.copy())
        scanpy.pp.neighbors(cells, n_neighbors=K + 1, use_rep="X", transformer=transformer)
        found.append(cells.obsp)
    own, ours = found
    assert own["connectivities"].nnz == ours["connectivities"].nnz
    # As UMAP's weights.
    assert not largest_difference(own["connectivities"], ours["connectivities"]) > 4.1e-5
