"""What .plot() draws, counted on matplotlib's axes without a screen."""

import numpy as np
import pytest

import vicinal as vc

try:
    import matplotlib
except ImportError:
    matplotlib = None
else:
    matplotlib.use("Agg")
pytestmark = pytest.mark.skipif(matplotlib is None, reason="needs matplotlib")


@pytest.fixture
def axes():
    from matplotlib import pyplot

    yield pyplot.subplots()[1]
    pyplot.close("all")


def texts(axes):
    legend = axes.get_legend()
    return axes.get_xlabel(), axes.get_ylabel(), [text.get_text() for text in legend.get_texts()] if legend else []


def test_graph(rows, axes):
    graph = vc.knn(rows, k=4)
    assert graph.plot(axes) is axes
    assert texts(axes) == ("distance (euclidean)", "queries", ["nearest neighbor", "neighbor 4"])
    first, last = axes.containers
    for container, column in ((first, 0), (last, -1)):
        assert sum(bar.get_height() for bar in container) == 300
        drawn = [bar for bar in container if bar.get_height() > 0]
        reach = graph.distances[:, column].min(), graph.distances[:, column].max()
        assert drawn[0].get_x() - 1e-9 <= reach[0] <= drawn[0].get_x() + drawn[0].get_width() + 1e-9
        assert drawn[-1].get_x() - 1e-9 <= reach[1] <= drawn[-1].get_x() + drawn[-1].get_width() + 1e-9


def test_radius_graph(rows, axes):
    graph = vc.radius(rows, radius=2.0, metric="manhattan")
    graph.plot(axes)
    assert texts(axes) == ("distance (manhattan)", "neighbors", ["all neighbors"])
    assert sum(bar.get_height() for bar in axes.containers[0]) == graph.ids.size


def test_lof(rows, axes):
    found = vc.lof(rows, k=8)
    found.plot(axes)
    assert texts(axes) == (
        "rows, most outlying first",
        "outlier score",
        ["scores", f"threshold: {found.outliers} rows above"],
    )
    scores, threshold = axes.lines
    assert scores.get_ydata().tolist() == sorted(found.scores.tolist(), reverse=True)
    assert scores.get_xdata().tolist() == list(range(1, 301)) and set(threshold.get_ydata()) == {found.threshold}


def test_scores_without_a_threshold(rows, axes):
    vc.lof(rows, k=8, score="knn").plot(axes)
    assert len(axes.lines) == 1


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_kmeans(rows, axes, metric):
    model = vc.kmeans(rows, clusters=3, seed=1, metric=metric)
    model.plot(rows, axes)
    points, centres = axes.collections
    assert points.get_offsets().shape == (300, 2) and centres.get_offsets().shape == (3, 2)
    assert points.get_array().tolist() == model.labels.tolist()
    # A center is where the mean of its rows is; those of cosine have length one.
    if metric == "euclidean":
        for cluster in range(3):
            mean = np.asarray(points.get_offsets())[model.labels == cluster].mean(axis=0)
            np.testing.assert_allclose(centres.get_offsets()[cluster], mean, atol=1e-9)
    spread = np.asarray(points.get_offsets()).var(axis=0)
    assert spread[0] > spread[1]
    across, up, legend = texts(axes)
    assert across.startswith("first principal axis (") and across.endswith("% of the variance)")
    assert up.startswith("second principal axis (") and legend == ["centers"]


def test_kmeans_of_other_rows_and_of_one_column(rows, queries, axes):
    vc.kmeans(rows, clusters=3).plot(queries, axes)
    assert len(axes.collections[0].get_offsets()) == 40
    axes.clear()
    vc.kmeans(rows[:, :1], clusters=2).plot(rows[:, :1], axes)
    assert set(axes.collections[0].get_offsets()[:, 1]) == {0}


def test_kmeans_of_scaled_columns_is_refused(rows, tmp_path, run, axes):
    np.save(tmp_path / "table.npy", rows)
    for options in (["--scale", "standard"], []):
        run("kmeans", "table.npy", "-c", 3, *options, "--save-model", "model.vkm")
        model = vc.KMeans.load(tmp_path / "model.vkm")
        if options:
            with pytest.raises(vc.InvalidArgument, match="plot: the columns of this model were scaled") as caught:
                model.plot(rows, axes)
            assert "\n" not in str(caught.value) and not axes.collections
        else:
            assert model.plot(rows, axes) is axes and len(axes.collections) == 2


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_kmeans_of_a_sparse_table(rows, axes, metric):
    sparse = pytest.importorskip("scipy.sparse")
    model = vc.kmeans(rows, clusters=3, seed=1, metric=metric)
    model.plot(sparse.csr_array(rows), axes)
    assert axes.collections[0].get_array().tolist() == model.labels.tolist()


def test_dbscan(rows, axes):
    found = vc.dbscan(rows, eps=1.2, min_samples=4)
    assert found.plot(rows, axes) is axes
    drawn = [len(part.get_offsets()) for part in axes.collections]
    assert drawn == [found.noise, *found.sizes] and found.noise > 0
    names = ["noise", *(f"cluster {cluster}" for cluster in range(min(found.clusters, 10)))]
    assert texts(axes)[2] == names and texts(axes)[0].startswith("first principal axis (")
    with pytest.raises(vc.InvalidArgument, match="table: 299 rows; expected the 300 that were clustered"):
        found.plot(rows[1:], axes)


