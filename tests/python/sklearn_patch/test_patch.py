"""The patch of scikit-learn: what it replaces, for whom, what pickles say, and how it tells what ran stock."""

import concurrent.futures
import copy
import logging
import os
import pickle
import re
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest

import vicinal as vc

DRAW = np.random.default_rng(5)
TABLE = DRAW.normal(size=(120, 3))
LABELS = (TABLE[:, 0] > 0).astype(int)


def answers(name):
    """Calls of a hook that vicinal answered."""
    return vc.patch_report().get(name, {"ours": 0})["ours"]


def left(name):
    return vc.patch_report().get(name, {"stock": {}})["stock"]


def run(script, **environment):
    """A program of its own; returns its output."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def places():
    from vicinal._hooks import registry

    return [place for hook in registry.hooks() for place in hook.places]


def attributes():
    """What stands at every hooked place: the owner's own attribute, or None for one of a base."""
    return [vars(place.owner()).get(place.attribute) for place in places()]


# ---- places ---------------------------------------------------------------------------------------------------------


def test_every_attribute_is_as_it_was():
    before = attributes()
    vc.patch_sklearn(threads=1)
    patched = attributes()
    assert all(now is not old for now, old in zip(patched, before, strict=True))
    with vc.patched_sklearn():
        vc.patch_sklearn(device="cpu")
        assert all(now is old for now, old in zip(attributes(), patched, strict=True))
    vc.unpatch_sklearn()
    assert all(now is old for now, old in zip(attributes(), before, strict=True))
    vc.unpatch_sklearn()
    with pytest.raises(ZeroDivisionError), vc.patched_sklearn():
        _ = 1 / 0
    assert all(now is old for now, old in zip(attributes(), before, strict=True))


def test_classes_stay_scikit_learns():
    from sklearn import neighbors

    names = {name: getattr(neighbors, name) for name in neighbors.__all__}
    with vc.patched_sklearn():
        assert all(getattr(neighbors, name) is kind for name, kind in names.items())
        model = neighbors.NearestNeighbors().fit(TABLE)
        assert isinstance(model._tree, neighbors.KDTree) and type(model) is names["NearestNeighbors"]


def test_contexts_and_other_threads():
    from sklearn.neighbors import NearestNeighbors

    model = NearestNeighbors(algorithm="brute").fit(TABLE)

    def in_another_thread():
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(model.kneighbors, TABLE[:3]).result()

    with vc.patched_sklearn():
        model.kneighbors(TABLE[:3])
        assert answers("ArgKmin.compute") == 1
        in_another_thread()
        assert answers("ArgKmin.compute") == 1
    vc.patch_sklearn()
    in_another_thread()
    assert answers("ArgKmin.compute") == 2
    from vicinal._hooks import registry

    with registry.active(None):
        model.kneighbors(TABLE[:3])
    assert answers("ArgKmin.compute") == 2 and left("ArgKmin.compute") == {}


def test_many_threads_install_and_remove():
    from sklearn.neighbors import NearestNeighbors

    before = attributes()
    expected = NearestNeighbors(algorithm="brute").fit(TABLE).kneighbors(return_distance=False)
    failed = []

    def work(seed):
        for turn in range(25):
            with vc.patched_sklearn(threads=1):
                found = NearestNeighbors(algorithm=("brute", "kd_tree")[(seed + turn) % 2]).fit(TABLE).kneighbors()
                if not np.array_equal(found[1], expected):
                    failed.append((seed, turn))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert all(now is old for now, old in zip(attributes(), before, strict=True))


def test_workers_of_scikit_learn():
    """Threads and processes that scikit-learn's Parallel starts compute with the settings of who started them."""
    from sklearn.neighbors import NearestNeighbors
    from sklearn.utils.parallel import Parallel, delayed

    from vicinal._hooks.registry import current

    with vc.patched_sklearn(device="cpu"):
        model = NearestNeighbors(algorithm="kd_tree", n_jobs=2).fit(TABLE)
        model.kneighbors()
        assert answers("KDTree.query") == 2
        for backend in ("threading", "loky"):
            found = Parallel(n_jobs=2, backend=backend)(delayed(current)() for _ in range(2))
            assert [settings.device for settings in found] == ["cpu", "cpu"], backend
    found = Parallel(n_jobs=2, backend="loky")(delayed(current)() for _ in range(2))
    assert found == [None, None]


