"""Estimators place hooks at their first call; scikit-learn's own classes do not notice."""

import pickle
import threading

import numpy as np
import pytest
import sklearn.cluster
import sklearn.manifold
import sklearn.neighbors
from conftest import MISSING, same, vs

import vicinal as vc

if not MISSING:
    from vicinal._hooks import registry, trees


@pytest.fixture(autouse=True)
def unpatched():
    """Each test begins and ends without hooks, and counts from 0."""
    if not MISSING:
        vc.unpatch_sklearn()
        registry.reset_report()
    yield
    vc.unpatch_sklearn()
    assert MISSING or (registry._users == 0 and not registry._placed)


@pytest.fixture
def placings(monkeypatch):
    """The hooks that were placed, one after the other."""
    vs.NearestNeighbors().fit(np.eye(9))  # whose hooks are checked the first time
    vc.unpatch_sklearn()
    placed = []
    put = registry._put
    monkeypatch.setattr(registry, "_put", lambda hook: (placed.append(hook.name), put(hook))[1])
    return placed


def test_hooks_are_placed_once(placings, blobs, queries):
    rows, labels = blobs
    vs.NearestNeighbors().fit(rows)
    first = list(placings)
    assert len(first) == len(set(first)) == len(registry.hooks())
    vs.NearestNeighbors().fit(rows).kneighbors(queries)
    vs.KNeighborsClassifier().fit(rows, labels).predict(queries)
    vs.KMeans(3, random_state=0, threads=1).fit(rows)
    assert placings == first
    vc.unpatch_sklearn()
    assert not registry._placed
    vs.NearestNeighbors().fit(rows)
    assert placings == 2 * first


def test_a_patch_uses_the_hooks_that_are_there(placings, blobs):
    rows, _ = blobs
    vs.NearestNeighbors().fit(rows)
    first = list(placings)
    vc.patch_sklearn()
    with vc.patched_sklearn():
        pass
    assert placings == first and registry._placed
    vc.unpatch_sklearn()
    assert not registry._placed
    vs.NearestNeighbors().fit(rows)
    with vc.patched_sklearn():
        vs.NearestNeighbors().fit(rows)
        assert registry._placed
    assert not registry._placed


def test_a_patch_looks_for_other_patchers_where_hooks_are(monkeypatch, blobs):
    from vicinal.patch import PatchConflict

    vs.NearestNeighbors().fit(blobs[0])
    stock = sklearn.neighbors.NearestNeighbors
    theirs = type("NearestNeighbors", (stock,), {"__module__": "sklearnex.neighbors"})
    with monkeypatch.context() as patch:
        patch.setattr(sklearn.neighbors, "NearestNeighbors", theirs)
        with pytest.raises(PatchConflict, match="of sklearnex"):
            vc.patch_sklearn()
        vs.NearestNeighbors().fit(blobs[0]).kneighbors(blobs[0][:1])
    vc.patch_sklearn()


def test_unpatch_while_an_estimator_computes(blobs):
    """Its hooks go when it is done."""
    begun, done = threading.Event(), threading.Event()

    def compute():
        with registry.active(registry.Settings(strict=True)):
            begun.set()
            done.wait()

    thread = threading.Thread(target=compute)
    thread.start()
    begun.wait()
    vc.unpatch_sklearn()
    assert registry._placed
    done.set()
    thread.join()
    assert not registry._placed


def stock_models():
    return [
        sklearn.neighbors.NearestNeighbors(),
        sklearn.neighbors.NearestNeighbors(algorithm="brute"),
        sklearn.neighbors.KNeighborsClassifier(),
        sklearn.neighbors.RadiusNeighborsRegressor(radius=4.0, algorithm="ball_tree"),
        sklearn.cluster.KMeans(3, random_state=0),
        sklearn.cluster.BisectingKMeans(3, random_state=0),
        sklearn.manifold.LocallyLinearEmbedding(n_neighbors=8, random_state=0),
    ]


def answers(models, rows, labels, queries):
    found = []
    for model in models:
        model.fit(rows, labels)
        if hasattr(model, "kneighbors"):
            found += model.kneighbors(queries)
        if hasattr(model, "predict"):
            found.append(model.predict(queries))
        if hasattr(model, "transform"):
            found.append(model.transform(queries))
    return found


def test_scikit_learns_own_classes_are_on_their_path(blobs, queries):
    """Before an estimator computes, and afterwards, when its hooks are in their places: the same bits, nothing counted."""
    expected = answers(stock_models(), *blobs, queries)
    vs.NearestNeighbors().fit(blobs[0]).kneighbors(queries)
    assert registry._placed
    report = vc.patch_report()
    models = stock_models()
    for left, right in zip(answers(models, *blobs, queries), expected, strict=True):
        same(left, right)
    assert vc.patch_report() == report
    assert type(models[0]._tree) is sklearn.neighbors.KDTree and not trees._is_lazy(models[0]._tree)
    assert all(b"vicinal" not in pickle.dumps(model) for model in models)


def test_pickles_have_scikit_learns_bytes(blobs, queries):
    """Whether hooks are in their places or not; a tree's method, which processes of joblib are sent, goes by its name."""

    def pickled():
        models = [model.fit(*blobs) for model in stock_models()]
        return [pickle.dumps(each) for each in (*models, models[0]._tree.query)]

    expected = pickled()
    vs.NearestNeighbors().fit(blobs[0]).kneighbors(queries)
    assert registry._placed
    assert pickled() == expected
    query = pickle.dumps(sklearn.neighbors.KDTree.query)
    assert b"vicinal" not in query and pickle.loads(query) is sklearn.neighbors.KDTree.query
