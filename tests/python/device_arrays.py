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


def arrays_on_device():
    """The class of arrays of NumPy copied to the device: what has `__cuda_array_interface__`, as CuPy's and Numba's
    arrays have."""
    driver = Driver()

    class OnDevice:
        def __init__(self, array):
            fortran = array.flags.f_contiguous and not array.flags.c_contiguous
            self.__cuda_array_interface__ = {
                "version": 3,
                "shape": array.shape,
                "typestr": array.dtype.str,
                "strides": array.strides if fortran else None,
                "data": (driver.copied(array.T if fortran else np.ascontiguousarray(array)), False),
            }

    return OnDevice
