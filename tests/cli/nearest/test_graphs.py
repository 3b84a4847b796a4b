"""Graphs for other programs: rows among their own neighbors, symmetric lists, scipy's matrices, float32; what
scikit-learn makes of them, and the layouts that UMAP and scanpy ask for (docs/graphs.md)."""

import numpy as np
import pytest

scipy_sparse = pytest.importorskip("scipy.sparse")
neighbors = pytest.importorskip("sklearn.neighbors")


@pytest.fixture
def table(small_files):
    return small_files["train"][0]


@pytest.fixture
def copies(tmp_path):
    """Rows of which most have copies: a search of the table as queries does not find each row first."""
    table = np.random.default_rng(3).integers(0, 3, (80, 2)).astype(float)
    np.save(tmp_path / "copies.npy", table)
    return table


def lists_of(path):
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def matrix_of(path):
    """Dense, NaN where there is no entry: distances of 0 are entries."""
    matrix = scipy_sparse.load_npz(path).tocoo()
    dense = np.full(matrix.shape, np.nan)
    dense[matrix.row, matrix.col] = matrix.data
    return dense


def test_each_row_first(ok, tmp_path, copies):
    """The layout of UMAP's precomputed_knn: [n, k], the row itself first at distance 0."""
    ok("knn", "copies.npy", "-k", 5, "-o", "others.npz")
    ok("knn", "copies.npy", "-k", 6, "--include-self", "-o", "lists.npz")
    others, lists = lists_of(tmp_path / "others.npz"), lists_of(tmp_path / "lists.npz")
    assert lists["ids"].shape == lists["distances"].shape == (80, 6)
    assert (lists["ids"][:, 0] == range(80)).all() and (lists["distances"][:, 0] == 0).all()
    assert (lists["ids"][:, 1:] == others["ids"]).all() and (lists["distances"][:, 1:] == others["distances"]).all()
    ok("radius", "copies.npy", "-r", 1, "-o", "near.npz")
    ok("radius", "copies.npy", "-r", 1, "--include-self", "-o", "with.npz")
    near, including = lists_of(tmp_path / "near.npz"), lists_of(tmp_path / "with.npz")
    assert (np.diff(including["offsets"]) == np.diff(near["offsets"]) + 1).all()
    assert (including["ids"][including["offsets"][:-1]] == range(80)).all()


def test_symmetric_lists(ok, ok_json, tmp_path, copies, table):
    for name, rows in (("copies", copies), ("train", table)):
        ok("knn", f"{name}.npy", "-k", 4, "--layout", "scipy", "-o", "lists.npz")
        one_way = matrix_of(tmp_path / "lists.npz")
        for symmetric, wanted in (("union", ~np.isnan(one_way) | ~np.isnan(one_way.T)),
                                  ("mutual", ~np.isnan(one_way) & ~np.isnan(one_way.T))):
            told = ok_json("knn", f"{name}.npy", "-k", 4, "--symmetric", symmetric, "-o", "made.npz")
            assert told["symmetric"] == symmetric and told["neighbors"] == wanted.sum()
            made = lists_of(tmp_path / "made.npz")
            ids, distances = (np.split(made[key], made["offsets"][1:-1]) for key in ("ids", "distances"))
            for i, (found, apart) in enumerate(zip(ids, distances)):
                assert sorted(found) == np.flatnonzero(wanted[i]).tolist()
                assert (np.lexsort((found, apart)) == range(len(found))).all()
                exact = np.sqrt(((rows[i] - rows[found]) ** 2).sum(axis=1))
                assert not (np.abs(apart - exact) > 1e-12).any()
    ok("knn", "train.npy", "-k", 5, "--symmetric", "mutual", "--include-self", "-o", "made.npz")
    made = lists_of(tmp_path / "made.npz")
    assert (made["ids"][made["offsets"][:-1]] == range(len(table))).all()


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "manhattan", "chebyshev", "minkowski", "cosine",
                                    "inner_product", "hamming"])
