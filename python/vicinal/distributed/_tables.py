"""Tables of a job, cut in blocks that workers can reach."""

from __future__ import annotations

import os
from typing import Any, Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from vicinal import _sparse, _tables
from vicinal._errors import InvalidArgument
from vicinal.distributed._engines import Engine
from vicinal.distributed._tasks import Slice, opened

__all__ = ["Held", "cuts_of", "held", "held_vector", "hold_all", "refuse_masked", "text_of"]

Range = tuple[int, int]


class Held:
    """Rows [n, d] that workers reach by references to ranges of them."""

    def __init__(self, rows: int, row_bytes: int, reference: Callable[[int, int], Any], cols: int = 1) -> None:
        self.rows = rows
        self.cols = cols
        self.row_bytes = row_bytes
        self.reference = reference

    def __call__(self, begin: int, end: int) -> Any:
        return self.reference(begin, end)


def held(engine: Engine, value: Any, name: str) -> Held:
    """A table: a path, which workers open, or an array, which the engine holds."""
    if isinstance(value, (str, os.PathLike)):
        path = os.path.abspath(os.fspath(value))
        array = opened(path)
        _check(array, name)
        reference: Callable[[int, int], Any] = lambda begin, end: Slice(path, begin, end)  # noqa: E731
        return Held(array.shape[0], array.dtype.itemsize * array.shape[1], reference, array.shape[1])
    array = array_of(value, name)
    return Held(array.shape[0], array.dtype.itemsize * array.shape[1], engine.hold(array), array.shape[1])


def array_of(value: Any, name: str) -> NDArray[Any]:
    """An array of two dimensions that pickles and files hold as it is."""
    if _sparse.is_sparse(value):
        raise InvalidArgument(f"{name}: a sparse matrix; expected a path or an array")
    if isinstance(value, _tables.BlockSource):
        raise InvalidArgument(f"{name}: a BlockSource is of this process alone; expected a path or an array")
    refuse_masked(value, name)
    kind, rows, _ = ("array", value, 0) if isinstance(value, np.ndarray) else _tables.table(value, name)
    array = rows if kind == "array" and isinstance(rows, np.ndarray) else _tables._array(value, name)
    _check(array, name)
    if array.dtype.name == "bfloat16":
        raise InvalidArgument(f"{name}: holds bfloat16, which tasks do not take; convert it to float32")
    if array.dtype.kind not in "fiub":
        array = _tables._native(array, name)
    return array


def refuse_masked(value: Any, name: str) -> None:
    """Raises for an array whose mask NumPy would drop."""
    if _tables._is_masked(value):
        raise InvalidArgument(f"{name}: a masked array; fill or drop its masked values first")


def _check(array: Any, name: str) -> None:
    if array.ndim != 2:
        raise InvalidArgument(f"{name}: {array.ndim} dimensions; expected 2, rows and columns")
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise InvalidArgument(f"{name}: has no rows or no columns")


def held_vector(engine: Engine, value: NDArray[Any] | None) -> Callable[[int, int], Any]:
    """A value for each row, or nothing."""
    return (lambda begin, end: None) if value is None else engine.hold(value)


def hold_all(reference: Callable[[int, int], Any], cuts: Sequence[Range]) -> None:
    """Makes the blocks known to the workers before a task begins."""
    for begin, end in cuts:
        reference(begin, end)


def cuts_of(rows: int, per_task: int | None, blocks: int, name: str) -> list[Range]:
    """Ranges of at most `per_task` rows, or so many blocks of about the same size."""
    if per_task is not None:
        if not isinstance(per_task, (int, np.integer)) or isinstance(per_task, bool) or per_task < 1:
            raise InvalidArgument(f"{name}: is {per_task!r}, must be at least 1")
        return [(begin, min(begin + int(per_task), rows)) for begin in range(0, rows, int(per_task))]
    blocks = max(1, min(blocks, rows))
    ends = [rows * block // blocks for block in range(blocks + 1)]
    return list(zip(ends[:-1], ends[1:], strict=True))


def text_of(ranges: Sequence[Range], number: int, noun: str) -> str:
    begin, end = ranges[number]
    return f"{noun} {begin} to {end - 1}"
