"""Faults on purpose, by config.cpp.inject_relu_bug_TESTING_ONLY and inject_log1p_bug_TESTING_ONLY:
the tools that look for faults are tested with them."""

from __future__ import annotations

import torch
from torch import fx
from torch._inductor import config
from torch._inductor.exc import CppCompileError

__all__ = ["inject"]

aten = torch.ops.aten


def inject(gm: fx.GraphModule) -> None:
    """Spoils the operators that the settings name."""
    kinds = {
        aten.relu.default: config.cpp.inject_relu_bug_TESTING_ONLY,
        aten.log1p.default: config.cpp.inject_log1p_bug_TESTING_ONLY,
    }
    asked = {op: kind for op, kind in kinds.items() if kind is not None}
    if not asked:
        return
    for op, kind in asked.items():
        for node in list(gm.graph.nodes):
            if node.target is op and not _left_out(node):
                _spoil(gm, node, kind)
    gm.recompile()


def _left_out(node: fx.Node) -> bool:
    """Whether the bisector wants the operator as it is."""
    from torch._inductor.compiler_bisector import CompilerBisector

    return CompilerBisector.disable_subsystem("inductor", "lowerings", lambda: repr(node))


def _spoil(gm: fx.GraphModule, node: fx.Node, kind: str) -> None:
    if kind == "compile_error":
        raise CppCompileError(["cc", f"{node.name}.cpp"], f"{node.name} was spoiled on purpose")
    with gm.graph.inserting_before(node):
        if kind == "accuracy":
            made = gm.graph.call_function(aten.add.Scalar, (node.args[0], 1))
        elif kind == "nan":
            made = gm.graph.call_function(aten.mul.Scalar, (node.args[0], float("nan")))
        elif kind == "runtime_error":
            made = gm.graph.call_function(_abort, (node.args[0],))
        else:
            raise AssertionError(f"unrecognized fault {kind!r}: compile_error, runtime_error, "
                                 "accuracy or nan")  # fmt: skip
    made.meta.update(node.meta)
    node.replace_all_uses_with(made)
    gm.graph.erase_node(node)


def _abort(x: torch.Tensor) -> torch.Tensor:
    """Ends the process, as a kernel that reads wild memory does."""
    import os

    os.abort()
