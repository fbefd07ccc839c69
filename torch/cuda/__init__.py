"""CUDA devices. Nothing is loaded or initialised by importing this module: the driver is loaded by
the first question about devices, and a device's context is made by the first work on it. In a build
or on a machine without CUDA every name exists, is_available() is False, and what needs a device
raises RuntimeError.
"""

from __future__ import annotations

import contextlib

# ruff: noqa: F401
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import _C
from torch.cuda._devices import (
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    is_bf16_supported,
    is_tf32_supported,
    set_device,
    synchronize,
)
from torch.cuda._init import (
    CudaError,
    DeferredCudaCallError,
    _is_in_bad_fork,
    _lazy_call,
    _lazy_init,
    check_error,
    cudart,
    cudaStatus,
    init,
    is_available,
    is_initialized,
)
from torch.cuda._nvml import (
    clock_rate,
    device_memory_used,
    list_gpu_processes,
    memory_usage,
    power_draw,
    temperature,
    utilization,
)
from torch.cuda.memory import (
    CUDAPluggableAllocator,
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_enable,
    change_current_allocator,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from torch.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    is_current_stream_capturing,
    set_stream,
    stream,
)
from torch.storage import _legacy_class

has_half = True
has_magma = False
_tensor_names = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "ShortTensor": torch.int16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
}
OutOfMemoryError = torch.OutOfMemoryError
AcceleratorError = torch.AcceleratorError

__all__ = [
    "CUDAGraph",
    "CUDAPluggableAllocator",
    "DeferredCudaCallError",
    "Event",
    "ExternalStream",
    "MemPool",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "amp",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_enable",
    "can_device_access_peer",
    "change_current_allocator",
    "check_error",
    "clock_rate",
    "cudaStatus",
    "cudart",
    "current_blas_handle",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "get_sync_debug_mode",
    "graph",
    "graph_pool_handle",
    "graphs",
    "has_half",
    "has_magma",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "list_gpu_processes",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "memory_usage",
    "nccl",
    "nvtx",
    "power_draw",
    "profiler",
    "random",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "streams",
    "synchronize",
    "temperature",
    "use_mem_pool",
    "utilization",
    *_tensor_names,
]

for _name, _dtype in _tensor_names.items():
    _cls = torch._legacy_types.tensortype(_name, _dtype, "cuda")
    _cls.__module__ = "torch.cuda"
    globals()[_name] = _cls
del _name, _dtype, _cls

for _name in (
    "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage "
    "DoubleStorage FloatStorage HalfStorage IntStorage LongStorage ShortStorage"
).split():
    globals()[_name] = _legacy_class(_name, getattr(torch, _name).dtype, "cuda")
del _name


class _DefaultGenerators:
    """The default generator of each device."""

    def __len__(self) -> int:
        return device_count()

    def __getitem__(self, index) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"no such CUDA device: {index}")
        return _C._cuda_getDefaultGenerator(index)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))


default_generators = _DefaultGenerators()

_sync_debug_mode = 0


def set_sync_debug_mode(debug_mode) -> None:
    """What to do when an operator waits for the device: 'default', 'warn' or 'error'. Only the
    default is implemented."""
    modes = {"default": 0, "warn": 1, "error": 2}
    if isinstance(debug_mode, str):
        if debug_mode not in modes:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`"
            )
        debug_mode = modes[debug_mode]
    if debug_mode != 0:
        raise NotImplementedError("torch.cuda.set_sync_debug_mode: only 'default' is implemented")


def get_sync_debug_mode() -> int:
    """0: operators that wait for the device do so silently."""
    return _sync_debug_mode


def ipc_collect() -> None:
    """Frees memory that other processes shared and let go: there is none, as sharing of CUDA memory
    between processes is not implemented."""
    _lazy_init()


def current_blas_handle() -> int:
    """A cuBLAS handle that works on the current stream, for other libraries: our own products go
    through cuBLASLt."""
    _lazy_init()
    from torch.cuda._cudart import blas_handle

    return blas_handle()


def _sleep(cycles) -> None:
    """Keeps the current stream busy for a number of clock cycles."""
    _lazy_init()
    _C._cuda_sleep(cycles)


@contextlib.contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """Memory straight from the driver; chosen for a whole process by
    PYTORCH_NO_CUDA_MEMORY_CACHING=1."""
    raise NotImplementedError(
        "torch.cuda.caching_allocator_disabled: set PYTORCH_NO_CUDA_MEMORY_CACHING=1 instead"
    )
    yield


def _synchronize_for_export(tensor, consumer_stream) -> None:
    """Makes the stream of another library wait for work queued on the tensor. None and 1 stand for
    the default stream, -1 for no wait."""
    if consumer_stream == -1:
        return
    index = tensor.device.index
    handle = 0 if consumer_stream in (None, 1) else consumer_stream
    consumer = get_stream_from_external(handle, index)
    producer = current_stream(index)
    if consumer != producer:
        consumer.wait_stream(producer)


def _array_interface(tensor):
    """The dictionary of Numba's CUDA array interface, version 2."""
    kinds = {torch.bool: "b", torch.bfloat16: "V"}
    kind = kinds.get(tensor.dtype)
    if kind is None:
        kind = "c" if tensor.is_complex() else "f" if tensor.is_floating_point() else "i"
        kind = "u" if kind == "i" and not tensor.dtype.is_signed else kind
    size = tensor.element_size()
    strides = None if tensor.is_contiguous() else tuple(s * size for s in tensor.stride())
    return {
        "typestr": f"{'|' if size == 1 else '<'}{kind}{size}",
        "shape": tuple(tensor.shape),
        "strides": strides,
        "data": (tensor.data_ptr() if tensor.numel() > 0 else 0, False),
        "version": 2,
    }


_SUBMODULES = "amp comm graphs memory nccl nvtx profiler random streams".split()
_FROM_GRAPHS = ("CUDAGraph", "graph", "graph_pool_handle", "make_graphed_callables")


def __getattr__(name) -> Any:
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module("torch.cuda." + name)
    if name == "_initialized":  # a variable elsewhere, which programs that fork state look at
        return is_initialized()
    if name in _FROM_GRAPHS:
        return getattr(import_module("torch.cuda.graphs"), name)
    raise AttributeError(f"module 'torch.cuda' has no attribute '{name}'")
