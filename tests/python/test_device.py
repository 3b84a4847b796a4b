"""Device tables: on a CUDA device where there is one, else on the fake device (device code compiled for the host, which
ctest names by VICINAL_CUDA_PLUGIN).
"""

import numpy as np
import pytest
from conftest import same
from device_arrays import arrays_on_device

import vicinal as vc

MISSING = vc.doctor(device="cpu").cuda_missing
pytestmark = pytest.mark.skipif(MISSING != "", reason=MISSING)


@pytest.fixture(scope="module")
def on_device():
    return arrays_on_device()


TABLE = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)


@pytest.mark.parametrize("table", [TABLE, TABLE.astype(np.float64), np.asfortranarray(TABLE)])
def test_knn(table, on_device):
    expected = vc.knn(table, k=4, device="cpu")
    graph = vc.knn(on_device(table), k=4)
    assert graph.plan.device == "cuda:0" and graph.copied == 0
    same(graph.ids, expected.ids)
    same(graph.distances, expected.distances)
    same(vc.Index(on_device(table)).knn(on_device(table[:7]), k=2).ids, vc.knn(table, table[:7], k=2, device="cpu").ids)


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
