"""Sparse matrices of SciPy are tables, and give what their dense arrays give."""

import numpy as np
import pytest
from conftest import same

import vicinal as vc

sparse = pytest.importorskip("scipy.sparse")

ROWS, COLS = 120, 9


def dense(dtype=np.float64, seed=0):
    """Mostly zeros, as whole numbers."""
    draw = np.random.default_rng(seed)
    table = draw.integers(0, 100, (ROWS, COLS)) * (draw.random((ROWS, COLS)) < 0.3)
    table[17] = 0  # a row without entries
    return table.astype(dtype)


def check(matrix, copied=None):
    """`copied`: bytes beside those of the rows that were made dense."""
    graph = vc.knn(matrix, k=4)
    expected = vc.knn(np.asarray(matrix.toarray(), np.float64), k=4)
    same(graph.ids, expected.ids)
    same(graph.distances, expected.distances)
    if copied is not None:
        size = {"f": matrix.dtype.itemsize, "b": 1}.get(matrix.dtype.kind, 1 if matrix.dtype == np.uint8 else 8)
        made = graph.copied - copied
        assert made >= ROWS * COLS * size and made % (COLS * size) == 0


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_native_types(make, dtype):
    check(make(dense(dtype)), 0)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint64, np.bool_])
def test_other_types(dtype):
    matrix = sparse.csr_array(dense(np.int64).astype(dtype))
    check(matrix, 0 if dtype == np.bool_ else matrix.nnz * 8)


@pytest.mark.parametrize("index", [np.int32, np.int64, np.int16, np.uint32])
def test_indices(index):
    matrix = sparse.csr_array(dense())
    matrix.indices = matrix.indices.astype(index)
    matrix.indptr = matrix.indptr.astype(index)
    copied = 0 if index in (np.int32, np.int64) else 8 * (matrix.nnz + ROWS + 1)
    check(matrix, copied)


def test_unlike_indices():
    matrix = sparse.csr_array(dense())
    matrix.indptr = matrix.indptr.astype(np.int64)
    check(matrix, 8 * matrix.nnz)


def repeated(dtype):
    """Entries of a row in falling order of their columns, each value in two or three parts."""
    whole = sparse.csr_array(dense(np.float64))
    values, columns, starts = [], [], [0]
    for i in range(ROWS):
        part = slice(whole.indptr[i], whole.indptr[i + 1])
        for column, value in zip(whole.indices[part][::-1], whole.data[part][::-1]):
            values += [value, 1, value / 3]
            columns += [column] * 3
        starts.append(len(values))
    return sparse.csr_array((np.array(values).astype(dtype), columns, starts), shape=(ROWS, COLS))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int8, np.uint8, np.bool_])
def test_duplicates_are_added_as_scipy_adds_them(dtype):
    """In their order and their type; the bits of `toarray`, also where integers overflow."""
    matrix = repeated(dtype)
    values = matrix.data.copy()
    check(matrix)
    same(matrix.data, values)  # the caller's matrix stays what it was
    expected = vc.knn(matrix.toarray().astype(np.float64), k=3)
    same(vc.knn(matrix, k=3).distances, expected.distances)


def test_queries_and_both():
    table, queries = dense(), dense(seed=1)[:30]
    expected = vc.knn(table, queries, k=3)
    for left in (table, sparse.csr_array(table)):
        for right in (queries, sparse.csr_array(queries)):
            found = vc.knn(left, right, k=3)
            same(found.ids, expected.ids)
            same(found.distances, expected.distances)


def test_other_functions():
    table = dense()
    matrix = sparse.csr_array(table)
    same(vc.radius(matrix, radius=90.0).ids, vc.radius(table, radius=90.0).ids)
    same(vc.count(matrix, radius=90.0).counts, vc.count(table, radius=90.0).counts)
    same(vc.lof(matrix, k=5).scores, vc.lof(table, k=5).scores)
    same(vc.lof(vc.Index(matrix, copy=True), k=5, score="ldof").scores, vc.lof(table, k=5, score="ldof").scores)
    same(vc.kmeans(matrix, clusters=3, seed=1).centres, vc.kmeans(table, clusters=3, seed=1).centres)
    same(vc.lle(matrix, k=8).embedding, vc.lle(table, k=8).embedding)
    steps, expected = vc.KMeansSteps(matrix, clusters=3), vc.KMeansSteps(table, clusters=3)
    for one in (steps, expected):
        one.start(table[:3])
        one.assign()
    same(steps.keys(), expected.keys())
    labels = np.arange(ROWS) % 3
    same(vc.classify(matrix, matrix, labels, k=3).labels, vc.classify(table, table, labels, k=3).labels)


