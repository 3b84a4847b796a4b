"""Device tables: on a CUDA device where there is one, else on the fake device (device code compiled for the host, which
ctest names by VICINAL_CUDA_PLUGIN).
"""
# fake device: *

import ctypes
import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import same
from device_arrays import arrays_on_device, dlpack_arrays_on_device

import vicinal as vc

MISSING = vc.doctor(device="cpu").cuda_missing
pytestmark = pytest.mark.skipif(MISSING != "", reason=MISSING)


@pytest.fixture(scope="module")
def on_device():
    return arrays_on_device()


NAMED = """
import os, sys
import numpy as np
import vicinal as vc

path, by_user = sys.argv[1], os.environ.get("VICINAL_CUDA_PLUGIN")
vc.knn(np.eye(3), k=1, device="cpu")  # which loads none, also where one lies beside the library
vc.use_plugin("cuda", path)
assert vc.knn(np.eye(3), k=1).plan.device == "cuda:0"
assert vc.doctor(device="cpu").cuda_plugin == (by_user or path), vc.doctor(device="cpu").cuda_plugin
vc.use_plugin("cuda", by_user or path)
try:
    vc.use_plugin("cuda", sys.executable)
except vc.InvalidArgument as error:
    assert f"cuda is already loaded, from {by_user or path}" in str(error), error
    print("refused")
"""


@pytest.mark.parametrize("by_user", [True, False])
def test_a_plugin_that_the_program_names(by_user, tmp_path):
    plugin = vc.doctor(device="cpu").cuda_plugin
    copied = tmp_path / "copied.so"
    shutil.copyfile(plugin, copied)
    environment = {key: value for key, value in os.environ.items() if key != "VICINAL_CUDA_PLUGIN"}
    if by_user:
        environment["VICINAL_CUDA_PLUGIN"] = plugin
    done = subprocess.run(
        [sys.executable, "-c", NAMED, str(copied)], env=environment, text=True, capture_output=True, check=False
    )
    assert done.stdout == "refused\n", done.stderr


TABLE = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)


@pytest.mark.skipif(len(vc.doctor(device="cpu").cuda_devices) < 2, reason="one device")
def test_several_devices():
    expected = vc.knn(TABLE, k=4, device="cpu")
    graph = vc.knn(TABLE, k=4, device="cuda:0,1")
    assert graph.plan.device == "cuda:0,1"
    same(graph.ids, expected.ids)
    same(graph.distances, expected.distances)
    assert np.array_equal(vc.kmeans(TABLE, clusters=5, device="cuda:1,0").labels,
                          vc.kmeans(TABLE, clusters=5, device="cpu").labels)
    with pytest.raises(vc.InvalidArgument, match="cuda:1 is given twice"):
        vc.knn(TABLE, k=4, device="cuda:1,1")


@pytest.mark.parametrize("table", [TABLE, TABLE.astype(np.float64), np.asfortranarray(TABLE)])
def test_knn(table, on_device):
    expected = vc.knn(table, k=4, device="cpu")
    graph = vc.knn(on_device(table), k=4)
    assert graph.plan.device == "cuda:0" and graph.copied == 0
    same(graph.ids, expected.ids)
    same(graph.distances, expected.distances)
    same(vc.Index(on_device(table)).knn(on_device(table[:7]), k=2).ids, vc.knn(table, table[:7], k=2, device="cpu").ids)


def test_spanning_trees_compute_on_the_device(on_device):
    expected = vc.minimum_spanning_tree(TABLE, min_samples=5, device="cpu")
    clusters = vc.hdbscan(TABLE, device="cpu")
    for rows in (TABLE, on_device(TABLE), vc.Index(TABLE), vc.Index(on_device(TABLE))):
        tree = vc.minimum_spanning_tree(rows, min_samples=5)
        assert tree.plan.device == "cuda:0" and tree.plan.device_memory > 0
        for name in ("a", "b", "lengths", "core_distances"):
            same(getattr(tree, name), getattr(expected, name))
        found = vc.hdbscan(rows)
        assert found.plan.device == "cuda:0"
        for name in ("labels", "probabilities", "outlier_scores"):
            same(getattr(found, name), getattr(clusters, name))
    with pytest.raises(vc.OverMemory, match="device memory|bytes"):
        vc.minimum_spanning_tree(TABLE, device="cuda", device_memory_limit=20000)
    same(vc.hdbscan(TABLE, memberships=True).memberships, vc.hdbscan(TABLE, memberships=True, device="cpu").memberships)


