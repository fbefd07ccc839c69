"""Records for TORCH_TRACE: one line of JSON each, and a payload on indented lines below it, in the
form that the public tool `tlparse` reads. File names are written once and referred to by
number."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from torch._logging import _internal

if TYPE_CHECKING:
    from torch._guards import CompileId

INTERN_TABLE: dict[str, int] = {}
_overhead = {"time": 0.0}


def intern_string(s: str | None) -> int:
    """The number of a text; the first time it is written to the trace."""
    if s is None:
        return -1
    number = INTERN_TABLE.get(s)
    if number is None:
        number = INTERN_TABLE[s] = len(INTERN_TABLE)
        trace_structured("str", lambda: (s, number), suppress_context=True)
    return number


def from_traceback(tb: Sequence[traceback.FrameSummary]) -> list[dict[str, object]]:
    """A stack as records refer to it."""
    return [
        {
            "line": frame.lineno,
            "name": frame.name,
            "filename": intern_string(frame.filename),
            "loc": frame.line,
        }
        for frame in tb
    ]


def get_user_stack(num_frames: int) -> list[dict[str, object]]:
    """The user's innermost frames while a program is traced."""
    from torch._guards import TracingContext

    return from_traceback(TracingContext.extract_stack()[-num_frames:])


def get_framework_stack(num_frames: int = 25) -> list[dict[str, object]]:
    """The innermost frames of torch."""
    return from_traceback(traceback.extract_stack()[-num_frames - 1 : -1])


def dump_file(filename: str) -> None:
    """Writes the source of code that has no file others could read."""
    if os.path.exists(filename):
        return
    import linecache

    lines = linecache.getlines(filename)
    if lines:
        trace_structured("dump_file", lambda: {"name": filename}, payload_fn=lambda: "".join(lines))


def get_structured_logging_overhead() -> float | None:
    """Seconds spent on records."""
    return _overhead["time"] or None


def add_structured_logging_overhead(time_spent: float) -> None:
    """Adds to the seconds spent on records."""
    _overhead["time"] += time_spent


def trace_structured(
    name: str,
    metadata_fn: Callable[[], dict[str, object] | tuple[str, int]] = dict,
    *,
    payload_fn: Callable[[], str | dict | list | None] = lambda: None,
    suppress_context: bool = False,
    expect_trace_id: bool = True,
    record_logging_overhead: bool = True,
    compile_id: CompileId | None = None,
) -> None:
    """Writes a record to the trace, if TORCH_TRACE asks for one. The functions are called only
    then."""
    if not _internal.trace_log.handlers:
        return
    import hashlib
    import json

    begun = time.perf_counter()
    record: dict[str, object] = {name: metadata_fn()}
    if not suppress_context:
        rank = _internal._rank()
        if rank is not None:
            record["rank"] = rank
        _add_compile_id(record, compile_id)
    payload = payload_fn()
    if payload is not None:
        if not isinstance(payload, str):
            payload = json.dumps(payload, indent=0, default=str)
        record["has_payload"] = hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()
    _internal.trace_log.debug(
        "", extra={"metadata_text": json.dumps(record, default=str), "payload": payload},
        stacklevel=2,
    )  # fmt: skip
    if record_logging_overhead:
        add_structured_logging_overhead(time.perf_counter() - begun)


def _add_compile_id(record: dict[str, object], given: CompileId | None) -> None:
    from torch._guards import CompileContext

    trace = CompileContext.current_trace_id()
    found = given if given is not None else trace.compile_id if trace is not None else None
    if found is None:
        return
    if found.compiled_autograd_id is not None:
        record["compiled_autograd_id"] = found.compiled_autograd_id
    if found.frame_id is not None:
        record["frame_id"] = found.frame_id
    if found.frame_compile_id is not None:
        record["frame_compile_id"] = found.frame_compile_id
    record["attempt"] = trace.attempt if trace is not None else 0


def trace_structured_artifact(
    name: str, encoding: str, payload_fn: Callable[[], str | None] = lambda: None
) -> None:
    """A named text in the trace."""
    trace_structured(
        "artifact", lambda: {"name": name, "encoding": encoding}, payload_fn=payload_fn
    )


def dtrace_structured(name: str, *args: object, **kwargs: object) -> None:
    """trace_structured, for records of draft export."""
    trace_structured(name, *args, **kwargs)
