"""Errors stay scikit-learn's, and what runs on it is told."""

import logging
import warnings
from functools import partial

import numpy as np
import pytest
from conftest import TABLE, attributes

import vicinal as vc


# ---- errors ---------------------------------------------------------------------------------------------------------


def wrong_uses():
    from scipy.sparse import csr_array
    from sklearn.cluster import DBSCAN, HDBSCAN, OPTICS, KMeans, compute_optics_graph, dbscan
    from sklearn.manifold import locally_linear_embedding
    from sklearn.neighbors import BallTree, KDTree, NearestNeighbors

    holes = TABLE.copy()
    holes[3, 1] = np.nan
    yield lambda: NearestNeighbors().fit(holes)
    yield lambda: NearestNeighbors().fit(TABLE).kneighbors(holes)
    yield lambda: NearestNeighbors().fit(TABLE).kneighbors(TABLE[:, :2])
    yield lambda: NearestNeighbors().fit(TABLE).kneighbors(n_neighbors=120)
    yield lambda: NearestNeighbors(algorithm="brute").fit(TABLE).kneighbors(TABLE, n_neighbors=121)
    yield lambda: NearestNeighbors(algorithm="kd_tree").fit(TABLE).radius_neighbors(TABLE[:4], radius=np.ones(3))
    yield lambda: NearestNeighbors(algorithm="kd_tree", metric="cosine").fit(TABLE)
    yield lambda: NearestNeighbors(metric="haversine", algorithm="ball_tree").fit(TABLE)
    yield lambda: NearestNeighbors(leaf_size=0).fit(TABLE)
    for tree in (KDTree, BallTree):
        yield lambda tree=tree: tree(TABLE).query(TABLE, k=0)
        yield lambda tree=tree: tree(TABLE).query(TABLE, k=200)
        yield lambda tree=tree: tree(TABLE).query(TABLE[:, :2])
        yield lambda tree=tree: tree(TABLE).query(holes)
        yield lambda tree=tree: tree(TABLE).query_radius(TABLE, 1.0, count_only=True, return_distance=True)
        yield lambda tree=tree: tree(TABLE).query_radius(TABLE, 1.0, sort_results=True)
    yield lambda: locally_linear_embedding(TABLE, n_neighbors=120, n_components=2)
    yield lambda: locally_linear_embedding(TABLE, n_neighbors=5, n_components=4)
    yield lambda: locally_linear_embedding(np.ones((10, 2)), n_neighbors=3, n_components=1, reg=0)
    yield lambda: KMeans(3).fit(holes)
    for cls in (DBSCAN, OPTICS):
        yield lambda cls=cls: cls().fit(holes)
        yield lambda cls=cls: cls(algorithm="kd_tree", metric="cosine").fit(TABLE)
        yield lambda cls=cls: cls(metric="nothing").fit(TABLE)
    thin = csr_array(np.round(TABLE))
    for cls in (DBSCAN, OPTICS, partial(HDBSCAN, copy=True)):
        yield lambda cls=cls: cls(metric="chebyshev").fit(thin)
        yield lambda cls=cls: cls(metric="sqeuclidean").fit(thin)
    yield lambda: OPTICS().fit(thin)
    yield lambda: DBSCAN(eps=0).fit(TABLE)
    yield lambda: DBSCAN(min_samples=0).fit(TABLE)
    yield lambda: DBSCAN().fit(TABLE, sample_weight=[1, 2])
    yield lambda: DBSCAN().fit(TABLE[0])
    yield lambda: dbscan(TABLE, eps=-1)
    yield lambda: HDBSCAN(min_samples=121, copy=True).fit(TABLE)
    yield lambda: HDBSCAN(min_cluster_size=1, copy=True).fit(TABLE)
    yield lambda: HDBSCAN(algorithm="kd_tree", metric="cosine", copy=True).fit(TABLE)
    yield lambda: HDBSCAN(copy=True).fit(TABLE[:1])
    yield lambda: OPTICS(min_samples=121).fit(TABLE)
    yield lambda: OPTICS(min_samples=1).fit(TABLE)
    yield lambda: OPTICS(max_eps=1.0, eps=2.0, cluster_method="dbscan").fit(TABLE)
    yield lambda: compute_optics_graph(TABLE, min_samples="5", max_eps=1, metric="l2", p=2, metric_params=None,
                                       algorithm="auto", leaf_size=30, n_jobs=None)  # fmt: skip
    yield lambda: KMeans(3).fit(TABLE).predict(TABLE[:, :2])