def test_dbscan_computes_on_the_device(on_device):
    weights = np.linspace(-0.5, 2, len(TABLE))
    for keywords in ({"eps": 1.0}, {"eps": 2.0, "min_samples": 12}, {"eps": 1.5, "weights": weights}):
        expected = vc.dbscan(TABLE, device="cpu", **keywords)
        for rows in (TABLE, on_device(TABLE), vc.Index(TABLE), vc.Index(on_device(TABLE))):
            found = vc.dbscan(rows, **keywords)
            assert found.plan.device == "cuda:0" and found.plan.device_memory > 0
            assert found.clusters == expected.clusters
            for name in ("labels", "core", "sizes"):
                same(getattr(found, name), getattr(expected, name))
    with pytest.raises(vc.OverMemory, match="device memory|bytes"):
        vc.dbscan(TABLE, device="cuda", device_memory_limit=9000)
    with pytest.raises(vc.DeviceUnavailable, match="several devices"):
        vc.dbscan(TABLE, device="cuda:0,1")


def test_optics_computes_on_the_host(on_device):
    assert vc.optics(TABLE).plan.device == "cpu"
    assert vc.optics(vc.Index(TABLE)).plan.device == "cpu"
    with pytest.raises(vc.DeviceUnavailable, match="runs on the CPU only so far"):
        vc.optics(TABLE, device="cuda")
    with pytest.raises(vc.InvalidArgument, match="table: is in device memory; expected host memory"):
        vc.optics(on_device(TABLE))
    tree, order = vc.minimum_spanning_tree(TABLE, min_samples=5), vc.optics(TABLE)
    assert vc.hdbscan(tree).clusters == vc.hdbscan(TABLE).clusters and vc.optics_xi(order).labels.shape == (200,)


def test_lists_that_may_be_shorter_are_on_the_host(on_device):
    expected = vc.knn(TABLE, k=4, max_radius=1.5, device="cpu")
    graph = vc.knn(on_device(TABLE), k=4, max_radius=1.5)
    assert graph.plan.device == "cuda:0" and type(graph) is vc.NeighborGraph
    for name in ("ids", "distances", "offsets"):
        same(getattr(graph, name), getattr(expected, name))


@pytest.fixture(scope="module")
def of_dlpack():
    return dlpack_arrays_on_device()


def test_dlpack(of_dlpack):
    """The producer orders its work before the default stream, for which the library's streams wait; the memory is
    returned."""
    table = of_dlpack(TABLE)
    graph = vc.knn(table, of_dlpack(TABLE[:7]), k=3)
    assert table.asked == [1] and table.borrowed == 0 and graph.copied == 0 and graph.plan.device == "cuda:0"
    same(graph.ids, vc.knn(TABLE, TABLE[:7], k=3, device="cpu").ids)
    index = vc.Index(table)
    assert table.borrowed == 1 and index.copied == 0
    same(index.knn(k=3).ids, vc.knn(TABLE, k=3, device="cpu").ids)
    del index
    assert table.borrowed == 0


def test_dlpack_comes_first(of_dlpack):
    """It knows bfloat16, which PyTorch's __cuda_array_interface__ calls float16, and refuses what requires a
    gradient."""

    class Both(of_dlpack):
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad")

    bits = (TABLE.view(np.uint32) >> 16).astype(np.uint16)
    rounded = (bits.astype(np.uint32) << 16).view(np.float32)
    same(vc.knn(Both(bits, bfloat16=True), k=4).ids, vc.knn(rounded, k=4, device="cpu").ids)

    class RequiresGrad(Both):
        def __dlpack__(self, **options):
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    with pytest.raises(vc.InvalidArgument, match="table: its memory cannot be borrowed by DLPack.*detach"):
        vc.knn(RequiresGrad(TABLE))


