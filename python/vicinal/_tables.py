"""What an argument is, and the copy of it that the library can read, where it cannot read it as it is.

`table` is asked by the extension about everything that is no plain two-dimensional array of a type that the library
reads. The exact rules are those of the library's file readers: integers and bools widen exactly or are refused.
"""

from __future__ import annotations

import os
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from vicinal import _devices, _frames, _sparse
from vicinal._errors import BadData, InvalidArgument

NATIVE = ("uint8", "float16", "float32", "float64")
EXPECTED = "expected a table of numbers: uint8, float16, bfloat16, float32, float64, or integers and bools"
MAX_EXACT = 2**53  # every integer up to it is a float64


class BlockSource:
    """A table that is produced block by block, for data that does not fit in memory.

    `fill(begin, end, rows)` writes the rows [begin, end) to `rows`, an array [end - begin, cols] of `dtype`. It is
    called from one thread at a time, not always the caller's, and may be asked for the same rows again, which must then
    be the same. What it raises ends the call.
    """

    def __init__(
        self, rows: int, cols: int, fill: Callable[[int, int, NDArray[Any]], object], dtype: str = "float64"
    ) -> None:
        if dtype not in NATIVE:
            raise InvalidArgument(f"dtype: unknown value {dtype!r}; expected one of {', '.join(NATIVE)}")
        self.rows = rows
        self.cols = cols
        self.dtype = dtype
        self._fill = fill

    def fill(self, begin: int, end: int, memory: memoryview) -> None:
        self._fill(begin, end, np.frombuffer(memory, self.dtype).reshape(end - begin, self.cols))


def table(value: Any, name: str) -> tuple[str, Any, int]:
    """(kind, value, bytes copied): "array", "bfloat16", "dlpack", "cuda", "path", "blocks", "csr" or "arrow"."""
    if isinstance(value, (str, os.PathLike)):
        return "path", os.fspath(value), 0
    if isinstance(value, BlockSource):
        return "blocks", value, 0
    if _is_masked(value):
        raise InvalidArgument(f"{name}: a masked array; fill or drop its masked values first")
    if not isinstance(value, np.ndarray):
        # DLPack first: it has bfloat16, says what cannot be borrowed, and its producer orders its own streams.
        if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
            return "dlpack", _capsule(value, name), 0
        if hasattr(value, "__cuda_array_interface__"):
            return "cuda", (_interface(value, name), value), 0
        if _sparse.is_sparse(value):
            return "csr", *_sparse.csr(value, name, _native)
        if _frames.is_pandas(value):
            rows, copied = _frames.table(value, name, _native)
            return "array", _native(rows, name), copied
        if hasattr(value, "__arrow_c_stream__"):
            return "arrow", _stream(value, name), 0
    array = _array(value, name)
    if array.ndim != 2:
        hint = "; for a single column pass .reshape(-1, 1)" if array.ndim == 1 else ""
        raise InvalidArgument(f"{name}: {array.ndim} dimensions; expected 2, rows and columns{hint}")
    # What NumPy had to make of a list or of a table of another library.
    copied = array.nbytes if array is not value and array.flags.owndata else 0
    if array.dtype.name == "bfloat16":
        bits = array.view(np.uint16)
        plain = _aligned(bits)
        return "bfloat16", plain, copied if plain is bits else plain.nbytes
    converted = _native(array, name)
    return "array", converted, copied if np.may_share_memory(converted, array) else converted.nbytes


def _is_masked(value: Any) -> bool:
    """Without loading numpy.ma."""
    return isinstance(value, np.ndarray) and hasattr(value, "mask")


def _capsule(value: Any, name: str) -> Any:
    """DLPack's capsule. A producer on a CUDA device orders its work before the default stream, which the library's
    streams wait for."""
    kind, _ = value.__dlpack_device__()
    try:
        if int(kind) not in (2, 13):
            return value.__dlpack__()
        with _devices.current(value):
            return value.__dlpack__(stream=1)
    except (BufferError, RuntimeError, TypeError) as error:
        raise InvalidArgument(f"{name}: its memory cannot be borrowed by DLPack: {error}") from error


def _interface(value: Any, name: str) -> Any:
    """A `__cuda_array_interface__`, once the work on its stream is ordered before the library's."""
    from vicinal import _streams

    described = value.__cuda_array_interface__
    _streams.wait_for(described, name)
    return described


