"""Hooks: what is put in the place of scikit-learn's private functions, for whom, and how often it answered.

A hook is in its place while somebody uses it (`active`, and `set_default` of `patch_sklearn`), and from the first call
of an estimator of vicinal.sklearn on until a patch ends. Whether a call is then answered by vicinal is decided by the
settings of its context, or else by the default: without either, the function that the hook replaced is called as if
there were no hook. Thread-safe.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import os
import sys
import threading
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Callable, Iterator, NamedTuple

from vicinal._errors import DeviceUnavailable, Error, InvalidArgument, OverMemory

__all__ = [
    "FallbackError",
    "FallbackWarning",
    "Hook",
    "PatchConflict",
    "Place",
    "Settings",
    "Stock",
    "active",
    "current",
    "expect",
    "report",
    "reset_report",
    "set_default",
]

MADE_FOR = "1.9"


class Settings(NamedTuple):
    """How vicinal computes what it answers for scikit-learn."""

    device: str = "auto"
    threads: int | None = None  #: at most what threadpoolctl, joblib and OMP_NUM_THREADS allow
    memory_limit: int | None = None  #: bytes
    #: Of vicinal's estimators: errors of device and memory are raised, and nobody was promised scikit-learn's bits.
    strict: bool = False


class Stock(Exception):
    """Raised by a hook that leaves a call to the function that it replaced; its text is the reason, which is counted.
    Reasons are few and name no value of a call."""


class FallbackWarning(UserWarning):
    """With VICINAL_FALLBACK=warn: a call was left to scikit-learn."""


class FallbackError(Error, RuntimeError):
    """With VICINAL_FALLBACK=error: a call would have been left to scikit-learn."""

    code = "fallback"


class PatchConflict(Error, RuntimeError):
    """Another package has replaced parts of scikit-learn."""

    code = "patch_conflict"


class Place(NamedTuple):
    """An attribute of a module, or of a class in it."""

    module: str
    name: str  #: "function" or "Class.method"

    def owner(self) -> Any:
        module = sys.modules.get(self.module) or importlib.import_module(self.module)
        return functools.reduce(getattr, self.name.split(".")[:-1], module)

    @property
    def attribute(self) -> str:
        return self.name.rpartition(".")[2]

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class Hook:
    """One function that vicinal replaces."""

    name: str  #: as in reports
    places: tuple[Place, ...]  #: all names of the function, the one of its definition first
    parameters: tuple[str, ...] | None  #: of the function; None: of a class that does not say
    replace: Callable[[Hook, Any], Any]  #: (hook, what the attribute is) -> what it becomes
    check: Callable[[Any], None]  #: (what it becomes): raises where a small answer is not scikit-learn's
    answers: bool = True  #: whether its calls are counted

    def call(self, settings: Settings | None, ours: Callable[[Settings], Any], stock: Callable[[], Any]) -> Any:
        """The answer of `ours`; of `stock` where it raises Stock, an error of vicinal's or MemoryError, or there are no
        settings."""
        if settings is None:
            return stock()
        try:
            answer = ours(settings)
        except Stock as left:
            reason = sentence = str(left)
        except Error as error:
            if settings.strict and isinstance(error, (DeviceUnavailable, OverMemory)):
                raise
            reason, sentence = f"vicinal's error {error.code}", str(error)
        except MemoryError as error:  # NumPy's
            if settings.strict:
                raise
            reason, sentence = "no memory", str(error) or "no memory"
        else:
            _count(self.name, None)
            return answer
        _count(self.name, reason)
        _tell(self.name, sentence)
        return stock()


# ---- settings -------------------------------------------------------------------------------------------------------


class _Unset:
    pass


_UNSET = _Unset()
_lock = threading.RLock()
_here: ContextVar[Settings | None | _Unset] = ContextVar("vicinal_settings", default=_UNSET)
_default: Settings | None = None
_users = 0
_kept = False  # whether hooks stay in their places without a user


def _in_child() -> None:
    """A process forked while another thread held the lock has no thread that would release it."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def current() -> Settings | None:
    """The settings of this context, else the default; None: calls are left to scikit-learn."""
    settings = _here.get()
    return _default if isinstance(settings, _Unset) else settings