@pytest.fixture
def waits():
    """How often the fake driver's default stream was to wait for a stream."""
    driver = ctypes.CDLL("libcuda.so.1")
    if not hasattr(driver, "fakeWaits"):
        pytest.skip("a driver of a device keeps no count; tests/gpu/python_tables.py keeps streams busy")
    driver.fakeWaits.argtypes = [ctypes.c_uint64]
    return driver.fakeWaits


@pytest.mark.parametrize("stream", [7, 2**40])
def test_a_stream_is_waited_for(stream, on_device, waits):
    before = waits(stream)
    same(vc.knn(on_device(TABLE, stream=stream), k=3).ids, vc.knn(TABLE, k=3, device="cpu").ids)
    assert waits(stream) == before + 1


@pytest.mark.parametrize("stream", [None, 1, 2])
def test_streams_that_need_no_wait(stream, on_device, waits):
    """No stream, the default one, and that of a thread that has no context."""
    same(vc.knn(on_device(TABLE, stream=stream), k=3).ids, vc.knn(TABLE, k=3, device="cpu").ids)
    assert waits(stream or 0) == 0


@pytest.mark.parametrize("stream", [0, -1, True, 1.0, "2"])
def test_what_is_no_stream(stream, on_device):
    with pytest.raises(vc.InvalidArgument, match="table: stream .* is not allowed; expected None, 1, 2 or the handle"):
        vc.knn(on_device(TABLE, stream=stream))


@pytest.mark.parametrize(("stream", "function"), [(666, "cuStreamGetCtx"), (667, "cuEventRecord")])
def test_a_stream_that_the_driver_refuses(stream, function, on_device, waits):
    with pytest.raises(vc.DeviceUnavailable, match=rf"table: its stream cannot be waited for \({function} says 400\)"):
        vc.knn(on_device(TABLE, stream=stream))
    assert waits(stream) == 0


def test_other_functions(on_device):
    same(vc.lof(on_device(TABLE), k=5).scores, vc.lof(TABLE, k=5, device="cpu").scores)
    same(vc.kmeans(on_device(TABLE), clusters=3).labels, vc.kmeans(TABLE, clusters=3, device="cpu").labels)
    lists = vc.radius(on_device(TABLE), radius=2.0)
    same(lists.ids, vc.radius(TABLE, radius=2.0, device="cpu").ids)


def test_host_tables_on_a_device():
    graph = vc.knn(TABLE, k=4, device="cuda")
    assert graph.plan.device == "cuda:0"
    same(graph.ids, vc.knn(TABLE, k=4, device="cpu").ids)


def test_mixed(on_device):
    with pytest.raises(vc.InvalidArgument, match="queries: is in host memory, but table is not"):
        vc.knn(on_device(TABLE), TABLE[:5])
    with pytest.raises(vc.InvalidArgument, match="queries: is in device memory, but table is not"):
        vc.knn(TABLE, on_device(TABLE[:5]))
    with pytest.raises(vc.Error, match="table: is in device memory, but device is 'cpu'"):
        vc.knn(on_device(TABLE), device="cpu")


def test_what_it_cannot_be(on_device):
    with pytest.raises(vc.InvalidArgument, match="table: elements of type <i8 on a device"):
        vc.knn(on_device(np.arange(6).reshape(3, 2)))
    with pytest.raises(vc.InvalidArgument, match="table: 1 dimensions"):
        vc.knn(on_device(TABLE[0]))


