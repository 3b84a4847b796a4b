"""Device tables, on the fake device (device code compiled for the host): its memory is the host's, so that arrays of
NumPy stand in for those of CuPy. Skipped where that device was not built."""

import os

import numpy as np
import pytest
from conftest import same

import vicinal as vc

pytestmark = pytest.mark.skipif("VICINAL_CUDA_PLUGIN" not in os.environ, reason="the fake device is not built")


class OnDevice:
    """`__cuda_array_interface__`, as CuPy and Numba have it."""

    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.str,
            "strides": None if array.flags.c_contiguous else array.strides,
            "data": (array.__array_interface__["data"][0], False),
        }


TABLE = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)


@pytest.mark.parametrize("table", [TABLE, TABLE.astype(np.float64), np.asfortranarray(TABLE)])
def test_knn(table):
    expected = vc.knn(table, k=4, device="cpu")
    graph = vc.knn(OnDevice(table), k=4)
    assert graph.plan.device == "cuda:0" and graph.copied == 0
    same(graph.ids, expected.ids)
    same(graph.distances, expected.distances)
    same(vc.Index(OnDevice(table)).knn(OnDevice(table[:7]), k=2).ids, vc.knn(table, table[:7], k=2, device="cpu").ids)


def test_other_functions():
    same(vc.lof(OnDevice(TABLE), k=5).scores, vc.lof(TABLE, k=5, device="cpu").scores)
    same(vc.kmeans(OnDevice(TABLE), clusters=3).labels, vc.kmeans(TABLE, clusters=3, device="cpu").labels)
    lists = vc.radius(OnDevice(TABLE), radius=2.0)
    same(lists.ids, vc.radius(TABLE, radius=2.0, device="cpu").ids)


def test_host_tables_on_a_device():
    graph = vc.knn(TABLE, k=4, device="cuda")
    assert graph.plan.device == "cuda:0"
    same(graph.ids, vc.knn(TABLE, k=4, device="cpu").ids)


def test_mixed():
    with pytest.raises(vc.InvalidArgument, match="queries: is in host memory, but table is not"):
        vc.knn(OnDevice(TABLE), TABLE[:5])
    with pytest.raises(vc.InvalidArgument, match="queries: is in device memory, but table is not"):
        vc.knn(TABLE, OnDevice(TABLE[:5]))
    with pytest.raises(vc.Error, match="device"):
        vc.knn(OnDevice(TABLE), device="cpu")


def test_what_it_cannot_be():
    with pytest.raises(vc.InvalidArgument, match="table: elements of type <i8 on a device"):
        vc.knn(OnDevice(np.arange(6).reshape(3, 2)))
    with pytest.raises(vc.InvalidArgument, match="table: 1 dimensions"):
        vc.knn(OnDevice(TABLE[0]))
