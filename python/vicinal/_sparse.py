"""Sparse matrices of SciPy as tables: the extension makes their rows dense block by block."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from vicinal._errors import BadData, InvalidArgument

MAX_COLUMNS = 4096  # a row of more is mostly zeros that would all be read

#: rows, columns, values, columns of the entries, starts of the rows
Parts = tuple[int, int, NDArray[Any], NDArray[Any], NDArray[Any]]


def is_sparse(value: Any) -> bool:
    return hasattr(value, "nnz") and hasattr(value, "tocsr")


def csr(value: Any, name: str, native: Callable[[NDArray[Any], str], NDArray[Any]]) -> tuple[Parts, int]:
    """The arrays of a CSR matrix and the bytes copied; `native` makes an array of one of the library's types.

    Entries of the same place are added as SciPy adds them: by `sum_duplicates` for integers and bools, in whose type
    they are added, else while a row is made dense.
    """
    if getattr(value, "format", "") != "csr":
        raise InvalidArgument(
            f"{name}: a sparse matrix in the format {getattr(value, 'format', type(value).__name__)!r}; rows are read "
            "from CSR, so pass its .tocsr()"
        )
    if not isinstance(value.data, np.ndarray):
        raise InvalidArgument(
            f"{name}: a sparse matrix that is not one of SciPy; pass its copy in host memory (.get())"
        )
    if len(value.shape) != 2:
        raise InvalidArgument(f"{name}: {len(value.shape)} dimensions; expected 2, rows and columns")
    rows, cols = (int(size) for size in value.shape)
    if cols > MAX_COLUMNS:
        raise InvalidArgument(
            f"{name}: a sparse matrix of {cols} columns; rows of up to {MAX_COLUMNS} are made dense, so choose "
            "columns, reduce them (such as by scikit-learn's TruncatedSVD), or pass its .toarray()"
        )
    _check_starts(value, rows, name)
    copied = 0
    if value.data.dtype.kind in "iub" and not value.has_canonical_format:
        value = value.copy()
        value.sum_duplicates()
        copied += value.data.nbytes + value.indices.nbytes + value.indptr.nbytes
    values = _narrowed(native(value.data, name))
    if not np.may_share_memory(values, value.data):
        copied += values.nbytes
    index = np.result_type(value.indices.dtype, value.indptr.dtype)
    index = np.dtype(np.int32 if index == np.int32 else np.int64)
    places = []
    for array in (value.indices, value.indptr):
        # int64 has two names in C, and NumPy would copy one to the other.
        place = np.ascontiguousarray(array, None if array.dtype == index else index)
        copied += 0 if np.may_share_memory(place, array) else place.nbytes
        places.append(place)
    return (rows, cols, values, places[0], places[1]), copied


def _check_starts(value: Any, rows: int, name: str) -> None:
    """SciPy's own functions read outside the arrays where starts do not ascend within them."""
    starts, entries = value.indptr, min(len(value.data), len(value.indices))
    if len(starts) != rows + 1 or starts[0] < 0 or starts[-1] > entries or (starts[1:] < starts[:-1]).any():
        raise BadData(f"{name}: the sparse matrix is damaged: indptr does not ascend within its {entries} entries")


def _narrowed(values: NDArray[Any]) -> NDArray[Any]:
    """Contiguous, and of a type in which SciPy adds: it has none of 16 bits."""
    return np.ascontiguousarray(values, np.float32 if values.dtype == np.float16 else None)