def test_steps(on_device):
    both = vc.KMeansSteps(on_device(TABLE), clusters=4), vc.KMeansSteps(TABLE, clusters=4, device="cpu")
    assert both[0].plan.device == "cuda:0" and both[0].copied == 0
    for steps in both:
        steps.start(TABLE[:4])
    for row in range(4):
        done = [steps.assign() for steps in both]
        for steps in both:
            steps.move_row(row, 3 - row)
        assert done[0] == done[1] and both[0].means() == both[1].means()
        vc.knn(on_device(TABLE), k=2)  # another call on the device between two steps
    same(both[0].labels(), both[1].labels())
    same(both[0].keys(), both[1].keys())
    same(both[0].centres(), both[1].centres())
    assert both[0].inertia() == both[1].inertia()


@pytest.mark.parametrize("order", ["key", "id"])
def test_a_radius_for_each_query(order, on_device):
    radii = np.linspace(0, 3, len(TABLE))
    expected = vc.radius(TABLE, radius=radii, order=order, device="cpu")
    graph = vc.radius(on_device(TABLE), radius=radii, order=order)
    same(graph.offsets, expected.offsets)
    same(graph.ids, expected.ids)
    same(graph.distances, expected.distances)
    same(vc.count(on_device(TABLE), radius=radii).counts, np.diff(expected.offsets))


# ---- another plug-in, and models that go elsewhere -------------------------------------------------------------------

WITHOUT = {"VICINAL_CUDA_PLUGIN": "/nowhere/libvicinal_cuda.so"}


def program(script, *arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


REFUSED = """
import numpy as np
import vicinal as vc
for call in (lambda: vc.knn(np.eye(3), k=1, device="cuda"), lambda: vc.Index(np.eye(3)).knn(k=1, device="cuda:0")):
    try:
        call()
    except vc.DeviceUnavailable as error:
        print(error)
print(vc.knn(np.eye(3), k=1).plan.device)
"""


def test_a_plugin_of_another_version():
    other = os.environ.get("VICINAL_TEST_OTHER_VERSION")
    if not other:
        pytest.skip("VICINAL_TEST_OTHER_VERSION names no plug-in of another version; ctest sets it")
    *told, device = program(REFUSED, VICINAL_CUDA_PLUGIN=other).splitlines()
    assert len(told) == 2 and device == "cpu"
    for sentence in told:
        assert "version" in sentence and other in sentence, sentence


def test_a_plugin_that_is_not_there():
    *told, device = program(REFUSED, **WITHOUT).splitlines()
    assert device == "cpu" and [("the CUDA plug-in is not there" in sentence) for sentence in told] == [True, True]


MODELS = {
    "index": (lambda: vc.Index(TABLE, device="cuda"), lambda model: model.knn(TABLE[:9], k=3).ids),
    "graph": (lambda: vc.knn(TABLE, k=3, device="cuda"), lambda model: model.ids),
    "kmeans": (lambda: vc.kmeans(TABLE, clusters=4, seed=1, device="cuda"), lambda model: model.predict(TABLE[:9])),
    "classifier": (
        lambda: vc.NeighborModel.fit(TABLE, np.arange(200) % 3, k=5, device="cuda"),
        lambda model: model.predict(TABLE[:9]),
    ),
    "lof": (
        lambda: vc.LofModel(vc.Index(TABLE), vc.lof(vc.Index(TABLE), k=5, novelty=True, device="cuda")),
        lambda model: model.novelty(TABLE[:9]),
    ),
}
LOADED = """
import pathlib, pickle, sys
name, path, tests = sys.argv[1:]
sys.path.insert(0, tests)
import test_device
assert test_device.MISSING, "a device is there"
model, expected = pickle.loads(pathlib.Path(path).read_bytes())
test_device.same(test_device.MODELS[name][1](model), expected)
"""


@pytest.mark.parametrize("name", MODELS)
def test_models_of_a_device_predict_on_a_processor(name, tmp_path):
    make, use = MODELS[name]
    model = make()
    (tmp_path / "model").write_bytes(pickle.dumps((model, use(model))))
    program(LOADED, name, tmp_path / "model", pathlib.Path(__file__).parent, **WITHOUT)
