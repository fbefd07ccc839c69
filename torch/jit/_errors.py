"""Errors of scripted code under the names that torch gives them."""

from __future__ import annotations

import typing

import torch
from torch.jit._ir import Place

JITException = torch.jit.Error


class ErrorReport:
    """The place of an error in the source of scripted code, as text."""

    # The calls whose functions are being compiled, outermost first: (compiler, function).
    _calls: typing.ClassVar[list[tuple[typing.Any, typing.Any]]] = []

    def __init__(self, source_range: Place) -> None:
        self._place = source_range
        self._stack = ErrorReport.call_stack()

    def what(self) -> str:
        """The place, then the calls that led to it."""
        return f"{self._place.text()}{self._stack}"

    @staticmethod
    def call_stack() -> str:
        """The calls whose functions are being compiled."""
        return "".join(c.called_text(function) for c, function in reversed(ErrorReport._calls))
