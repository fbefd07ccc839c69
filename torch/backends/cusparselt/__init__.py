"""cuSPARSELt: not used here."""

from __future__ import annotations

from typing import Any as _Any

__all__ = ["is_available"]


def is_available() -> _Any:
    """Whether cuSPARSELt is used: no."""
    return False


def version() -> _Any:
    """Its version, or None where it is not used."""
    return 0 if is_available() else None
