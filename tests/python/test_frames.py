"""Data frames and Arrow streams are tables: the same answers as their arrays, and how many bytes are copied."""

import ctypes
import itertools

import numpy as np
import pytest
from conftest import same

import vicinal as vc

ROWS, COLS = 60, 4
NAMES = ["a", "b", "c", "d"]


def whole():
    return np.random.default_rng(0).integers(0, 100, (ROWS, COLS)).astype(np.float64)


EXPECTED = vc.knn(whole(), k=3)


def check(table, copied):
    graph = vc.knn(table, k=3)
    same(graph.ids, EXPECTED.ids)
    same(graph.distances, EXPECTED.distances)
    assert graph.copied == copied
    return graph


class TestPandas:
    @pytest.fixture(autouse=True)
    def pandas(self):
        self.pd = pytest.importorskip("pandas")

    def frame(self, dtype=np.float64, **columns):
        frame = self.pd.DataFrame(whole().astype(dtype), columns=NAMES)
        for name, values in columns.items():
            frame[name] = values
        return frame

    @pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64])
    def test_one_type_in_one_block_is_borrowed(self, dtype):
        check(self.frame(dtype), 0)

    def test_one_type_in_several_blocks_is_copied(self):
        frame = self.frame()
        frame["d"] = frame.pop("d").to_numpy().copy()
        check(frame, ROWS * COLS * 8)

    def test_mixed_types_take_the_narrowest_that_has_all(self):
        parts = {"a": np.int8, "b": np.uint16, "c": np.float32, "d": np.uint8}
        check(self.frame().astype(parts), ROWS * COLS * 4)
        check(self.frame().astype({**parts, "a": np.int32}), ROWS * COLS * 8)
        bits = self.frame() > 50
        same(vc.knn(bits, k=3, metric="hamming").ids, vc.knn(bits.to_numpy(), k=3, metric="hamming").ids)
        check(self.frame(np.int64), ROWS * COLS * 8)

    def test_nullable_types(self):
        check(self.frame().astype({"a": "Int64", "b": "Float32", "c": "UInt8", "d": "Float64"}), ROWS * COLS * 8)
        check(self.frame().astype("Int16"), ROWS * COLS * 4)
        with pytest.raises(vc.BadData, match=r"table: row 5, column 1 \('b'\) is missing; fill missing values"):
            frame = self.frame().astype({"b": "Int64"})
            frame.loc[5, "b"] = self.pd.NA
            vc.knn(frame)

    def test_types_of_arrow(self):
        pytest.importorskip("pyarrow")
        check(self.frame().astype({"a": "int64[pyarrow]", "b": "double[pyarrow]"}), ROWS * COLS * 8)
        with pytest.raises(vc.InvalidArgument, match="table: column 'b' holds "):
            vc.knn(self.frame().astype({"b": "string[pyarrow]"}))

    def test_sparse_columns(self):
        check(self.frame().astype(self.pd.SparseDtype(np.float64, 0)), ROWS * COLS * 8)

    @pytest.mark.parametrize(
        ("values", "sentence"),
        [
            ("text", "table: column 'b' holds texts or other objects"),
            ([object()] * ROWS, "table: column 'b' holds texts or other objects"),
            (np.zeros(ROWS, "M8[s]"), "table: column 'b' holds elements of type datetime64"),
            (np.zeros(ROWS, complex), "table: column 'b' holds elements of type complex128"),
            ("intervals", r"table: column 'b' holds elements of type interval\[int64"),
        ],
    )
    def test_columns_without_numbers(self, values, sentence):
        if isinstance(values, str) and values == "intervals":
            values = self.pd.interval_range(0, ROWS)
        with pytest.raises(vc.InvalidArgument, match=f"{sentence}.*expected numbers or bools"):
            vc.knn(self.frame(b=values))

    def test_categories(self):
        with pytest.raises(vc.InvalidArgument, match="table: column 'b' holds categories"):
            vc.knn(self.frame().astype({"b": "category"}))

    def test_numbers_that_cannot_be_used(self):
        with pytest.raises(vc.BadData, match="table: row 7.*column 2"):
            vc.knn(self.frame(c=np.where(np.arange(ROWS) == 7, np.nan, 1.0)))
        with pytest.raises(vc.BadData, match=r"table: column 'c': element 7 is 9007199254740993, beyond 2\^53"):
            vc.knn(self.frame(c=np.where(np.arange(ROWS) == 7, 2**53 + 1, 1)))
        with pytest.raises(vc.Error, match="column"):
            vc.knn(self.frame()[[]])
        with pytest.raises(vc.Error, match="row"):
            vc.knn(self.frame()[:0])

    def test_an_index_and_queries(self):
        index = vc.Index(self.frame())
        assert index.copied == 0
        same(index.knn(self.frame()[:9], k=2).ids, vc.knn(whole(), whole()[:9], k=2).ids)
        targets = self.pd.Series(whole()[:, 0])
        same(
            vc.regress(self.frame(), self.frame(), targets, k=3).values,
            vc.regress(whole(), whole(), targets.to_numpy(), k=3).values,
        )


