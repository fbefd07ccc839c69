"""Stacks of Python frames kept cheaply and named later: torch._C._profiler's gather_traceback and
symbolize_tracebacks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import CodeType

__all__ = ["CapturedTraceback", "gather_traceback", "symbolize_tracebacks"]


class CapturedTraceback:
    """The code and the place in it of each frame, innermost first."""

    __slots__ = ("frames",)

    def __init__(self, frames: list[tuple[CodeType, int]]) -> None:
        self.frames = frames


def gather_traceback(
    python: bool = True, script: bool = False, cpp: bool = False
) -> CapturedTraceback:
    """The caller's stack. Frames of scripts and of C++ are not kept: the first do not exist here,
    the second have no names without their symbols."""
    frames = []
    frame = sys._getframe(1) if python else None
    while frame is not None:
        frames.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return CapturedTraceback(frames)


def symbolize_tracebacks(
    tracebacks: Sequence[CapturedTraceback],
) -> list[list[dict[str, str | int]]]:
    """For each stack its frames as {"name", "filename", "line"}."""
    return [
        [
            {"name": code.co_name, "filename": code.co_filename, "line": line}
            for code, line in traceback.frames
        ]
        for traceback in tracebacks
    ]