def _stream(value: Any, name: str) -> Any:
    """Arrow's capsule. What a reader raises here and later, that it was read before, say, ends the call."""
    try:
        return value.__arrow_c_stream__()
    except Exception as error:
        raise InvalidArgument(f"{name}: gives no Arrow stream: {sentence(error)}") from error


def _array(value: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InvalidArgument(f"{name}: {sentence(error)}; {EXPECTED}") from error


def sentence(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    size = array.itemsize
    fits = array.flags.aligned and all(stride % size == 0 for stride in array.strides)
    return array if fits and array.dtype.isnative else np.array(array, array.dtype.newbyteorder("="), order="C")


def _native(array: NDArray[Any], name: str) -> NDArray[Any]:
    """The array as one of the library's types."""
    kind = array.dtype.kind
    if kind == "f" and array.itemsize <= 8:
        return _aligned(array)
    if kind == "b" or array.dtype == np.uint8:
        return _aligned(array.view(np.uint8))
    if kind in "iu":
        return _widened(array, name)
    words = {"O": "Python objects", "c": "complex numbers", "U": "texts", "S": "texts", "V": "structs"}
    raise InvalidArgument(f"{name}: holds {words.get(kind, f'elements of type {array.dtype}')}; {EXPECTED}")


def _widened(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Integers as float64; `bad_data` for one that is none."""
    if array.itemsize == 8 and array.size:
        beyond = (array > MAX_EXACT) | (array < -MAX_EXACT) if array.dtype.kind == "i" else array > MAX_EXACT
        if beyond.any():
            at = np.argwhere(beyond)[0].tolist()
            place = f"row {at[0]}, column {at[1]}" if array.ndim == 2 else f"element {at[0]}"
            raise BadData(
                f"{name}: {place} is {array[beyond][0]}, beyond 2^53, where float64 has not every " "whole number"
            )
    return array.astype(np.float64)


def vector(value: Any, name: str, kind: str) -> tuple[NDArray[Any], int]:
    """A contiguous array of "int64" or "float64", and the bytes copied for it."""
    if _is_masked(value):
        raise InvalidArgument(f"{name}: a masked array; fill or drop its masked values first")
    array = _array(value, name)
    allowed = "iu" if kind == "int64" else "iuf"
    if array.size == 0:
        array = array.astype(kind)
    if array.dtype.kind not in allowed or array.itemsize > 8:
        what = "whole numbers" if kind == "int64" else "numbers"
        raise InvalidArgument(f"{name}: elements of type {array.dtype}; expected {what}")
    if kind == "int64" and array.dtype == np.uint64 and (array > np.iinfo(np.int64).max).any():
        raise InvalidArgument(f"{name}: a number beyond 64 bits")
    if kind == "float64" and array.dtype.kind in "iu":
        array = _widened(array, name)
    # int64 has two names in C, and NumPy would copy one to the other.
    converted = np.ascontiguousarray(array, None if array.dtype == kind else kind)
    return converted, 0 if converted is array and array is value else converted.nbytes


def bitmap(value: Any, name: str) -> tuple[NDArray[Any], int]:
    """The bits of an array of bools in words of 64, and how many there are."""
    array = _array(value, name)
    if array.dtype != np.bool_ or array.ndim != 1:
        raise InvalidArgument(f"{name}: expected an array of bools, one for each row of the table")
    bits = np.packbits(array, bitorder="little")
    words = np.zeros(-(-len(array) // 64), np.uint64)
    words.view(np.uint8)[: len(bits)] = bits
    return words, len(array)


def labels(value: Any, name: str) -> tuple[str, Any, int]:
    """("int", int64 array, bytes copied) or ("text", list of str, 0): one label for each row."""
    if _is_masked(value):
        raise InvalidArgument(f"{name}: a masked array; fill or drop its masked values first")
    array = _array(value, name)
    if array.ndim != 1:
        raise InvalidArgument(f"{name}: {array.ndim} dimensions; expected 1, a label for each row")
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array.dtype.kind == "f":
        whole = array.astype(np.int64, casting="unsafe") if np.isfinite(array).all() else None
        if whole is None or not (whole == array).all():
            raise InvalidArgument(f"{name}: labels are whole numbers or texts, not fractions; regress takes numbers")
        array = whole
    if array.dtype.kind in "iu":
        converted, copied = vector(array, name, "int64")
        return "int", converted, copied if converted is value else converted.nbytes
    texts = array.tolist()
    if not all(isinstance(text, str) for text in texts):
        raise InvalidArgument(f"{name}: labels are whole numbers or texts, all of one kind")
    return "text", texts, 0