def test_an_index_reads_it_later():
    """The rows are made dense by whoever asks, after the call that made the index, from any thread."""
    import concurrent.futures

    index = vc.Index(sparse.csr_array(dense()))
    expected = vc.knn(dense(), k=3)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for graph in pool.map(lambda _: index.knn(k=3), range(8)):
            same(graph.ids, expected.ids)
            assert graph.copied > 0


def test_an_index_of_a_block_source_reads_it_later():
    table = dense()

    def fill(begin, end, rows):
        rows[:] = table[begin:end]

    index = vc.Index(vc.BlockSource(ROWS, COLS, fill))
    for _ in range(3):
        found = index.knn(dense(seed=1), k=3)
        same(found.ids, vc.knn(table, dense(seed=1), k=3).ids)
        assert found.copied > 0 and found.copied % (COLS * 8) == 0  # by this call


def test_explicit_zeros_and_wide_ones():
    matrix = sparse.csr_array(dense())
    matrix.data[::3] = 0
    check(matrix, 0)
    wide = sparse.random_array((40, 4096), density=0.01, rng=np.random.default_rng(1), format="csr")
    same(vc.knn(wide, k=3).distances, vc.knn(wide.toarray(), k=3).distances)


def broken(**changes):
    matrix = sparse.csr_array(dense())
    for name, change in changes.items():
        array = getattr(matrix, name)
        array[change[0]] = change[1]
    return matrix


@pytest.mark.parametrize(
    ("make", "kind", "sentence"),
    [
        (lambda: sparse.csc_array(dense()), vc.InvalidArgument, r"table: .*format 'csc'.*pass its \.tocsr\(\)"),
        (lambda: sparse.coo_array(dense()), vc.InvalidArgument, r"table: .*format 'coo'.*pass its \.tocsr\(\)"),
        (
            lambda: sparse.csr_array((5, 4097)),
            vc.InvalidArgument,
            "table: a sparse matrix of 4097 columns; rows of up to 4096 are made dense",
        ),
        (lambda: sparse.csr_array(dense(complex)), vc.InvalidArgument, "table: holds complex numbers"),
        (lambda: sparse.csr_array((0, 4)), vc.Error, "row"),
        (lambda: broken(data=(5, np.nan)), vc.BadData, "table: row .*column"),
        (
            lambda: broken(indices=(3, COLS)),
            vc.BadData,
            "table: the sparse matrix is damaged: row 1 has an entry in column 9",
        ),
        (
            lambda: broken(indices=(3, -1)),
            vc.BadData,
            "table: the sparse matrix is damaged: row 1 has an entry in column -1",
        ),
        (lambda: broken(indptr=(5, 10**6)), vc.BadData, "table: the sparse matrix is damaged: indptr does not ascend"),
        (lambda: broken(indptr=(0, -4)), vc.BadData, "table: the sparse matrix is damaged: indptr does not ascend"),
    ],
)
def test_errors(make, kind, sentence):
    with pytest.raises(kind, match=sentence):
        vc.knn(make(), k=2)


def test_matrices_of_other_libraries():
    class Matrix:
        format, nnz, shape, data = "csr", 1, (3, 2), object()

        def tocsr(self):
            return self

    with pytest.raises(vc.InvalidArgument, match="table: a sparse matrix that is not one of SciPy"):
        vc.knn(Matrix(), k=1)


def test_integers_that_float64_lacks():
    matrix = sparse.csr_array(dense(np.int64))
    matrix.data[2] = 2**53 + 1
    with pytest.raises(vc.BadData, match=r"table: element 2 is 9007199254740993, beyond 2\^53"):
        vc.knn(matrix, k=2)


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_a_matrix_whose_starts_do_not_ascend(dtype):
    matrix = sparse.csr_matrix(dense(dtype))
    matrix.indptr[3] = 10**9
    with pytest.raises(vc.BadData, match="table: the sparse matrix is damaged: indptr does not ascend"):
        vc.knn(matrix, k=1)


@pytest.mark.parametrize("start", [-(10**9), 10**9])
def test_a_matrix_that_changes_while_an_index_borrows_it(start):
    matrix = sparse.csr_matrix(dense())
    index = vc.Index(matrix)
    matrix.indptr[3] = start
    with pytest.raises(vc.BadData, match="indptr does not ascend"):
        index.knn(k=1)