def test_workers_share_the_threads():
    from sklearn.utils.parallel import Parallel, delayed

    from vicinal._hooks.registry import current

    with vc.patched_sklearn(threads=1):
        found = Parallel(n_jobs=2, backend="threading")(delayed(current)() for _ in range(2))
        assert [settings.threads for settings in found] == [1, 1]


def test_threads_are_bounded():
    from threadpoolctl import threadpool_limits

    from vicinal._hooks.engine import threads_of
    from vicinal._hooks.registry import Settings

    with threadpool_limits(1, user_api="openmp"):
        assert threads_of(Settings()) == 1
        assert threads_of(Settings(threads=8)) == 1
    script = "from vicinal._hooks import engine, registry; print(engine.threads_of(registry.Settings()))"
    assert run(script, OMP_NUM_THREADS="1").strip() == "1"


# ---- models ---------------------------------------------------------------------------------------------------------


def models():
    from sklearn import cluster, manifold, neighbors

    return {
        "kd": neighbors.NearestNeighbors(),
        "ball": neighbors.NearestNeighbors(algorithm="ball_tree", metric="manhattan"),
        "brute": neighbors.NearestNeighbors(algorithm="brute"),
        "classifier": neighbors.KNeighborsClassifier(),
        "radius": neighbors.RadiusNeighborsRegressor(radius=9.0),
        "lof": neighbors.LocalOutlierFactor(novelty=True),
        "lle": manifold.LocallyLinearEmbedding(n_neighbors=8),
        "kmeans": cluster.KMeans(3, random_state=0),
        "minibatch": cluster.MiniBatchKMeans(3, random_state=0),
        "bisecting": cluster.BisectingKMeans(3, random_state=0),
        "elkan": cluster.BisectingKMeans(3, random_state=0, algorithm="elkan"),
    }


def used(model):
    for method in ("predict", "transform"):
        if hasattr(model, method):
            return getattr(model, method)(TABLE[:20])
    return model.kneighbors(TABLE[:20], return_distance=False)


def close(left, right):
    np.testing.assert_allclose(left, right, rtol=1e-7, atol=1e-9)


def test_patched_models_load_where_vicinal_is_not(tmp_path):
    stored = {}
    with vc.patched_sklearn():
        fitted = {name: model.fit(TABLE, LABELS) for name, model in models().items()}
        for name, model in fitted.items():
            stored[f"{name}, patched"] = (pickle.dumps(model), used(model))
    for name, model in fitted.items():
        stored[name] = (pickle.dumps(model), used(model))
    for name, (content, _) in stored.items():
        assert b"vicinal" not in content, name
    (tmp_path / "stored").write_bytes(pickle.dumps(stored))
    script = f"""
        import pickle, sys
        sys.modules["vicinal"] = None
        import numpy as np
        table = pickle.loads({pickle.dumps(TABLE[:20])!r})
        stored = pickle.load(open({str(tmp_path / "stored")!r}, "rb"))
        for name, (content, expected) in stored.items():
            model = pickle.loads(content)
            method = next((m for m in ("predict", "transform") if hasattr(model, m)), None)
            found = getattr(model, method)(table) if method else model.kneighbors(table, return_distance=False)
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9, err_msg=name)
        print(len(stored), "loaded")
    """
    assert run(script).strip() == f"{2 * len(models())} loaded"


def test_stock_models_are_used_patched():
    fitted = {name: model.fit(TABLE, LABELS) for name, model in models().items()}
    expected = {name: used(model) for name, model in fitted.items()}
    loaded = {name: pickle.loads(pickle.dumps(model)) for name, model in fitted.items()}
    with vc.patched_sklearn():
        for name in fitted:
            close(used(fitted[name]), expected[name])
            close(used(loaded[name]), expected[name])
    assert answers("KDTree.query") > 0 and answers("BallTree.query") > 0 and answers("ArgKmin.compute") > 0


def test_patched_models_are_used_stock():
    with vc.patched_sklearn():
        fitted = {name: model.fit(TABLE, LABELS) for name, model in models().items()}
        expected = {name: used(model) for name, model in fitted.items()}
    calls = vc.patch_report()
    for name, model in fitted.items():
        close(used(model), expected[name])
        close(used(copy.deepcopy(model)), expected[name])
    assert vc.patch_report() == calls


