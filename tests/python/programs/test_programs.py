"""Programs that begin with neighbors, given vicinal's, against what they find themselves: umap-learn, openTSNE, hdbscan,
scanpy and scikit-learn's DBSCAN. Each is asked for its exact search, so that the neighbors are the same ones."""

# ctest: COST 60

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


def deaths_of(tree):
    """Of each cluster of a condensed tree the largest lambda of what leaves it."""
    deaths = np.zeros(len(tree.parents))
    np.maximum.at(deaths, tree.row_clusters, 1 / tree.row_distances)
    np.maximum.at(deaths, tree.parents[1:], 1 / tree.births[1:])
    return deaths


@pytest.fixture(scope="module")
def soft():
    """Rows in groups close together, and between them; the same clusters of both, and for each of ours the number that
    hdbscan gives it. With min_samples=1 no two edges of the tree have the same length."""
    import hdbscan

    draw = np.random.default_rng(3)
    group = np.arange(480) % 8
    rows = draw.normal(size=(480, 3)) * (0.3 + 0.1 * group)[:, None] + draw.normal(size=(8, 3))[group] * 3
    rows = np.concatenate([rows, draw.uniform(-6, 6, (120, 3))])
    own = hdbscan.HDBSCAN(min_cluster_size=8, min_samples=1, prediction_data=True, approx_min_span_tree=False,
                          cluster_selection_method="leaf").fit(rows)  # fmt: skip
    index = vc.Index(rows)
    found = vc.hdbscan(index, min_cluster_size=8, min_samples=1, count_self=False, selection="leaf", memberships=True)
    assert found.clusters > 5 and ((found.labels < 0) == (own.labels_ < 0)).all()
    columns = [own.labels_[found.labels == cluster] for cluster in range(found.clusters)]
    assert all((column == column[0]).all() for column in columns)
    # hdbscan predicts with core distances that count a row itself, which those of its tree do not.
    own.prediction_data_.core_distances = found.core_distances
    return rows, own, vc.HdbscanModel(index, found), found, [column[0] for column in columns]


def test_hdbscan_memberships(soft):
    import hdbscan

    _, own, _, found, columns = soft
    theirs = hdbscan.all_points_membership_vectors(own)[:, columns]
    ours = found.memberships
    labelled = found.labels >= 0
    # hdbscan adds 1e-8 to a death d: a score e^(-d / h) changes by at most 0.37e-8 / h, 1 / h being at most the longest
    # birth. A weight is e to a difference of two scores, its share has two of them. The rest is rounding.
    tolerance = 4 * 0.37e-8 * found.tree.births[1:].max() + 1e-12
    totals = ours.sum(axis=1), theirs.sum(axis=1)
    assert not np.abs(ours / totals[0][:, None] - theirs / totals[1][:, None]).max() > tolerance
    # Noise comes apart from several clusters at once, of which hdbscan takes the death of the first; we of the last.
    assert not np.abs(totals[0] - totals[1])[labelled].max() > 1e-12
    assert not (totals[0] - totals[1])[~labelled].max() > 1e-12


def test_hdbscan_memberships_of_new_rows(soft):
    import hdbscan

    rows, own, model, found, columns = soft
    draw = np.random.default_rng(5)
    queries = rows[draw.integers(0, 600, 300)] + draw.normal(size=(300, 3)) * 0.3
    theirs = hdbscan.membership_vector(own, queries)[:, columns]
    ours = model.memberships(queries)
    placed, tree = model.predict(queries), found.tree
    distances = np.sqrt(((queries[:, None] - rows[None]) ** 2).sum(-1))
    reach = np.maximum(np.maximum(np.sort(distances)[:, 1], found.core_distances[placed.rows]),
                       distances[np.arange(300), placed.rows])  # fmt: skip
    cluster = tree.row_clusters[placed.rows]
    # hdbscan leaves a row in the last cluster of the row that it reaches, also where it reaches that before its birth.
    stays = (tree.row_distances[placed.rows] >= reach) | (reach < tree.births[cluster])
    own_lambda = 1 / np.maximum(reach, tree.row_distances[placed.rows])
    deaths = deaths_of(tree)[cluster]
    # It rounds lambda to float32, by 2^-24 of it: a score s = d / (d - lambda) changes by s^2 2^-24. A weight has twice
    # the exponent of a difference of two, a share two of them.
    score = deaths / np.maximum(deaths - own_lambda, 1e-9 * deaths)
    # It looks at two neighbors.
    is_near = distances[np.arange(300), placed.rows] <= np.sort(distances)[:, 1]
    compared = stays & is_near & (score < 20)
    assert compared.sum() > 60
    tolerance = 8 * score**2 * 2.0**-24 + 1e-12
    totals = ours.sum(axis=1), theirs.sum(axis=1)
    shares = np.abs(ours / totals[0][:, None] - theirs / totals[1][:, None]).max(axis=1)
    assert not (shares - tolerance)[compared].max() > 0
    # It adds 1e-8 to a death, which is at least the lambda with which a row is in the cluster.
    firm = compared & (placed.labels >= 0)
    assert firm.any() and not (np.abs(totals[0] - totals[1]) - 1e-8 / own_lambda - 1e-12)[firm].max() > 0


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
