"""Errors of exported programs."""

from __future__ import annotations

from enum import Enum

__all__ = ["ExportError", "ExportErrorType", "InternalError"]


class ExportErrorType(Enum):
    """Kinds of ExportError."""

    INVALID_INPUT_TYPE = 1
    INVALID_OUTPUT_TYPE = 2
    VIOLATION_OF_SPEC = 3
    NOT_SUPPORTED = 4
    MISSING_PROPERTY = 5
    UNINITIALIZED = 6


class InternalError(Exception):
    """A fault of the exporter."""


class ExportError(Exception):
    """A program that cannot be exported."""

    def __init__(self, error_code: ExportErrorType, message: str) -> None:
        super().__init__(f"[{error_code}]: {message}")
