"""Tables in the memory of a device, as CuPy, PyTorch, JAX and Numba make them."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from vicinal._errors import InvalidArgument

__all__ = ["Table", "host", "on_device", "refuse"]

CUDA = (2, 13)  #: DLPack's numbers of device and managed memory


def on_device(value: Any) -> bool:
    """Whether a value is an array in the memory of a CUDA device."""
    if value is None or isinstance(value, (np.ndarray, Table)):
        return False
    if hasattr(value, "__dlpack_device__"):
        return int(value.__dlpack_device__()[0]) in CUDA
    return hasattr(value, "__cuda_array_interface__")


class Table:
    """A table on a device, which is borrowed. From a pickle it has a shape and a type, and no values."""

    value: Any
    shape: tuple[int, int]
    dtype: Any

    def __init__(self, value: Any) -> None:
        # PyTorch's interface of CUDA arrays calls bfloat16 float16, and raises for what requires a gradient.
        own = hasattr(value, "shape") and hasattr(value, "dtype")
        interface = {} if own else value.__cuda_array_interface__
        shape = tuple(value.shape if own else interface["shape"])
        if len(shape) != 2:
            refuse(f"{len(shape)} dimensions; expected 2, rows and columns")
        self.value = value
        self.shape = shape
        # Types that NumPy does not have stay words.
        word = str(value.dtype).rpartition(".")[2] if own else interface["typestr"]
        try:
            self.dtype = np.dtype(word)
        except TypeError:
            self.dtype = word

    def __len__(self) -> int:
        return self.shape[0]

    def __getstate__(self) -> dict[str, Any]:
        return {"value": None, "shape": self.shape, "dtype": self.dtype}


def host(values: Any, name: str) -> Any:
    """An array in host memory: labels, targets, weights and first centers are few, and are copied from a device."""
    if not on_device(values):
        return values
    for method in ("get", "cpu"):  # CuPy's and PyTorch's
        if hasattr(values, method):
            return np.asarray(getattr(values, method)())
    refuse("it is in device memory; pass a NumPy array", name)


def refuse(why: str, name: str = "X") -> NoReturn:
    raise InvalidArgument(f"{name}: {why}")
