"""Device tables: on a CUDA device where there is one, else on the fake device (device code compiled for the host, which
ctest names by VICINAL_CUDA_PLUGIN).
"""
# fake device: *

import os
import shutil
import subprocess
import sys

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
