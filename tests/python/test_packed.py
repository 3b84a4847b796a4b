"""What an Index keeps of its packed rows: the answers are the same with every word, and files and pickles have them."""

import pickle

import numpy as np
import pytest
import vicinal as vc

ROWS = np.random.default_rng(5).standard_normal((4000, 32)).astype(np.float32)


def same(a, b):
    np.testing.assert_array_equal(a.ids, b.ids)
    np.testing.assert_array_equal(a.distances, b.distances)


@pytest.mark.parametrize("packed", ["automatic", "never", "now"])
def test_answers_do_not_depend_on_it(packed, tmp_path):
    index = vc.Index(ROWS, packed=packed)
    for queries in (1, 30, 1):
        same(index.knn(ROWS[:queries] + 0.5, k=5), vc.knn(ROWS, ROWS[:queries] + 0.5, k=5, method="direct"))
    index.save(tmp_path / "rows.vidx")
    wanted = index.knn(ROWS[7:9], k=3)
    same(vc.Index.load(tmp_path / "rows.vidx").knn(ROWS[7:9], k=3), wanted)
    same(pickle.loads(pickle.dumps(index)).knn(ROWS[7:9], k=3), wanted)


def test_few_queries_are_screened_once_rows_are_packed():
    assert vc.Index(ROWS, packed="never").knn(ROWS[:2], k=3).plan.method == "direct"
    assert vc.Index(ROWS, packed="now").knn(ROWS[:2], k=3).plan.method == "fused"


def test_other_words_are_refused():
    with pytest.raises(vc.InvalidArgument, match="packed"):
        vc.Index(ROWS, packed="always")


@pytest.mark.parametrize("pruned", ["automatic", "never", "now"])
def test_answers_do_not_depend_on_pruned_rows(pruned, tmp_path):
    rows = ROWS / (1 + np.arange(32, dtype=np.float32)) ** 2
    index = vc.Index(rows, pruned=pruned)
    for queries in (1, 30, 1):
        same(index.knn(rows[:queries] + 0.5, k=5), vc.knn(rows, rows[:queries] + 0.5, k=5, method="direct"))
    index.save(tmp_path / "rows.vidx")
    same(vc.Index.load(tmp_path / "rows.vidx").knn(rows[7:9], k=3), index.knn(rows[7:9], k=3))
