"""The calls of the CUDA runtime that programs make through torch.cuda.cudart(), by the driver: the
runtime library itself is not loaded. Each returns a cudaError, as the runtime's do."""

from __future__ import annotations

import ctypes
import enum
import functools

import torch

__all__ = [
    "cudaError",
    "cudaGetErrorString",
    "cudaHostRegister",
    "cudaHostUnregister",
    "cudaMemGetInfo",
    "cudaProfilerStart",
    "cudaProfilerStop",
    "cudaStreamCreate",
    "cudaStreamDestroy",
]


class cudaError(enum.IntEnum):
    """Results of calls; the driver and the runtime number the common ones alike."""

    success = 0
    invalidValue = 1
    memoryAllocation = 2
    notInitialized = 3
    hostMemoryAlreadyRegistered = 712
    hostMemoryNotRegistered = 713
    unknown = 999

    @classmethod
    def _missing_(cls, value) -> cudaError:
        return cls.unknown


@functools.cache
def _driver() -> ctypes.CDLL:
    torch.cuda.init()
    torch.cuda.synchronize()  # makes the device's context current on this thread
    return ctypes.CDLL("libcuda.so.1")


def cudaGetErrorString(error) -> str:
    """What a result means."""
    text = ctypes.c_char_p()
    status = _driver().cuGetErrorString(ctypes.c_int(int(error)), ctypes.byref(text))
    return text.value.decode() if status == 0 and text.value else f"unknown error {int(error)}"


def cudaHostRegister(address, size, flags) -> cudaError:
    """Locks pages of the program's own memory, so that the GPU reads them by itself."""
    status = _driver().cuMemHostRegister_v2(
        ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_uint(flags)
    )
    return cudaError(status)


def cudaHostUnregister(address) -> cudaError:
    """Undoes cudaHostRegister."""
    return cudaError(_driver().cuMemHostUnregister(ctypes.c_void_p(address)))


def cudaMemGetInfo(device=None) -> tuple[int, int]:
    """Free and total bytes of a device."""
    return torch.cuda.mem_get_info(device)


def cudaProfilerStart() -> cudaError:
    """Lets a profiler that waits for it begin."""
    torch._C._cuda_profilerStart()
    return cudaError.success


def cudaProfilerStop() -> cudaError:
    """Ends what cudaProfilerStart began."""
    torch._C._cuda_profilerStop()
    return cudaError.success


def cudaStreamCreate(address) -> cudaError:
    """Makes a stream and writes its handle to an address."""
    stream = ctypes.c_void_p()
    status = _driver().cuStreamCreate(ctypes.byref(stream), ctypes.c_uint(0))
    if status == 0:
        ctypes.c_void_p.from_address(address).value = stream.value
    return cudaError(status)


def cudaStreamDestroy(stream) -> cudaError:
    """Ends a stream of cudaStreamCreate."""
    return cudaError(_driver().cuStreamDestroy_v2(ctypes.c_void_p(stream)))


@functools.cache
def _blas() -> ctypes.CDLL:
    errors = []
    for name in ("libcublas.so", "libcublas.so.13", "libcublas.so.12"):
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            errors.append(str(error))
    raise RuntimeError("cuBLAS cannot be loaded: " + "; ".join(errors))


@functools.cache
def _blas_of(device: int) -> int:
    handle = ctypes.c_void_p()
    with torch.cuda.device(device):
        torch.cuda.synchronize()
        status = _blas().cublasCreate_v2(ctypes.byref(handle))
    if status != 0 or handle.value is None:
        raise RuntimeError(f"cublasCreate failed with status {status}")
    return handle.value


def blas_handle() -> int:
    """The cuBLAS handle of the current device, set to its current stream."""
    device = torch.cuda.current_device()
    handle = _blas_of(device)
    stream = torch.cuda.current_stream(device).cuda_stream
    status = _blas().cublasSetStream_v2(ctypes.c_void_p(handle), ctypes.c_void_p(stream))
    if status != 0:
        raise RuntimeError(f"cublasSetStream failed with status {status}")
    return handle
