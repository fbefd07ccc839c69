"""OpenMP, which this library does not use: it has a thread pool of its own."""

from __future__ import annotations

from typing import Any

__all__ = ["is_available"]


def is_available() -> Any:
    """Whether OpenMP is used."""
    return False
