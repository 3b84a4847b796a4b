"""Bad input is an error of one sentence, of the right class, and leaves nothing behind."""

import gc
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import resident

import vicinal as vc

TABLE = np.random.default_rng(0).normal(size=(30, 3))


MAP = vc.Polygons.of([[[[(0, 0), (1, 0), (1, 1)]]]])


def nan_at(row, column, value=np.nan):
    table = TABLE.copy()
    table[row, column] = value
    return table


class OfADevice:
    def __init__(self, **described):
        self.__cuda_array_interface__ = {"shape": (2, 2), "typestr": "<f8", "data": (8, False), **described}


CASES = {
    "one stride": (lambda: vc.knn(OfADevice(strides=(8,))), vc.InvalidArgument, "table: 1 strides; expected 2"),
    "a pointer alone": (lambda: vc.knn(OfADevice(data=(8,))), vc.InvalidArgument, "table: data must be a pointer"),
    "objects": (lambda: vc.knn(TABLE.astype(object)), vc.InvalidArgument, "table: holds Python objects"),
    "complex": (lambda: vc.knn(TABLE.astype(complex)), vc.InvalidArgument, "table: holds complex numbers"),
    "texts": (lambda: vc.knn(TABLE.astype(str)), vc.InvalidArgument, "table: holds texts"),
    "structs": (lambda: vc.knn(np.zeros((3, 3), [("a", "f8")])), vc.InvalidArgument, "table: holds structs"),
    "dates": (
        lambda: vc.knn(np.zeros((3, 3), "M8[s]")),
        vc.InvalidArgument,
        "table: holds elements of type datetime64",
    ),
    "long double": (lambda: vc.knn(TABLE.astype(np.longdouble)), vc.InvalidArgument, "table: holds elements of type"),
    "no dimension": (lambda: vc.knn(np.float64(3)), vc.InvalidArgument, "table: 0 dimensions; expected 2"),
    "one dimension": (lambda: vc.knn(TABLE[0]), vc.InvalidArgument, r"table: 1 dimensions.*reshape\(-1, 1\)"),
    "three dimensions": (lambda: vc.knn(TABLE[None]), vc.InvalidArgument, "table: 3 dimensions; expected 2"),
    "no rows": (lambda: vc.knn(TABLE[:0]), vc.Error, "row"),
    "no columns": (lambda: vc.knn(TABLE[:, :0]), vc.Error, "column"),
    "NaN": (lambda: vc.knn(nan_at(4, 1)), vc.BadData, "row 4.*column 1"),
    "infinity": (lambda: vc.knn(nan_at(5, 2, np.inf)), vc.BadData, "row 5.*column 2"),
    "NaN in queries": (lambda: vc.knn(TABLE, nan_at(4, 1)), vc.BadData, "row 4.*column 1"),
    "masked": (lambda: vc.knn(np.ma.masked_less(TABLE, 0)), vc.InvalidArgument, "table: a masked array"),
    "ragged": (lambda: vc.knn([[1, 2], [3]]), vc.InvalidArgument, "table: .*inhomogeneous"),
    "None": (lambda: vc.knn(None), vc.InvalidArgument, "table: "),
    "k = 0": (lambda: vc.knn(TABLE, k=0), vc.InvalidArgument, "k"),
    "k beyond": (lambda: vc.knn(TABLE, k=30), vc.InvalidArgument, "30.*29|29.*30"),
    "k = True": (lambda: vc.knn(TABLE, k=True), vc.InvalidArgument, "k: True is not allowed; expected a whole number"),
    "k = 2.5": (lambda: vc.knn(TABLE, k=2.5), vc.InvalidArgument, "k: 2.5 is not allowed; expected a whole number"),
    "k of 65 bits": (lambda: vc.knn(TABLE, k=2**64), vc.InvalidArgument, "k: .*64 bits"),
    "metric": (lambda: vc.knn(TABLE, metric="euclid"), vc.InvalidArgument, "metric.*euclid.*euclidean"),
    "metric's type": (lambda: vc.knn(TABLE, metric=3), vc.InvalidArgument, "metric: 3 is not allowed; expected a text"),
    "p": (lambda: vc.knn(TABLE, metric="minkowski", p=0.5), vc.InvalidArgument, "p"),
    "p's type": (lambda: vc.knn(TABLE, p="2"), vc.InvalidArgument, "p: '2' is not allowed; expected a number"),
    "negative radius": (lambda: vc.radius(TABLE, radius=-1), vc.InvalidArgument, "radius"),
    "NaN radius": (lambda: vc.radius(TABLE, radius=float("nan")), vc.InvalidArgument, "radius"),
    "other columns": (lambda: vc.knn(TABLE, TABLE[:, :2]), vc.InvalidArgument, "2.*3|3.*2"),
    "filter's length": (lambda: vc.knn(TABLE, filter=np.ones(200, bool)), vc.InvalidArgument, "filter"),
    "filter's length by bits": (
        lambda: vc.knn(TABLE, filter=np.ones(31, bool)),
        vc.InvalidArgument,
        "filter: 31 bools for a table of 30 rows",
    ),
    "filter's type": (
        lambda: vc.knn(TABLE, filter=np.ones(30)),
        vc.InvalidArgument,
        "filter: expected an array of bools",
    ),
    "exclude's type": (lambda: vc.knn(TABLE, exclude=np.ones(30)), vc.InvalidArgument, "exclude: .*whole numbers"),
    "exclude's length": (lambda: vc.knn(TABLE, exclude=[1, 2]), vc.InvalidArgument, "exclude"),
    "device": (lambda: vc.knn(TABLE, device="gpu"), vc.InvalidArgument, "device: unknown value 'gpu'"),
    "device's number": (lambda: vc.knn(TABLE, device="cuda:x"), vc.InvalidArgument, "device: unknown value 'cuda:x'"),
    "threads": (lambda: vc.knn(TABLE, threads=-1), vc.InvalidArgument, "threads"),
    "memory": (lambda: vc.knn(TABLE, memory_limit=10), vc.OverMemory, "memory limit"),
    "progress": (lambda: vc.knn(TABLE, progress=3), vc.InvalidArgument, "progress: 3 is not allowed"),
    "a list as a graph": (lambda: vc.vote([1], [1]), vc.InvalidArgument, "graph: .*expected a NeighborGraph"),
    "labels' number": (lambda: vc.vote(vc.knn(TABLE), [1, 2]), vc.InvalidArgument, "label"),
    "labels' kind": (lambda: vc.vote(vc.knn(TABLE), [0.5] * 30), vc.InvalidArgument, "labels: .*fractions"),
    "k and radius": (
        lambda: vc.classify(TABLE, TABLE, [1] * 30, k=3, radius=1.0),
        vc.InvalidArgument,
        "either k or radius",
    ),
    "mixed labels": (
        lambda: vc.vote(vc.knn(TABLE), np.array([1, "a"] * 15, object)),
        vc.InvalidArgument,
        "of one kind",
    ),
    "labels in a table": (lambda: vc.vote(vc.knn(TABLE), TABLE), vc.InvalidArgument, "labels: 2 dimensions"),
    "weights' word": (lambda: vc.vote(vc.knn(TABLE), [1] * 30, weights="near"), vc.InvalidArgument, "weights: .*near"),
    "too few weights": (
        lambda: vc.vote(vc.knn(TABLE), [1] * 30, weights=lambda d: d[:1]),
        vc.InvalidArgument,
        "weights: the function returned 1 weights for 5 distances",
    ),
    "negative weights": (lambda: vc.vote(vc.knn(TABLE), [1] * 30, weights=lambda d: -d), vc.InvalidArgument, "weight"),
    "ids beyond": (
        lambda: vc.NeighborGraph.of([[9]], [[1.0]], table_rows=9),
        vc.BadData,
        "ids: row 0 lists 9, but the table has rows 0 to 8",
    ),
    "negative ids": (lambda: vc.NeighborGraph.of([[-1]], [[1.0]], table_rows=9), vc.BadData, "ids: row 0 lists -1"),
    "NaN distances": (lambda: vc.NeighborGraph.of([[1]], [[np.nan]], table_rows=9), vc.BadData, "distances: NaN"),
    "unequal arrays": (
        lambda: vc.NeighborGraph.of([[1]], [[1.0, 2]], table_rows=9),
        vc.InvalidArgument,
        "distances: 2",
    ),
    "offsets": (
        lambda: vc.NeighborGraph.of([1, 2], [1.0, 2], table_rows=9, offsets=[0, 3]),
        vc.InvalidArgument,
        "offsets: ",
    ),
    "no offsets": (
        lambda: vc.NeighborGraph.of([1, 2], [1.0, 2], table_rows=9, offsets=[]),
        vc.InvalidArgument,
        "offsets: ",
    ),
    "NaN centres": (lambda: vc.KMeans.of([[np.nan, 1, 2]]), vc.BadData, "centres: row 0, column 0"),
    "negative edges": (lambda: vc.cocluster([-1], [0]), vc.BadData, "-1"),
    "exclude beyond": (lambda: vc.knn(TABLE, exclude=[99] * 30), vc.Error, "exclude"),
    "no novelty": (
        lambda: vc.novelty(vc.Index(TABLE), vc.lof(TABLE, k=3), TABLE),
        vc.InvalidArgument,
        "novelty",
    ),
    "clusters": (lambda: vc.kmeans(TABLE, clusters=31), vc.InvalidArgument, "clusters"),
    "clusters and centres": (
        lambda: vc.kmeans(TABLE, clusters=4, centres=TABLE[:3]),
        vc.InvalidArgument,
        "centres|clusters",
    ),
    "rule": (lambda: vc.kmeans(TABLE, rule="soon"), vc.InvalidArgument, "rule: .*soon.*settled, classical"),
    "edges": (lambda: vc.cocluster([0, 5], [0, 0], n_a=3), vc.BadData, "5"),
    "polygons": (
        lambda: vc.overlaps(vc.Polygons([0.0, 1], [0], [0], [7]), MAP),
        vc.InvalidArgument,
        "features|offsets|a",
    ),
    "max_radius": (lambda: vc.knn(TABLE, max_radius=-1.0), vc.InvalidArgument, "max_radius: is negative"),
    "max_radius of NaN": (lambda: vc.knn(TABLE, max_radius=float("nan")), vc.InvalidArgument, "max_radius: is not"),
    "eps 0": (lambda: vc.dbscan(TABLE, eps=0), vc.InvalidArgument, "eps: "),
    "negative eps": (lambda: vc.dbscan(TABLE, eps=-1.0), vc.InvalidArgument, "eps: "),
    "NaN eps": (lambda: vc.dbscan(TABLE, eps=float("nan")), vc.InvalidArgument, "eps: "),
    "eps of a text": (lambda: vc.dbscan(TABLE, eps="1"), vc.InvalidArgument, "eps: '1' is not allowed"),
    "min_samples 0": (lambda: vc.dbscan(TABLE, min_samples=0), vc.InvalidArgument, "min_samples: is 0"),
    "weights' number": (lambda: vc.dbscan(TABLE, weights=[1.0]), vc.InvalidArgument, "weights: "),
    "NaN weights": (lambda: vc.dbscan(TABLE, weights=[np.nan] * 30), vc.Error, "weights: "),
    "NaN to cluster": (lambda: vc.dbscan(nan_at(4, 1)), vc.BadData, "row 4.*column 1"),
    "min_cluster_size 1": (
        lambda: vc.hdbscan(TABLE, min_cluster_size=1),
        vc.InvalidArgument,
        "min_cluster_size: is 1, must be at least 2",
    ),
    "min_cluster_size beyond": (
        lambda: vc.hdbscan(TABLE, min_cluster_size=31),
        vc.InvalidArgument,
        "min_samples: is 31",
    ),
    "selection": (
        lambda: vc.hdbscan(TABLE, selection="best"),
        vc.InvalidArgument,
        "selection 'best': choose one of eom, leaf",
    ),
    "a density of inner products": (
        lambda: vc.hdbscan(TABLE, metric="inner_product"),
        vc.InvalidArgument,
        "metric: inner_product",
    ),
    "metric of a tree": (
        lambda: vc.hdbscan(vc.minimum_spanning_tree(TABLE), metric="cosine"),
        vc.InvalidArgument,
        "metric: is that of the tree",
    ),
    "min_samples beyond": (lambda: vc.minimum_spanning_tree(TABLE, min_samples=31), vc.InvalidArgument, "min_samples"),
    "arrays of no tree": (
        lambda: vc.SpanningTree.of([0], [1], [1.0], [0.0]),
        vc.InvalidArgument,
        "a: 1 edges; .*one core distance more, but there are 1",
    ),
    "a tree that descends": (
        lambda: vc.hdbscan(vc.SpanningTree.of([0, 1], [1, 2], [2.0, 1.0], [0.0] * 3)),
        vc.InvalidArgument,
        "tree: the lengths must be .*ascending",
    ),
    "min_samples of an order": (lambda: vc.optics(TABLE, min_samples=1), vc.InvalidArgument, "min_samples: is 1"),
    "max_eps": (lambda: vc.optics(TABLE, max_eps=0.0), vc.InvalidArgument, "max_eps: "),
    "no order": (lambda: vc.optics_xi(TABLE), vc.InvalidArgument, "order: .*expected a result of optics"),
    "xi": (lambda: vc.optics_xi(vc.optics(TABLE), xi=1.0), vc.InvalidArgument, "xi: must be"),
    "eps of an order": (lambda: vc.optics_dbscan(vc.optics(TABLE), -1.0), vc.InvalidArgument, "eps: must be"),
    "eps that is none": (lambda: vc.optics_dbscan(vc.optics(TABLE), None), vc.InvalidArgument, "eps: None is not"),
    "density on a device": (lambda: vc.dbscan(TABLE, device="cuda:9"), vc.DeviceUnavailable, "."),
    "shape": (lambda: vc.generate("donut"), vc.InvalidArgument, "donut"),
    "suffix": (lambda: vc.write("table.xyz", TABLE), vc.InvalidArgument, "xyz"),
}


