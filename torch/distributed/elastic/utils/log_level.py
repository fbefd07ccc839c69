"""The log level of the launcher's own messages."""

from __future__ import annotations

__all__ = ["get_log_level"]


def get_log_level() -> str:
    """The name of the level."""
    return "WARNING"
