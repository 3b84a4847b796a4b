"""What is added to scikit-learn's classes, and what stays as it is."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
from conftest import NAMES, stock, vs
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

import vicinal as vc

ADDED = {"device": "auto", "threads": None, "memory_limit": None}


@pytest.mark.parametrize("name", NAMES)
def test_signature(name):
    """scikit-learn's parameters, defaults and order; then ours, by keyword."""
    theirs = list(inspect.signature(stock(name)).parameters.values())
    ours = list(inspect.signature(getattr(vs, name)).parameters.values())
    assert ours[: len(theirs)] == theirs
    assert {p.name: p.default for p in ours[len(theirs) :]} == ADDED
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in ours[len(theirs) :])


@pytest.mark.parametrize("name", NAMES)
def test_parameters(name):
    estimator = getattr(vs, name)(device="cpu", threads=2, memory_limit=10**9)
    assert {key: estimator.get_params()[key] for key in ADDED} == {"device": "cpu", "threads": 2, "memory_limit": 10**9}
    assert clone(estimator).get_params() == estimator.get_params()
    assert repr(estimator) == f"{name}(device='cpu', memory_limit=1000000000, threads=2)"
    estimator.set_params(threads=1)
    assert estimator.threads == 1
    assert "threads" in estimator._repr_html_()
    with pytest.raises(ValueError, match="Invalid parameter 'thread'"):
        estimator.set_params(thread=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'thread'"):
        getattr(vs, name)(thread=1)


@pytest.mark.parametrize("name", NAMES)
def test_documented(name):
    theirs, ours = inspect.getdoc(stock(name)), inspect.getdoc(getattr(vs, name))
    assert ours.index("device : str") < ours.index("threads : int") < ours.index("Attributes\n---")
    assert theirs.splitlines()[0] == ours.splitlines()[0]
    for method in ("fit", "predict", "kneighbors", "transform"):
        if hasattr(stock(name), method):
            assert inspect.getdoc(getattr(vs.__dict__[name], method)) == inspect.getdoc(getattr(stock(name), method))


@pytest.mark.parametrize("name", NAMES)
def test_methods_and_tags(name):
    def of(cls):
        return {key for key in dir(cls) if not key.startswith("_")}

    assert of(getattr(vs, name)) == of(stock(name))
    assert get_tags(getattr(vs, name)()) == get_tags(stock(name)())
    assert getattr(vs, name).__module__ == "vicinal.sklearn"
    for method in ("fit", "predict", "score", "transform", "kneighbors"):
        if hasattr(stock(name), method):
            assert inspect.signature(getattr(getattr(vs, name), method)) == inspect.signature(
                getattr(stock(name), method)
            )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("parameter", "value", "words"),
    [
        ("device", 1, "must be an instance of 'str'"),
        ("threads", 0, "must be an int in the range"),
        ("threads", 1.5, "must be an int in the range"),
        ("memory_limit", -1, "must be an int in the range"),
    ],
)
def test_wrong_values(name, parameter, value, words, blobs):
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter of {name} {words}"):
        getattr(vs, name)(**{parameter: value}).fit(*blobs)


@pytest.mark.parametrize(
    ("parameter", "value"), [("device", 1), ("threads", "a"), ("threads", 1.5), ("memory_limit", -1)]
)
def test_wrong_values_after_fit(parameter, value, blobs):
    estimator = vs.NearestNeighbors().fit(blobs[0]).set_params(**{parameter: value})
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter of NearestNeighbors must be"):
        estimator.kneighbors(blobs[0][:2])


