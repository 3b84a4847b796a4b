"""Names of keywords: what a docstring says of them, and the sentence for one that a function does not have."""

from __future__ import annotations

import textwrap
from typing import Any, Callable, TypeVar

from vicinal import _core

_Function = TypeVar("_Function", bound=Callable[..., Any])
_DEFAULTS = _core.defaults()


def documented(*structs: str) -> Callable[[_Function], _Function]:
    """Adds the keywords of C++ structs, with C++'s defaults, to a docstring."""
    given = {name: value for struct in structs for name, value in _DEFAULTS[struct].items()}
    words = ", ".join(f"{name}={value!r}" for name, value in given.items())
    line = textwrap.fill(
        f"Keywords and defaults: {words}; and device, threads, memory_limit, device_memory_limit, progress.",
        width=100,
        break_long_words=False,
        break_on_hyphens=False,
    )

    def add(function: _Function) -> _Function:
        function.__doc__ = f"{textwrap.dedent('    ' + (function.__doc__ or '')).rstrip()}\n\n{line}\n"
        return function

    return add


def unknown(function: str, name: str, known: list[str]) -> str:
    """Names the nearest keyword, or all of them."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known))}"
    return f"{function}() got an unexpected keyword argument {name!r}; {meant}"