def test_lists_within_a_radius_are_symmetric(ok, ok_json, tmp_path, copies, table, metric):
    """By every metric; with a filter each row lists rows of the filter alone, and the others list it in turn."""
    del copies, table
    draws = np.random.default_rng(4)
    np.save(tmp_path / "filter.npy", draws.random(80) < 0.5)
    is_searched = np.load(tmp_path / "filter.npy")
    within = {"cosine": 0.2, "inner_product": -1, "hamming": 0.5}.get(metric, 1.5)
    search = ["radius", "copies.npy", f"--radius={within}", "--metric", metric, *(["--p", 3] if metric == "minkowski" else []),
              "--layout", "scipy"]
    ok(*search, "-o", "near.npz")
    near = matrix_of(tmp_path / "near.npz")
    assert np.array_equal(near, near.T, equal_nan=True) and 0 < (~np.isnan(near)).sum() < near.size - len(near)
    for symmetric, lists in (("union", is_searched[:, None] | is_searched), ("mutual", is_searched[:, None] & is_searched)):
        ok(*search, "--symmetric", symmetric, "-o", "same.npz")
        assert (tmp_path / "same.npz").read_bytes() == (tmp_path / "near.npz").read_bytes()
        told = ok_json(*search, "--symmetric", symmetric, "--filter", "filter.npy", "-o", "some.npz", "--report", "r.html")
        some = matrix_of(tmp_path / "some.npz")
        assert np.array_equal(some, np.where(lists, near, np.nan), equal_nan=True)
        assert told["neighbors"] == (~np.isnan(some)).sum()
        if metric != "inner_product":
            told = ok_json(*search, "--symmetric", symmetric, "--filter", "filter.npy", "--include-self", "-o", "self.npz")
            matrix = scipy_sparse.load_npz(tmp_path / "self.npz")
            assert (matrix.indices[matrix.indptr[:-1]] == range(80)).all()
            assert told["neighbors"] == matrix.nnz == (~np.isnan(some)).sum() + 80
            assert told["first_rows"][3]["ids"][0] == 3 and told["first_rows"][3]["distances"][0] == 0


def test_matrices_are_scikit_learns(ok, tmp_path, table):
    """Also what scanpy's transformers return: n_neighbors entries a row, the row itself among them."""
    ok("knn", "train.npy", "-k", 7, "--include-self", "--layout", "scipy", "-o", "matrix.npz")
    matrix = scipy_sparse.load_npz(tmp_path / "matrix.npz")
    assert matrix.format == "csr" and matrix.shape == (120, 120) and matrix.dtype == np.float64
    assert {"array format: one |S3", "array indptr: 121 of <i4"} <= set(ok("info", "matrix.npz").splitlines())
    assert matrix.indices.dtype == np.int32 and (np.diff(matrix.indptr) == 7).all()
    assert (matrix.indices[::7] == range(120)).all() and (matrix.data[::7] == 0).all()
    peer = neighbors.kneighbors_graph(table, 7, mode="distance", include_self=True)
    assert not np.abs((matrix - peer).toarray()).max() > 1e-12
    ok("knn", "train.npy", "test.npy", "-k", 3, "--layout", "scipy", "-o", "queries.npz")
    assert scipy_sparse.load_npz(tmp_path / "queries.npz").shape == (30, 120)
    ok("radius", "train.npy", "-r", 2, "--layout", "scipy", "-o", "near.npz")
    peer = neighbors.radius_neighbors_graph(table, 2, mode="distance", include_self=False)
    near = scipy_sparse.load_npz(tmp_path / "near.npz")
    assert near.nnz == peer.nnz and not np.abs((near - peer).toarray()).max() > 1e-12


