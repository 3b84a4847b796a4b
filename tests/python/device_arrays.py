"""Arrays in device memory, by the driver's own interface, so that tests need no package such as CuPy."""

import ctypes

import numpy as np


class Driver:
    """As tests/contract/device_memory.hpp."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.context = ctypes.c_void_p()
        device = ctypes.c_int()
        self("cuInit", 0)
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)

    def __call__(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        assert status == 0, (name, status)

    def copied(self, array):
        """The address of a copy on device 0; it is never freed."""
        at = ctypes.c_uint64()
        self("cuCtxSetCurrent", self.context)
        self("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(max(array.nbytes, 1)))
        self("cuMemcpyHtoD_v2", at, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        return at.value


def interface(address, array, **others):
    """`__cuda_array_interface__` of a copy of an array, in the order of its elements."""
    return {
        "version": 3,
        "shape": array.shape,
        "typestr": array.dtype.str,
        "strides": array.strides if _is_fortran(array) else None,
        "data": (address, False),
        **others,
    }


def _is_fortran(array):
    return array.flags.f_contiguous and not array.flags.c_contiguous


def arrays_on_device():
    """The class of arrays of NumPy copied to the device: what has `__cuda_array_interface__`, as CuPy's and Numba's
    arrays have. `stream` is the producer's."""
    driver = Driver()

    class OnDevice:
        def __init__(self, array, **stream):
            address = driver.copied(array.T if _is_fortran(array) else np.ascontiguousarray(array))
            self.__cuda_array_interface__ = interface(address, array, **stream)

    return OnDevice


# ---- DLPack ---------------------------------------------------------------------------------------------------------


class _Tensor(ctypes.Structure):
    """DLManagedTensor of dlpack.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


_LENT = {}  # by address: who lent it, and what must not go before it is returned
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_returned = _Deleter(lambda address: _LENT.pop(address) and None)
CODES = {"b": 6, "u": 1, "i": 0, "f": 2, "bfloat16": 4}


def dlpack_arrays_on_device():
    """The class of arrays of NumPy copied to the device that speak DLPack. `bfloat16`: of uint16 that are its bits.
    `asked` are the streams that their memory was borrowed for, `borrowed` how often that has not ended."""
    driver = Driver()
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

    class OfDlpack:
        def __init__(self, array, bfloat16=False):
            self.array = np.ascontiguousarray(array)
            self.shape, self.dtype = array.shape, "bfloat16" if bfloat16 else array.dtype
            self.address = driver.copied(self.array)
            self.code = CODES["bfloat16" if bfloat16 else array.dtype.kind]
            self.asked = []

        @property
        def borrowed(self):
            return sum(lent[0] is self for lent in _LENT.values())

        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, stream=None):
            self.asked.append(stream)
            sizes = (ctypes.c_int64 * self.array.ndim)(*self.array.shape)
            steps = (ctypes.c_int64 * self.array.ndim)(*(s // self.array.itemsize for s in self.array.strides))
            at = ctypes.addressof
            kind = self.code, 8 * self.array.itemsize, 1
            deleter = ctypes.cast(_returned, ctypes.c_void_p)
            tensor = _Tensor(
                self.address, 2, 0, self.array.ndim, *kind, at(sizes), at(steps), 0, None, deleter
            )
            _LENT[at(tensor)] = self, tensor, sizes, steps
            return new(at(tensor), b"dltensor", None)

    return OfDlpack
