"""Spanning trees, HDBSCAN, DBSCAN and OPTICS: answers are the command's, bit for bit; results and their pickles."""

import json
import pickle

import numpy as np
import pytest
from conftest import same

import vicinal as vc

METRICS = ["euclidean", "sqeuclidean", "cosine", "manhattan", "chebyshev", "minkowski", "hamming"]
EPS = {"euclidean": 1.5, "sqeuclidean": 2.0, "cosine": 0.02, "manhattan": 3.0, "chebyshev": 0.9, "hamming": 0.5}


@pytest.fixture
def files(tmp_path, rows):
    np.save(tmp_path / "table.npy", rows)
    return tmp_path


def told_by(run, files, *words):
    run(*words, "-q", "-o", "told.npz")
    return np.load(files / "told.npz")


def same_arrays(result, told, **names):
    """`names`: of arrays that the file calls otherwise."""
    for name in told.files:
        same(getattr(result, names.get(name, name)), told[name])


@pytest.mark.parametrize("metric", [*METRICS, "inner_product"])
def test_spanning_tree(files, run, rows, metric):
    words = ["--metric", metric, "--p", 3]
    told = told_by(run, files, "spanning-tree", "table.npy", "--min-samples", 4, *words)
    tree = vc.minimum_spanning_tree(rows, min_samples=4, metric=metric, p=3)
    same_arrays(tree, told)
    assert (tree.rows, tree.min_samples, tree.count_self, tree.metric, tree.p) == (300, 4, True, metric, 3)
    same_arrays(vc.minimum_spanning_tree(vc.Index(rows), min_samples=4, metric=metric, p=3), told)


def test_spanning_tree_options(files, run, rows):
    same_arrays(vc.minimum_spanning_tree(rows), told_by(run, files, "spanning-tree", "table.npy"))
    told = told_by(run, files, "spanning-tree", "table.npy", "--min-samples", 4, "--exclude-self", "--alpha", 1.3)
    same_arrays(vc.minimum_spanning_tree(rows, min_samples=4, count_self=False, alpha=1.3), told)


@pytest.mark.parametrize("metric", METRICS)
def test_hdbscan(files, run, rows, metric):
    told = told_by(
        run, files, "hdbscan", "table.npy", "--min-cluster-size", 7, "--metric", metric, "--p", 3
    )
    found = vc.hdbscan(rows, min_cluster_size=7, metric=metric, p=3)
    same_arrays(found, told)
    tree = vc.minimum_spanning_tree(rows, min_samples=7, metric=metric, p=3)
    same_arrays(vc.hdbscan(tree, min_cluster_size=7), told)
    same_arrays(vc.hdbscan(vc.Index(rows), min_cluster_size=7, metric=metric, p=3), told)
    assert found.sizes.sum() + found.noise == 300 and found.clusters == len(found.sizes) == len(found.persistences)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {}),
        (["--selection", "leaf", "--min-samples", 2], {"selection": "leaf", "min_samples": 2}),
        (["--exclude-self", "--alpha", 1.2], {"count_self": False, "alpha": 1.2}),
        (["--epsilon", 1.2, "--max-cluster-size", 60], {"epsilon": 1.2, "max_cluster_size": 60}),
        (["--allow-single-cluster", "--method", "direct"], {"allow_single_cluster": True, "method": "direct"}),
    ],
)
def test_hdbscan_options(files, run, rows, words, options):
    same_arrays(vc.hdbscan(rows, **options), told_by(run, files, "hdbscan", "table.npy", *words))


def test_condensed_tree(rows):
    found = vc.hdbscan(rows, min_cluster_size=10)
    tree = found.tree
    assert tree.parents[0] == -1 and tree.sizes[0] == 300 and np.isinf(tree.births[0])
    assert (tree.parents[1:] < np.arange(1, len(tree.parents))).all()
    chosen = tree.labels >= 0
    assert sorted(tree.labels[chosen]) == list(range(found.clusters))
    for cluster in range(found.clusters):
        members = found.exemplars_of(cluster)
        assert len(members) and (found.labels[members] == cluster).all() and (np.diff(members) > 0).all()
    with pytest.raises(IndexError):
        found.exemplars_of(found.clusters)


