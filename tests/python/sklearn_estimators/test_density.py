"""DBSCAN, HDBSCAN and OPTICS: labels, trees and orders are scikit-learn's where no tie decides, and vicinal's bit for
bit; what vicinal does not compute runs on scikit-learn's path and is counted.

Tolerances: a distance is off by at most (D + 4) * EPS, relatively (test_answers.py), an edge or reachability is one.
"""

import numpy as np
import pytest
from conftest import EPS, near, same, stock, vs
from scipy import sparse

import vicinal as vc

D = 5
DISTANCE = (D + 4) * EPS
FULL = {"algorithm": "kd_tree"}  # scikit-learn's path that does not expand squares


@pytest.fixture(autouse=True)
def counted():
    from vicinal._hooks import registry

    registry.reset_report()


@pytest.fixture(scope="module")
def loose(blobs):
    """Groups that overlap, so that there are noise and border rows."""
    return blobs[0] * 0.7


def counts(hook):
    return vc.patch_report().get(hook, {"ours": 0, "stock": {}})


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "minkowski"])
@pytest.mark.parametrize("weighted", [False, True])
def test_dbscan(metric, weighted, loose):
    weights = np.random.default_rng(2).integers(-1, 4, 300) if weighted else None
    words = {"p": 3} if metric == "minkowski" else {}
    for eps in (0.5, 1.0, 1.4, 2.0, 8.0):
        theirs = stock("DBSCAN")(eps=eps, metric=metric, **words).fit(loose, sample_weight=weights)
        ours = vs.DBSCAN(eps=eps, metric=metric, **words).fit(loose, sample_weight=weights)
        for name in ("labels_", "core_sample_indices_", "components_"):
            same(getattr(ours, name), getattr(theirs, name))
        same(ours.fit_predict(loose, None, weights), ours.labels_)
        found = vc.dbscan(loose, eps=eps, metric=metric, weights=weights, **words)
        same(ours.labels_, found.labels)
    assert counts("DBSCAN.fit") == {"ours": 10, "stock": {}}


