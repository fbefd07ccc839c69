"""Apple's Metal, which this library does not use."""

from __future__ import annotations

from typing import Any as _Any

__all__ = ["is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_built() -> _Any:
    """Whether the library was built for Metal."""
    return False


def is_available() -> _Any:
    """Whether Metal can be used."""
    return False


def is_macos_or_newer(major, minor) -> _Any:
    """Whether the system is at least that version of macOS."""
    return False


def is_macos13_or_newer(minor=0) -> _Any:
    """Whether the system is macOS 13 or newer."""
    return False
