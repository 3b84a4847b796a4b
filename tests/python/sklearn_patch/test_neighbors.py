"""Neighbors and embeddings with the patch are scikit-learn's, and what is left to it is counted."""

import warnings

import numpy as np
import pytest
from conftest import TABLE, answers, close, left

import vicinal as vc

METRICS = {
    "euclidean": {},
    "manhattan": {},
    "chebyshev": {},
    "minkowski": {"p": 3},
    "l1": {},
    "sqeuclidean": {},
    "hamming": {},
}


@pytest.mark.parametrize("kind", ["float64", "float32", "int64", "CSR"])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree"])
def test_neighbors_are_scikit_learns(algorithm, metric, kind):
    from scipy import sparse
    from sklearn.neighbors import VALID_METRICS, VALID_METRICS_SPARSE, NearestNeighbors

    if metric not in VALID_METRICS[algorithm]:
        return
    if kind == "CSR":
        if algorithm != "brute" or metric not in VALID_METRICS_SPARSE["brute"]:
            return
        table = sparse.csr_array(np.round(TABLE) + 0.0)
    else:
        table = (8 * TABLE).astype(kind) if kind == "int64" else TABLE.astype(kind)
    parameters = METRICS[metric]
    model = NearestNeighbors(
        n_neighbors=7, radius=2.5, algorithm=algorithm, metric=metric, metric_params=parameters or None, p=2
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table)
    stock = model.kneighbors(), model.kneighbors(table[:9]), model.radius_neighbors(table[:9])
    with vc.patched_sklearn():
        ours = model.kneighbors(), model.kneighbors(table[:9]), model.radius_neighbors(table[:9])
    report = vc.patch_report()
    # scikit-learn has no squares in a matrix of chunks.
    if not (metric == "sqeuclidean" and kind in ("int64", "CSR")):
        assert sum(count["ours"] for count in report.values()) == 3, str(report)
        assert not any(count["stock"] for count in report.values()), str(report)
    # Its brute force takes differences of squared lengths.
    near = 1e-3 if kind == "float32" else 1e-6
    for (distances, _), (expected, _) in zip(ours[:2], stock[:2], strict=True):
        assert distances.dtype == expected.dtype
        np.testing.assert_allclose(distances, expected, rtol=near, atol=near)
    for i in range(9):
        assert ours[2][1][i].dtype == stock[2][1][i].dtype and ours[2][0][i].dtype == stock[2][0][i].dtype
        np.testing.assert_array_equal(np.sort(ours[2][1][i]), np.sort(stock[2][1][i]))
        assert (np.diff(ours[2][1][i]) > 0).all()
        order = np.argsort(stock[2][1][i])
        np.testing.assert_allclose(ours[2][0][i], stock[2][0][i][order], rtol=near, atol=near)


def test_answers_are_the_callers_own():
    from sklearn.neighbors import NearestNeighbors

    with vc.patched_sklearn():
        for algorithm in ("brute", "kd_tree"):
            model = NearestNeighbors(algorithm=algorithm).fit(TABLE)
            distances, ids = model.kneighbors(TABLE[:4])
            distances[:] = ids[:] = 0
            lengths, lists = model.radius_neighbors(TABLE[:4], 2.0)
            for one in (*lengths, *lists):
                one[:] = 0
            again = model.kneighbors(TABLE[:4])
            assert (again[1][:, 0] == np.arange(4)).all()


def test_rows_are_searched_as_they_are():
    """Brute force keeps nothing of a table between calls."""
    from sklearn.neighbors import NearestNeighbors

    table = TABLE.copy()
    with vc.patched_sklearn():
        model = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(table)
        model.kneighbors(table[:1])
        table[5] = 100.0
        assert model.kneighbors(np.full((1, 3), 99.0), return_distance=False) == [[5]]


def test_radii_of_queries():
    from sklearn.neighbors import KDTree

    radii = np.linspace(0, 2, 20)
    tree = KDTree(TABLE)
    expected, lengths = tree.query_radius(TABLE[:20], radii, return_distance=True, sort_results=True)
    counts = tree.query_radius(TABLE[:20], radii, count_only=True)
    with vc.patched_sklearn():
        found, distances = tree.query_radius(TABLE[:20], radii, return_distance=True, sort_results=True)
        assert tree.query_radius(TABLE[:20], radii, count_only=True).tolist() == counts.tolist()
        assert tree.query_radius(TABLE[:20], 0.7, count_only=True).sum() == sum(
            map(len, tree.query_radius(TABLE[:20], 0.7))
        )
    for i in range(20):
        assert found[i].tolist() == expected[i].tolist()
        close(distances[i], lengths[i])
    assert answers("KDTree.query_radius") == 4


