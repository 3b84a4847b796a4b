"""Tables on a device, as in tests/python/test_device.py: they are searched where they are, with the answers of tables in
host memory."""
# fake device: *

import pickle

import numpy as np
import pytest
from conftest import NAMES, near, same, vs
from device_arrays import arrays_on_device

import vicinal as vc

MISSING = vc.doctor(device="cpu").cuda_missing
pytestmark = pytest.mark.skipif(MISSING != "", reason=MISSING)

ROWS = np.random.default_rng(0).normal(size=(200, 6))
LABELS = np.arange(200) % 3
QUERIES = np.random.default_rng(1).normal(size=(30, 6))


@pytest.fixture(scope="module")
def on_device():
    return arrays_on_device()


@pytest.fixture(params=[np.float32, np.float64])
def tables(request, on_device):
    """(rows, queries) on the device and in host memory."""
    rows, queries = ROWS.astype(request.param), QUERIES.astype(request.param)
    return on_device(rows), on_device(queries), rows, queries


def test_neighbors(tables):
    device_rows, device_queries, rows, queries = tables
    fitted = vs.NearestNeighbors(n_neighbors=4, radius=2.0).fit(device_rows)
    assert fitted._tree.copied == 0 and fitted.n_features_in_ == 6 and fitted.n_samples_fit_ == 200
    assert fitted.effective_metric_ == "euclidean"
    expected = vs.NearestNeighbors(n_neighbors=4, radius=2.0, device="cpu").fit(rows)
    for there, here in ((device_queries, queries), (None, None)):
        for found, wanted in zip(fitted.kneighbors(there), expected.kneighbors(here)):
            same(found, wanted)
            assert found.flags.writeable
        same(fitted.kneighbors_graph(there).indices, expected.kneighbors_graph(here).indices)
        for by_distance in (False, True):
            lists = fitted.radius_neighbors(there, sort_results=by_distance)
            for found, wanted in zip(lists, expected.radius_neighbors(here, sort_results=by_distance)):
                for left, right in zip(found, wanted, strict=True):
                    same(left, right)
    same(fitted.kneighbors(device_queries, 2, return_distance=False), expected.kneighbors(queries, 2)[1])


def test_metrics(tables):
    device_rows, device_queries, rows, queries = tables
    for keywords in ({"metric": "l1"}, {"metric": "minkowski", "p": 3}, {"metric": "cosine"}, {"p": np.inf}):
        fitted = vs.NearestNeighbors(**keywords).fit(device_rows)
        words = {"metric": {"l1": "manhattan"}.get(keywords.get("metric"), keywords.get("metric", "chebyshev"))}
        graph = vc.knn(
            rows,
            queries,
            k=5,
            device="cpu",
            **words,
            **({"p": 3.0} if "p" in keywords and words["metric"] == "minkowski" else {}),
        )
        same(fitted.kneighbors(device_queries)[1], graph.ids)
    with pytest.raises(vc.InvalidArgument, match="metric 'canberra' is computed by scikit-learn, in host memory"):
        vs.NearestNeighbors(metric="canberra").fit(device_rows)


def test_votes_and_means(tables):
    device_rows, device_queries, rows, queries = tables
    for weights in ("uniform", "distance", lambda distances: 1 / (1 + distances)):
        words = np.array(["ape", "bee", "cat"])[LABELS]
        fitted = vs.KNeighborsClassifier(7, weights=weights).fit(device_rows, words)
        expected = vs.KNeighborsClassifier(7, weights=weights, device="cpu").fit(rows, words)
        same(fitted.predict(device_queries), expected.predict(queries))
        same(fitted.predict_proba(device_queries), expected.predict_proba(queries))
        same(fitted.predict(None), expected.predict(None))
        assert fitted.score(device_queries, words[:30]) == expected.score(queries, words[:30])
        targets = np.stack([LABELS * 1.5, LABELS - 7.0], axis=1)
        fitted = vs.KNeighborsRegressor(7, weights=weights).fit(device_rows, targets)
        expected = vs.KNeighborsRegressor(7, weights=weights, device="cpu").fit(rows, targets)
        same(fitted.predict(device_queries), expected.predict(queries))


def test_scores(tables):
    device_rows, device_queries, rows, queries = tables
    fitted, expected = vs.LocalOutlierFactor(9).fit(device_rows), vs.LocalOutlierFactor(9, device="cpu").fit(rows)
    same(fitted.negative_outlier_factor_, expected.negative_outlier_factor_)
    same(fitted.fit_predict(device_rows), expected.fit_predict(rows))
    fitted = vs.LocalOutlierFactor(9, novelty=True).fit(device_rows)
    expected = vs.LocalOutlierFactor(9, novelty=True, device="cpu").fit(rows)
    same(fitted.score_samples(device_queries), expected.score_samples(queries))
    same(fitted.predict(device_queries), expected.predict(queries))
    same(fitted.decision_function(device_queries), expected.decision_function(queries))


