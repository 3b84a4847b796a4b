"""Errors: one class a code. Each is a `vicinal.Error` and what Python calls such an error."""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "BadData",
    "Cancelled",
    "DeviceUnavailable",
    "Error",
    "FileError",
    "InternalError",
    "InvalidArgument",
    "OverMemory",
]


class Error(Exception):
    """What vicinal raises on purpose: one sentence that names the argument and, if there is one, file, row, column."""

    code: ClassVar[str] = "internal"


class InvalidArgument(Error, ValueError):
    """An argument outside its domain: k = 0, an unknown metric, queries of another width."""

    code = "invalid_argument"


class BadData(Error, ValueError):
    """A value or a file that cannot be used: NaN, infinity, a damaged file."""

    code = "bad_data"


class FileError(Error, OSError):
    """A file that cannot be opened, read or written."""

    code = "io"


class OverMemory(Error, MemoryError):
    """A job that needs more than the memory limit; the sentence names the bytes."""

    code = "over_memory"


class DeviceUnavailable(Error, RuntimeError):
    """A device that was asked for and cannot be used; the sentence names what is missing."""

    code = "device_unavailable"


class Cancelled(Error, RuntimeError):
    """Work that was stopped. After Ctrl-C it is KeyboardInterrupt that is raised, not this."""

    code = "cancelled"


class InternalError(Error, RuntimeError):
    """A defect of vicinal itself."""

    code = "internal"


BY_CODE: dict[str, type[Error]] = {
    kind.code: kind
    for kind in (InvalidArgument, BadData, FileError, OverMemory, DeviceUnavailable, Cancelled, InternalError)
}