def test_trees_are_built_when_asked_for():
    from sklearn import neighbors
    from sklearn.neighbors import _base

    import vicinal._hooks.trees as hooked

    plain = neighbors.KDTree(TABLE, 10)
    with vc.patched_sklearn():
        for use in (
            lambda tree: tree.kernel_density(TABLE[:4], 0.5),
            lambda tree: tree.two_point_correlation(TABLE[:4], 0.5),
            lambda tree: tree.get_arrays()[1],
            lambda tree: tree.data,
            lambda tree: tree.sum_weight,
            lambda tree: tree.node_bounds,
            lambda tree: pickle.loads(pickle.dumps(tree)).get_arrays()[3],
            lambda tree: copy.copy(tree).get_arrays()[3],
            lambda tree: copy.deepcopy(tree).get_arrays()[3],
        ):
            tree = _base.KDTree(TABLE, 10)
            assert hooked._is_lazy(tree)
            tree.query(TABLE[:2])
            assert hooked._is_lazy(tree) and isinstance(tree, neighbors.KDTree) and isinstance(tree, _base.KDTree)
            assert isinstance(plain, _base.KDTree) and issubclass(neighbors.KDTree, _base.KDTree)
            np.testing.assert_array_equal(use(tree), use(plain))
            assert type(tree) is neighbors.KDTree
            close(tree.query(TABLE[:2], 3)[0], plain.query(TABLE[:2], 3)[0])
        tree = _base.BallTree(TABLE)
    assert hooked._is_lazy(tree)
    ids, distances = tree.query_radius(TABLE[:1], 1.0, return_distance=True)
    assert type(tree) is neighbors.BallTree and len(ids[0]) == len(distances[0])


# ---- what is ours ---------------------------------------------------------------------------------------------------

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


