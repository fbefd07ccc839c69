"""Marks for profilers such as nsys, through NVIDIA's tools extension library where it is found;
without it they do nothing."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from typing import Any as _Any

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


@functools.cache
def _library():
    for name in ("libnvToolsExt.so.1", "libnvtx3interop.so.1"):
        with contextlib.suppress(OSError):
            found = ctypes.CDLL(name)
            found.nvtxRangeStartA.restype = ctypes.c_uint64
            found.nvtxRangeEnd.argtypes = [ctypes.c_uint64]
            return found
    return None


def range_push(msg) -> _Any:
    """Opens a range; returns its depth, counted from 0."""
    library = _library()
    return library.nvtxRangePushA(str(msg).encode()) if library else -1


def range_pop() -> _Any:
    """Closes the innermost range; returns its depth."""
    library = _library()
    return library.nvtxRangePop() if library else -1


def range_start(msg) -> _Any:
    """Opens a range that may end on another thread; returns its number."""
    library = _library()
    return library.nvtxRangeStartA(str(msg).encode()) if library else 0


def range_end(range_id) -> _Any:
    """Closes a range of range_start."""
    library = _library()
    if library:
        library.nvtxRangeEnd(range_id)


def mark(msg) -> _Any:
    """A moment with a name."""
    library = _library()
    if library:
        library.nvtxMarkA(str(msg).encode())


@contextlib.contextmanager
def range(msg, *args, **kwargs) -> _Any:
    """The with statement's body as a range; `msg` is formatted with the other arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
