"""The hook of scikit-learn's Parallel: it takes the settings of a context along to workers, threads and processes, and
calls the search of a tree at once where there is one worker."""

from __future__ import annotations

from functools import update_wrapper
from itertools import chain, islice
from typing import Any

import joblib
from sklearn.neighbors import BallTree, KDTree
from sklearn.utils.parallel import _FuncWrapper

from vicinal._hooks.registry import Hook, Place, Settings, active, current

__all__ = ["HOOKS"]


class _Carried:
    """A function that a worker calls with the settings of who sent it."""

    def __init__(self, function: Any, settings: Settings) -> None:
        self.function = function
        self.settings = settings

    def with_config_and_warning_filters(self, config: Any, warning_filters: Any) -> _Carried:
        self.function = self.function.with_config_and_warning_filters(config, warning_filters)
        return self

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        with active(self.settings):
            return self.function(*args, **keywords)


def _replace(hook: Hook, before: Any) -> Any:
    def __call__(self: Any, iterable: Any) -> Any:
        settings = current()
        if settings is None:
            return before(self, iterable)
        if _is_in_turn(self):
            rest = iter(iterable)
            first = list(islice(rest, 1))
            if first and _is_search(first[0][0]):
                return [function.function(*args, **keywords) for function, args, keywords in chain(first, rest)]
            return before(self, chain(first, rest))
        jobs = joblib.effective_n_jobs(self.n_jobs)
        return before(self, iterable if jobs == 1 else _carried(iterable, settings, jobs))

    return update_wrapper(__call__, before)


def _is_in_turn(parallel: Any) -> bool:
    """Whether joblib would call one job after another in this thread, and say nothing."""
    told = parallel.verbose or parallel.return_generator or parallel.timeout is not None
    backend = type(getattr(parallel, "_backend", None))
    return parallel.n_jobs == 1 and not told and backend.__module__ == "joblib._parallel_backends"


def _is_search(function: Any) -> bool:
    """Of a tree, which needs none of what joblib prepares for a job: that takes longer than a small search."""
    return type(function) is _FuncWrapper and isinstance(
        getattr(function.function, "__self__", None), (KDTree, BallTree)
    )


def _carried(iterable: Any, settings: Settings, jobs: int) -> Any:
    """Jobs at once share the threads."""
    from vicinal._hooks.engine import threads_of

    shared = settings._replace(threads=max(1, threads_of(settings) // jobs))
    for function, args, keywords in iterable:
        known = hasattr(function, "with_config_and_warning_filters")
        yield (_Carried(function, shared) if known else function), args, keywords


def _double(value: int) -> int:
    return 2 * value


def _check(call: Any) -> None:
    from sklearn.utils.parallel import Parallel, delayed

    if call(Parallel(n_jobs=1), [delayed(_double)(4)]) != [8]:
        raise ValueError("it does not call what it is given")


HOOKS = [
    Hook(
        "Parallel",
        (Place("sklearn.utils.parallel", "Parallel.__call__"),),
        ("self", "iterable"),
        _replace,
        _check,
        answers=False,
    )
]
