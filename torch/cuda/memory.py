"""Device memory: what is in use, what is kept for reuse, and limits."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator

from torch import _C
from torch.cuda._devices import _index
from torch.cuda._init import _lazy_init

__all__ = [
    "CUDAPluggableAllocator",
    "MemPool",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_enable",
    "change_current_allocator",
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]


def _flat(prefix, value, out) -> list[tuple[str, int]]:
    if not isinstance(value, dict):
        out.append((prefix, value))
        return out
    for key, inner in value.items():
        _flat(f"{prefix}.{key}" if prefix else key, inner, out)
    return out


def memory_stats_as_nested_dict(device=None) -> dict[str, object]:
    """The allocator's counts as dictionaries in dictionaries; empty before CUDA is used."""
    from torch.cuda import is_initialized

    return _C._cuda_memoryStats(_index(device)) if is_initialized() else {}


def memory_stats(device=None) -> dict[str, int]:
    """The allocator's counts by dotted names such as "allocated_bytes.all.current"."""
    return collections.OrderedDict(sorted(_flat("", memory_stats_as_nested_dict(device), [])))


def _bytes(name, which, device) -> int:
    stats = memory_stats_as_nested_dict(device)
    return stats[name]["all"][which] if stats else 0


def memory_allocated(device=None) -> int:
    """Bytes of device memory that tensors hold."""
    return _bytes("allocated_bytes", "current", device)


def max_memory_allocated(device=None) -> int:
    """The most bytes that tensors held since the start or reset_peak_memory_stats()."""
    return _bytes("allocated_bytes", "peak", device)


def memory_reserved(device=None) -> int:
    """Bytes of device memory that this process holds, in tensors or kept for them."""
    return _bytes("reserved_bytes", "current", device)


def max_memory_reserved(device=None) -> int:
    """The most bytes that this process held since the start or reset_peak_memory_stats()."""
    return _bytes("reserved_bytes", "peak", device)


def memory_cached(device=None) -> int:
    """The old name of memory_reserved."""
    return memory_reserved(device)


def max_memory_cached(device=None) -> int:
    """The old name of max_memory_reserved."""
    return max_memory_reserved(device)


def reset_accumulated_memory_stats(device=None) -> None:
    """Sets the counts of all that was ever allocated and freed to zero."""
    _lazy_init()
    _C._cuda_resetAccumulatedMemoryStats(_index(device))


def reset_peak_memory_stats(device=None) -> None:
    """Peaks count from now on."""
    _lazy_init()
    _C._cuda_resetPeakMemoryStats(_index(device))


def reset_max_memory_allocated(device=None) -> None:
    """The old name of reset_peak_memory_stats."""
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device=None) -> None:
    """The old name of reset_peak_memory_stats."""
    reset_peak_memory_stats(device)


def host_memory_stats_as_nested_dict() -> dict[str, object]:
    """Page-locked host memory in use and kept for reuse."""
    if not _C._has_cuda:
        return {}
    live, cached, peak, allocated = _C._cuda_hostMemory()
    return {
        "allocated_bytes": {
            "current": live,
            "peak": peak,
            "allocated": allocated,
            "freed": max(allocated - live, 0),
        },
        "reserved_bytes": {"current": live + cached},
    }


def host_memory_stats() -> dict[str, int]:
    """The same by dotted names."""
    return collections.OrderedDict(sorted(_flat("", host_memory_stats_as_nested_dict(), [])))


def reset_accumulated_host_memory_stats() -> None:
    """Counts page-locked memory that was handed out from now on."""
    _lazy_init()
    _C._cuda_resetHostMemory(False)


def reset_peak_host_memory_stats() -> None:
    """Counts the peak of page-locked memory from now on."""
    _lazy_init()
    _C._cuda_resetHostMemory(True)


def empty_cache() -> None:
    """Gives memory that is kept for reuse back to the driver."""
    if _C._has_cuda:
        _C._cuda_emptyCache()


def mem_get_info(device=None) -> tuple[int, int]:
    """Free and total bytes of a device, over all processes."""
    _lazy_init()
    return _C._cuda_memoryInfo(_index(device))


def set_per_process_memory_fraction(fraction, device=None) -> None:
    """Lets this process have at most a share (0 to 1) of a device's memory."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _lazy_init()
    _C._cuda_setMemoryFraction(fraction, _index(device))


def get_per_process_memory_fraction(device=None) -> float:
    """The share of a device's memory that this process may have."""
    _lazy_init()
    return _C._cuda_getMemoryFraction(_index(device))


def memory_snapshot(mempool_id=None, include_traces=True) -> list[dict[str, object]]:
    """The segments and blocks of the allocator, all devices together."""
    segments = _C._cuda_memorySnapshot() if _C._has_cuda else []
    if mempool_id is None:
        return segments
    return [s for s in segments if s["segment_pool_id"] == tuple(mempool_id)]


def _size_text(size) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 10240 or unit == "GiB":
            return f"{size:7d} {unit}"
        size //= 1024
    return ""


