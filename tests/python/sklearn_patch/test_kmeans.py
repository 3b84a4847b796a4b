"""k-means with the patch: scikit-learn's labels, centers, iterations, lines, and rows for empty clusters."""

import copy
import re
import warnings

import numpy as np
import pytest
from conftest import answers, close, left

import vicinal as vc

BLOBS = np.random.default_rng(7).normal(size=(400, 4)) + 6 * np.random.default_rng(8).integers(0, 3, size=(400, 1))


def numbers_apart(text):
    """The words of printed lines, and their numbers."""
    parts = re.split(r"(\d+\.\d+(?:e-?\d+)?)", text)
    return parts[::2], [float(number) for number in parts[1::2]]


@pytest.mark.parametrize("algorithm", ["lloyd", "elkan"])
@pytest.mark.parametrize("kind", ["float64", "float32", "CSR"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"tol": 0}, {"max_iter": 2}, {"n_init": 3, "init": "random"}])
def test_kmeans_is_scikit_learns(algorithm, kind, weighted, options, capsys):
    from scipy import sparse
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    table = sparse.csr_array(np.round(BLOBS)) if kind == "CSR" else BLOBS.astype(kind)
    weights = np.random.default_rng(9).integers(0, 4, size=400).astype(float) if weighted else None
    model = KMeans(5, algorithm=algorithm, random_state=3, verbose=1, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stock = copy.deepcopy(model.fit(table, sample_weight=weights))
        printed = capsys.readouterr().out
        with vc.patched_sklearn():
            model.fit(table, sample_weight=weights)
    assert answers(f"_kmeans_single_{algorithm}") == options.get("n_init", 1) and not left(
        f"_kmeans_single_{algorithm}"
    )
    near = 1e-4 if kind == "float32" else 1e-9
    assert model.n_iter_ == stock.n_iter_
    np.testing.assert_array_equal(model.labels_, stock.labels_)
    np.testing.assert_allclose(model.cluster_centers_, stock.cluster_centers_, rtol=near, atol=near)
    assert model.inertia_ == pytest.approx(stock.inertia_, rel=near)
    assert model.cluster_centers_.dtype == stock.cluster_centers_.dtype and model.labels_.dtype == stock.labels_.dtype
    words, values = numbers_apart(printed)
    told, numbers = numbers_apart(capsys.readouterr().out)
    assert told == words
    np.testing.assert_allclose(numbers, values, rtol=near, atol=1e-5)


def fitted_alike(model, table, weights, algorithm):
    """The model fitted by scikit-learn; itself is fitted by vicinal, with the same labels and centers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stock = copy.deepcopy(model.fit(table, sample_weight=weights))
        with vc.patched_sklearn():
            model.fit(table, sample_weight=weights)
    assert answers(f"_kmeans_single_{algorithm}") == 1
    np.testing.assert_array_equal(model.labels_, stock.labels_)
    close(model.cluster_centers_, stock.cluster_centers_)
    return stock


@pytest.mark.parametrize("algorithm", ["lloyd", "elkan"])
@pytest.mark.parametrize("seed", range(6))
def test_empty_clusters_take_scikit_learns_rows(algorithm, seed):
    """First centers that no row is near; some rows weigh nothing, some are equal."""
    from sklearn.cluster import KMeans

    draw = np.random.default_rng(seed)
    table = np.round(draw.normal(size=(60, 2)), 1)
    weights = draw.integers(0, 3, size=60).astype(float)
    first = np.concatenate([table[:2], 50 + np.arange(12).reshape(6, 2)])
    model = KMeans(8, init=first, n_init=1, algorithm=algorithm, max_iter=1 + seed, tol=0)
    stock = fitted_alike(model, table, weights, algorithm)
    assert model.inertia_ == pytest.approx(stock.inertia_, rel=1e-9) and model.n_iter_ == stock.n_iter_


@pytest.mark.parametrize("algorithm", ["lloyd", "elkan"])
@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_clusters_that_stay_empty_stand_where_scikit_learns_do(algorithm, order):
    """The farthest row weighs nothing, so it is given to nobody. scikit-learn divides sums in the order of clusters:
    one before the heaviest takes its sum, one behind it its mean."""
    from sklearn.cluster import KMeans

    table = np.array([[0.0, 0], [1, 0], [2, 0], [100, 0], [0, 1], [1, 1]])
    weights = np.array([1.0, 1, 1, 0, 1, 1])
    first = np.array([[500.0, 500], [0, 0]])[order]
    model = KMeans(2, init=first, n_init=1, algorithm=algorithm)
    stock = fitted_alike(model, table, weights, algorithm)
    assert model.n_iter_ == stock.n_iter_


def test_more_clusters_than_distinct_rows():
    from sklearn.cluster import KMeans

    table = np.repeat([[0.0], [1.0], [5.0]], 4, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stock = KMeans(6, random_state=0).fit(table)
        with vc.patched_sklearn():
            ours = KMeans(6, random_state=0).fit(table)
    np.testing.assert_array_equal(ours.labels_, stock.labels_)
    close(ours.cluster_centers_, stock.cluster_centers_)


@pytest.mark.parametrize("kind", ["float64", "float32", "CSR"])
def test_minibatches_and_bisecting(kind):
    from scipy import sparse
    from sklearn.cluster import BisectingKMeans, MiniBatchKMeans

    table = sparse.csr_matrix(np.round(BLOBS)) if kind == "CSR" else BLOBS.astype(kind)
    for model in (
        MiniBatchKMeans(4, random_state=2, batch_size=64, n_init=2),
        BisectingKMeans(5, random_state=1, bisecting_strategy="largest_cluster"),
    ):
        stock = copy.deepcopy(model.fit(table))
        with vc.patched_sklearn():
            model.fit(table)
            np.testing.assert_array_equal(model.predict(table), stock.predict(table))
        np.testing.assert_array_equal(model.labels_, stock.labels_)
        np.testing.assert_allclose(model.cluster_centers_, stock.cluster_centers_, rtol=1e-4, atol=1e-5)
    assert answers("_labels_inertia") > 0 and answers("_labels_inertia_threadpool_limit") > 0


def test_sparse_tables_within_the_memory_limit():
    from scipy import sparse
    from sklearn.cluster import KMeans

    narrow = sparse.random_array((3000, 100), density=0.1, format="csr", random_state=np.random.default_rng(0))
    wide = sparse.random_array((40, 4097), density=0.01, format="csr", random_state=np.random.default_rng(0))
    for table, limit, reason in (
        (narrow, 3000 * 100 * 8, "a sparse table beyond the memory limit"),
        (wide, None, "a sparse table of many columns"),
    ):
        with vc.patched_sklearn(memory_limit=limit):
            KMeans(3, random_state=0).fit(table)
        assert left("_kmeans_single_lloyd")[reason] == 1
