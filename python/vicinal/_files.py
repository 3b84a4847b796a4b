"""Files, synthetic tables, and what this build can do here."""

from __future__ import annotations

import os
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from vicinal import _core
from vicinal._errors import BadData
from vicinal._neighbors import NeighborGraph
from vicinal._names import documented
from vicinal._options import Common, GenerateOptions, ReadOptions, WriteOptions
from vicinal._results import Float64Array, Int32Array, Int64Array, Record, Result

__all__ = ["Doctor", "Generated", "Table", "doctor", "generate", "read", "use_plugin", "write"]


class _Rows:
    """Memory of a table, by NumPy's array interface."""

    def __init__(self, table: Table) -> None:
        address, row_stride, col_stride = _core.table_layout(table)
        # bfloat16 has no letter; its elements are shown as they are stored.
        letter = {"uint8": "|u1", "float16": "<f2", "bfloat16": "<u2", "float32": "<f4", "float64": "<f8"}[table.dtype]
        self.owner = table
        self.__array_interface__ = {
            "version": 3,
            "typestr": letter,
            "shape": (table.rows, table.cols),
            "strides": (row_stride, col_stride),
            "data": (address, True),
        }


class Table(Result):
    """A table from a file; every function takes it where it takes an array."""

    rows: int  #: n
    cols: int  #: d
    dtype: str
    columns: list[str]  #: names, empty where the file has none
    categories: list[list[str]]  #: of columns of text: the texts that codes stand for
    shape: list[int]  #: as stored
    format: str
    notes: list[str]  #: what was guessed, a sentence each
    codes: Int32Array  #: [n] labels as positions in `classes`, where there are labels
    classes: NDArray[Any]

    @property
    def labels(self) -> NDArray[Any] | None:
        """[n] the labels, or None."""
        return self.classes[self.codes] if hasattr(self, "codes") else None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = np.asarray(_Rows(self))
        if copy or (dtype is not None and array.dtype != np.dtype(dtype)):
            return array.astype(dtype or array.dtype)
        return array


class Generated(Result):
    """A synthetic table."""

    points: Float64Array  #: [rows, cols]
    parameters: Float64Array | None  #: [rows, 2] before noise: angle and height
    labels: Int64Array | None  #: [rows] of all but "swiss_roll" and "s_curve"


class Doctor(Record):
    """What this build can do on this machine."""

    version: str
    device: str
    isa: str
    threads: int
    memory_limit: int
    self_test: bool  #: whether a small search gave its known answer
    cuda_driver: int
    cuda_devices: list[dict[str, Any]]
    cuda_plugin: str
    cuda_missing: str  #: one sentence naming the first thing that CUDA lacks; empty: it can be used


@documented("ReadOptions")
def read(path: str | os.PathLike[str], **options: Unpack[ReadOptions]) -> Table:
    """A table from a file: npy, npz, CSV, JSON lines, IDX, fvecs, libsvm, HDF5, packed by gzip, bzip2, xz or zip.

    The format is found by content. numpy.asarray(table) shows the rows without a copy. Raises FileError, BadData naming
    file, line or row, and column, OverMemory. O(n d).
    """
    try:
        return Table(_core.read(os.fspath(path), options))
    except UnicodeDecodeError:
        raise BadData(f"'{path}' has names or texts that are not UTF-8; save it as UTF-8") from None


@documented("WriteOptions")
def write(path: str | os.PathLike[str], content: Any, **options: Unpack[WriteOptions]) -> None:
    """Writes a table, as `read` reads it, or a NeighborGraph (.npz or .csv), whole or not at all; the path's suffix
    says which format. Raises BadData for a number that the file cannot hold exactly, FileError. O(n d)."""
    _core.write(os.fspath(path), content, options)


@documented("GenerateOptions")
def generate(
    shape: Literal["swiss_roll", "s_curve", "blobs", "moons", "kdd", "poker", "covertype"], **options: Unpack[GenerateOptions]
) -> Generated:
    """A synthetic table: the same bits for the same seed on every machine. Raises InvalidArgument for options out of
    range. O(rows cols)."""
    return Generated(_core.generate(shape, options))


def doctor(**options: Unpack[Common]) -> Doctor:
    """Version, device, threads, what CUDA lacks, and a small search whose answer is known."""
    return Doctor(_core.doctor(dict(options)))


def use_plugin(plugin: Literal["cuda", "geo"], path: str | os.PathLike[str]) -> None:
    """Names the file of a plug-in before its first use, for the whole process: "cuda" for CUDA devices, "geo" for files
    of polygons. VICINAL_CUDA_PLUGIN and VICINAL_GEO_PLUGIN come first where they are set. Raises FileError for a file
    that is not there, InvalidArgument once the plug-in is loaded from another file."""
    _core.use_plugin(plugin, os.fspath(path))