def test_clusters(tables):
    device_rows, device_queries, rows, queries = tables
    weights = np.linspace(1, 2, 200)
    for keywords in ({}, {"init": "random"}, {"init": rows[:3]}, {"n_init": 2}):
        fitted = vs.KMeans(3, random_state=8, **keywords).fit(device_rows, sample_weight=weights)
        start = {"centres": rows[:3]} if isinstance(keywords.get("init"), np.ndarray) else {"clusters": 3}
        runs = 10 if isinstance(keywords.get("init"), str) else keywords.get("n_init", 1)
        if isinstance(keywords.get("init"), str):
            start["init"] = "random"
        model = vc.kmeans(rows, **start, seed=8, runs=runs, weights=weights, device="cpu")
        same(fitted.labels_, model.labels)
        same(fitted.cluster_centers_, model.centres.astype(rows.dtype))
        assert fitted.n_iter_ == model.iterations and fitted.inertia_ == model.inertia
        host = vs.KMeans(3, random_state=8, device="cpu").fit(rows)
        assert set(vars(host)) - set(vars(fitted)) <= {"_tol", "_n_init", "_algorithm"}
        predicted = fitted.predict(device_queries)
        same(predicted, fitted.predict(queries))
        near(fitted.transform(device_queries), fitted.transform(queries), 1e-5 if rows.dtype == np.float32 else 1e-12)
        near(fitted.score(device_queries), fitted.score(queries), 1e-2 if rows.dtype == np.float32 else 1e-10)
    assert vs.KMeans(3, random_state=0).fit_predict(device_rows).shape == (200,)
    assert vs.KMeans(3, random_state=0).fit_transform(device_rows).shape == (200, 3)


def test_pickles_load_without_a_device(tables, on_device):
    class WithGet(on_device):  # CuPy's copy to the host
        def get(self):
            return rows

    _, _, rows, queries = tables
    fitted = vs.KNeighborsClassifier(5).fit(WithGet(rows), LABELS)
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(fitted))))
    expected = vs.KNeighborsClassifier(5, device="cpu").fit(rows, LABELS)
    same(again.set_params(device="cpu").predict(queries), expected.predict(queries))
    same(again.kneighbors()[1], expected.kneighbors()[1])
    with pytest.raises(vc.InvalidArgument, match="X: it is in device memory"):
        pickle.dumps(vs.NearestNeighbors().fit(on_device(rows)))


def test_host_queries(tables):
    device_rows, _, rows, queries = tables
    for cls in (vs.NearestNeighbors, vs.LocalOutlierFactor):
        same(cls().fit(device_rows).kneighbors(queries, 5)[1], vc.knn(rows, queries, k=5, device="cpu").ids)


def test_dlpack_in_host_memory(tables):
    """Memory that DLPack says the host can read is a table like any other."""

    class OfDlpack:
        def __init__(self, array):
            self.array = array
            self.shape, self.dtype = array.shape, array.dtype

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **keywords):
            return self.array.__dlpack__(**keywords)

        def __array__(self, *arguments, **keywords):
            return np.asarray(self.array, *arguments, **keywords)

    _, _, rows, queries = tables
    fitted = vs.NearestNeighbors(device="cpu").fit(OfDlpack(rows))
    same(fitted.kneighbors(OfDlpack(queries))[1], vc.knn(rows, queries, k=5, device="cpu").ids)


def test_what_cannot_be(on_device):
    table = on_device(ROWS)
    for name in set(NAMES) - {
        "NearestNeighbors",
        "KNeighborsClassifier",
        "KNeighborsRegressor",
        "LocalOutlierFactor",
        "KMeans",
    }:
        with pytest.raises(vc.InvalidArgument, match=f"X: {name} computes with tables in host memory"):
            getattr(vs, name)().fit(table, LABELS)
    with pytest.raises(vc.InvalidArgument, match="X: it is in device memory, but fit was given a table in host memory"):
        vs.NearestNeighbors().fit(ROWS).kneighbors(table)
    with pytest.raises(vc.InvalidArgument, match="queries: 2 columns, but the table has 6"):
        vs.NearestNeighbors().fit(table).kneighbors(on_device(ROWS[:, :2]))
    with pytest.raises(vc.InvalidArgument, match="table: is in device memory, but device is 'cpu'"):
        vs.NearestNeighbors(device="cpu").fit(table)
    with pytest.raises(vc.InvalidArgument, match="X: 1 dimensions; expected 2"):
        vs.NearestNeighbors().fit(on_device(ROWS[0]))
    with pytest.raises(ValueError, match="n_neighbors: 0; expected a whole number from 1 to 200"):
        vs.NearestNeighbors(n_neighbors=2).fit(table).kneighbors(table, 0)
    with pytest.raises(ValueError, match="n_neighbors: 200; expected a whole number from 1 to 199"):
        vs.NearestNeighbors().fit(table).kneighbors(None, 200)
    with pytest.raises(ValueError, match="requires y to be passed"):
        vs.KNeighborsRegressor().fit(table, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        vs.KNeighborsRegressor().fit(table, LABELS[:7])
    with pytest.raises(ValueError, match="n_samples=200 should be >= n_clusters=300"):
        vs.KMeans(300).fit(table)
    with pytest.raises(vc.InvalidArgument, match="2 columns"):
        vs.KMeans(3).fit(table).transform(on_device(ROWS[:, :2]))
    with pytest.raises(vc.InvalidArgument, match="init: callables draw centers"):
        vs.KMeans(3, init=lambda *_: None).fit(table)
    with pytest.raises(vc.InvalidArgument, match="init: 4 centers; expected n_clusters=3"):
        vs.KMeans(3, init=ROWS[:4]).fit(table)
    bad = ROWS.copy()
    bad[7, 2] = np.nan
    with pytest.raises(vc.BadData, match="row 7, column 2"):
        vs.NearestNeighbors().fit(on_device(bad))
