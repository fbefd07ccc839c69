"""Tracebacks of programs that were generated, short forms of them, and stacks that are captured
often and printed rarely: a captured stack keeps code objects and line numbers, and reads source
lines when it is formatted."""

from __future__ import annotations

import os.path
import sys
import tempfile
import traceback
from collections.abc import Sequence
from types import CodeType, FrameType, TracebackType

__all__ = [
    "CapturedTraceback",
    "format_frame",
    "format_traceback_short",
    "report_compile_source_on_error",
    "shorten_filename",
]


# The folder that holds the package torch.
_PACKAGES = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir)


class report_compile_source_on_error:
    """Errors raised inside by code that exec() made show its source, which such code keeps under
    `__compile_source__` in its globals: it is written to files that the traceback then names."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            raise error.with_traceback(_with_sources(tb))


def _with_sources(tb: TracebackType | None) -> TracebackType | None:
    frames = []
    while tb is not None:
        frames.append(tb)
        tb = tb.tb_next
    written: dict[str, str] = {}
    rebuilt = None
    for entry in reversed(frames):
        source = entry.tb_frame.f_globals.get("__compile_source__")
        frame, instruction = entry.tb_frame, entry.tb_lasti
        if source is not None and frame.f_code.co_filename.startswith("<"):
            frame = _frame_at(_file_of(source, written), frame.f_code.co_name, entry.tb_lineno)
            instruction = -1  # the line counts, not the place within this frame's own code
        rebuilt = TracebackType(rebuilt, frame, instruction, entry.tb_lineno)
    return rebuilt


def _file_of(source: str, written: dict[str, str]) -> str:
    if source not in written:
        with tempfile.NamedTemporaryFile("w", delete=False, suffix=".py") as file:
            file.write(source)
        written[source] = file.name
    return written[source]


def _frame_at(filename: str, name: str, lineno: int) -> FrameType:
    """A frame whose code says that it is at this line of a file."""
    code = compile("__inspect_currentframe()", filename, "eval")
    code = code.replace(co_name=name, co_firstlineno=lineno)
    return eval(code, {"__inspect_currentframe": lambda: sys._getframe(1)})


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """A file's name from the folder of torch on, where it is inside of it."""
    folder = os.path.abspath(_PACKAGES if base is None else base)
    return fn.removeprefix(folder.rstrip(os.sep) + os.sep)


def format_frame(
    frame: traceback.FrameSummary, *, base: str | None = None, line: bool = False
) -> str:
    """ "file:line in function", with the source line before it where `line` says so."""
    text = f"{frame.line}  # " if line else ""
    return f"{text}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: TracebackType | None) -> str:
    """The innermost frame in a line."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """A stack as it was: cheap to capture, formatted when somebody looks at it."""

    __slots__ = ("_frames", "_skip", "_summary")

    def __init__(self, frames: list[tuple[CodeType, int]] | None, skip: int = 0) -> None:
        self._frames = frames
        self._skip = skip
        self._summary: traceback.StackSummary | None = None

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """The stack of the caller without its `skip` innermost frames. Frames of scripts and of C++
        do not exist here."""
        frames = []
        frame = sys._getframe(1)
        while frame is not None:
            frames.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        return CapturedTraceback(frames, skip)

    def summary(self) -> traceback.StackSummary:
        """The frames, outermost first, as the module traceback has them."""
        if self._summary is None:
            if self._frames is None:
                return traceback.StackSummary()
            kept = self._frames[self._skip :]
            self._summary = traceback.StackSummary.from_list(
                [(code.co_filename, line, code.co_name, None) for code, line in reversed(kept)]
            )
        return self._summary

    def cleanup(self) -> None:
        """Drops the frames, which keep code alive."""
        self._frames = self._summary = None

    def format(self) -> list[str]:
        """Lines as traceback.format_stack gives them."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(tbs: Sequence[CapturedTraceback]) -> list[list[str]]:
        """The lines of each."""
        return [tb.format() for tb in tbs]

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        return None, {"_frames": None, "_skip": 0, "_summary": self.summary()}


def _extract_symbolized_tb(tb: CapturedTraceback | None, skip: int) -> traceback.StackSummary:
    """The frames of a capture without the `skip` innermost."""
    frames = list(tb.summary()) if tb is not None else []
    return traceback.StackSummary.from_list(frames[: len(frames) - skip])
