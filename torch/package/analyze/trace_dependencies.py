"""The modules that a function touches while it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FrameType


def trace_dependencies(
    callable: Callable[..., object], inputs: Iterable[tuple[object, ...]]
) -> list[str]:
    """Runs a function on inputs and lists the modules whose code ran."""
    seen: dict[str, None] = {}

    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            module = frame.f_globals.get("__name__")
            if module is not None:
                seen[module] = None

    before = sys.getprofile()
    try:
        sys.setprofile(note)
        for arguments in inputs:
            callable(*arguments)
    finally:
        sys.setprofile(before)
    return list(seen)
