"""Answers are those of vicinal's functions, bit for bit, and scikit-learn's up to rounding.

Tolerances. A distance of d columns is off by at most (d + 2) / 2 + 1 units in the last place, relatively: d
differences, squares and additions, a root. Where scikit-learn's path is by trees, it computes the same sum. With
u = 2^-53, both together are at most (d + 4) * 2 u = (d + 4) * EPS apart. By brute force it expands squared distances to
x x - 2 x y + y y: of three sums of d products, none above 2 R for rows of squared length R, each is off by d + 2 units
at most.
"""

# ctest: COST 30

import numpy as np
import pytest
from scipy import sparse
from conftest import EPS, NAMES, near, same, stock, vs

import vicinal as vc

D = 5
DISTANCE = (D + 4) * EPS
EXPANDED = 3 * 2 * (D + 2) * EPS


def attributes(estimator):
    return {key: value for key, value in vars(estimator).items() if key.endswith("_") and not key.startswith("_")}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_attributes(name, dtype, blobs):
    """The same names, types, shapes and dtypes."""
    rows, labels = blobs
    table = (rows * 10).astype(dtype)
    if name == "SpectralCoclustering":
        table = np.abs(table)
    keywords = {"random_state": 0} if hasattr(stock(name)(), "random_state") else {}
    theirs = attributes(stock(name)(**keywords).fit(table, labels))
    ours = attributes(getattr(vs, name)(**keywords).fit(table, labels))
    assert list(ours) == list(theirs)
    for key, value in theirs.items():
        assert type(ours[key]) is type(value), key
        if isinstance(value, np.ndarray):
            assert ours[key].dtype == value.dtype and ours[key].shape == value.shape, key
            assert ours[key].flags.writeable, key


@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree", "ball_tree"])
@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("minkowski", {}),
        ("manhattan", {"metric": "manhattan"}),
        ("chebyshev", {"metric": "chebyshev"}),
        ("sqeuclidean", {"metric": "sqeuclidean"}),
    ],
)
def test_neighbors(algorithm, metric, words, blobs, queries):
    if metric == "sqeuclidean" and algorithm not in ("auto", "brute"):
        pytest.skip("scikit-learn has no tree for it")
    rows, _ = blobs
    ours = vs.NearestNeighbors(n_neighbors=7, algorithm=algorithm, metric=metric).fit(rows)
    theirs = stock("NearestNeighbors")(n_neighbors=7, algorithm=algorithm, metric=metric).fit(rows)
    for table in (queries, None):
        distances, ids = ours.kneighbors(table)
        graph = vc.knn(rows, table, k=7, **words)
        same(ids, graph.ids)
        same(distances, graph.distances)
        same(ours.kneighbors(table, return_distance=False), graph.ids)
        their_distances, their_ids = theirs.kneighbors(table)
        same(ids, their_ids)
        if theirs._fit_method != "brute" or metric in ("manhattan", "chebyshev"):
            near(distances, their_distances, 2 * DISTANCE * distances)
        else:
            power = 1 if metric == "sqeuclidean" else 2
            near(distances**power, their_distances**power, EXPANDED * (rows**2).sum(axis=1).max())

        distances, ids = ours.radius_neighbors(table, radius=3.0, sort_results=True)
        graph = vc.radius(rows, table, radius=3.0, **words)
        same(np.concatenate(ids), graph.ids)
        same(np.concatenate(distances), graph.distances)
        unsorted = ours.radius_neighbors(table, radius=3.0, return_distance=False)
        assert [sorted(found) for found in unsorted] == [sorted(found) for found in ids]
        assert (ours.kneighbors_graph(table) != theirs.kneighbors_graph(table)).nnz == 0


@pytest.mark.parametrize("metric", ["cosine", "hamming", "sqeuclidean"])
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_small_tables(metric, dtype, blobs, queries):
    """The patch leaves some small searches to scikit-learn, for callers that are promised its bits."""
    rows, queries = (np.round(table * 8).astype(dtype) for table in (blobs[0], queries))
    distances, ids = vs.NearestNeighbors(n_neighbors=4, metric=metric).fit(rows).kneighbors(queries)
    graph = vc.knn(rows, queries, k=4, metric=metric)
    same(ids, graph.ids)
    same(distances, graph.distances)


