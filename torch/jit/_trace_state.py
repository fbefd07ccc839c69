"""Whether a trace is being recorded on this thread."""

from __future__ import annotations

import threading

_state = threading.local()
warns = True  # whether tracing warns of values that it cannot follow


def active() -> bool:
    return getattr(_state, "recorder", None) is not None


def recorder():
    return getattr(_state, "recorder", None)


def set_recorder(value) -> None:
    _state.recorder = value
