"""NNPACK: not used here."""

from __future__ import annotations

import contextlib
from typing import Any as _Any

__all__ = ["flags", "is_available", "set_flags"]

_enabled = True


def is_available() -> _Any:
    """Whether NNPACK is used: no."""
    return False


def set_flags(_enabled) -> _Any:
    """Sets whether NNPACK may be used, and returns (the value before,)."""
    before = globals()["_enabled"]
    globals()["_enabled"] = bool(_enabled)
    return (before,)


@contextlib.contextmanager
def flags(enabled=False) -> _Any:
    """The setting for the length of a block."""
    (before,) = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(before)
