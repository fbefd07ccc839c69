"""What a compilation says about itself: artifacts of TORCH_LOGS, records of TORCH_TRACE, metrics.
Each function does nothing unless someone asked for its output."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import sys
import threading
import time
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch._dynamo import utils
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
    import torch
    from torch._C._dynamo.eval_frame import CodeCache
    from torch._C._dynamo.guards import GuardManager, RootGuardManager
    from torch._dynamo.symbolic_convert import Frame

_artifacts = {
    name: getArtifactLogger(__name__, name)
    for name in "bytecode graph graph_code graph_sizes graph_breaks guards trace_call".split()
}
_frame_ids = itertools.count()


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
    trace_structured(
        "dynamo_start",
        lambda: {
            "stack": [
                {
                    "line": code.co_firstlineno,
                    "name": code.co_name,
                    "filename": intern_string(code.co_filename),
                }
            ]
        },
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
    if not log.isEnabledFor(logging.DEBUG):
        return
    for title, code in (("ORIGINAL BYTECODE", before), ("MODIFIED BYTECODE", after)):
        place = (before.co_name, before.co_filename, before.co_firstlineno)
        log.debug("%s", utils.format_bytecode(title, *place, code))


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
            f"{node.name}: {tuple(node.meta['example_value'].shape)}"
            for node in gm.graph.nodes
            if hasattr(node.meta.get("example_value"), "shape")
        ]
        _artifacts["graph_sizes"].debug(
            "TRACED GRAPH TENSOR SIZES\n===== %s =====\n%s\n", name, "\n".join(lines)
        )
    trace_structured(
        "dynamo_output_graph",
        lambda: {"sizes": {}},
        payload_fn=lambda: gm.print_readable(print_output=False),
    )


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


def graph_break(reason: Exception | None) -> None:
    """A graph ended, and why."""
    if reason is None:
        return
    title = str(reason.args[0]).split("\n", 1)[0] if reason.args else type(reason).__name__
    utils.counters["graph_break"][str(reason.args[0]) if reason.args else title] += 1
    stack = list(getattr(reason, "real_stack", None) or [])
    # Not the exception: its traceback holds the frames of the trace and the program's values.
    utils.graph_break_reasons.append(utils.GraphCompileReason(str(reason), stack))
    where = f"{stack[-1].filename}:{stack[-1].lineno}" if stack else "user code"
    text = f"Graph break in user code at {where}\nGraph Break Reason: {reason}"
    _artifacts["graph_breaks"].debug("%s", text)
    trace_structured(
        "dynamo_graph_break_reason",
        lambda: {"stack": from_traceback(stack)},
        payload_fn=lambda: text,
    )


def guards(root: RootGuardManager) -> None:
    """The guard tree."""
    if _artifacts["guards"].isEnabledFor(logging.DEBUG):
        _artifacts["guards"].debug("GUARDS:\n\n%s", tree_text(root))
    trace_structured("dynamo_guards", payload_fn=lambda: tree_text(root))


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