def test_hdbscan(rows, axes):
    found = vc.hdbscan(rows, min_cluster_size=10)
    assert found.plot(axes=axes) is axes
    assert texts(axes)[:2] == ("rows", "distance") and axes.get_yscale() == "log"
    (bars,) = axes.containers
    assert [bar.get_width() for bar in bars] == found.tree.sizes.tolist()
    for bar, parent, birth in zip(bars, found.tree.parents.tolist(), found.tree.births.tolist()):
        if parent >= 0:  # hangs from its birth, within its parent
            assert bar.get_y() + bar.get_height() == pytest.approx(birth)
            assert bars[parent].get_x() <= bar.get_x()
            assert bar.get_x() + bar.get_width() <= bars[parent].get_x() + bars[parent].get_width()
    axes.clear()
    found.plot(rows, axes)
    assert sum(len(part.get_offsets()) for part in axes.collections) == 300


def test_hdbscan_of_equal_rows(axes):
    vc.hdbscan(np.ones((12, 2))).plot(axes=axes)
    assert axes.get_yscale() == "linear" and len(axes.containers[0]) == 1


def test_optics(rows, axes):
    order = vc.optics(rows)
    found = vc.optics_xi(order)
    assert order.plot(found, axes) is axes
    named = (["noise"] if found.noise else []) + [f"cluster {cluster}" for cluster in range(min(found.clusters, 10))]
    assert texts(axes) == ("rows in their order", "reachability", named)
    assert len(axes.collections) == found.clusters + (found.noise > 0)
    axes.clear()
    order.plot(axes=axes)
    (area,) = axes.collections
    (outline,) = [path.vertices for path in area.get_paths()]
    highest = order.reachability[np.isfinite(order.reachability)].max()
    assert outline[:, 1].max() == highest and outline[:, 0].min() == 0 and outline[:, 0].max() == 300
    expected = np.minimum(order.reachability[order.ordering], highest)
    assert {(place, height) for place, height in enumerate(expected)} <= set(map(tuple, outline.tolist()))


def test_lle(rows, axes):
    found = vc.lle(rows, k=8)
    found.plot(axes=axes)
    assert np.array_equal(axes.collections[0].get_offsets(), found.embedding)
    assert axes.collections[0].get_array().tolist() == found.piece.tolist()
    assert texts(axes)[:2] == ("first column of the embedding", "second column of the embedding")
    axes.clear()
    vc.lle(rows, k=8, dim=1).plot(np.arange(300), axes)
    assert axes.get_ylabel() == "row" and axes.collections[0].get_array().tolist() == list(range(300))


def test_classification(rows, queries, axes):
    labels = np.array(["bee", "ant", "cat"])[np.arange(len(rows)) % 3]
    found = vc.classify(rows, queries, labels, k=5)
    truth = np.where(np.arange(40) < 2, "dog", found.labels)
    found.plot(truth, axes)
    matrix = np.asarray(axes.images[0].get_array())
    assert matrix.shape == (4, 4) and matrix.sum() == 40 and matrix[:3, :3].sum() == matrix.trace() == 38
    assert [text.get_text() for text in axes.texts] == [str(number) for number in matrix.ravel()]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["ant", "bee", "cat", "dog"]
    assert texts(axes)[:2] == ("class by the neighbors", "true class")
    with pytest.raises(vc.InvalidArgument, match=r"truth: shape \(3,\); expected a class for each of 40 queries"):
        found.plot(truth[:3])


def test_classification_without_neighbors(rows, axes):
    far = np.vstack([rows[:2], np.full((1, 5), 1e6)])
    vc.classify(rows, far, np.arange(300) % 2, radius=1.0).plot([0, 1, 1], axes)
    assert np.asarray(axes.images[0].get_array()).tolist() == [[1, 0, 0], [0, 1, 1]]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "1", "no neighbors"]


def test_cross_validation(rows, axes):
    found = vc.cross_validate(rows, np.arange(len(rows)) % 3, k=2, k_to=6, folds=4)
    found.plot(axes)
    scores, best = axes.lines
    assert scores.get_xdata().tolist() == [2, 3, 4, 5, 6] and scores.get_ydata().tolist() == found.scores.tolist()
    assert set(best.get_xdata()) == {found.k}
    assert texts(axes) == (
        "neighbors",
        "accuracy",
        ["all folds", "range over the folds", f"best: {found.k} neighbors"],
    )
    axes.clear()
    vc.cross_validate(rows, targets=rows[:, 0], k=1, k_to=3, folds=4).plot(axes)
    assert axes.get_ylabel() == "mean squared error"


def test_new_axes(rows):
    from matplotlib import pyplot

    axes = vc.knn(rows, k=2).plot()
    assert axes.figure in [pyplot.figure(number) for number in pyplot.get_fignums()]
    pyplot.close("all")


def test_without_matplotlib(rows, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(vc.InvalidArgument, match=r"plot: needs matplotlib.*install vicinal\[plot\]"):
        vc.knn(rows, k=2).plot()
