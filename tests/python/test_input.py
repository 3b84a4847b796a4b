"""What a table may be, and how many bytes of it are copied."""

import pathlib

import numpy as np
import pytest
from conftest import same

import vicinal as vc

ROWS, COLS = 60, 4


def whole(seed=0):
    """Whole numbers up to 127, which every type has exactly."""
    return np.random.default_rng(seed).integers(0, 128, (ROWS, COLS)).astype(np.float64)


EXPECTED = vc.knn(whole(), k=3)


def check(table, copied):
    graph = vc.knn(table, k=3)
    same(graph.ids, EXPECTED.ids)
    same(graph.distances, EXPECTED.distances)
    assert graph.copied == copied
    assert vc.Index(table).copied == copied


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64])
def test_native_types_are_borrowed(dtype):
    check(whole().astype(dtype), 0)


def test_bools_are_bytes():
    bits = whole() > 60
    graph = vc.knn(bits, k=3, metric="hamming")
    same(graph.ids, vc.knn(bits.astype(float), k=3, metric="hamming").ids)
    assert graph.copied == 0


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint16, np.uint32, np.uint64])
def test_integers_widen(dtype):
    check(whole().astype(dtype), ROWS * COLS * 8)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_that_float64_lacks(dtype):
    table = whole().astype(dtype)
    table[7, 2] = 2**53 + 1
    with pytest.raises(vc.BadData, match=r"table: row 7, column 2 is 9007199254740993, beyond 2\^53"):
        vc.knn(table)
    table[7, 2] = 2**53
    vc.knn(table)


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    check(whole().astype(ml_dtypes.bfloat16), 0)


def test_strides():
    table = whole()
    check(np.asfortranarray(table), 0)
    wide = np.zeros((2 * ROWS, 3 * COLS))
    wide[::2, ::3] = table
    check(wide[::2, ::3], 0)
    check(np.ascontiguousarray(table[::-1])[::-1], 0)
    check(np.ascontiguousarray(table[:, ::-1])[:, ::-1], 0)
    frozen = whole()
    frozen.flags.writeable = False
    check(frozen, 0)
    row = np.broadcast_to(table[0], (ROWS, COLS))
    assert vc.knn(row, k=1).distances.max() == 0
    check(table.astype(">f8"), ROWS * COLS * 8)
    packed = np.zeros(ROWS, [("tag", "u1"), ("row", "f8", COLS)])
    packed["row"] = table
    check(packed["row"], ROWS * COLS * 8)


def test_memory_mapped(tmp_path):
    np.save(tmp_path / "table.npy", whole())
    check(np.load(tmp_path / "table.npy", mmap_mode="r"), 0)


def test_lists_and_paths(tmp_path):
    check(whole().tolist(), ROWS * COLS * 8)
    np.save(tmp_path / "table.npy", whole())
    check(tmp_path / "table.npy", 0)
    check(str(tmp_path / "table.npy"), 0)


class Producer:
    """Host memory that speaks DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack():
    check(Producer(whole()), 0)
    check(Producer(whole().astype(np.float32)), 0)
    with pytest.raises(vc.InvalidArgument, match="table: elements of another type"):
        vc.knn(Producer(whole().astype(np.int64)))
    with pytest.raises(vc.InvalidArgument, match="table: 1 dimensions"):
        vc.knn(Producer(whole()[0]))


def test_a_tensor_that_requires_grad():
    class Tensor(Producer):
        def __dlpack__(self, **options):
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    with pytest.raises(vc.InvalidArgument, match="table: its memory cannot be borrowed by DLPack.*detach"):
        vc.knn(Tensor(whole()))


class Frame:
    """What gives an array when NumPy asks, as tables of pandas and polars do."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


def test_tables_of_other_libraries():
    table = whole()
    check(Frame(table[:]), 0)
    check(Frame(np.asfortranarray(table)), ROWS * COLS * 8)


def test_block_source():
    table = whole()

    def fill(begin, end, rows):
        rows[:] = table[begin:end]

    for dtype in ("float64", "float32", "uint8"):
        graph = vc.knn(vc.BlockSource(ROWS, COLS, fill, dtype=dtype), whole(1), k=3)
        same(graph.ids, vc.knn(table, whole(1), k=3).ids)
        assert graph.copied >= ROWS * COLS


def test_a_block_source_that_raises():
    def fill(begin, end, rows):
        raise RuntimeError("the database is gone")

    with pytest.raises(RuntimeError, match="the database is gone"):
        vc.knn(vc.BlockSource(ROWS, COLS, fill), whole(1))

    def short(begin, end, rows):
        rows[:] = whole()[: (end - begin) // 2]

    with pytest.raises(ValueError, match="broadcast"):
        vc.knn(vc.BlockSource(ROWS, COLS, short), whole(1))
    assert vc.knn(whole()).copied == 0  # the next call is none the worse


def test_an_index_keeps_what_it_borrows():
    index = vc.Index(whole())
    trash = [whole(seed) for seed in range(20)]
    same(index.knn(k=3).ids, EXPECTED.ids)
    owner = whole()
    owned = vc.Index(owner, copy=True)
    owner[:] = 0
    same(owned.knn(k=3).ids, EXPECTED.ids)
    del trash


def test_results_outlive_their_objects():
    ids = vc.knn(whole(), k=3).ids
    trash = [vc.knn(whole(seed), k=3) for seed in range(20)]
    same(ids, EXPECTED.ids)
    assert not ids.flags.writeable and ids.flags.c_contiguous and not ids.flags.owndata
    del trash


def test_paths_of_results(tmp_path):
    with pytest.raises(vc.FileError, match="none.npy"):
        vc.knn(pathlib.Path("none.npy"))
    with pytest.raises(OSError):
        vc.read(tmp_path / "none.csv")


def test_targets_of_one_dimension(rows, queries):
    """A list of numbers is one output, as an array is."""
    targets = rows[:, 0]
    expected = vc.regress(rows, queries, targets, k=3).values
    for given in (targets.tolist(), tuple(targets.tolist()), targets[:, None].tolist()):
        same(vc.regress(rows, queries, given, k=3).values, expected)
        same(vc.average(vc.knn(rows, queries, k=3), given), expected)
    with pytest.raises(vc.InvalidArgument, match="targets: holds texts"):
        vc.regress(rows, queries, ["a"] * len(rows), k=3)
    with pytest.raises(vc.InvalidArgument, match="targets: "):
        vc.regress(rows, queries, [[1.0], [2.0, 3.0]], k=3)


def test_a_file_in_latin_1(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("größe,b\n1,2\n3,4\n".encode("latin-1"))
    with pytest.raises(vc.BadData, match="table.csv' has names or texts that are not UTF-8; save it as") as caught:
        vc.read(path)
    assert "\n" not in str(caught.value)