def test_memory_limit(blobs):
    """More than the limit is an error, not a search by scikit-learn."""
    rows = np.random.default_rng(0).normal(size=(3000, 40))
    fitted = vs.NearestNeighbors(n_neighbors=1000, memory_limit=2_000_000).fit(rows)
    with pytest.raises(vc.OverMemory):
        fitted.kneighbors(rows)
    fitted.set_params(memory_limit=None).kneighbors(rows[:5])


def test_rows_are_excluded_by_id():
    """Among equal rows scikit-learn drops the first neighbor where the row itself is not found."""
    rows = np.zeros((12, 3))
    rows[6:9] = 1.0
    rows[9:] = 3.0
    for k in (1, 2, 3, 4, 8):
        expected = vc.knn(rows, k=k)
        for algorithm in ("auto", "brute", "kd_tree"):
            fitted = vs.NearestNeighbors(n_neighbors=k, algorithm=algorithm).fit(rows)
            distances, ids = fitted.kneighbors()
            same(ids, expected.ids)
            same(distances, expected.distances)
            same(fitted.kneighbors(return_distance=False), expected.ids)
            same(fitted.kneighbors_graph(mode="distance").indices, expected.ids.ravel())
    labels = np.arange(12) % 2
    left_out = vs.KNeighborsClassifier(3).fit(rows, labels).predict(None)
    same(left_out, vc.vote(vc.knn(rows, k=3), labels).labels)
    scores = vs.LocalOutlierFactor(3).fit(rows).negative_outlier_factor_
    assert np.isfinite(scores).all()


@pytest.mark.filterwarnings("error")
def test_excluded_rows_have_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.zeros((6, 2)), columns=["a", "b"])
    same(vs.NearestNeighbors(n_neighbors=2).fit(frame).kneighbors()[1], vc.knn(np.zeros((6, 2)), k=2).ids)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_classifiers(weights, blobs, queries):
    rows, labels = blobs
    words = np.array(["ape", "bee", "cat"])[labels]
    for targets in (labels, words):
        ours = vs.KNeighborsClassifier(9, weights=weights).fit(rows, targets)
        expected = vc.classify(rows, queries, targets, k=9, weights=weights, probabilities=True)
        assert ours.predict(queries).tolist() == expected.labels.tolist()
        near(ours.predict_proba(queries), expected.probabilities, 2 * (9 + DISTANCE / EPS) * EPS)
        theirs = stock("KNeighborsClassifier")(9, weights=weights).fit(rows, targets)
        same(ours.predict(queries), theirs.predict(queries))
        same(ours.classes_, theirs.classes_)

        ours = vs.RadiusNeighborsClassifier(4.0, weights=weights, outlier_label=targets[:1].tolist()).fit(rows, targets)
        theirs = stock("RadiusNeighborsClassifier")(4.0, weights=weights, outlier_label=targets[:1].tolist()).fit(
            rows, targets
        )
        same(ours.predict(queries), theirs.predict(queries))
        near(ours.predict_proba(queries), theirs.predict_proba(queries), 2 * (300 + DISTANCE / EPS) * EPS)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_regressors(weights, blobs, queries):
    rows, _ = blobs
    targets = np.random.default_rng(9).uniform(1, 2, size=(300, 2))
    tolerance = 4 * (300 + DISTANCE / EPS) * EPS  # of means of numbers below 2
    expected = vc.regress(rows, queries, targets, k=9, weights=weights).values
    for cls in (vs.KNeighborsRegressor, stock("KNeighborsRegressor")):
        near(cls(9, weights=weights).fit(rows, targets).predict(queries), expected, tolerance)
    inside = queries[vc.count(rows, queries, radius=4.0).counts > 0]
    expected = vc.regress(rows, inside, targets, radius=4.0, weights=weights).values
    for cls in (vs.RadiusNeighborsRegressor, stock("RadiusNeighborsRegressor")):
        near(cls(4.0, weights=weights).fit(rows, targets).predict(inside), expected, tolerance)


