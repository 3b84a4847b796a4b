"""The hook that takes the settings of a context along to the workers that scikit-learn starts, threads and processes."""

from __future__ import annotations

from functools import update_wrapper
from typing import Any

import joblib

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
        jobs = 1 if settings is None else joblib.effective_n_jobs(self.n_jobs)
        if settings is None or jobs == 1:
            return before(self, iterable)
        return before(self, _carried(iterable, settings, jobs))

    return update_wrapper(__call__, before)


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
