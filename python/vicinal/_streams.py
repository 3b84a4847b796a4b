"""What another library has begun on a CUDA stream of its own comes before what vicinal begins, by the driver's own
interface, for arrays that do not speak DLPack."""

from __future__ import annotations

import ctypes
from typing import Any, Mapping

from vicinal._errors import DeviceUnavailable, InvalidArgument

__all__ = ["wait_for"]

LEGACY = 1  #: CUDA's default stream, which vicinal's streams wait for
PER_THREAD = 2  #: the calling thread's default stream
INVALID_CONTEXT = 201
NO_TIMES = 2  #: flag of an event that only orders


def wait_for(described: Mapping[str, Any], name: str) -> None:
    """Orders the work that is on the stream of a `__cuda_array_interface__` (version 3: None, 1, 2 or a handle) before
    what follows on the default stream. Waits for nothing itself."""
    stream = described.get("stream")
    if stream is None:
        return
    if isinstance(stream, bool) or not isinstance(stream, int) or stream <= 0:
        allowed = "None, 1, 2 or the handle of a stream"
        raise InvalidArgument(f"{name}: stream {stream!r} is not allowed; expected {allowed}")
    if stream == LEGACY:
        return
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DeviceUnavailable(f"{name}: is on a stream, but there is no NVIDIA driver") from error
    handle, context, event = ctypes.c_void_p(stream), ctypes.c_void_p(), ctypes.c_void_p()

    def call(function: str, *arguments: Any, also: int = 0) -> int:
        status = int(getattr(driver, function)(*arguments))
        if status not in (0, also):
            raise DeviceUnavailable(f"{name}: its stream cannot be waited for ({function} says {status})")
        return status

    also = INVALID_CONTEXT if stream == PER_THREAD else 0
    if call("cuStreamGetCtx", handle, ctypes.byref(context), also=also) != 0:
        return  # a thread without a context has begun nothing
    call("cuCtxPushCurrent_v2", context)
    try:
        call("cuEventCreate", ctypes.byref(event), NO_TIMES)
        try:
            call("cuEventRecord", event, handle)
            call("cuStreamWaitEvent", ctypes.c_void_p(LEGACY), event, 0)
        finally:
            driver.cuEventDestroy_v2(event)  # once it has been waited for
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