def test_errors_are_scikit_learns():
    def outcome(use):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return "none" if use() is not None else "None"
            except Exception as error:
                return f"{type(error).__name__}: {error}"

    stock = [outcome(use) for use in wrong_uses()]
    with vc.patched_sklearn():
        patched = [outcome(use) for use in wrong_uses()]
    assert patched == stock
    assert sum(":" in text for text in stock) >= 15


def test_settings_that_cannot_be_used():
    before = attributes()
    for settings, kind in (
        ({"device": "tpu"}, vc.InvalidArgument),
        ({"threads": 0}, vc.InvalidArgument),
        ({"memory_limit": 1}, vc.OverMemory),
    ):
        with pytest.raises(kind):
            vc.patch_sklearn(**settings)
        with pytest.raises(kind), vc.patched_sklearn(**settings):
            pass
    assert all(now is old for now, old in zip(attributes(), before, strict=True))


def test_memory_that_numpy_does_not_get(monkeypatch):
    from sklearn.neighbors import NearestNeighbors

    from vicinal import _neighbors

    model = NearestNeighbors(algorithm="brute").fit(TABLE)
    expected = model.kneighbors(return_distance=False)

    def no_memory(*_, **__):
        raise MemoryError("Unable to allocate 1 TiB")

    with vc.patched_sklearn():
        monkeypatch.setattr(_neighbors, "knn", no_memory)
        np.testing.assert_array_equal(model.kneighbors(return_distance=False), expected)
    assert vc.patch_report()["ArgKmin.compute"]["stock"] == {"no memory": 1}


# ---- what it tells --------------------------------------------------------------------------------------------------


def stock_call():
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(metric="canberra", algorithm="brute").fit(TABLE).kneighbors(TABLE[:3])


def test_fallback_is_logged(monkeypatch, caplog):
    monkeypatch.setenv("VICINAL_FALLBACK", "log")
    with vc.patched_sklearn(), caplog.at_level(logging.WARNING, "vicinal"):
        stock_call()
    assert caplog.messages == ["ArgKmin.compute ran on scikit-learn: a metric that vicinal does not have"]


def test_fallback_is_warned_of(monkeypatch):
    from vicinal.patch import FallbackWarning

    monkeypatch.setenv("VICINAL_FALLBACK", "warn")
    with vc.patched_sklearn(), pytest.warns(FallbackWarning, match="ArgKmin.compute ran on scikit-learn") as seen:
        stock_call()
    assert [one.filename for one in seen] == [__file__]


def test_fallback_is_an_error(monkeypatch):
    from vicinal.patch import FallbackError

    monkeypatch.setenv("VICINAL_FALLBACK", "error")
    with vc.patched_sklearn(), pytest.raises(FallbackError, match="a metric that vicinal does not have"):
        stock_call()
    stock_call()


def test_fallback_of_another_word(monkeypatch):
    monkeypatch.setenv("VICINAL_FALLBACK", "loud")
    with pytest.raises(vc.InvalidArgument, match="VICINAL_FALLBACK: unknown value 'loud'"):
        vc.patch_sklearn()
    monkeypatch.delenv("VICINAL_FALLBACK")


def test_report():
    with vc.patched_sklearn():
        stock_call()
        stock_call()
    report = vc.patch_report()
    assert report == {"ArgKmin.compute": {"ours": 0, "stock": {"a metric that vicinal does not have": 2}}}
    assert "2  a metric that vicinal does not have" in str(report) and "ArgKmin" in report._repr_html_()
