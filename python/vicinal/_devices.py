"""Arrays in device memory of CuPy and PyTorch, without loading either: k lists of the library that the table came from,
and the device that a table is on."""

from __future__ import annotations

import operator
import sys
from contextlib import nullcontext
from typing import Any, ContextManager

import numpy as np
from numpy.typing import NDArray

from vicinal import _core

DEFAULT_K: int = _core.defaults()["KnnOptions"]["k"]


def _library(array: Any) -> str:
    """ "cupy" or "torch" for an array in device memory of a library whose arrays can be written."""
    name = type(array).__module__.partition(".")[0]
    if name == "torch" and getattr(array, "is_cuda", False):
        return name
    return name if name == "cupy" and hasattr(array, "__cuda_array_interface__") else ""


def lists(table: Any, queries: Any, k: Any) -> tuple[Any, Any] | None:
    """Arrays [queries, k] for ids and distances, not yet written; None where lists come to the host: for queries (or
    else rows of the table) that are not on a device or of a library of which nothing can be written, and for a `k` that
    is an error. `table` may be an Index."""
    of = table if queries is None else queries
    library = _library(of)
    if not library or isinstance(k, (bool, np.bool_)) or getattr(of, "ndim", 0) != 2:
        return None
    try:
        columns = operator.index(DEFAULT_K if k is None else k)
    except TypeError:
        return None
    rows = int(of.shape[0])
    most = table.shape[0] if hasattr(table, "shape") else getattr(table, "rows", columns)
    module = sys.modules[library]
    if rows < 1 or not 1 <= columns <= most:
        return None
    if library == "torch":
        return tuple(
            module.empty((rows, columns), dtype=kind, device=of.device) for kind in (module.int64, module.float64)
        )
    with of.device:
        return module.empty((rows, columns), dtype="int64"), module.empty((rows, columns), dtype="float64")


def current(array: Any) -> ContextManager[Any]:
    """Makes the array's device the current one of its library, which orders streams of the current device alone, and of
    PyTorch refuses arrays of another one."""
    library = _library(array)
    if library == "torch":
        context: ContextManager[Any] = sys.modules[library].cuda.device(array.device)
        return context
    return array.device if library == "cupy" else nullcontext()


def address(array: Any) -> int:
    return int(array.__cuda_array_interface__["data"][0])


def on_host(array: Any) -> NDArray[Any]:
    """A copy in host memory."""
    return np.asarray(array.get() if _library(array) == "cupy" else array.cpu().numpy())