@pytest.mark.parametrize("case", CASES)
def test_error(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, kind, sentence = CASES[case]
    with pytest.raises(kind, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_no_case_leaks():
    """What one error leaves behind would be 100 times as much: a table has 24 kB."""
    table = np.tile(TABLE, (33, 1))
    wrong = [
        lambda: vc.knn(table.astype(object)),
        lambda: vc.knn(np.ma.masked_less(table, 0)),
        lambda: vc.knn(np.where(table > 2, np.nan, table)),
        lambda: vc.knn(table.tolist() + [[1]]),
        lambda: vc.knn(table, k=True),
        lambda: vc.radius(table, radius=float("nan")),
        lambda: vc.Index(np.where(table > 2, np.inf, table), copy=True),
        lambda: vc.kmeans(table, clusters=10**6),
        lambda: vc.lof(table, k=10**6),
        lambda: vc.knn(vc.BlockSource(990, 3, lambda begin, end, rows: 1 / 0)),
        lambda: vc.knn(np.full((990, 3), 2**53 + 1)),
        lambda: vc.vote(vc.knn(table), [1] * 990, weights=lambda distances: distances[:1]),
        *(call for call, _, _ in CASES.values()),
    ]

    def all_of_them():
        for call in wrong:
            with pytest.raises(Exception):
                call()

    for _ in range(5):
        all_of_them()
    gc.collect()
    before = resident()
    for _ in range(100):
        all_of_them()
    gc.collect()
    assert resident() - before < 2e6


def test_no_such_device():
    with pytest.raises(vc.DeviceUnavailable) as caught:
        vc.knn(TABLE, device="cuda:9")
    assert isinstance(caught.value, RuntimeError) and caught.value.code == "device_unavailable"


def test_no_driver(tmp_path):
    """A libcuda.so.1 that is no driver, which comes before one that may be there."""
    (tmp_path / "libcuda.so.1").write_text("no library")
    script = """if True:
        import numpy as np
        import vicinal as vc
        for device in ("cuda", "cuda:0", "cuda:9"):
            try:
                vc.knn(np.eye(3), k=1, device=device)
            except vc.DeviceUnavailable as error:
                print(error)
        assert vc.knn(np.eye(3), k=1, device="auto").plan.device == "cpu"
        assert vc.Index(np.eye(3)).knn(k=1).plan.device == "cpu"
    """
    places = [str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")]
    environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, places))}
    environment.pop("VICINAL_DEVICE", None)
    done = subprocess.run([sys.executable, "-c", script], env=environment, text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    sentences = done.stdout.splitlines()
    assert len(sentences) == 3
    for sentence in sentences:
        assert "cannot be used: there is no NVIDIA driver" in sentence


@pytest.mark.parametrize(
    ("kind", "base", "code"),
    [
        (vc.InvalidArgument, ValueError, "invalid_argument"),
        (vc.BadData, ValueError, "bad_data"),
        (vc.FileError, OSError, "io"),
        (vc.OverMemory, MemoryError, "over_memory"),
        (vc.DeviceUnavailable, RuntimeError, "device_unavailable"),
        (vc.Cancelled, RuntimeError, "cancelled"),
        (vc.InternalError, RuntimeError, "internal"),
    ],
)
def test_classes(kind, base, code):
    import pickle

    assert issubclass(kind, vc.Error) and issubclass(kind, base) and kind.code == code
    again = pickle.loads(pickle.dumps(kind("a sentence")))
    assert type(again) is kind and str(again) == "a sentence"


def test_a_callback_that_raises():
    def progress(stage, fraction):
        raise LookupError("no bar")

    for _ in range(2):
        with pytest.raises(LookupError, match="no bar"):
            vc.knn(np.random.default_rng(0).normal(size=(3000, 20)), progress=progress)
    with pytest.raises(ZeroDivisionError):
        vc.vote(vc.knn(TABLE), [1] * 30, weights=lambda distances: 1 / 0)


@pytest.mark.parametrize("content", [b"", b"not an index", None])
def test_a_damaged_index(tmp_path, content):
    path = tmp_path / "index"
    vc.Index(TABLE).save(path)
    path.write_bytes(path.read_bytes()[:-9] if content is None else content)
    with pytest.raises(vc.BadData):
        vc.Index.load(path)


def test_a_pickle_cut_short():
    import pickle

    whole = pickle.dumps(vc.Index(TABLE))
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        pickle.loads(whole[: len(whole) // 2])


def test_a_read_that_fails_writes_nothing(tmp_path):
    (tmp_path / "bad.csv").write_text("1,2\n3\n")
    with pytest.raises(vc.BadData, match="bad.csv.*line 2"):
        vc.knn(tmp_path / "bad.csv")
    with pytest.raises(vc.BadData):
        vc.write(tmp_path / "out.csv", np.array([[np.nan, 1.0]]))
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]