@pytest.mark.parametrize("metric", EPS)
def test_dbscan(files, run, rows, metric):
    eps = EPS[metric]
    told = told_by(run, files, "dbscan", "table.npy", "--eps", eps, "--min-samples", 4, "--metric", metric)
    for table in (rows, vc.Index(rows)):
        found = vc.dbscan(table, eps=eps, min_samples=4, metric=metric)
        same(found.labels, told["labels"])
        same(found.core.view(np.uint8), told["core"])
    assert found.core.dtype == bool and found.core.sum() == found.core_rows
    assert found.noise == (found.labels < 0).sum() and found.sizes.tolist() == [
        (found.labels == cluster).sum() for cluster in range(found.clusters)
    ]


def test_dbscan_with_weights(files, run, rows):
    weights = np.linspace(-1, 3, 300)
    np.save(files / "weights.npy", weights)
    told = told_by(run, files, "dbscan", "table.npy", "--eps", 1.2, "--weights", "weights.npy")
    same(vc.dbscan(rows, eps=1.2, weights=weights).labels, told["labels"])
    told = told_by(run, files, "dbscan", "table.npy")
    same(vc.dbscan(rows).labels, told["labels"])


@pytest.mark.parametrize("metric", METRICS)
def test_optics(files, run, rows, metric):
    words = ["--min-samples", 6, "--metric", metric, "--p", 3]
    told = told_by(run, files, "optics", "table.npy", *words)
    order = vc.optics(rows, min_samples=6, metric=metric, p=3)
    clusters = vc.optics_xi(order)
    for name in ("ordering", "reachability", "core_distances", "predecessors"):
        same(getattr(order, name), told[name])
    same(clusters.labels, told["labels"])
    same(vc.optics(vc.Index(rows), min_samples=6, metric=metric, p=3).ordering, order.ordering)
    assert clusters.noise == (clusters.labels < 0).sum()
    assert sorted(clusters.sizes) == sorted(np.bincount(clusters.labels[clusters.labels >= 0]))


def test_optics_options(files, run, rows):
    told = told_by(
        *(run, files, "optics", "table.npy", "--max-eps", 2.5, "--xi", 0.1, "--min-cluster-size", 12),
        "--no-predecessor-correction",
    )
    order = vc.optics(rows, max_eps=2.5)
    same(order.reachability, told["reachability"])
    found = vc.optics_xi(order, xi=0.1, min_cluster_size=12, predecessor_correction=False)
    same(found.labels, told["labels"])
    assert all(0 <= start < end < 300 for start, end in found.hierarchy())
    told = told_by(run, files, "optics", "table.npy", "--max-eps", 2.5, "--clusters", "dbscan", "--eps", 1.5)
    found = vc.optics_dbscan(order, 1.5)
    same(found.labels, told["labels"])
    assert len(found.starts) == len(found.ends) == 0


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
def test_knn_within_a_radius(files, run, rows, queries, metric):
    np.save(files / "queries.npy", queries)
    for given in ([], ["queries.npy"]):
        unlimited = vc.knn(rows, queries if given else None, k=4, metric=metric)
        near = float(np.quantile(unlimited.distances, 0.4))
        told = told_by(run, files, "knn", "table.npy", *given, "-k", 4, "--metric", metric, "--max-radius", near)
        for table in (rows, vc.Index(rows)):
            graph = vc.knn(table, queries if given else None, k=4, metric=metric, max_radius=near)
            for name in ("ids", "distances", "offsets"):
                same(getattr(graph, name), told[name])
        assert graph.k == 0 and {0, 4} <= set(np.diff(graph.offsets).tolist()) and len(graph) == graph.rows
    same(vc.Index(rows).knn(k=4, max_radius=2.5).ids, vc.knn(rows, k=4, max_radius=2.5).ids)
    same(vc.knn(rows, k=4, max_radius=np.inf).ids, vc.knn(rows, k=4).ids)


