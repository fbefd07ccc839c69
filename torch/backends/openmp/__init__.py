"""OpenMP, which this library does not use: it has a thread pool of its own."""

from __future__ import annotations

from typing import Any as _Any

__all__ = ["is_available"]


def is_available() -> _Any:
    """Whether OpenMP is used."""
    return False
