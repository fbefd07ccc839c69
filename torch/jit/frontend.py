"""Errors of the script compiler about syntax that is not part of the language."""

from __future__ import annotations

from torch.jit._ir import Place


class FrontendError(Exception):
    """An error in the source of a scripted function, with its place."""

    def __init__(self, place: Place | None, message: str) -> None:
        self.source_range, self.msg = place, message
        self.calls = ""
        super().__init__(message)

    def called_from(self, text: str) -> None:
        """Adds the call that led to the function with the error."""
        self.calls += text

    def __str__(self) -> str:
        where = f":\n{self.source_range.text()}" if self.source_range else ""
        return f"{self.msg}{where}{self.calls}"


class NotSupportedError(FrontendError):
    """Syntax that scripted code cannot have."""


class UnsupportedNodeError(NotSupportedError):
    """A statement or expression that scripted code cannot have."""