@pytest.mark.parametrize("kind", [np.float32, np.int64, sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
def test_dbscan_of_other_tables(kind, loose):
    rows = np.round(loose * 4)
    table = kind(rows) if kind in (sparse.csr_array, sparse.csr_matrix, sparse.coo_array) else rows.astype(kind)
    theirs = stock("DBSCAN")(eps=5.5).fit(table)
    ours = vs.DBSCAN(eps=5.5).fit(table)
    same(ours.labels_, theirs.labels_)
    assert type(ours.components_) is type(theirs.components_) and ours.components_.dtype == theirs.components_.dtype
    assert (ours.components_ != theirs.components_).sum() == 0
    assert counts("DBSCAN.fit") == {"ours": 1, "stock": {}}


def test_dbscan_of_every_pair():
    """Where all rows are neighbors scikit-learn writes n * n numbers; 20,000 rows would take 3.2 GB."""
    rows = np.random.default_rng(0).normal(size=(20_000, 2))
    found = vs.DBSCAN(eps=100.0, memory_limit=20_000_000).fit(rows)
    assert not found.labels_.any() and len(found.components_) == 20_000


@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree", "ball_tree"])
@pytest.mark.parametrize("alpha", [1.0, 1.3])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_hdbscan(algorithm, alpha, metric, loose):
    """The lengths of a minimum spanning tree are the same for every choice among ties. By brute force scikit-learn also
    divides core distances by alpha."""
    words = {"metric": metric, "alpha": alpha, "copy": True}
    ours = vs.HDBSCAN(algorithm=algorithm, **words).fit(loose)
    theirs = stock("HDBSCAN")(algorithm=algorithm, **words).fit(loose)
    expanded = algorithm == "brute" and metric == "euclidean"
    lengths = ours._single_linkage_tree_["value"]
    tolerance = 2 * DISTANCE * lengths if not expanded else 6 * (D + 2) * EPS * (loose**2).sum(axis=1).max() / lengths
    near(lengths, theirs._single_linkage_tree_["value"], tolerance)
    same(np.sort(lengths), lengths)
    assert counts("_hdbscan_brute" if algorithm == "brute" else "_hdbscan_prims")["ours"] == 1
    tree = vc.minimum_spanning_tree(loose, min_samples=5, metric=metric, alpha=1.0 if algorithm == "brute" else alpha)
    same(lengths, tree.lengths / alpha if algorithm == "brute" else tree.lengths)


@pytest.mark.parametrize("method", ["eom", "leaf"])
def test_hdbscan_labels(method, loose):
    """Without core distances no two edges are equally long."""
    for size in (2, 5, 20):
        words = {"min_cluster_size": size, "min_samples": 1, "cluster_selection_method": method, "copy": True}
        theirs = stock("HDBSCAN")(**words, store_centers="both", **FULL).fit(loose)
        ours = vs.HDBSCAN(**words, store_centers="both").fit(loose)
        same(ours.labels_, theirs.labels_)
        near(ours.probabilities_, theirs.probabilities_, 4 * DISTANCE)
        near(ours.centroids_, theirs.centroids_, 2 * 300 * EPS * 32)
        same(ours.medoids_, theirs.medoids_)
        same(ours.dbscan_clustering(1.0), theirs.dbscan_clustering(1.0))
        found = vc.hdbscan(loose, min_cluster_size=size, min_samples=1, selection=method)
        near(ours.probabilities_, found.probabilities, 4 * DISTANCE)
        assert len(set(zip(ours.labels_, found.labels))) == found.clusters + (found.noise > 0)


def test_hdbscan_of_rows_with_holes(loose):
    rows = loose.copy()
    rows[3, 1], rows[7, 0] = np.nan, np.inf
    ours, theirs = (cls(min_samples=1, copy=True).fit(rows) for cls in (vs.HDBSCAN, stock("HDBSCAN")))
    same(ours.labels_, theirs.labels_)
    assert ours.labels_[3] == -3 and ours.labels_[7] == -2 and counts("_hdbscan_prims")["ours"] == 1


@pytest.mark.filterwarnings("ignore:All reachability values are inf")
@pytest.mark.parametrize("algorithm", ["auto", "brute", "ball_tree"])
@pytest.mark.parametrize(
    "words",
    [
        {},
        {"min_samples": 0.05, "max_eps": 2.5},
        {"cluster_method": "dbscan", "max_eps": 4.0, "eps": 2.5},
        {"min_samples": 12, "xi": 0.1, "min_cluster_size": 20, "predecessor_correction": False},
    ],
)
def test_optics(algorithm, words, loose):
    """By manhattan: of euclidean scikit-learn computes core distances and distances in two ways."""
    rows = loose[:40] if algorithm == "brute" else loose[:150]  # scikit-learn takes milliseconds a row
    theirs = stock("OPTICS")(metric="manhattan", algorithm=algorithm, **words).fit(rows)
    ours = vs.OPTICS(metric="manhattan", algorithm=algorithm, **words).fit(rows)
    same(ours.ordering_, theirs.ordering_)
    same(ours.predecessor_, theirs.predecessor_)
    same(ours.labels_, theirs.labels_)
    for name in ("reachability_", "core_distances_"):
        left, right = getattr(ours, name), getattr(theirs, name)
        same(np.isinf(left), np.isinf(right))
        near(left[np.isfinite(left)], right[np.isfinite(right)], 2e-15 + 2 * DISTANCE * 20)
    if "cluster_method" not in words:
        same(ours.cluster_hierarchy_, theirs.cluster_hierarchy_)
    assert counts("compute_optics_graph") == {"ours": 1, "stock": {}}


def test_optics_of_a_cache(loose, tmp_path):
    expected = vs.OPTICS(max_eps=3.0).fit(loose)
    for _ in range(2):
        again = vs.OPTICS(max_eps=3.0, memory=str(tmp_path)).fit(loose)
        same(again.reachability_, expected.reachability_)
        same(again.labels_, expected.labels_)
    assert counts("compute_optics_graph")["ours"] == 2


def test_optics_warns_as_scikit_learn(loose):
    with pytest.warns(UserWarning, match="All reachability values are inf"):
        assert (vs.OPTICS(max_eps=1e-3).fit(loose).labels_ == -1).all()


LEFT = {
    "precomputed": ({"metric": "precomputed"}, "a metric that vicinal does not have"),
    "a function": ({"metric": lambda a, b: abs(a - b).sum()}, "a metric that vicinal does not have"),
    "canberra": ({"metric": "canberra"}, "a metric that vicinal does not have"),
    "weights of columns": (
        {"metric": "minkowski", "metric_params": {"p": 2, "w": np.ones(D)}},
        "parameters of the metric",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", LEFT)
@pytest.mark.parametrize("name", ["DBSCAN", "HDBSCAN", "OPTICS"])
def test_what_is_left(name, case, loose):
    words, reason = LEFT[case]
    if name == "HDBSCAN" and case == "weights of columns":
        words = {**words, "algorithm": "ball_tree"}
    rows = loose[:60]
    if case == "precomputed":
        rows = np.abs(rows[:, None] - rows[None]).sum(-1)
    more = {"eps": 2.5} if name == "DBSCAN" else {"copy": True} if name == "HDBSCAN" else {}
    ours, theirs = (cls(**words, **more).fit(rows) for cls in (getattr(vs, name), stock(name)))
    same(ours.labels_, theirs.labels_)
    left = {}
    for hook in ("DBSCAN.fit", "_hdbscan_brute", "_hdbscan_prims", "compute_optics_graph"):
        left.update(counts(hook)["stock"])
    assert left == {reason: 1}


def test_over_memory(loose):
    many = np.tile(loose, (20, 1))
    for cls, words in ((vs.DBSCAN, {}), (vs.HDBSCAN, {"copy": True}), (vs.OPTICS, {})):
        with pytest.raises(vc.OverMemory, match="memory limit"):
            cls(memory_limit=100_000, **words).fit(many)


@pytest.mark.filterwarnings("ignore")
def test_predictions_are_those_of_hdbscan(loose):
    """The package takes the best of 2 min_samples neighbors; where the best of all is another row, the reach is smaller.
    Its `min_samples` does not count the row itself."""
    theirs = pytest.importorskip("hdbscan")
    rows = np.random.default_rng(8).normal(size=(90, D)) + 4.2 * (np.arange(90) % 3)[:, None]
    made = theirs.HDBSCAN(min_cluster_size=8, min_samples=6, prediction_data=True).fit(loose)
    labels, probabilities = theirs.approximate_predict(made, rows)
    index = vc.Index(loose)
    model = vc.HdbscanModel(index, vc.hdbscan(index, min_cluster_size=8, min_samples=6, count_self=False))
    found = model.predict(rows)
    assert len(set(zip(labels.tolist(), found.labels.tolist()))) == len(set(labels.tolist())) > 2
    near(found.probabilities, probabilities, 4 * DISTANCE)