def test_transformers(blobs, queries):
    rows, _ = blobs
    for mode in ("distance", "connectivity"):
        ours = vs.KNeighborsTransformer(n_neighbors=4, mode=mode).fit(rows)
        theirs = stock("KNeighborsTransformer")(n_neighbors=4, mode=mode).fit(rows)
        for table in (rows, queries):
            left, right = ours.transform(table), theirs.transform(table)
            assert type(left) is type(right)
            same(left.indices, right.indices)
            near(left.data, right.data, 2 * DISTANCE * left.data)
        same(ours.transform(queries).indices.reshape(40, -1), vc.knn(rows, queries, k=4 + (mode == "distance")).ids)
        ours = vs.RadiusNeighborsTransformer(radius=2.0, mode=mode).fit_transform(rows)
        theirs = stock("RadiusNeighborsTransformer")(radius=2.0, mode=mode).fit_transform(rows)
        near((ours - theirs).data, 0, 2 * DISTANCE * 2.0)
        assert ours.nnz == theirs.nnz == vc.radius(rows, rows, radius=2.0).ids.size


def test_outliers(blobs, queries):
    """Scores are ratios of means of k distances: each off by k + 1 + (d + 4) units at most, of these four."""
    rows, _ = blobs
    tolerance = 4 * (10 + 2 + D + 4) * EPS
    ours = vs.LocalOutlierFactor(10, contamination=0.05).fit(rows)
    theirs = stock("LocalOutlierFactor")(10, contamination=0.05).fit(rows)
    near(ours.negative_outlier_factor_ / theirs.negative_outlier_factor_, 1, tolerance)
    near(-ours.negative_outlier_factor_ / vc.lof(rows, k=10).scores, 1, tolerance)
    same(ours.fit_predict(rows), theirs.fit_predict(rows))
    ours = vs.LocalOutlierFactor(10, novelty=True).fit(rows)
    theirs = stock("LocalOutlierFactor")(10, novelty=True).fit(rows)
    near(ours.score_samples(queries) / theirs.score_samples(queries), 1, 2 * tolerance)
    index = vc.Index(rows)
    near(-ours.score_samples(queries) / vc.novelty(index, vc.lof(index, k=10, novelty=True), queries), 1, 2 * tolerance)
    same(ours.predict(queries), theirs.predict(queries))
    with pytest.raises(AttributeError, match="has no attribute 'predict'"):
        vs.LocalOutlierFactor().predict  # noqa: B018
    with pytest.warns(UserWarning, match="n_neighbors will be set to"):
        vs.LocalOutlierFactor(500).fit(rows)