class TestPolars:
    @pytest.fixture(autouse=True)
    def polars(self):
        self.pl = pytest.importorskip("polars")

    def test_frames(self):
        check(self.pl.DataFrame({name: whole()[:, at].copy() for at, name in enumerate(NAMES)}), ROWS * COLS * 8)
        mixed = {name: self.pl.Series(whole()[:, at]) for at, name in enumerate(NAMES)}
        frame = self.pl.DataFrame(mixed).cast(
            {"a": self.pl.Int8, "b": self.pl.UInt16, "c": self.pl.Float32, "d": self.pl.UInt8}
        )
        check(frame, ROWS * COLS * 4)
        check(self.pl.concat([frame[:11], frame[11:50], frame[50:]], rechunk=False), ROWS * COLS * 4)

    def test_targets_are_a_series(self):
        targets = self.pl.Series(whole()[:, 0])
        same(vc.regress(whole(), whole(), targets, k=3).values, vc.regress(whole(), whole(), whole()[:, 0], k=3).values)

    def test_errors(self):
        frame = self.pl.DataFrame({"a": [1.0, 2.0, None], "b": [1, 2, 3]})
        with pytest.raises(vc.BadData, match=r"table: row 2, column 0 \('a'\) is missing"):
            vc.knn(frame, k=1)
        with pytest.raises(vc.InvalidArgument, match="table: column 'b' holds texts"):
            vc.knn(self.pl.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), k=1)


