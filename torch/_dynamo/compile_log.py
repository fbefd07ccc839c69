"""What a compilation says about itself: artifacts of TORCH_LOGS, records of TORCH_TRACE, metrics.
Each function does nothing unless someone asked for its output."""

from __future__ import annotations

import contextlib
import itertools
import json
import linecache
import logging
import os
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import torch
from torch._dynamo import exc, utils
from torch._guards import CompileContext, CompileId
from torch._logging import (
    LazyString,
    _internal,
    getArtifactLogger,
    trace_structured,
    trace_structured_artifact,
)
from torch._logging.structured import from_traceback, intern_string

if TYPE_CHECKING:
    from torch._C._dynamo.eval_frame import CodeCache
    from torch._C._dynamo.guards import GuardManager, RootGuardManager
    from torch._dynamo.opcodes import Instruction
    from torch._dynamo.output_graph import GuardRecord
    from torch._dynamo.symbolic_convert import Frame

_artifacts = {
    name: getArtifactLogger(__name__, name)
    for name in (
        "bytecode graph graph_code graph_sizes graph_breaks guards verbose_guards trace_call "
        "trace_source trace_bytecode side_effects"
    ).split()
}
_frame_ids = itertools.count()
_OWN_FOLDERS = tuple(os.path.dirname(f) + os.sep for f in (__file__, _internal.__file__))
# Which outputs were told the version.
_versions: dict[str, tuple[int, ...]] = {}


def next_compile_context(cache: CodeCache) -> CompileContext:
    """The name of the next compilation of a code object: frame/number."""
    state = cache.__dict__
    if "frame_id" not in state:
        state["frame_id"] = next(_frame_ids)
    number = state["frame_compile_id"] = state.get("frame_compile_id", -1) + 1
    return CompileContext(CompileId(frame_id=state["frame_id"], frame_compile_id=number))


def reset_ids() -> None:
    """Numbers frames from 0 again."""
    global _frame_ids
    _frame_ids = itertools.count()


def started(code: types.CodeType) -> None:
    """A compilation begins."""
    _say_version()
    trace_structured("dynamo_start", lambda: {"stack": [*_callers(), _place_of(code)]})


def _place_of(code: types.CodeType) -> dict[str, object]:
    return {
        "line": code.co_firstlineno,
        "name": code.co_name,
        "filename": intern_string(code.co_filename),
    }


def _callers() -> list[dict[str, object]]:
    """The program's frames that led to a compilation."""
    stack = traceback.extract_stack()
    return from_traceback([f for f in stack if not f.filename.startswith(_OWN_FOLDERS)])


def _say_version() -> None:
    """The first record of a trace names what wrote it."""
    handlers = tuple(map(id, _internal.trace_log.handlers))
    if handlers and handlers != _versions.get("said"):
        _versions["said"] = handlers
        found = {"torch": torch.__version__, "python": sys.version.split()[0]}
        trace_structured_artifact("torch_version", "json", lambda: json.dumps(found))


def failed(error: Exception) -> None:
    """A compilation ended with an error."""
    trace_structured_artifact(
        "dynamo_error", "string", lambda: "".join(traceback.format_exception(error))
    )


def is_tracing() -> bool:
    """Whether TORCH_TRACE asks for records."""
    return bool(_internal.trace_log.handlers)


def recompile_reasons(reasons: list[str]) -> None:
    """Why a function is compiled again."""
    trace_structured_artifact("recompile_reasons", "json", lambda: json.dumps(reasons))


PROGRESS_AFTER = 2.0


