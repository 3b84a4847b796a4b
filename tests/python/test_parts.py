"""knn_part, radius_part, count_part and merge: the same bits as the whole search, also through pickles and files."""

import pickle

import numpy as np
import pytest

import vicinal as vc

TABLE = np.random.default_rng(4).integers(0, 6, (150, 3)) / 4
QUERIES = np.random.default_rng(5).integers(0, 6, (40, 3)) / 4
CUTS = [(60, 62), (0, 60), (90, 150), (62, 90)]


def parts_of(search, queries, **options):
    place = {"same_rows": queries is TABLE, "total_rows": 150, "total_queries": len(queries)}
    return [search(TABLE[begin:end], queries, first_id=begin, **place, **options) for begin, end in CUTS]


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "minkowski"])
@pytest.mark.parametrize("queries", [TABLE, QUERIES], ids=["self", "queries"])
def test_merged_parts_are_the_whole(metric, queries):
    asked = None if queries is TABLE else QUERIES
    options = {"metric": metric, "p": 1.5}
    whole = vc.knn(TABLE, asked, k=7, **options)
    graph = vc.merge(parts_of(vc.knn_part, queries, k=7, **options))
    assert (graph.ids == whole.ids).all() and (graph.distances == whole.distances).all()
    assert (graph.table_rows, graph.k, graph.metric) == (150, 7, metric)
    near = vc.radius(TABLE, asked, radius=0.5, **options)
    merged = vc.merge(parts_of(vc.radius_part, queries, radius=0.5, **options))
    assert (merged.ids == near.ids).all() and (merged.offsets == near.offsets).all()
    assert (merged.distances == near.distances).all()
    counts = vc.merge(parts_of(vc.count_part, queries, radius=0.5, **options))
    assert isinstance(counts, vc.NeighborCounts)
    assert (counts.counts == vc.count(TABLE, asked, radius=0.5, **options).counts).all()


def test_parts_travel(tmp_path):
    parts = parts_of(vc.knn_part, TABLE, k=5)
    whole = vc.knn(TABLE, k=5)
    again = pickle.loads(pickle.dumps(parts))
    assert (vc.merge(again).ids == whole.ids).all()
    paths = []
    for part in parts:
        paths.append(tmp_path / f"{part.first_id}.part")
        part.save(paths[-1])
    assert (vc.merge([parts[0], *map(str, paths[1:3]), paths[3]]).ids == whole.ids).all()
    loaded = vc.Part.load(paths[0])
    assert (loaded.first_id, loaded.rows, loaded.self_excluded, loaded.kind) == (60, 2, True, "knn")
    assert (loaded.keys == parts[0].keys).all() and (loaded.offsets == parts[0].offsets).all()


def test_an_index_serves_many_queries():
    parts = []
    for begin, end in CUTS:
        index = vc.Index(TABLE[begin:end])
        for first in range(0, 150, 50):
            place = {"first_id": begin, "first_query": first, "same_rows": True}
            parts.append(vc.knn_part(index, TABLE[first : first + 50], k=4, **place))
    assert (vc.merge(parts).ids == vc.knn(TABLE, k=4).ids).all()


def test_what_is_refused(tmp_path):
    first, *others = parts_of(vc.knn_part, TABLE, k=5)
    with pytest.raises(vc.InvalidArgument, match="rows 60 to 61 are missing"):
        vc.merge(others)
    with pytest.raises(vc.InvalidArgument, match="both have rows 60 to 61"):
        vc.merge([first, first, *others])
    with pytest.raises(vc.InvalidArgument, match="there are none"):
        vc.merge([])
    with pytest.raises(vc.InvalidArgument, match="Parts or paths"):
        vc.merge([TABLE])
    with pytest.raises(vc.InvalidArgument, match="first_id"):
        vc.knn_part(TABLE, TABLE, first_id=-1)
    with pytest.raises(TypeError, match="did you mean 'first_id'"):
        vc.knn_part(TABLE, TABLE, firstid=1)
    (tmp_path / "x.part").write_bytes(b"nothing")
    with pytest.raises(vc.BadData, match="too short"):
        vc.merge([tmp_path / "x.part"])
    with pytest.raises(vc.FileError):
        vc.Part.load(tmp_path / "none.part")
