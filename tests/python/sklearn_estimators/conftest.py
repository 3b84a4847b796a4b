"""What the tests of vicinal.sklearn share. They need scikit-learn 1.9, which `./dev` installs in an environment of its
own (.venv-sklearn); the package is on PYTHONPATH."""

import pathlib
import sys

import numpy as np
import pytest

try:
    import sklearn.cluster
    import sklearn.manifold
    import sklearn.neighbors

    import vicinal.sklearn as vs

    MISSING = ""
except ImportError as error:
    vs = None
    MISSING = str(error)

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # device_arrays

EPS = np.finfo(np.float64).eps
NAMES = [
    "DBSCAN",
    "HDBSCAN",
    "KMeans",
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "KNeighborsTransformer",
    "LocalOutlierFactor",
    "LocallyLinearEmbedding",
    "MiniBatchKMeans",
    "NearestNeighbors",
    "OPTICS",
    "RadiusNeighborsClassifier",
    "RadiusNeighborsRegressor",
    "RadiusNeighborsTransformer",
    "SpectralCoclustering",
]


def pytest_collection_modifyitems(items):
    for item in items if MISSING else ():
        item.add_marker(pytest.mark.skip(reason=f"{MISSING}; ./dev test installs it"))


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