@contextlib.contextmanager
def progress(code: types.CodeType) -> Iterator[None]:
    """Says on a terminal what is compiled, once that has taken two seconds."""
    if not sys.stderr.isatty():
        yield
        return
    begun = time.monotonic()

    def show() -> None:
        stage = utils.current_stages[-1] if utils.current_stages else "compile"
        place = f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"
        spent = time.monotonic() - begun
        print(f"torch.compile: {place}, {stage}, {spent:.0f} s so far", file=sys.stderr)

    timer = threading.Timer(PROGRESS_AFTER, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def bytecode(before: types.CodeType, after: types.CodeType) -> None:
    """The code before and after."""
    log = _artifacts["bytecode"]
    if not (log.isEnabledFor(logging.DEBUG) or is_tracing()):
        return
    place = (before.co_name, before.co_filename, before.co_firstlineno)
    for title, code in (("ORIGINAL BYTECODE", before), ("MODIFIED BYTECODE", after)):
        text = utils.format_bytecode(title, *place, code)
        log.debug("%s", text)
        name = f"{before.co_name}_{title.replace(' ', '_')}"
        trace_structured_artifact(name, "string", lambda text=text: text)


def graph(gm: torch.fx.GraphModule | None, name: str) -> None:
    """The captured graph."""
    if gm is None:
        return
    readable = LazyString(gm.print_readable, print_output=False, include_device=False)
    _artifacts["graph_code"].debug("TRACED GRAPH\n ===== %s =====\n%s\n", name, readable)
    if _artifacts["graph"].isEnabledFor(logging.DEBUG):
        _artifacts["graph"].debug("TRACED GRAPH\n %s \n%s\n", name, _table(gm.graph))
    if _artifacts["graph_sizes"].isEnabledFor(logging.DEBUG):
        lines = [
            f"{node}: ({', '.join(map(str, size))})" for node, size in _sizes(gm.graph).items()
        ]
        _artifacts["graph_sizes"].debug(
            "TRACED GRAPH TENSOR SIZES\n===== %s =====\n%s\n", name, "\n".join(lines)
        )
    trace_structured(
        "dynamo_output_graph",
        lambda: {"sizes": _sizes(gm.graph)},
        payload_fn=lambda: gm.print_readable(print_output=False),
    )


def _sizes(found: torch.fx.Graph) -> dict[str, list[int | str]]:
    """The sizes of all values; symbols by their names."""
    return {
        node.name: [n if type(n) is int else str(n) for n in node.meta["example_value"].shape]
        for node in found.nodes
        if hasattr(node.meta.get("example_value"), "shape")
    }


def _table(found: torch.fx.Graph) -> str:
    rows = [("opcode", "name", "target", "args", "kwargs")]
    rows += [
        tuple(str(part) for part in (n.op, n.name, n.target, n.args, n.kwargs)) for n in found.nodes
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(lines)


def is_on(artifact: str) -> bool:
    """Whether someone asked for an artifact."""
    return _artifacts[artifact].isEnabledFor(logging.DEBUG)


def traced_call(name: str, tx: Frame) -> None:
    """A call that became a node, with its place in the user's line."""
    code = tx.code
    ins = tx.program.instructions[max(tx.ip - 1, 0)]
    place = f"{code.co_filename}:{tx.line()} in {code.co_name}"
    depth = f" (inline depth: {tx.depth})" if tx.depth else ""
    source = utils.get_instruction_source_311(code, ins).rstrip()
    _artifacts["trace_call"].debug("TRACE FX call %s from %s%s\n%s", name, place, depth, source)


def watches_steps() -> bool:
    """Whether someone asked for lines or instructions as they are traced."""
    return is_on("trace_source") or is_on("trace_bytecode")


def watched(tx: Frame, steps: list[tuple]) -> list[tuple]:
    """The steps of a frame, each of which says what it is before it is made."""
    last: list[int | None] = [None]

    def says(handler: Callable) -> Callable:
        def step(frame: Frame, ins: Instruction) -> object:
            code = frame.code
            if ins.lineno is not None and ins.lineno != last[0]:
                last[0] = ins.lineno
                place = f"{code.co_filename}:{ins.lineno} in {code.co_name}"
                depth = f" (inline depth: {frame.depth})" if frame.depth else ""
                line = linecache.getline(code.co_filename, ins.lineno).rstrip()
                text = f"TRACE starts_line {place}{depth}\n    {line}"
                _artifacts["trace_source"].debug("%s", text)
            shown = "" if ins.argval is None else ins.argval
            _artifacts["trace_bytecode"].debug("TRACE %s %s %s", ins.opname, shown, frame.stack)
            return handler(frame, ins)

        return step

    return [(says(handler), ins) for handler, ins in steps]


def side_effects(tx: Frame) -> None:
    """Objects of the program that compiled code changes."""
    log = _artifacts["side_effects"]
    if not log.isEnabledFor(logging.DEBUG):
        return
    names = tx.out.side_effects.names()
    if names:
        code = tx.code
        place = f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"
        log.debug("Mutating objects of %s:\n%s", place, "\n".join(f"    {n}" for n in names))


def graph_break(reason: Exception | None) -> None:
    """A graph ended, and why."""
    if reason is None:
        return
    title = str(reason.args[0]).split("\n", 1)[0] if reason.args else type(reason).__name__
    utils.counters["graph_break"][str(reason.args[0]) if reason.args else title] += 1
    stack = list(getattr(reason, "real_stack", None) or [])
    # Not the exception: its traceback holds the frames of the trace and the program's values.
    utils.graph_break_reasons.append(utils.GraphCompileReason(str(reason), stack))
    where = f" at {stack[-1].filename}:{stack[-1].lineno}" if stack else ""
    text = f"Graph break in user code{where}\nGraph Break Reason: {reason}"
    if stack:
        text += f"\nUser code traceback:\n{exc.format_user_stack(stack)}"
    _artifacts["graph_breaks"].debug("%s", text)
    trace_structured_artifact("dynamo_graph_break_reason", "string", lambda: text)


def guards(root: RootGuardManager, texts: list[str], records: Iterable[GuardRecord]) -> None:
    """The guard tree, and its conditions."""
    if _artifacts["guards"].isEnabledFor(logging.DEBUG):
        _artifacts["guards"].debug("GUARDS:\n\n%s", tree_text(root))
    if _artifacts["verbose_guards"].isEnabledFor(logging.DEBUG):
        lines = [f"    {r.kind} {r.source.name() if r.source else ''}" for r in records]
        _artifacts["verbose_guards"].debug("GUARDS BY KIND:\n%s", "\n".join(lines))
    trace_structured("dynamo_cpp_guards_str", payload_fn=lambda: tree_text(root))
    trace_structured("dynamo_guards", payload_fn=lambda: [{"code": text} for text in texts])


def tree_text(root: RootGuardManager) -> str:
    """A guard tree as indented lines."""
    lines = ["TREE_GUARD_MANAGER:", "+- RootGuardManager"]
    _write_manager(root, 1, lines)
    for leaf in root.get_epilogue_lambda_guards():
        _write_leaf(leaf, 0, lines)
    return "\n".join(lines) + "\n"


def _write_leaf(leaf: object, depth: int, lines: list[str]) -> None:
    head = "| " * depth + f"+- {type(leaf).__name__}: "
    lines += [head + part for part in leaf.verbose_code_parts()]


def _write_manager(manager: GuardManager, depth: int, lines: list[str]) -> None:
    for leaf in manager.get_leaf_guards():
        _write_leaf(leaf, depth, lines)
    for accessor in manager.get_accessors():
        child = accessor.guard_manager()
        source = child.get_source()
        lines.append(
            "| " * depth + f"+- {type(child).__name__}: source={source}, accessed_by={accessor!r}"
        )
        _write_manager(child, depth + 1, lines)


def finished(metrics: utils.CompilationMetrics) -> None:
    """A compilation ended, well or not."""
    utils.add_compilation_metrics(metrics)
    trace_structured(
        "compilation_metrics",
        lambda: {
            key: sorted(value) if isinstance(value, set) else value
            for key, value in vars(metrics).items()
            if value is not None
        },
    )
