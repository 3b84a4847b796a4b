"""The sentence for a keyword that a function does not have."""

from __future__ import annotations


def unknown(function: str, name: str, known: list[str]) -> str:
    """Names the nearest keyword, or all of them."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known))}"
    return f"{function}() got an unexpected keyword argument {name!r}; {meant}"
