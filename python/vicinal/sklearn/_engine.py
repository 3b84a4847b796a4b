"""What makes a class of scikit-learn one that vicinal computes: three more parameters, and public methods that run with
the hooks of vicinal._hooks in their places."""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from numbers import Integral
from typing import Any, Callable, TypeVar

import numpy as np
import sklearn
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils._param_validation import Interval, validate_parameter_constraints
from sklearn.utils.metaestimators import available_if

from vicinal._hooks import registry
from vicinal._hooks.engine import common
from vicinal._neighbors import knn
from vicinal.sklearn._tables import Table, on_device, refuse

__all__ = ["engine", "keywords"]

_Class = TypeVar("_Class", bound=type)

#: Methods that compute.
METHODS = (
    "fit",
    "partial_fit",
    "fit_predict",
    "fit_transform",
    "predict",
    "predict_proba",
    "transform",
    "score",
    "score_samples",
    "decision_function",
    "kneighbors",
    "kneighbors_graph",
    "radius_neighbors",
    "radius_neighbors_graph",
)
VERSION = "_sklearn_version"  #: of a state, as BaseEstimator names it
DEFAULTS = {"device": "auto", "threads": None, "memory_limit": None}
CONSTRAINTS = {
    "device": [str],
    "threads": [Interval(Integral, 1, None, closed="left"), None],
    "memory_limit": [Interval(Integral, 1, None, closed="left"), None],
}
PARAMETERS = """\
device : str, default="auto"
    Where vicinal computes: "cpu", "cuda", "cuda:1", "cuda:0,1", or "auto",
    which takes a CUDA device if there is one and it is expected to be faster.

threads : int, default=None
    Number of threads of vicinal. None: as many as threadpoolctl, joblib and
    OMP_NUM_THREADS allow, else all cores.

memory_limit : int, default=None
    Bytes of memory that vicinal may use. None: 80 % of what is free.
"""


def engine(cls: _Class) -> _Class:
    """Gives a subclass of an estimator the parameters of vicinal, and wraps its methods that compute."""
    untyped: Any = cls
    stock: Any = next(base for base in cls.__mro__ if base.__module__.startswith("sklearn."))
    untyped._parameter_constraints = {**stock._parameter_constraints, **CONSTRAINTS}
    untyped.__init__ = _constructor(stock.__init__)
    untyped.__doc__ = _documented(stock.__doc__)
    untyped.__getstate__ = _with_version(untyped.__getstate__)
    untyped.__setstate__ = _of_version(untyped.__setstate__)
    for name in METHODS:
        if hasattr(stock, name):
            method, theirs = inspect.getattr_static(cls, name), inspect.getattr_static(stock, name)
            # Methods that an estimator has by its parameters only are descriptors.
            if hasattr(theirs, "check"):
                setattr(cls, name, available_if(theirs.check)(_computed(method.fn, theirs.fn)))
            else:
                setattr(cls, name, _computed(method, theirs))
    return cls


def _with_version(theirs: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A state with the version of scikit-learn, which BaseEstimator gives classes of its own package only."""

    @functools.wraps(theirs)
    def __getstate__(self: Any) -> Any:
        return {**theirs(self), VERSION: sklearn.__version__}

    return __getstate__


def _of_version(theirs: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Takes a state, and warns of one of another scikit-learn."""

    @functools.wraps(theirs)
    def __setstate__(self: Any, state: Any) -> None:
        kept = dict(state)
        version = kept.pop(VERSION, sklearn.__version__)
        if version != sklearn.__version__:
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=type(self).__name__,
                    current_sklearn_version=sklearn.__version__,
                    original_sklearn_version=version,
                ),
                stacklevel=2,
            )
        theirs(self, kept)

    return __setstate__


def keywords() -> Any:
    """Those of vicinal's functions, of the estimator whose method runs."""
    settings = registry.current()
    assert settings is not None
    return common(settings)


def _constructor(stock: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(stock)
    def __init__(
        self: Any,
        *arguments: Any,
        device: str = "auto",
        threads: int | None = None,
        memory_limit: int | None = None,
        **keywords: Any,
    ) -> None:
        stock(self, *arguments, **keywords)
        self.device = device
        self.threads = threads
        self.memory_limit = memory_limit

    # scikit-learn reads the names of the parameters here.
    given = inspect.signature(stock)
    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in DEFAULTS.items()]
    untyped: Any = __init__
    untyped.__signature__ = given.replace(parameters=[*given.parameters.values(), *more])
    return __init__


def _documented(text: str | None) -> str | None:
    """scikit-learn's docstring with the parameters of vicinal behind its own."""
    at = re.search(r"^( *)Attributes\n *-+\n", text or "", re.MULTILINE)
    if text is None or at is None:
        return text
    more = "".join(at[1] + line if line.strip() else line for line in PARAMETERS.splitlines(keepends=True))
    return f"{text[: at.start()]}{more}\n{text[at.start() :]}"


def _computed(method: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """A method with the signature and the docstring of scikit-learn's."""

    @functools.wraps(theirs)
    def call(self: Any, *arguments: Any, **others: Any) -> Any:
        if arguments and on_device(arguments[0]):
            arguments = (_table(self, arguments[0]), *arguments[1:])
        elif on_device(others.get("X")):
            others["X"] = _table(self, others["X"])
        settings = registry.Settings(self.device, self.threads, self.memory_limit, strict=True)
        if registry.current() == settings:
            return method(self, *arguments, **others)
        if not _is_plain(settings):
            # Only fit checks parameters, and these may be set after it.
            given = {name: getattr(self, name) for name in CONSTRAINTS}
            validate_parameter_constraints(CONSTRAINTS, given, caller_name=type(self).__name__)
            _need(self.device)
        with registry.active(settings):
            return method(self, *arguments, **others)

    return call


def _is_plain(settings: registry.Settings) -> bool:
    """Whether parameters need no check: scikit-learn's takes as long as a small search."""
    numbers = settings.threads, settings.memory_limit
    known = isinstance(settings.device, str) and settings.device in ("auto", "cpu")
    return known and all(n is None or type(n) is int and n >= 1 for n in numbers)


def _table(estimator: Any, value: Any) -> Table:
    if not getattr(estimator, "_takes_tables", False):
        refuse(f"{type(estimator).__name__} computes with tables in host memory; pass a NumPy array")
    return Table(value)


def _need(device: Any) -> None:
    """Raises DeviceUnavailable for a device that is not there, InvalidArgument for what names none. Hooks would leave
    such calls to scikit-learn."""
    if device not in ("auto", "cpu"):
        knn(np.zeros((2, 1)), k=1, device=device)
