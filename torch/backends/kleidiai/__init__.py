"""KleidiAI: not used here."""

from __future__ import annotations

from typing import Any as _Any

__all__ = ["is_available"]


def is_available() -> _Any:
    """Whether KleidiAI is used: no."""
    return False
