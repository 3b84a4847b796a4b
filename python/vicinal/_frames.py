"""Data frames of pandas as tables. Other frames come by Arrow, which pandas needs pyarrow for."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from vicinal._errors import BadData, InvalidArgument


def is_pandas(value: Any) -> bool:
    """Whether it is a frame of pandas or of a library that extends it, without loading pandas."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas" for kind in type(value).__mro__
    )


def table(frame: Any, name: str, native: Callable[[NDArray[Any], str], NDArray[Any]]) -> tuple[NDArray[Any], int]:
    """The numbers of a frame and the bytes copied: 0 where its columns are of one native type and in one block.

    Else columns are copied to the narrowest type that has all of their numbers. `native` makes an array of one of the
    library's types. Raises InvalidArgument naming a column that holds no numbers, BadData naming row (by position) and
    column of a missing value in a column of a nullable type.
    """
    columns = [_column(frame.iloc[:, at], at, label, name) for at, label in enumerate(frame.columns)]
    if not columns:
        return np.empty((len(frame), 0)), 0
    types = {column.dtype for column in columns}
    joint = _joint_type(types)
    if types == {joint} and all(isinstance(dtype, np.dtype) for dtype in frame.dtypes):
        whole = frame.to_numpy()
        if np.may_share_memory(whole, columns[0]) and np.may_share_memory(whole, columns[-1]):
            return whole, 0
    rows = np.empty((len(frame), len(columns)), joint, order="F")
    for at, column in enumerate(columns):
        rows[:, at] = native(column, f"{name}: column {frame.columns[at]!r}")
    return rows, rows.nbytes


def _joint_type(types: set[np.dtype[Any]]) -> np.dtype[Any]:
    """The narrowest of the library's types that has the numbers of all."""
    if all(one.kind == "b" for one in types):
        return np.dtype(np.bool_)
    if all(one.kind == "b" or one == np.uint8 for one in types):
        return np.dtype(np.uint8)
    if all(one == np.float16 for one in types):
        return np.dtype(np.float16)
    is_narrow = (one.itemsize <= (4 if one.kind == "f" else 2) for one in types)
    return np.dtype(np.float32 if all(is_narrow) else np.float64)


def _column(series: Any, at: int, label: Any, name: str) -> NDArray[Any]:
    """One column as an array of numbers or bools."""
    dtype = series.dtype
    plain = dtype if isinstance(dtype, np.dtype) else getattr(dtype, "numpy_dtype", None)
    if type(dtype).__name__ == "SparseDtype":  # the bounds of intervals have a subtype, too
        plain = dtype.subtype
    if not isinstance(plain, np.dtype) or plain.kind not in "biuf" or plain.itemsize > 8:
        raise InvalidArgument(
            f"{name}: column {label!r} holds {_what(dtype)}; expected numbers or bools, so leave it out or code it"
        )
    if dtype is plain:
        return np.asarray(series)
    missing = np.asarray(series.isna())
    # A missing value of a nullable type is no NaN, which is refused with those of other tables.
    if missing.any():
        raise BadData(
            f"{name}: row {int(missing.argmax())}, column {at} ({label!r}) is missing; fill missing values or leave "
            "out their rows"
        )
    return np.asarray(series.to_numpy(dtype=plain))


def _what(dtype: Any) -> str:
    text = str(dtype)
    if text == "category":
        return "categories"
    if text in ("object", "str", "string") or text.startswith("string["):
        return "texts or other objects"
    return f"elements of type {text}"