class TestArrow:
    @pytest.fixture(autouse=True)
    def arrow(self):
        self.pa = pytest.importorskip("pyarrow")

    def table(self, types=("double",) * COLS, rows=None):
        rows = whole() if rows is None else rows
        columns = [self.pa.array(rows[:, at]).cast(kind) for at, kind in enumerate(types)]
        return self.pa.table(columns, names=NAMES)

    def test_one_type(self):
        check(self.table(), ROWS * COLS * 8)
        check(self.table(["float"] * COLS), ROWS * COLS * 4)
        check(self.table(["uint8"] * COLS), ROWS * COLS)
        check(self.table(["halffloat"] * COLS), ROWS * COLS * 2)

    @pytest.mark.parametrize(
        ("kind", "size"),
        [("int8", 4), ("int16", 4), ("uint16", 4), ("int32", 8), ("uint32", 8), ("int64", 8), ("uint64", 8)],
    )
    def test_integers(self, kind, size):
        check(self.table([kind] * COLS), ROWS * COLS * size)

    def test_mixed(self):
        check(self.table(["int8", "halffloat", "uint8", "float"]), ROWS * COLS * 4)
        check(self.table(["int64", "halffloat", "uint8", "float"]), ROWS * COLS * 8)

    def test_halves(self):
        halves = np.array([[0.0, 6.1e-5], [-0.0, 5.96e-8], [65504, -1.5], [1e-3, 1 / 3]], np.float16)
        columns = [self.pa.array(halves[:, 0]), self.pa.array(halves[:, 1].astype(np.float32))]
        same(vc.knn(self.pa.table(columns, names=["a", "b"]), k=2).distances, vc.knn(halves, k=2).distances)

    def test_columns_one_behind_the_other_are_borrowed(self):
        flat = self.pa.array(np.asfortranarray(whole()).ravel(order="F"))
        columns = [flat.slice(at * ROWS, ROWS) for at in range(COLS)]
        check(self.pa.table(columns, names=NAMES), 0)

    def test_batches(self):
        table = self.table()
        parts = [table[:1], table[1:1], table[1:37], table[37:]]
        whole_again = self.pa.concat_tables(parts)
        check(whole_again, ROWS * COLS * 8)
        reader = self.pa.RecordBatchReader.from_batches(
            table.schema, [one for part in parts for one in part.to_batches()]
        )
        check(reader, ROWS * COLS * 8)
        with pytest.raises(vc.Error):
            vc.knn(reader)

    def test_offsets_and_bits(self):
        bits = whole() > 50
        padded = np.vstack([np.ones((13, COLS), bool), bits, np.ones((5, COLS), bool)])
        table = self.pa.table([self.pa.array(padded[:, at]) for at in range(COLS)], names=NAMES).slice(13, ROWS)
        same(vc.knn(table, k=3, metric="hamming").ids, vc.knn(bits, k=3, metric="hamming").ids)
        mixed = table.set_column(2, "c", self.pa.array(bits[:, 2].astype(np.float64)))
        same(vc.knn(mixed, k=3).distances, vc.knn(bits.astype(float), k=3).distances)

    def test_bits_that_say_all_is_there(self):
        """A slice without missing values of columns that have some elsewhere."""
        columns = [self.pa.array([None, *whole()[:, at], None]) for at in range(COLS)]
        check(self.pa.table(columns, names=NAMES).slice(1, ROWS), ROWS * COLS * 8)

    def test_missing_values(self):
        rows = [list(column) for column in whole().T]
        rows[2][41] = None
        table = self.pa.table([self.pa.array(column) for column in rows], names=NAMES)
        for one in (table, self.pa.concat_tables([table[:20], table[20:]])):
            with pytest.raises(vc.BadData, match=r"table: row 41, column 2 \('c'\) is missing; fill missing values"):
                vc.knn(one)
        with pytest.raises(vc.BadData, match=r"queries: row 0, column 0 \('a'\) is missing"):
            vc.knn(whole()[:, :1], self.pa.table({"a": self.pa.nulls(5)}))

    def test_values_that_cannot_be_used(self):
        columns = {"a": self.pa.array([1, 2**53 + 1, 3]), "b": self.pa.array([1, 2, 3])}
        with pytest.raises(vc.BadData, match=r"table: row 1, column 0 \('a'\) is 9007199254740993, beyond 2\^53"):
            vc.knn(self.pa.table(columns), k=1)
        with pytest.raises(vc.BadData, match="table: row 1.*column 0"):
            vc.knn(self.pa.table({"a": [1.0, np.inf, 2.0]}), k=1)

    def test_columns_without_numbers(self):
        import datetime
        import decimal

        for values, what in [
            (["x", "y", "z"], "texts"),
            (self.pa.array(["x", "y", "x"]).dictionary_encode(), "categories"),
            (self.pa.array(["x", "y", "x"], self.pa.large_string()), "texts"),
            ([b"x", b"y", b"z"], "bytes"),
            ([datetime.date(2020, 1, 1)] * 3, "dates or times"),
            ([decimal.Decimal("1.5")] * 3, "decimals"),
            ([[1.0], [2.0], [3.0]], "lists or structs"),
        ]:
            with pytest.raises(vc.InvalidArgument, match=f"table: column 'b' holds {what}; expected numbers or bools"):
                vc.knn(self.pa.table({"a": [1.0, 2.0, 3.0], "b": values}), k=1)

    def test_other_streams(self):
        with pytest.raises(vc.InvalidArgument, match="table: a single Arrow column; expected a table"):
            vc.knn(self.pa.chunked_array([[1.0, 2.0]]))
        with pytest.raises(vc.Error, match="row|column"):
            vc.knn(self.pa.table({}))
        with pytest.raises(vc.Error, match="row"):
            vc.knn(self.table()[:0])

    def test_a_stream_that_fails(self):
        table = self.table()

        def batches():
            yield table[:20].to_batches()[0]
            raise LookupError("the database is gone")

        with pytest.raises(vc.BadData, match="table: its Arrow stream failed: .*the database is gone"):
            vc.knn(self.pa.RecordBatchReader.from_batches(table.schema, batches()))
        check(table, ROWS * COLS * 8)

    def test_ctrl_c_between_batches(self):
        """A reader without an end."""
        import signal
        import threading

        batch = self.table().to_batches()[0]
        reader = self.pa.RecordBatchReader.from_batches(batch.schema, itertools.repeat(batch))
        timer = threading.Timer(0.3, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            vc.knn(reader)
        timer.join()
        check(self.table(), ROWS * COLS * 8)

    def test_a_capsule_that_was_read(self):
        class Again:
            capsule = self.table().__arrow_c_stream__()

            def __arrow_c_stream__(self, requested_schema=None):
                return self.capsule

        again = Again()
        check(again, ROWS * COLS * 8)
        with pytest.raises(vc.InvalidArgument, match="table: its Arrow stream was read before"):
            vc.knn(again)

    def test_beyond_the_memory_limit(self):
        rows = np.zeros((100_000, COLS))
        with pytest.raises(vc.OverMemory, match="table: 100000 rows of Arrow batches take 3200000 bytes, beyond"):
            vc.knn(self.table(rows=rows), memory_limit=1_000_000)

    def test_what_is_borrowed_lives(self):
        flat = self.pa.array(np.asfortranarray(whole()).ravel(order="F"))
        index = vc.Index(self.pa.table([flat.slice(at * ROWS, ROWS) for at in range(COLS)], names=NAMES))
        del flat
        trash = [np.full((ROWS, COLS), seed) for seed in range(20)]
        same(index.knn(k=3).ids, EXPECTED.ids)
        del trash


def test_what_gives_no_stream():
    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise RuntimeError("the connection is closed")

    with pytest.raises(vc.InvalidArgument, match="table: gives no Arrow stream: the connection is closed"):
        vc.knn(Broken())

    class Other:
        def __arrow_c_stream__(self, requested_schema=None):
            return 5

    with pytest.raises(vc.InvalidArgument, match="table: __arrow_c_stream__ gave no capsule"):
        vc.knn(Other())


class Stream(ctypes.Structure):
    """The struct of the interface, by ctypes: what a producer may do wrong."""


Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.c_void_p)),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.c_void_p)),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))),
    ("private_data", ctypes.c_void_p),
]


def test_a_producer_that_fails_is_released_once():
    released = []

    def release(stream):
        released.append(1)
        stream.contents.release = Stream._fields_[3][1]()

    stream = Stream(
        Stream._fields_[0][1](lambda stream, schema: 5),
        Stream._fields_[1][1](lambda stream, array: 5),
        Stream._fields_[2][1](lambda stream: None),
        Stream._fields_[3][1](release),
        None,
    )
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = b"arrow_array_stream"

    class Producer:
        def __arrow_c_stream__(self, requested_schema=None):
            return new(ctypes.addressof(stream), name, None)

    with pytest.raises(vc.BadData, match="table: its Arrow stream failed: error 5"):
        vc.knn(Producer())
    assert released == [1]
