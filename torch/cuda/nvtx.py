"""Marks for profilers such as nsys, through NVIDIA's tools extension library where it is found;
without it they do nothing."""

from __future__ import annotations

import contextlib
from typing import Any as _Any

from torch import _C

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _call(name, *arguments, otherwise=None) -> _Any:
    """A function of the binding, which a build without CUDA does not have."""
    function = getattr(_C, name, None)
    return function(*arguments) if function else otherwise


def range_push(msg) -> _Any:
    """Opens a range; returns its depth, counted from 0."""
    return _call("_nvtx_rangePush", str(msg), otherwise=-1)


def range_pop() -> _Any:
    """Closes the innermost range; returns its depth."""
    return _call("_nvtx_rangePop", otherwise=-1)


def range_start(msg) -> _Any:
    """Opens a range that may end on another thread; returns its number."""
    return _call("_nvtx_rangeStart", str(msg), otherwise=0)


def range_end(range_id) -> _Any:
    """Closes a range of range_start."""
    _call("_nvtx_rangeEnd", range_id)


def mark(msg) -> _Any:
    """A moment with a name."""
    _call("_nvtx_mark", str(msg))


@contextlib.contextmanager
def range(msg, *args, **kwargs) -> _Any:
    """The with statement's body as a range; `msg` is formatted with the other arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
