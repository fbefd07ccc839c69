"""Tells an attached profiler when to record."""

from __future__ import annotations

import contextlib
from typing import Any as _Any

from torch import _C
from torch.cuda._init import _lazy_init

__all__ = ["profile", "start", "stop"]


def start() -> _Any:
    """A profiler such as nsys records from here on."""
    _lazy_init()
    _C._cuda_profilerStart()


def stop() -> _Any:
    """A profiler such as nsys stops recording."""
    _lazy_init()
    _C._cuda_profilerStop()


@contextlib.contextmanager
def profile() -> _Any:
    """A profiler records the with statement's body."""
    start()
    try:
        yield
    finally:
        stop()