def memory_summary(device=None, abbreviated=False) -> str:
    """The allocator's counts as a table."""
    index = _index(device)
    stats = memory_stats(index)
    rows = [
        ("Allocated memory", "allocated_bytes", _size_text),
        ("Active memory", "active_bytes", _size_text),
        ("Requested memory", "requested_bytes", _size_text),
        ("GPU reserved memory", "reserved_bytes", _size_text),
        ("Non-releasable memory", "inactive_split_bytes", _size_text),
        ("Allocations", "allocation", "{:7d}  ".format),
        ("Active allocs", "active", "{:7d}  ".format),
        ("GPU reserved segments", "segment", "{:7d}  ".format),
        ("Non-releasable allocs", "inactive_split", "{:7d}  ".format),
    ]
    pools = [
        ("all", ""),
        ("large_pool", "      from large pool"),
        ("small_pool", "      from small pool"),
    ]
    line = "|" + "=" * 75 + "|"
    out = [
        line,
        "|{:^75}|".format(f"PyTorch CUDA memory summary, device ID {index}"),
        "|" + "-" * 75 + "|",
        "|  {:^34} | {:^34}  |".format(
            f"CUDA OOMs: {stats.get('num_ooms', 0)}",
            f"cudaMalloc retries: {stats.get('num_alloc_retries', 0)}",
        ),
        line,
        "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |",
    ]
    for title, name, text in rows:
        out.append("|" + "-" * 75 + "|")
        for pool, label in pools[:1] if abbreviated else pools:
            values = [
                text(stats.get(f"{name}.{pool}.{which}", 0))
                for which in ("current", "peak", "allocated", "freed")
            ]
            cells = " | ".join(f"{value:>10}" for value in values)
            out.append(f"| {label or title:<21} | {cells} |")
    out.append(line)
    return "\n".join(out) + "\n"


def caching_allocator_alloc(size, device=None, stream=None) -> int:
    """The address of `size` bytes from the allocator, to be given back with
    caching_allocator_delete."""
    _lazy_init()
    handle = getattr(stream, "cuda_stream", stream)
    if handle is not None and not isinstance(handle, int):
        raise TypeError(
            "Invalid type for stream argument, must be `torch.cuda.Stream` or `int` representing a "
            f"pointer to an existing stream, got {type(stream)}"
        )
    return _C._cuda_cudaCachingAllocator_raw_alloc(size, _index(device), handle)


def caching_allocator_delete(mem_ptr) -> None:
    """Gives memory of caching_allocator_alloc back."""
    _C._cuda_cudaCachingAllocator_raw_delete(mem_ptr)


def caching_allocator_enable(value=True) -> None:
    """Whether freed memory is kept; chosen for a whole process by
    PYTORCH_NO_CUDA_MEMORY_CACHING=1."""
    if not value:
        raise NotImplementedError(
            "torch.cuda.caching_allocator_enable(False): set PYTORCH_NO_CUDA_MEMORY_CACHING=1 "
            "instead"
        )


def get_allocator_backend() -> str:
    """The kind of allocator: "native", our own caching one, or "pluggable"."""
    return "native" if _plugged is None else "pluggable"


class _CUDAAllocator:
    """Two functions that give and take memory of a device, by their addresses."""

    def __init__(self, alloc, free) -> None:
        self._functions = alloc, free

    def allocator(self) -> _CUDAAllocator:
        """Itself, as the object that change_current_allocator takes."""
        return self


class CUDAPluggableAllocator(_CUDAAllocator):
    """An allocator from a shared library: `void* alloc(ssize_t size, int device, cudaStream_t)` and
    `void free(void* memory, ssize_t size, int device, cudaStream_t)`."""

    def __init__(self, path_to_so_file, alloc_fn_name, free_fn_name) -> None:
        import ctypes

        self._library = ctypes.CDLL(path_to_so_file)
        functions = [getattr(self._library, name) for name in (alloc_fn_name, free_fn_name)]
        super().__init__(*(ctypes.cast(f, ctypes.c_void_p).value for f in functions))


_plugged: _CUDAAllocator | None = None


def change_current_allocator(allocator) -> None:
    """Puts a program's own allocator in the place of ours, before any memory was allocated."""
    global _plugged
    if not isinstance(allocator, _CUDAAllocator):
        raise TypeError(
            "change_current_allocator(): expected a CUDAPluggableAllocator, got "
            f"{type(allocator).__name__}"
        )
    _lazy_init()
    _C._cuda_plugAllocator(*allocator._functions)
    _plugged = allocator


class MemPool:
    """Memory of its own, for what is allocated under use_mem_pool(): it is not handed to anything
    else while the pool lives, and given back to the driver after that."""

    def __init__(self, allocator=None, use_on_oom=False, no_split=False) -> None:
        if allocator is not None:
            raise NotImplementedError(
                "torch.cuda.MemPool(allocator=...): a pool takes its memory from the driver; "
                "torch.cuda.change_current_allocator replaces the allocator of the whole program"
            )
        _lazy_init()
        self._id = _C._graph_pool_handle()
        self._devices: set[int] = set()

    @property
    def id(self) -> tuple[int, int]:
        """The pool's name, as graphs and memory_snapshot() take it."""
        return self._id

    def use_count(self) -> int:
        """How many owners the pool has: itself."""
        return 1

    def snapshot(self, include_traces=True) -> list[dict[str, object]]:
        """The segments of the pool."""
        return memory_snapshot(self._id, include_traces)

    def _retain(self, device) -> None:
        if device not in self._devices:
            _C._cuda_retainPool(device, self._id[1], True)
            self._devices.add(device)

    def __del__(self) -> None:
        for device in getattr(self, "_devices", ()):
            _C._cuda_retainPool(device, self._id[1], False)


@contextlib.contextmanager
def use_mem_pool(pool, device=None) -> Iterator[None]:
    """Lets what this thread allocates on a device come from a pool."""
    index = _index(device)
    pool._retain(index)
    before = _C._cuda_exchangePool(index, pool.id[1])
    try:
        yield
    finally:
        _C._cuda_exchangePool(index, before)