def test_tables(rows):
    """What is no array in memory is copied, also rows that come in blocks."""
    sparse = pytest.importorskip("scipy.sparse")
    expected = vc.dbscan(rows, eps=1.5)
    assert expected.copied == 0
    same(vc.dbscan(sparse.csr_array(rows), eps=1.5).labels, expected.labels)

    def fill(begin, end, out):
        out[:] = rows[begin:end]

    source = vc.BlockSource(300, 5, fill)
    same(vc.hdbscan(source).labels, vc.hdbscan(rows).labels)
    same(vc.optics(source).ordering, vc.optics(rows).ordering)
    same(vc.minimum_spanning_tree(source).a, vc.minimum_spanning_tree(rows).a)


def test_memory(rows):
    """A limit that is too small is an error before work begins, which says what is needed."""
    many = np.random.default_rng(0).normal(size=(4000, 3))
    for call in (vc.minimum_spanning_tree, vc.hdbscan, vc.optics, vc.dbscan):
        with pytest.raises(vc.OverMemory, match=r"memory limit") as caught:
            call(many, memory_limit=100_000)
        needed = caught.value
        assert "100" in str(needed) and call(many[:50], memory_limit=10**8)


def test_pickles(rows):
    tree = vc.minimum_spanning_tree(rows, min_samples=5, count_self=False, alpha=1.5, metric="minkowski", p=3)
    again = pickle.loads(pickle.dumps(tree))
    for name in ("a", "b", "lengths", "core_distances"):
        same(getattr(again, name), getattr(tree, name))
    for name in ("rows", "min_samples", "count_self", "alpha", "metric", "p"):
        assert getattr(again, name) == getattr(tree, name)
    same(vc.hdbscan(again, min_cluster_size=8).probabilities, vc.hdbscan(tree, min_cluster_size=8).probabilities)

    order = vc.optics(rows, max_eps=3.0)
    again = pickle.loads(pickle.dumps(order))
    assert (again.min_samples, again.max_eps, again.metric) == (5, 3.0, "euclidean")
    same(vc.optics_xi(again).labels, vc.optics_xi(order).labels)
    with pytest.raises(vc.InvalidArgument, match="eps: is above max_eps"):
        vc.optics_dbscan(again, 3.5)

    for result in (vc.dbscan(rows, eps=1.5), vc.hdbscan(rows), vc.optics_xi(order)):
        again = pickle.loads(pickle.dumps(result))
        assert type(again) is type(result) and (again.clusters, again.noise) == (result.clusters, result.noise)
        same(again.labels, result.labels)
        with pytest.raises(ValueError, match="read-only"):
            again.labels[0] = 1
        assert repr(again).startswith(f"{type(result).__name__}(")
    again = pickle.loads(pickle.dumps(vc.hdbscan(rows)))
    same(again.tree.births, vc.hdbscan(rows).tree.births)


def test_predict(files, run, rows, queries):
    """By the model of the command and by one of Python's, whose files each reads of the other."""
    np.save(files / "queries.npy", queries)
    run("hdbscan", "table.npy", "--min-cluster-size", 8, "-q", "--save-model", "model.vhd")
    told = told_by(run, files, "hdbscan", "queries.npy", "--model", "model.vhd")
    index = vc.Index(rows)
    own = vc.HdbscanModel(index, vc.hdbscan(index, min_cluster_size=8))
    read = vc.HdbscanModel.load(files / "model.vhd")
    again = pickle.loads(pickle.dumps(own))
    unpickled = vc.HdbscanModel(index, pickle.loads(pickle.dumps(own.fitted)))
    for model in (own, read, again, unpickled):
        found = model.predict(queries)
        same_arrays(found, told)
        assert (found.rows < 300).all()
        same(model.fitted.probabilities, own.fitted.probabilities)
    own.save(files / "own.vhd")
    same_arrays(own.predict(queries), told_by(run, files, "hdbscan", "queries.npy", "--model", "own.vhd"))
    same(own.predict(rows).labels, own.fitted.labels)
    with pytest.raises(vc.InvalidArgument, match="fitted: clusters of 300 rows, but the index has 40"):
        vc.HdbscanModel(vc.Index(queries), own.fitted)


