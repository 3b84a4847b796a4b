"""Results: what they show, what others take of them, and that they pickle."""

import pickle

import numpy as np
import pytest
from conftest import same

import vicinal as vc


def test_fields_do_not_change(rows):
    graph = vc.knn(rows, k=3)
    with pytest.raises(AttributeError, match="NeighborGraph.k cannot be set"):
        graph.k = 4
    with pytest.raises(ValueError, match="read-only"):
        graph.ids[0, 0] = 5


def test_plan_and_stats(rows):
    graph = vc.knn(rows, k=3, method="direct", device="cpu")
    assert graph.plan.method == "direct" and graph.plan.device == "cpu" and graph.plan.memory > 0 and graph.plan.reason
    assert graph.stats.search_seconds >= 0
    assert "method='direct'" in repr(graph.plan)
    assert "ids=int64 [300, 3]" in repr(graph)


def test_html(rows):
    page = vc.kmeans(rows, clusters=3)._repr_html_()
    assert page.startswith("<table>") and "<th>centres</th><td>float64 [3, 5]</td>" in page
    assert "&lt;" in vc.Plan({"reason": "<b>"})._repr_html_()


def test_rows_of_a_graph(rows):
    graph, lists = vc.knn(rows, k=3), vc.radius(rows, radius=2.0)
    assert len(graph) == len(lists) == 300
    same(graph[5][0], graph.ids[5])
    ids, distances = lists[-1]
    same(ids, lists.ids[lists.offsets[-2] :])
    assert (np.diff(distances) >= 0).all()
    with pytest.raises(IndexError):
        graph[300]


@pytest.mark.parametrize("make", [lambda rows: vc.knn(rows, k=4), lambda rows: vc.radius(rows, radius=2.0)])
def test_csr(rows, make):
    pytest.importorskip("scipy")
    graph = make(rows)
    matrix = graph.csr()
    assert matrix.shape == (300, 300) and matrix.nnz == graph.ids.size
    ids, distances = graph[7]
    same(matrix.indices[matrix.indptr[7] : matrix.indptr[8]].astype(np.int64), ids)
    same(matrix.data[matrix.indptr[7] : matrix.indptr[8]], distances)


def test_csr_is_what_dbscan_takes(rows):
    cluster = pytest.importorskip("sklearn.cluster")
    matrix = vc.radius(rows, radius=2.0).csr()
    found = cluster.DBSCAN(eps=2.0, min_samples=4, metric="precomputed").fit(matrix).labels_
    assert found.tolist() == cluster.DBSCAN(eps=2.0, min_samples=4, algorithm="brute").fit(rows).labels_.tolist()


def test_umap(rows):
    ids, distances, index = vc.knn(rows, k=4).umap()
    assert ids.dtype == np.int32 and distances.dtype == np.float32 and index is None and ids.shape == (300, 5)
    assert ids[:, 0].tolist() == list(range(300)) and (distances[:, 0] == 0).all()
    same(ids[:, 1:].astype(np.int64), vc.knn(rows, k=4).ids)
    with pytest.raises(vc.InvalidArgument, match="lists differ in length"):
        vc.radius(rows, radius=2.0).umap()


def test_symmetric(rows):
    graph = vc.symmetrize(vc.knn(rows, k=3))
    pairs = {(i, int(j)) for i in range(len(graph)) for j in graph[i][0]}
    assert pairs == {(j, i) for i, j in pairs}
    mutual = vc.symmetrize(vc.knn(rows, k=3), symmetry="mutual")
    assert {(i, int(j)) for i in range(len(mutual)) for j in mutual[i][0]} <= pairs


def test_pickle(rows, queries):
    for graph in (vc.knn(rows, k=3, metric="minkowski", p=3), vc.radius(rows, queries, radius=2.0)):
        again = pickle.loads(pickle.dumps(graph))
        same(again.ids, graph.ids)
        same(again.distances, graph.distances)
        assert (again.metric, again.p, again.table_rows, again.k) == (graph.metric, graph.p, graph.table_rows, graph.k)
    index = pickle.loads(pickle.dumps(vc.Index(rows)))
    same(index.knn(queries, k=3).ids, vc.knn(rows, queries, k=3).ids)
    model = vc.kmeans(rows, clusters=3)
    again = pickle.loads(pickle.dumps(model))
    same(again.labels, model.labels)
    same(again.predict(queries), model.predict(queries))
    assert again.inertia == model.inertia


def test_graph_of_arrays(rows):
    made = vc.knn(rows, k=3)
    given = vc.NeighborGraph.of(made.ids, made.distances, table_rows=300)
    same(vc.lof(given, k=3).scores, vc.lof(made, k=3).scores)
    assert given.copied == made.ids.nbytes + made.distances.nbytes
    lists = vc.radius(rows, radius=2.0)
    given = vc.NeighborGraph.of(lists.ids, lists.distances, table_rows=300, offsets=lists.offsets)
    same(given[4][0], lists[4][0])


def test_votes_without_neighbors(rows):
    far = np.vstack([rows[:2], np.full((1, 5), 1e6)])
    found = vc.classify(rows, far, np.array(["a", "b"])[np.arange(300) % 2], radius=1.0)
    assert found.codes[2] == -1
    with pytest.raises(vc.InvalidArgument, match="outlier: 1 queries have no neighbors, such as query 2"):
        found.labels
    assert found.filled("none").tolist()[2] == "none"


def test_progress(rows):
    told = []
    vc.knn(np.repeat(rows, 20, axis=0), k=3, progress=lambda stage, fraction: told.append((stage, fraction)))
    assert told and all(isinstance(stage, str) and 0 <= fraction <= 1 for stage, fraction in told)
    pytest.importorskip("tqdm")
    vc.knn(rows, k=3, progress=True)