def test_distances_as_float32(vicinal, ok, tmp_path, table):
    for layout, key in (("lists", "distances"), ("scipy", "data")):
        ok("knn", "train.npy", "-k", 5, "--layout", layout, "-o", "wide.npz")
        ok("knn", "train.npy", "-k", 5, "--layout", layout, "--distances", "float32", "-o", "narrow.npz")
        wide, narrow = lists_of(tmp_path / "wide.npz"), lists_of(tmp_path / "narrow.npz")
        assert narrow[key].dtype == np.float32 and (narrow[key] == wide[key].astype(np.float32)).all()
        assert wide.keys() == narrow.keys()
        assert all((wide[name] == narrow[name]).all() for name in wide if name != key)
    np.save(tmp_path / "far.npy", np.array([[0.0], [1.0], [1e39]]))
    done = vicinal("knn", "far.npy", "-k", 1, "--distances", "float32", "-o", "far.npz")
    assert done.returncode == 3 and "row 2 has the distance 1e+39, beyond the range of float32" in done.stderr
    done = vicinal("radius", "far.npy", "-r", "1e50", "--distances", "float32", "-o", "far.npz")
    assert done.returncode == 3 and "row 0 has the distance 1e+39, beyond the range of float32" in done.stderr
    assert sorted(path.name for path in tmp_path.glob("*far*")) == ["far.npy"]
    for layout, key in (("lists", "distances"), ("scipy", "data")):
        search = ["radius", "train.npy", "-r", 2, "--layout", layout]
        ok(*search, "-o", "wide.npz")
        ok(*search, "--distances", "float32", "-o", "narrow.npz")
        wide, narrow = lists_of(tmp_path / "wide.npz"), lists_of(tmp_path / "narrow.npz")
        assert narrow[key].dtype == np.float32 and (narrow[key] == wide[key].astype(np.float32)).all()


def test_what_scikit_learn_makes_of_them(ok, tmp_path, table):
    cluster = pytest.importorskip("sklearn.cluster")
    ok("radius", "train.npy", "-r", 1.5, "--layout", "scipy", "-o", "near.npz")
    near = scipy_sparse.load_npz(tmp_path / "near.npz")
    found = cluster.DBSCAN(eps=1.5, min_samples=4, metric="precomputed").fit_predict(near)
    assert (found == cluster.DBSCAN(eps=1.5, min_samples=4).fit_predict(table)).all() and found.max() > 0
    ok("knn", "train.npy", "-k", 6, "--include-self", "--layout", "scipy", "-o", "six.npz")
    labels = np.load(tmp_path / "train_labels.npy")
    six = scipy_sparse.load_npz(tmp_path / "six.npz")
    peer = neighbors.KNeighborsClassifier(5, metric="precomputed").fit(six, labels)
    assert (peer.predict(six) == neighbors.KNeighborsClassifier(5).fit(table, labels).predict(table)).all()


REFUSED = [
    (["knn", "train.npy", "test.npy", "--include-self"], "--include-self: needs the graph of a table within itself"),
    (["knn", "train.npy", "test.npy", "--symmetric", "union"], "--symmetric: needs the graph of a table"),
    (["knn", "train.npy", "--include-self", "--metric", "inner_product"], "--include-self: by inner_product"),
    (["knn", "train.npy", "--include-self", "-k", "1"], "-k: is 1, must be at least 2"),
    (["knn", "train.npy", "--layout", "scipy"], "--layout: needs an output file, -o FILE.npz"),
    (["knn", "train.npy", "--layout", "scipy", "-o", "a.csv"], "--layout: needs an output file"),
    (["radius", "train.npy", "-r", "1", "--distances", "float32"], "--distances: needs an output file"),
    (["radius", "train.npy", "-r", "1", "--count", "--include-self"], "--include-self: changes lists"),
]


@pytest.mark.parametrize("arguments, part", REFUSED, ids=[part for _, part in REFUSED])
def test_refused(vicinal, tmp_path, table, arguments, part):
    done = vicinal(*arguments)
    assert done.returncode == 2 and part in done.stderr, done.stderr
    assert not (tmp_path / "a.csv").exists()
