"""k lists of a device table stay on the device, in arrays of the table's library. A module of that name stands for
CuPy and for PyTorch: what the package uses of them, over memory of the driver."""
# fake device: *

import ctypes
import pickle
import sys
import types

import numpy as np
import pytest
from conftest import same
from device_arrays import Driver

import vicinal as vc

MISSING = vc.doctor(device="cpu").cuda_missing
pytestmark = pytest.mark.skipif(MISSING != "", reason=MISSING)

TABLE = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)


class OnDevice:
    """An array in device memory."""

    ndim = 2

    def __init__(self, array):
        self.shape, self.dtype = array.shape, array.dtype
        self.address = OnDevice.driver.copied(array)
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "strides": None,
            "data": (self.address, False),
        }

    def on_host(self):
        out = np.empty(self.shape, self.dtype)
        OnDevice.driver(
            "cuMemcpyDtoH_v2",
            ctypes.c_void_p(out.ctypes.data),
            ctypes.c_uint64(self.address),
            ctypes.c_size_t(out.nbytes),
        )
        return out


@pytest.fixture(params=["cupy", "torch"])
def put(request, monkeypatch):
    """Puts an array on the device as an array of the library."""
    OnDevice.driver = Driver()
    module = types.ModuleType(request.param)
    monkeypatch.setitem(sys.modules, request.param, module)
    if request.param == "cupy":

        class Device:
            def __enter__(self):
                module.entered = True

            def __exit__(self, *error):
                pass

        class Array(OnDevice):
            device = Device()
            get = OnDevice.on_host

        module.empty = lambda shape, dtype: Array(np.full(shape, -7, dtype))
    else:

        class Array(OnDevice):
            device = "cuda:0"
            is_cuda = True

            def cpu(self):
                return types.SimpleNamespace(numpy=self.on_host)

        module.int64, module.float64 = np.int64, np.float64
        module.empty = lambda shape, dtype, device: Array(np.full(shape, -7, dtype))
    Array.__module__ = f"{request.param}._core"
    return Array


def test_lists_stay_on_the_device(put):
    expected = vc.knn(TABLE, k=4, device="cpu")
    graph = vc.knn(put(TABLE), k=4)
    assert isinstance(graph, vc.DeviceGraph) and type(graph.ids) is type(graph.distances) is put
    assert graph.copied == 0 and graph.plan.device == "cuda:0" and graph.stats.distinct_rows == 200
    assert (graph.rows, graph.table_rows, graph.k, graph.metric, graph.offsets) == (200, 200, 4, "euclidean", None)
    same(graph.ids.on_host(), expected.ids)
    same(graph.distances.on_host(), expected.distances)
    assert "ids=int64 [200, 4]" in repr(graph)


def test_the_host_graph(put):
    expected = vc.knn(TABLE, k=4, device="cpu")
    graph = vc.knn(put(TABLE), k=4)
    host = graph.host()
    same(host.ids, expected.ids)
    assert host.copied == 200 * 4 * 16 and graph.host() is host and host.host() is host
    labels = np.arange(200) % 3
    same(vc.vote(graph, labels).codes, vc.vote(expected, labels).codes)
    same(vc.lof(graph, k=4).scores, vc.lof(expected, k=4).scores)
    same(graph.umap()[0], expected.umap()[0])
    same(pickle.loads(pickle.dumps(graph)).ids, expected.ids)
    pytest.importorskip("scipy")
    assert graph.csr().nnz == 800


def test_queries_indexes_and_defaults(put):
    expected = vc.knn(TABLE, TABLE[:9], k=3, metric="manhattan", device="cpu")
    same(vc.knn(put(TABLE), put(TABLE[:9]), k=3, metric="manhattan").ids.on_host(), expected.ids)
    index = vc.Index(put(TABLE))
    same(index.knn(put(TABLE[:9]), k=3, metric="manhattan").ids.on_host(), expected.ids)
    assert vc.knn(put(TABLE)).ids.shape == (200, 5)
    assert type(index.knn(k=3)) is vc.NeighborGraph  # nothing says what to write to


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"k": 0}, "k"),
        ({"k": 200}, "200.*199|199.*200"),
        ({"k": 10**12}, "1000000000000"),
        ({"k": True}, "k: True is not allowed"),
        ({"k": 2.5}, "k: 2.5 is not allowed"),
        ({"k": 3, "device": "cpu"}, "table: is in device memory, but device is 'cpu'"),
        ({"k": 3, "metric": "near"}, "metric"),
    ],
)
def test_errors(put, options, sentence):
    with pytest.raises(vc.InvalidArgument, match=sentence):
        vc.knn(put(TABLE), **options)