@pytest.mark.parametrize("name", NAMES)
def test_unknown_device(name, blobs):
    with pytest.raises(vc.InvalidArgument, match="device: ") as caught:
        getattr(vs, name)(device="gpu").fit(*blobs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.skipif(vc.doctor(device="cpu").cuda_missing == "", reason="there is a CUDA device")
def test_missing_device(name, blobs):
    estimator = getattr(vs, name)(device="cuda")
    with pytest.raises(vc.DeviceUnavailable) as caught:
        estimator.fit(*blobs)
    assert "\n" not in str(caught.value)
    # A model that was fitted where there is a device names it when it is used without one.
    estimator.set_params(device="cpu").fit(*blobs).set_params(device="cuda")
    for method in ("predict", "transform", "kneighbors"):
        if hasattr(estimator, method):
            with pytest.raises(vc.DeviceUnavailable):
                getattr(estimator, method)(blobs[0])
            getattr(estimator.set_params(device="auto"), method)(blobs[0])
            estimator.set_params(device="cuda")


@pytest.mark.parametrize("name", NAMES)
def test_errors_are_theirs(name, blobs):
    """The class and the text of scikit-learn's."""
    rows, labels = blobs
    bad = {
        "NaN": np.where(np.arange(5) == 2, np.nan, rows),
        "one dimension": rows[:, 0],
        "no rows": rows[:0],
        "no columns": rows[:, :0],
        "text": np.array([["a", "b"]] * 300),
        "complex": rows.astype(complex),
        "nothing": None,
    }
    for what, table in bad.items():
        messages = []
        for cls in (stock(name), getattr(vs, name)):
            with pytest.raises((ValueError, TypeError)) as caught:
                cls().fit(table, labels[: 0 if what == "no rows" else None])
            messages.append((type(caught.value), str(caught.value)))
        assert messages[0] == messages[1], what
    method = (
        "predict" if hasattr(stock(name), "predict") else "transform" if hasattr(stock(name), "transform") else None
    )
    if method and name != "LocalOutlierFactor":
        with pytest.raises(NotFittedError):
            getattr(getattr(vs, name)(), method)(rows)
        with pytest.raises(ValueError, match="X has 2 features, but "):
            getattr(getattr(vs, name)().fit(rows, labels), method)(rows[:, :2])


NOT_LOADED = """
import sys
import vicinal
assert not {"sklearn", "vicinal.sklearn", "vicinal._hooks"} & set(sys.modules)
"""
MISSING = """
import sys
sys.modules["sklearn"] = None
try:
    import vicinal.sklearn
except ImportError as error:
    assert "pip install 'scikit-learn==1.9.*'" in str(error), error
else:
    raise AssertionError
"""
OTHER = """
import sklearn
sklearn.__version__ = "1.5.2"
try:
    import vicinal.sklearn
except ImportError as error:
    assert "needs scikit-learn 1.9, and 1.5.2 is installed" in str(error), error
else:
    raise AssertionError
"""
HOOKS = """
import sys
import sklearn.neighbors, sklearn.cluster, sklearn.manifold
import numpy as np, vicinal
modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in ("sklearn", "joblib")]
classes = {id(value): value for module in modules for value in vars(module).values() if isinstance(value, type)}
owners = [*modules, *(owner for owner in classes.values() if owner.__module__.startswith("sklearn."))]
before = [dict(vars(owner)) for owner in owners]

def changed():
    found = []
    for owner, was in zip(owners, before):
        now = vars(owner)
        found += [(owner, key) for key, value in was.items() if callable(value) and now.get(key) is not value]
        found += [(owner, key) for key in set(now) - set(was)]
    return found

import vicinal.sklearn as vs
rows = np.random.default_rng(0).normal(size=(50, 3))
models = [vs.NearestNeighbors(), vs.KMeans(2)]
assert not changed(), changed()
for model in models:
    model.fit(rows)
assert changed()
vicinal.unpatch_sklearn()
assert not changed(), changed()
"""


def test_names():
    assert vs.__all__ == NAMES


@pytest.mark.parametrize("script", [NOT_LOADED, MISSING, OTHER, HOOKS], ids=["light", "missing", "other", "hooks"])
def test_import(script):
    """scikit-learn is not loaded by `import vicinal`, is named where it is missing, and is left as it was until an
    estimator computes, and by `unpatch_sklearn`."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
