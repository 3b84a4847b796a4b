"""Tests that need scikit-learn 1.9, which `./dev` installs in an environment of its own (.venv-sklearn)."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import vicinal as vc

try:
    import sklearn

    VERSION = sklearn.__version__
except ModuleNotFoundError:
    VERSION = "none"


def pytest_collection_modifyitems(items):
    if VERSION.startswith("1.9."):
        return
    skip = pytest.mark.skip(reason=f"scikit-learn 1.9 is needed, this Python has {VERSION}; ./dev test installs it")
    for item in items:
        item.add_marker(skip)


@pytest.fixture(autouse=True)
def unpatched():
    """Each test begins and ends with scikit-learn as it is, and counts from 0."""
    from vicinal._hooks import registry

    registry.reset_report()
    yield
    vc.unpatch_sklearn()
    assert registry._users == 0 and not registry._placed


DRAW = np.random.default_rng(5)
TABLE = DRAW.normal(size=(120, 3))
LABELS = (TABLE[:, 0] > 0).astype(int)


def answers(name):
    """Calls of a hook that vicinal answered."""
    return vc.patch_report().get(name, {"ours": 0})["ours"]


def left(name):
    return vc.patch_report().get(name, {"stock": {}})["stock"]


def run(script, **environment):
    """A program of its own; returns its output."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def places():
    from vicinal._hooks import registry

    return [place for hook in registry.hooks() for place in hook.places]


def attributes():
    """What stands at every hooked place: the owner's own attribute, or None for one of a base."""
    return [vars(place.owner()).get(place.attribute) for place in places()]


def close(left, right):
    np.testing.assert_allclose(left, right, rtol=1e-7, atol=1e-9)


def models():
    from sklearn import cluster, manifold, neighbors

    return {
        "kd": neighbors.NearestNeighbors(),
        "ball": neighbors.NearestNeighbors(algorithm="ball_tree", metric="manhattan"),
        "brute": neighbors.NearestNeighbors(algorithm="brute"),
        "classifier": neighbors.KNeighborsClassifier(),
        "radius": neighbors.RadiusNeighborsRegressor(radius=9.0),
        "lof": neighbors.LocalOutlierFactor(novelty=True),
        "lle": manifold.LocallyLinearEmbedding(n_neighbors=8),
        "kmeans": cluster.KMeans(3, random_state=0),
        "minibatch": cluster.MiniBatchKMeans(3, random_state=0),
        "bisecting": cluster.BisectingKMeans(3, random_state=0),
        "dbscan": cluster.DBSCAN(1.0),
        "hdbscan": cluster.HDBSCAN(copy=True),
        "hdbscan brute": cluster.HDBSCAN(algorithm="brute", copy=True),
        "optics": cluster.OPTICS(),
        "elkan": cluster.BisectingKMeans(3, random_state=0, algorithm="elkan"),
    }


def used(model):
    for method in ("predict", "transform"):
        if hasattr(model, method):
            return getattr(model, method)(TABLE[:20])
    if not hasattr(model, "kneighbors"):
        return model.labels_
    return model.kneighbors(TABLE[:20], return_distance=False)