def test_memberships(files, run, rows, queries):
    """Those of the command, of the model's rows and of others; a pickle keeps them."""
    run("hdbscan", "table.npy", "--min-cluster-size", 8, "-q", "--save-model", "model.vhd", "--memberships", "soft.npy")
    told = np.load(files / "soft.npy")
    index = vc.Index(rows)
    for table in (rows, index):
        found = vc.hdbscan(table, min_cluster_size=8, memberships=True, threads=2)
        same(found.memberships, told)
    assert vc.hdbscan(rows, min_cluster_size=8).memberships is None and told.shape == (300, found.clusters)
    again = pickle.loads(pickle.dumps(found))
    same(again.memberships, told)
    for result in (found, again):
        with pytest.raises(ValueError, match="read-only"):
            result.memberships[0] = 1
    np.save(files / "queries.npy", queries)
    run("hdbscan", "queries.npy", "--model", "model.vhd", "-q", "--memberships", "new.npy")
    for model in (vc.HdbscanModel(index, found), vc.HdbscanModel.load(files / "model.vhd")):
        same(model.memberships(), told)
        same(model.memberships(queries), np.load(files / "new.npy"))
    with pytest.raises(vc.InvalidArgument, match="memberships: need the rows"):
        vc.hdbscan(vc.minimum_spanning_tree(rows), memberships=True)
    with pytest.raises(vc.InvalidArgument, match="queries: 4 columns"):
        model.memberships(queries[:, :4])


def test_validity(files, run, rows):
    """That of the command; of labels of any method, and of an index."""
    told = json.loads(run("hdbscan", "table.npy", "--min-cluster-size", 8, "--validity", "--json"))["validity"]
    labels = vc.hdbscan(rows, min_cluster_size=8).labels
    for table in (rows, vc.Index(rows)):
        found = vc.validity(table, labels)
        assert found.index == told["index"] and found.clusters.tolist() == told["clusters"]
    assert found.sizes.tolist() == np.bincount(labels[labels >= 0]).tolist()
    larger = np.maximum(found.separations, found.sparseness)
    same(found.clusters, (found.separations - found.sparseness) / larger)
    again = pickle.loads(pickle.dumps(found))
    assert again.index == found.index
    same(again.clusters, found.clusters)
    assert vc.validity(rows, [0] * 300).index is None and vc.validity(rows, [-1] * 300).clusters.shape == (0,)
    assert vc.validity(rows, labels, metric="manhattan").index != found.index
    with pytest.raises(vc.InvalidArgument, match="labels: there are 2 of them, but the table has 300 rows"):
        vc.validity(rows, [0, 1])


def test_html(rows):
    page = vc.hdbscan(rows)._repr_html_()
    assert page.startswith("<table>") and "<th>labels</th><td>int64 [300]</td>" in page
    assert "<th>core</th><td>bool [300]</td>" in vc.dbscan(rows)._repr_html_()


def test_trees_of_arrays(files, run, rows):
    told = told_by(run, files, "spanning-tree", "table.npy", "--min-samples", 6)
    given = vc.SpanningTree.of(told["a"], told["b"], told["lengths"], told["core_distances"], min_samples=6)
    same(vc.hdbscan(given, min_cluster_size=6).labels, vc.hdbscan(rows, min_cluster_size=6).labels)
    assert given.rows == 300 and given.min_samples == 6 and given.copied == 8 * (3 * 299 + 300)