@contextmanager
def active(settings: Settings | None) -> Iterator[None]:
    """Sends the calls of this context to vicinal with these settings; None: to scikit-learn, whatever the default is.

    Hooks are in their places while at least one context needs them. Those that an estimator of vicinal.sklearn needed
    stay for its next call, which then costs no placing, until a patch ends (`set_default(None)`, or this function for
    other settings). Raises PatchConflict.
    """
    if settings is not None:
        _acquire(settings)
    token = _here.set(settings)
    try:
        yield
    finally:
        try:
            _here.reset(token)
        finally:
            if settings is not None:
                _release(settings)


def set_default(settings: Settings | None) -> None:
    """Sends the calls of every context that has no settings of its own to vicinal, or none (None). None also empties
    the places that estimators of vicinal.sklearn have filled, once none of them is computing."""
    global _default
    with _lock:
        if settings is not None and _default is None:
            _acquire(settings)
        before, _default = _default, settings
        if settings is None:
            _release(before)


def _acquire(settings: Settings) -> None:
    global _users, _kept
    with _lock:
        if _users == 0 and not (_kept and settings.strict):
            _install()
        _users += 1
        _kept = _kept or settings.strict


def _release(settings: Settings | None) -> None:
    """One user less; None: only what is kept ends."""
    global _users, _kept
    with _lock:
        if settings is not None:
            _users -= 1
        _kept = _kept and settings is not None and settings.strict
        if _users == 0 and not _kept:
            _remove()


# ---- places ---------------------------------------------------------------------------------------------------------


class _Placed(NamedTuple):
    place: Place
    owner: Any
    own: bool  #: whether the owner itself had the attribute, not a base of it
    before: Any
    after: Any


_placed: list[_Placed] = []
_made: dict[str, tuple[Any, Any]] = {}  # by hook: what is replaced, and by what; made once, however often it is placed
_usable: list[Hook] | None = None  # once they have been checked


def hooks() -> list[Hook]:
    """All hooks, scikit-learn's modules loaded."""
    from vicinal._hooks import clusters, density, embedding, neighbors, workers

    return [*neighbors.HOOKS, *clusters.HOOKS, *density.HOOKS, *embedding.HOOKS, *workers.HOOKS]


def _install() -> None:
    """Fills the places, unless they were kept. Raises PatchConflict in any case."""
    global _usable
    _how_to_tell()
    if _usable is None:
        _usable = _checked()
    _refuse_other_patchers(_usable)
    if _placed:
        return
    try:
        for hook in _usable:
            _put(hook)
    except BaseException:
        _remove()
        raise


def _put(hook: Hook) -> None:
    owner = hook.places[0].owner()
    stock = vars(owner).get(hook.places[0].attribute, getattr(owner, hook.places[0].attribute))
    made = _made.get(hook.name)
    if made is None or made[0] is not stock:
        made = _made[hook.name] = (stock, hook.replace(hook, stock))
    replaced = made[1]
    for place in hook.places:
        owner = place.owner()
        own = place.attribute in vars(owner)
        before = vars(owner)[place.attribute] if own else None
        setattr(owner, place.attribute, replaced)
        _placed.append(_Placed(place, owner, own, before, replaced))


def _remove() -> None:
    """Empties all places, then warns of those that are left, since a warning may be an error."""
    left = []
    while _placed:
        place, owner, own, before, after = _placed.pop()
        if vars(owner).get(place.attribute) is not after:
            left.append(place)
        elif own:
            setattr(owner, place.attribute, before)
        else:
            delattr(owner, place.attribute)
    for place in left:
        warnings.warn(
            f"{place} was replaced by another package after vicinal; it is left as it is", stacklevel=_caller()
        )


def _checked() -> list[Hook]:
    """The hooks that fit the scikit-learn that is installed; one warning for what does not."""
    import sklearn

    if not sklearn.__version__.startswith(MADE_FOR + "."):
        warnings.warn(
            f"scikit-learn {sklearn.__version__}: vicinal's patch is made for {MADE_FOR}; nothing is patched",
            stacklevel=_caller(),
        )
        return []
    known = hooks()
    _refuse_other_patchers(known)
    usable = []
    for hook in known:
        try:
            _check(hook)
        except Exception as error:
            warnings.warn(
                f"{hook.name}: left to scikit-learn, since its self-test failed: {error}", stacklevel=_caller()
            )
        else:
            usable.append(hook)
    return usable


