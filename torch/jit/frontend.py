"""Errors of the script compiler about syntax that is not part of the language."""

from __future__ import annotations

from torch.jit._ir import Place


class FrontendError(Exception):
    """An error in the source of a scripted function, with its place."""

    def __init__(self, place: Place | None, message: str) -> None:
        self.source_range, self.msg = place, message
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.msg}:\n{self.source_range.text()}" if self.source_range else self.msg


class NotSupportedError(FrontendError):
    """Syntax that scripted code cannot have."""


class UnsupportedNodeError(NotSupportedError):
    """A statement or expression that scripted code cannot have."""
