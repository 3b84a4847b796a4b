"""What the tests of vicinal.sklearn share. They run in an environment with the scikit-learn that it is made for
(VICINAL_SKLEARN_PYTHON), the package being on PYTHONPATH."""


import pathlib
import sys

import numpy as np
import pytest
import sklearn

import vicinal.sklearn as vs

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # device_arrays

EPS = np.finfo(np.float64).eps
NAMES = vs.__all__
NEIGHBORS = [name for name in NAMES if "Neighbors" in name or name == "LocalOutlierFactor"]


def stock(name):
    """scikit-learn's class."""
    (found,) = [
        getattr(module, name)
        for module in (sklearn.neighbors, sklearn.cluster, sklearn.manifold)
        if hasattr(module, name)
    ]
    return found


def same(left, right):
    """Equal arrays, bit for bit, whatever their memory order."""
    left, right = np.asarray(left), np.asarray(right)
    assert left.dtype == right.dtype and left.shape == right.shape, (left.dtype, right.dtype, left.shape, right.shape)
    assert left.tobytes() == right.tobytes()


def near(left, right, tolerance):
    """|left - right| <= tolerance, an array or a number; NaN is not near."""
    difference = np.abs(np.asarray(left) - np.asarray(right))
    assert bool((difference <= tolerance).all()), difference.max()


@pytest.fixture(scope="session")
def blobs():
    """(rows [300, 5], labels [300]) of three groups, distances between them all different."""
    draw = np.random.default_rng(3)
    labels = np.arange(300) % 3
    rows = draw.normal(size=(300, 5)) + 6 * labels[:, None]
    rows.flags.writeable = False
    return rows, labels


@pytest.fixture(scope="session")
def queries():
    rows = np.random.default_rng(4).normal(size=(40, 5)) + 6
    rows.flags.writeable = False
    return rows
