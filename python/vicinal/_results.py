"""What functions return: records of fields, and results, whose arrays show the library's memory without a copy."""

from __future__ import annotations

import os
from typing import Any, Callable, ClassVar, Iterator, Mapping, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from vicinal import _core
from vicinal._options import Common

__all__ = ["Plan", "Record", "Result", "Saved", "SearchStats"]

Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]
Float64Array = NDArray[np.float64]


class Record:
    """Named fields that do not change."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set: results do not change")

    def _shown(self) -> Iterator[tuple[str, str]]:
        for name, value in self.__dict__.items():
            if name.startswith("_") or isinstance(value, Record):
                continue
            if hasattr(value, "dtype") and hasattr(value, "shape"):
                yield name, f"{value.dtype} {list(value.shape)}"
            elif value is not None and value != "":
                yield name, repr(value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in self._shown())})"

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self._shown())
        return f"<table><caption>vicinal.{type(self).__name__}</caption>{rows}</table>"


class Plan(Record):
    """What ran, and why."""

    method: str  #: "fused", "direct", "kdtree", ..
    screens: str  #: of `fused`, and of `direct` for few queries on a device, coarse to fine
    device: str  #: "cpu", "cuda:0"
    isa: str  #: instruction set of the kernels
    threads: int
    memory: int  #: bytes of host memory the job was planned with
    device_memory: int  #: bytes of device memory
    expected_seconds: float  #: 0 where unknown
    reason: str  #: one sentence: why this method


class SearchStats(Record):
    """What a search did. Counts are the same for every thread count."""

    distinct_rows: int
    survivors: int  #: pairs ranked by the float64 key
    escalated: int  #: queries that a finer screen than the first one served
    uncertified: int  #: queries for which over a quarter of a block (CUDA: all rows) was ranked in float64
    prepare_seconds: float
    search_seconds: float
    selection_seconds: float


class Result(Record):
    """A result of the library, which owns the memory that its arrays show; they are read-only."""

    copied: int  #: bytes of arguments that were copied; 0 where all were borrowed as they were

    _native: _core.Native
    _records: ClassVar[dict[str, Callable[[Any], Record]]] = {"plan": Plan, "stats": SearchStats}

    def __init__(self, answer: tuple[_core.Native, dict[str, Any]]) -> None:
        native, fields = answer
        for name, kind in self._records.items():
            if name in fields:
                fields[name] = kind(fields[name])
        super().__init__(fields)
        self.__dict__["_native"] = native


class Saved(Result):
    """A result that files hold; the command and C++ read them, too."""

    _kind: ClassVar[str]  #: what the extension calls its file

    @classmethod
    def _of(cls, answer: tuple[_core.Native, dict[str, Any]]) -> Self:
        """Of an answer of the extension, also where `__init__` takes something else."""
        made = cls.__new__(cls)
        Result.__init__(made, answer)
        return made

    def save(self, path: str | os.PathLike[str], **options: Unpack[Common]) -> None:
        """Writes a file, whole or not at all. Raises FileError, InvalidArgument for what a file cannot hold. O(n d)."""
        _core.save(self, os.fspath(path), dict(options))

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Unpack[Common]) -> Self:
        """Reads a file. Raises FileError, BadData for anything that `save` did not write, OverMemory. O(n d)."""
        return cls._of(_core.load(cls._kind, os.fspath(path), dict(options)))

    def _content(self) -> bytes:
        """Those of its file."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            self.save(path)
            with open(path, "rb") as file:
                return file.read()

    @classmethod
    def _from(cls, content: bytes) -> Self:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            with open(path, "wb") as file:
                file.write(content)
            return cls.load(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._from, (self._content(),)