def test_equal_rows():
    from sklearn.neighbors import NearestNeighbors

    table = np.zeros((5, 2))
    with vc.patched_sklearn():
        for algorithm in ("brute", "kd_tree", "ball_tree"):
            ids = NearestNeighbors(n_neighbors=2, algorithm=algorithm).fit(table).kneighbors(return_distance=False)
            assert ids.tolist() == [[1, 2], [0, 2], [0, 1], [1, 2], [1, 2]]


def test_cosine_from_a_size_on():
    from sklearn.neighbors import NearestNeighbors

    table = np.random.default_rng(0).normal(size=(1024, 4))
    model = NearestNeighbors(metric="cosine").fit(table)
    expected = model.kneighbors(return_distance=False)
    with vc.patched_sklearn():
        model.kneighbors(table[:1023])
        assert left("pairwise_distances_chunked") == {"few pairs by cosine": 1}
        found = model.kneighbors(return_distance=False)
    assert answers("pairwise_distances_chunked") == 1
    assert (found == expected).mean() > 0.99


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"metric": "minkowski", "p": 3, "metric_params": {"w": [1, 2, 3]}}, "weights of columns"),
        ({"metric": "minkowski", "p": 3, "metric_params": {"w": [1, 2, 3]}, "algorithm": "brute"}, "parameters of the"),
        ({"metric": "minkowski", "p": 0.5, "algorithm": "brute"}, "an exponent below 1"),
        ({"metric": "canberra", "algorithm": "ball_tree"}, "a metric that vicinal does not have"),
        ({"metric": "canberra", "algorithm": "brute"}, "a metric that vicinal does not have"),
        ({"metric": lambda x, y: abs(x - y).sum(), "algorithm": "brute"}, "a metric that vicinal does not have"),
        ({"metric": "seuclidean", "metric_params": {"V": [1, 2, 3]}, "algorithm": "ball_tree"}, "a metric that"),
    ],
)
def test_reasons(options, reason):
    from sklearn.neighbors import NearestNeighbors

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = NearestNeighbors(**options).fit(TABLE).kneighbors(TABLE[:5])
        with vc.patched_sklearn():
            found = NearestNeighbors(**options).fit(TABLE).kneighbors(TABLE[:5])
    close(found[0], expected[0])
    reasons = [why for count in vc.patch_report().values() for why in count["stock"]]
    assert reasons and all(why.startswith(reason) for why in reasons), reasons


@pytest.mark.parametrize("method", ["standard", "modified", "hessian", "ltsa"])
@pytest.mark.parametrize("solver", ["arpack", "dense"])
def test_embeddings(method, solver):
    from sklearn.manifold import LocallyLinearEmbedding

    table = vc.generate("swiss_roll", rows=300, seed=1).points
    options = {"n_neighbors": 12, "n_components": 2, "method": method, "eigen_solver": solver}
    stock = LocallyLinearEmbedding(**options, random_state=np.random.RandomState(0)).fit(table)
    random_state = np.random.RandomState(0)
    with vc.patched_sklearn():
        ours = LocallyLinearEmbedding(**options, random_state=random_state).fit(table)
        assert answers("_locally_linear_embedding") == 1, str(vc.patch_report())
    assert ours.reconstruction_error_ == pytest.approx(stock.reconstruction_error_, rel=1e-3)
    # The same plane; eigenvalues may be too close to tell its axes apart.
    cosines = np.linalg.svd(ours.embedding_.T @ stock.embedding_)[1]
    assert (cosines > 1 - 1e-4).all(), cosines
    # The generator has made the draws that scikit-learn makes.
    assert random_state.randint(1 << 30) == stock.random_state.randint(1 << 30)


def test_embeddings_of_equal_rows_and_pieces_are_stock():
    from sklearn.manifold import locally_linear_embedding

    twice = np.concatenate([TABLE, TABLE[:1]])
    apart = np.concatenate([TABLE, TABLE + 100])
    with vc.patched_sklearn():
        locally_linear_embedding(twice, n_neighbors=5, n_components=2, eigen_solver="dense")
        assert left("_locally_linear_embedding") == {"equal rows": 1}
        locally_linear_embedding(apart, n_neighbors=5, n_components=2, eigen_solver="dense")
        assert sum(left("_locally_linear_embedding").values()) == 2
        assert answers("_locally_linear_embedding") == 0


@pytest.mark.parametrize("own", [True, False])
def test_rows_of_zeros_by_cosine(own):
    """scikit-learn says that a row of zeros is at 0 from itself where the queries are the fitted array, else at 1."""
    from sklearn.neighbors import NearestNeighbors

    table = np.random.default_rng(2).normal(size=(1024, 3))
    table[[4, 700]] = 0
    model = NearestNeighbors(n_neighbors=3, algorithm="brute", metric="cosine").fit(table)
    queries = table if own else table.copy()
    expected, _ = model.kneighbors(queries)
    with vc.patched_sklearn():
        found, _ = model.kneighbors(queries)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    reasons = left("pairwise_distances_chunked")
    assert reasons == ({"a row of zeros by cosine": 1} if own else {})