@pytest.mark.parametrize("algorithm", ["lloyd", "elkan"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_clusters(algorithm, dtype, blobs, queries):
    """First centers are RandomState's draws, so that runs are the same ones. Centers are means of at most 300 rows
    below 32 in size."""
    rows, queries = blobs[0].astype(dtype), queries.astype(dtype)
    eps = np.finfo(dtype).eps
    for keywords in ({}, {"init": "random", "n_init": 3}, {"init": rows[:4]}):
        weights = np.random.default_rng(1).uniform(1, 2, size=300)
        ours = vs.KMeans(4, algorithm=algorithm, random_state=5, **keywords).fit(rows, sample_weight=weights)
        theirs = stock("KMeans")(4, algorithm=algorithm, random_state=5, **keywords).fit(rows, sample_weight=weights)
        same(ours.labels_, theirs.labels_)
        assert ours.n_iter_ == theirs.n_iter_
        near(ours.cluster_centers_, theirs.cluster_centers_, 2 * 300 * eps * 32)
        near(ours.inertia_ / theirs.inertia_, 1, 2 * (300 + 2 * D) * eps * 32)
        model = vc.KMeans.of(ours.cluster_centers_)
        same(ours.predict(queries), model.predict(queries))
        same(ours.predict(rows), ours.labels_)
        same(ours.transform(queries), model.transform(queries).astype(dtype))
        assert theirs.transform(queries).dtype == dtype
        same(ours.transform(sparse.csr_array(queries)), ours.transform(queries))
        same(ours.fit_transform(rows.tolist()), ours.transform(rows.astype(np.float64)))
        ours.fit(rows, sample_weight=weights)
        same(ours.transform(queries).argmin(axis=1).astype(np.int32), ours.predict(queries))
        near(ours.score(queries) / model.score(queries), 1, 2 * (40 + 2 * D) * eps * 32)


def test_mini_batches(blobs):
    rows, _ = blobs
    ours = vs.MiniBatchKMeans(3, random_state=1, batch_size=64).fit(rows)
    theirs = stock("MiniBatchKMeans")(3, random_state=1, batch_size=64).fit(rows)
    same(ours.labels_, theirs.labels_)
    near(ours.cluster_centers_, theirs.cluster_centers_, 2 * 300 * EPS * 32)
    ours, theirs = (cls(3, random_state=1) for cls in (vs.MiniBatchKMeans, stock("MiniBatchKMeans")))
    for part in np.array_split(rows, 3):
        ours.partial_fit(part), theirs.partial_fit(part)
    same(ours.labels_, theirs.labels_)


@pytest.mark.parametrize("method", ["standard", "modified", "ltsa", "hessian"])
def test_embedding(method):
    """Of well conditioned data: columns of an embedding are found up to their sign, to about residual / gap."""
    rows = vc.generate("swiss_roll", rows=400, noise=0.0, seed=1).points
    keywords = {"n_neighbors": 12, "n_components": 2, "method": method}
    ours = vs.LocallyLinearEmbedding(**keywords).fit(rows)
    theirs = stock("LocallyLinearEmbedding")(**keywords, eigen_solver="dense").fit(rows)
    for left, right in zip(ours.embedding_.T, theirs.embedding_.T):
        assert abs(np.dot(left, right)) > 1 - 1e-6
    assert abs(ours.reconstruction_error_ - theirs.reconstruction_error_) <= 1e-9
    assert ours.transform(rows[:7]).shape == (7, 2)


def test_cocluster():
    draw = np.random.default_rng(2)
    weights = draw.uniform(0, 0.1, size=(60, 40))
    for block in range(3):
        weights[block * 20 : block * 20 + 20, block * 13 : block * 13 + 13] += 1
    ours = vs.SpectralCoclustering(3, random_state=4).fit(weights)
    a, b = np.nonzero(weights)
    expected = vc.spectral_cocluster(a, b, n_a=60, n_b=40, weights=weights[a, b], clusters=3, seed=4)
    same(ours.row_labels_, expected.labels_a)
    same(ours.column_labels_, expected.labels_b)
    theirs = stock("SpectralCoclustering")(3, random_state=4).fit(weights)
    pairs = set(zip(ours.row_labels_, theirs.row_labels_)) | set(zip(ours.column_labels_, theirs.column_labels_))
    assert len(pairs) == 3  # the same clusters by other numbers
    for cluster in range(3):
        assert ours.get_shape(cluster) == (len(ours.get_indices(cluster)[0]), len(ours.get_indices(cluster)[1]))
    assert (ours.biclusters_[0] == ours.rows_).all() and ours.rows_.dtype == bool and ours.columns_.shape == (3, 40)


@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"svd_method": "arpack"}, "svd_method or n_svd_vecs"),
        ({"mini_batch": True}, "mini_batch or init"),
        ({"n_clusters": 50}, "more clusters than rows or columns"),
    ],
)
def test_stock_path(keywords, reason, monkeypatch):
    """What is left to scikit-learn is counted, and named where that is asked for."""
    weights = np.random.default_rng(0).uniform(size=(60, 40))
    from vicinal._hooks import registry

    registry.reset_report()
    vs.SpectralCoclustering(**keywords, random_state=0).fit(weights)
    assert registry.report()["SpectralCoclustering"] == {"ours": 0, "stock": {reason: 1}}
    monkeypatch.setenv("VICINAL_FALLBACK", "warn")
    with pytest.warns(registry.FallbackWarning, match=f"SpectralCoclustering ran on scikit-learn: {reason}") as caught:
        vs.SpectralCoclustering(**keywords, random_state=0).fit(weights)
    assert caught[0].filename == __file__
    monkeypatch.setenv("VICINAL_FALLBACK", "error")
    with pytest.raises(registry.FallbackError):
        vs.SpectralCoclustering(**keywords, random_state=0).fit(weights)


def test_settings_reach_the_engine(blobs, monkeypatch):
    """`threads` and `device` are what vicinal computes with, in fit and in what follows."""
    from vicinal._hooks import registry

    rows, labels = blobs
    seen = []
    active = registry.active
    monkeypatch.setattr(registry, "active", lambda settings: (seen.append(settings), active(settings))[1])
    fitted = vs.KNeighborsClassifier(device="cpu", threads=1, memory_limit=10**9).fit(rows, labels)
    fitted.predict(rows)
    assert seen == [registry.Settings("cpu", 1, 10**9, strict=True)] * 2
