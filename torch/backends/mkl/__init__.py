"""Intel's MKL, which this library does not use: its own kernels take its place."""

from __future__ import annotations

from typing import Any as _Any

__all__ = ["is_available"]


def is_available() -> _Any:
    """Whether MKL is used."""
    return False