def expect(found: Any, expected: Any) -> None:
    """Of a self-test: raises where an answer is another one."""
    import numpy as np

    if not np.array_equal(np.asarray(found), np.asarray(expected)):
        raise ValueError(f"it answered {found!r}; expected {expected!r}")


def _check(hook: Hook) -> None:
    owner = hook.places[0].owner()
    attribute = getattr(owner, hook.places[0].attribute)
    if hook.parameters is not None:
        found = tuple(inspect.signature(attribute).parameters)
        if found != hook.parameters:
            raise ValueError(f"its parameters are {', '.join(found)}; expected {', '.join(hook.parameters)}")
    before = report()
    _put(hook)
    token = _here.set(Settings(device="cpu", threads=1))
    try:
        hook.check(getattr(owner, hook.places[0].attribute))
        if hook.answers and _ours.get(hook.name, 0) == before.get(hook.name, {"ours": 0})["ours"]:
            raise ValueError(f"it left a small call to scikit-learn: {', '.join(_stock.get(hook.name, {}))}")
    finally:
        _here.reset(token)
        _remove()
        _restore(before)


#: Classes that other packages replace.
_ESTIMATORS = {
    "sklearn.neighbors": (
        "NearestNeighbors",
        "KNeighborsClassifier",
        "KNeighborsRegressor",
        "RadiusNeighborsClassifier",
        "RadiusNeighborsRegressor",
        "LocalOutlierFactor",
    ),
    "sklearn.cluster": ("KMeans", "MiniBatchKMeans", "DBSCAN", "HDBSCAN", "OPTICS"),
    "sklearn.manifold": ("LocallyLinearEmbedding",),
}


def _refuse_other_patchers(usable: list[Hook]) -> None:
    for module, names in _ESTIMATORS.items():
        for name in names:
            for kind in getattr(sys.modules.get(module) or importlib.import_module(module), name).__mro__:
                _refuse(f"{module}.{name}", kind.__module__)
    for hook in usable:
        for place in hook.places:
            attribute = getattr(place.owner(), place.attribute)
            _refuse(str(place), getattr(attribute, "__module__", None) or type(attribute).__module__)


def _refuse(what: str, module: str) -> None:
    package = module.partition(".")[0]
    if package not in ("sklearn", "builtins", "abc"):
        raise PatchConflict(f"{what} is of {package}, not of scikit-learn; undo that patch before vicinal's")


# ---- counts ---------------------------------------------------------------------------------------------------------

_ours: dict[str, int] = {}
_stock: dict[str, dict[str, int]] = {}
_log = logging.getLogger("vicinal")
_INNER = ("vicinal", "sklearn", "joblib", "contextlib")


def _count(name: str, reason: str | None) -> None:
    with _lock:
        if reason is None:
            _ours[name] = _ours.get(name, 0) + 1
        else:
            reasons = _stock.setdefault(name, {})
            reasons[reason] = reasons.get(reason, 0) + 1


def report() -> dict[str, dict[str, Any]]:
    """By hook: {"ours": calls that vicinal answered, "stock": {reason: calls that were left to scikit-learn}}."""
    with _lock:
        names = sorted({*_ours, *_stock})
        return {name: {"ours": _ours.get(name, 0), "stock": dict(_stock.get(name, {}))} for name in names}


def reset_report() -> None:
    """Counts from 0 again."""
    _restore({})


def _restore(counts: dict[str, dict[str, Any]]) -> None:
    with _lock:
        _ours.clear()
        _stock.clear()
        for name, count in counts.items():
            _ours[name] = count["ours"]
            _stock[name] = dict(count["stock"])


def _tell(name: str, reason: str) -> None:
    how = _how_to_tell()
    text = f"{name} ran on scikit-learn: {reason}"
    if how == "log":
        _log.warning(text)
    elif how == "warn":
        warnings.warn(text, FallbackWarning, stacklevel=_caller())
    elif how == "error":
        raise FallbackError(text)


def _how_to_tell() -> str:
    how = os.environ.get("VICINAL_FALLBACK", "")
    if how not in ("", "log", "warn", "error"):
        raise InvalidArgument(f"VICINAL_FALLBACK: unknown value {how!r}; expected one of log, warn, error")
    return how


def _caller() -> int:
    """How far up the stack, counted from the caller, the first frame is of neither vicinal nor scikit-learn."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _INNER:
        level, frame = level + 1, frame.f_back
    return level