# ---- k-means --------------------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("algorithm", ["lloyd", "elkan"])
@pytest.mark.parametrize("seed", range(6))
def test_empty_clusters_take_scikit_learns_rows(algorithm, seed):
    """First centres that no row is near; some rows weigh nothing, some are equal."""
    from sklearn.cluster import KMeans

    draw = np.random.default_rng(seed)
    table = np.round(draw.normal(size=(60, 2)), 1)
    weights = draw.integers(0, 3, size=60).astype(float)
    first = np.concatenate([table[:2], 50 + np.arange(12).reshape(6, 2)])
    model = KMeans(8, init=first, n_init=1, algorithm=algorithm, max_iter=1 + seed, tol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stock = copy.deepcopy(model.fit(table, sample_weight=weights))
        with vc.patched_sklearn():
            model.fit(table, sample_weight=weights)
    assert answers(f"_kmeans_single_{algorithm}") == 1
    np.testing.assert_array_equal(model.labels_, stock.labels_)
    close(model.cluster_centers_, stock.cluster_centers_)
    assert model.inertia_ == pytest.approx(stock.inertia_, rel=1e-9) and model.n_iter_ == stock.n_iter_


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


# ---- errors ---------------------------------------------------------------------------------------------------------


def wrong_uses():
    from sklearn.cluster import KMeans
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


# ---- other patchers, other versions ---------------------------------------------------------------------------------


def test_another_patcher(monkeypatch):
    from sklearn import neighbors
    from sklearn.neighbors import _base

    from vicinal.patch import PatchConflict

    theirs = type("NearestNeighbors", (neighbors.NearestNeighbors,), {"__module__": "sklearnex.neighbors"})
    with monkeypatch.context() as patch:
        patch.setattr(neighbors, "NearestNeighbors", theirs)
        with pytest.raises(PatchConflict, match=r"sklearn\.neighbors\.NearestNeighbors is of sklearnex"):
            vc.patch_sklearn()

    def pairwise_distances_chunked(X, Y=None, **keywords):
        raise AssertionError

    pairwise_distances_chunked.__module__ = "fastlearn.pairs"
    with monkeypatch.context() as patch:
        patch.setattr(_base, "pairwise_distances_chunked", pairwise_distances_chunked)
        with pytest.raises(PatchConflict, match=r"_base\.pairwise_distances_chunked is of fastlearn"):
            vc.patch_sklearn()
        with pytest.raises(PatchConflict), vc.patched_sklearn():
            pass


def test_a_patcher_that_comes_later(monkeypatch):
    from sklearn.neighbors import _base

    before = _base.pairwise_distances_chunked
    vc.patch_sklearn()
    theirs = object()
    _base.pairwise_distances_chunked = theirs
    try:
        with pytest.warns(UserWarning, match="replaced by another package"):
            vc.unpatch_sklearn()
        assert _base.pairwise_distances_chunked is theirs
    finally:
        _base.pairwise_distances_chunked = before


def test_another_version_stays_as_it_is():
    told = run(
        """
        import sklearn, warnings
        sklearn.__version__ = "1.8.2"
        import vicinal
        from sklearn.neighbors import _base
        before = _base.pairwise_distances_chunked
        for _ in range(2):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                vicinal.patch_sklearn()
            print(len(seen), *(one.message for one in seen))
            assert _base.pairwise_distances_chunked is before
            vicinal.unpatch_sklearn()
        """
    )
    assert told.splitlines() == [
        "1 scikit-learn 1.8.2: vicinal's patch is made for 1.9; nothing is patched",
        "0",
    ]


@pytest.mark.parametrize(
    "change, reason",
    [
        ("lambda X, Y=None, *, reduce_func=None, **kwds: None", "its parameters are X, Y, reduce_func, kwds; expected"),
        ("own", "it answered"),
    ],
)
def test_a_hook_that_does_not_fit_stays_off(change, reason):
    """Of a function with other parameters, and of a method whose neighbors vicinal would answer in another way."""
    told = run(
        f"""
        import warnings
        import numpy as np
        from sklearn.neighbors import _base, NearestNeighbors
        import vicinal._hooks.neighbors as hooked
        if {change!r} == "own":
            hooked.engine.knn = lambda *args: (np.ones((4, 2)), np.ones((4, 2), int))
        else:
            _base.pairwise_distances_chunked = {change if change != "own" else None}
            _base.pairwise_distances_chunked.__module__ = "sklearn.metrics.pairwise"
        before = _base.pairwise_distances_chunked
        import vicinal
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            vicinal.patch_sklearn()
        print(*(str(one.message) for one in seen if "chunked" in str(one.message)), sep="\\n")
        assert _base.pairwise_distances_chunked is before
        NearestNeighbors(algorithm="kd_tree").fit(np.eye(9)).radius_neighbors()
        assert vicinal.patch_report()["KDTree.query_radius"]["ours"] == 1
        """
    )
    assert told.startswith("pairwise_distances_chunked: left to scikit-learn, since its self-test failed: " + reason)


# ---- ways in --------------------------------------------------------------------------------------------------------


def test_run_a_script(tmp_path):
    script = tmp_path / "script.py"
    (tmp_path / "beside.py").write_text("VALUE = 3\n")
    script.write_text(
        textwrap.dedent(
            """
            import sys
            import numpy as np
            from beside import VALUE
            from sklearn.neighbors import NearestNeighbors
            if __name__ == "__main__":
                NearestNeighbors(algorithm="brute").fit(np.eye(9)).kneighbors()
                print(sys.argv[1:], VALUE)
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "-m", "vicinal.patch", "--threads", "1", "--report", script, "a", "--report"],
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0 and done.stdout == "['a', '--report'] 3\n", done.stderr
    hook, ours, stock = done.stderr.splitlines()[-1].split()
    assert (hook, ours, stock) == ("ArgKmin.compute", "1", "0")
    done = subprocess.run(
        [sys.executable, "-m", "vicinal.patch", "-m", "script", "b"],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.stdout == "['b'] 3\n", done.stderr


def test_load_ext():
    before = attributes()
    vc.load_ipython_extension(None)
    assert attributes()[0] is not before[0]
    vc.unload_ipython_extension(None)
    assert attributes()[0] is before[0]


def test_import_loads_no_scikit_learn():
    told = run(
        "import sys, vicinal; print([m for m in sys.modules if m.split('.')[0] in ('sklearn', 'scipy', 'joblib')])"
    )
    assert told.strip() == "[]"
