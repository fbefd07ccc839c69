"""Whether nn.MultiheadAttention and the transformer layers may take their fast path in evaluation
mode."""

from __future__ import annotations

from typing import Any as _Any

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = True


def get_fastpath_enabled() -> _Any:
    """Whether the fast path may be taken."""
    return _enabled


def set_fastpath_enabled(value) -> _Any:
    """Lets the fast path be taken, or not."""
    global _enabled
    _enabled = bool(value)
