"""DBSCAN, HDBSCAN and OPTICS with the patch."""

import numpy as np
import pytest
from conftest import TABLE, answers, left

import vicinal as vc


def test_dbscan():
    from sklearn.cluster import DBSCAN, dbscan

    weights = np.arange(120) % 3
    for eps in (0.3, 0.6, 0.9, 2.0):
        expected = DBSCAN(eps).fit(TABLE), DBSCAN(eps).fit(TABLE, sample_weight=weights), dbscan(TABLE, eps)
        with vc.patched_sklearn(threads=1):
            found = DBSCAN(eps).fit(TABLE), DBSCAN(eps).fit(TABLE, sample_weight=weights), dbscan(TABLE, eps)
        for left_one, right in zip(found[:2], expected[:2]):
            np.testing.assert_array_equal(left_one.labels_, right.labels_)
            np.testing.assert_array_equal(left_one.components_, right.components_)
        for left_one, right in zip(found[2], expected[2]):
            np.testing.assert_array_equal(left_one, right)
    assert answers("DBSCAN.fit") == 12 and left("DBSCAN.fit") == {}


def test_hdbscan():
    from sklearn.cluster import HDBSCAN

    for algorithm, hook in (("auto", "_hdbscan_prims"), ("brute", "_hdbscan_brute")):
        model = HDBSCAN(min_cluster_size=4, min_samples=1, algorithm=algorithm, copy=True)
        expected = model.fit(TABLE).labels_
        with vc.patched_sklearn(threads=1):
            np.testing.assert_array_equal(model.fit(TABLE).labels_, expected)
        assert answers(hook) == 1


def test_optics():
    from sklearn import cluster

    model = cluster.OPTICS(metric="manhattan")
    expected = model.fit(TABLE).ordering_
    words = {"max_eps": np.inf, "metric": "manhattan", "p": 2, "metric_params": None, "algorithm": "auto"}
    with vc.patched_sklearn(threads=1):
        np.testing.assert_array_equal(model.fit(TABLE).ordering_, expected)
        np.testing.assert_array_equal(
            cluster.compute_optics_graph(TABLE, min_samples=5, leaf_size=30, n_jobs=None, **words)[0], expected
        )
    assert answers("compute_optics_graph") == 2


@pytest.mark.skipif(vc.doctor(device="cpu").cuda_missing != "", reason="there is no CUDA device")
def test_with_a_device():
    """What a device does not compute, vicinal computes on the CPU."""
    from sklearn.cluster import DBSCAN

    with vc.patched_sklearn(device="cuda"):
        DBSCAN(0.9).fit(TABLE)
    assert answers("DBSCAN.fit") == 1
