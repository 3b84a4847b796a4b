"""Lists by id, a radius for each query, and weights that are given."""

import numpy as np
import pytest

import vicinal as vc

RANDOM = np.random.default_rng(3)
TABLE = RANDOM.normal(size=(400, 3))
QUERIES = RANDOM.normal(size=(70, 3))
RADII = RANDOM.uniform(0, 1.2, size=70)


def test_lists_by_id():
    nearest = vc.radius(TABLE, QUERIES, radius=0.8)
    by_id = vc.radius(TABLE, QUERIES, radius=0.8, order="id")
    assert (by_id.offsets == nearest.offsets).all()
    for (ids, distances), (same_ids, same_distances) in zip(by_id, nearest):
        order = np.argsort(same_ids)
        assert (ids == same_ids[order]).all() and (distances == same_distances[order]).all()
    itself = vc.radius(vc.Index(TABLE), radius=0.5, order="id")
    assert all((np.diff(itself[row][0]) > 0).all() for row in range(len(itself)))


@pytest.mark.parametrize("order", ["key", "id"])
@pytest.mark.parametrize("method", ["automatic", "direct", "kdtree"])
def test_a_radius_for_each_query(order, method):
    graph = vc.radius(TABLE, QUERIES, radius=RADII, order=order, method=method)
    for row, radius in enumerate(RADII):
        alone = vc.radius(TABLE, QUERIES[row : row + 1], radius=radius, order=order)
        assert (graph[row][0] == alone.ids).all() and (graph[row][1] == alone.distances).all()
    assert (vc.count(TABLE, QUERIES, radius=RADII, method=method).counts == np.diff(graph.offsets)).all()
    index = vc.Index(TABLE)
    assert (index.count(QUERIES, radius=list(RADII)).counts == np.diff(graph.offsets)).all()
    labels = np.arange(400) % 3
    assert (
        vc.classify(TABLE, QUERIES, labels, radius=RADII).codes
        == vc.vote(vc.radius(TABLE, QUERIES, radius=RADII), labels).codes
    ).all()


def test_one_radius_of_any_kind():
    expected = vc.radius(TABLE, QUERIES, radius=1.0).ids
    for radius in (1, np.float32(1), np.array(1.0), np.int64(1)):
        assert (vc.radius(TABLE, QUERIES, radius=radius).ids == expected).all()


@pytest.mark.parametrize("graph", [vc.knn(TABLE, QUERIES, k=6), vc.radius(TABLE, QUERIES, radius=0.9)])
def test_weights_that_are_given(graph):
    labels = np.arange(400) % 4
    by_function = lambda distances: np.exp(-distances)  # noqa: E731
    given = by_function(graph.distances)
    for weights in (given, np.asfortranarray(given)):
        vote = vc.vote(graph, labels, weights=weights, probabilities=True)
        expected = vc.vote(graph, labels, weights=by_function, probabilities=True)
        assert (vote.codes == expected.codes).all() and (vote.probabilities == expected.probabilities).all()
        mean = vc.average(graph, TABLE[:, 0], weights=weights, outlier=0.0)
        assert (mean == vc.average(graph, TABLE[:, 0], weights=by_function, outlier=0.0)).all()
    ones = np.ones(graph.ids.shape, np.int32)
    assert (vc.vote(graph, labels, weights=ones).codes == vc.vote(graph, labels).codes).all()


GRAPH = vc.knn(TABLE, QUERIES, k=2)
LABELS = np.arange(400) % 4


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: vc.radius(TABLE, QUERIES, radius=RADII[1:]), "radius: 69 for 70 queries"),
        (lambda: vc.count(TABLE, radius=RADII), "radius: 70 for 400 queries"),
        (lambda: vc.radius(TABLE, QUERIES, radius=-RADII), "radius: that of query 0 is negative"),
        (lambda: vc.radius(TABLE, QUERIES, radius=RADII * np.nan), "radius: that of query 0 is not a number"),
        (lambda: vc.radius(TABLE, QUERIES, radius=RADII[:0]), "radius: is empty"),
        (lambda: vc.count(TABLE, radius=[]), "radius: is empty"),
        (lambda: vc.radius(TABLE, QUERIES, radius=["a"] * 70), "radius: elements of type"),
        (lambda: vc.radius(TABLE, QUERIES, radius="1"), "radius: '1' is not allowed; expected a number"),
        (lambda: vc.radius(TABLE, QUERIES, radius=1, order="distance"), "order.*distance.*key, id"),
        (lambda: vc.vote(GRAPH, LABELS, weights=np.ones((2, 70))), r"weights: shape \[2, 70\]; expected \[70, 2\]"),
        (lambda: vc.vote(GRAPH, LABELS, weights=[[1, 2], [3]]), "weights: .*inhomogeneous"),
        (lambda: vc.vote(GRAPH, LABELS, weights=-np.ones((70, 2))), "query row 0 got the given weight -1 .*negative"),
        (lambda: vc.average(GRAPH, TABLE, weights=np.full((70, 2), np.inf)), "average: query row 0 got .*finite"),
        (lambda: vc.classify(TABLE, QUERIES, LABELS, weights=np.ones((70, 5))), "only vote and average take"),
        (lambda: vc.cross_validate(TABLE, LABELS, weights=np.ones((400, 5))), "arrays are for vote and average"),
        (lambda: vc.use_plugin("gdal", "/tmp/x"), "gdal.*cuda, geo"),
        (lambda: vc.use_plugin("cuda", ""), "path: is empty"),
    ],
)
def test_bad_calls(call, sentence):
    with pytest.raises(vc.InvalidArgument, match=sentence):
        call()


def test_a_plugin_that_is_not_there():
    with pytest.raises(vc.FileError, match="path: there is no file /nowhere/it.so"):
        vc.use_plugin("geo", "/nowhere/it.so")
