"""Backends that compile nothing: they run the graph in the stage that a bug is looked for in. Also
those that fail on purpose, and the one behind torch._dynamo.explain."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import (
    CompilerFn,
    lookup_backend,
    register_debug_backend,
    register_experimental_backend,
)

Inputs = list[torch.Tensor]


@register_debug_backend
def eager(gm: torch.fx.GraphModule, fake_tensor_inputs: Inputs, **kwargs: object) -> Callable:
    """Runs the captured graph operator by operator."""
    if kwargs:
        import logging

        logging.getLogger(__name__).warning("eager backend ignoring extra kwargs %s", kwargs)
    return gm.forward


def make_eager_backend_with_torch_function_modes(modes: Iterable[object]) -> CompilerFn:
    """`eager` whose graphs run inside of modes."""
    import contextlib

    def fn(gm: torch.fx.GraphModule, inputs: Inputs, **kwargs: object) -> Callable:
        def wrapper(*args: object) -> object:
            with contextlib.ExitStack() as stack:
                for mode in modes:
                    stack.enter_context(mode)
                return gm.forward(*args)

        return wrapper

    return fn


def make_eager_backend_with_torch_function_mode(mode: object) -> CompilerFn:
    """`eager` whose graphs run inside of a mode."""
    return make_eager_backend_with_torch_function_modes([mode])


@register_experimental_backend
def eager_noexcept(gm: torch.fx.GraphModule, inputs: Inputs, **kwargs: object) -> Callable:
    """`eager`, for graphs that must not raise."""

    def inner(*args: object) -> object:
        try:
            return gm(*args)
        except Exception as error:
            raise torch._dynamo.exc.TorchDynamoException(
                "Unexpected exception when running generated GraphModule"
            ) from error

    return inner


@register_experimental_backend
def pre_dispatch_eager(gm: torch.fx.GraphModule, inputs: Inputs, **kwargs: object) -> Callable:
    """Traces again above autograd and prints that graph."""
    from torch.fx.experimental.proxy_tensor import make_fx

    def runnable(*args: object) -> object:
        return torch.fx.Interpreter(gm).run(*args)

    traced = make_fx(runnable, pre_dispatch=True)(*inputs)
    traced.print_readable()
    return traced.forward


@register_debug_backend
def eager_debug(gm: torch.fx.GraphModule, inputs: Inputs, **kwargs: object) -> Callable:
    """`eager` that checks that operators keep to their schemas."""
    from torch._subclasses.schema_check_mode import SchemaCheckMode

    def inner(*args: object) -> object:
        with SchemaCheckMode():
            return torch.fx.Interpreter(gm).run(*args)

    return inner


def boxed_nop(gm: torch.fx.GraphModule, inputs: Inputs) -> Callable:
    """Runs a graph that takes its arguments in a list, which it empties."""

    def run(args: list[object]) -> object:
        return torch.fx.Interpreter(gm).boxed_run(args)

    run._boxed_call = True
    return run


aot_eager = aot_autograd(fw_compiler=boxed_nop, keep_inference_input_mutations=True)
register_debug_backend(name="aot_eager", compiler_fn=aot_eager)

aot_eager_default_partitioner = aot_autograd(
    fw_compiler=boxed_nop, keep_inference_input_mutations=True
)
register_debug_backend(
    name="aot_eager_default_partitioner", compiler_fn=aot_eager_default_partitioner
)


def _decompositions() -> dict:
    from torch._decomp import core_aten_decompositions

    return core_aten_decompositions()


@register_debug_backend
def aot_eager_decomp_partition(
    gm: torch.fx.GraphModule, inputs: Inputs, **kwargs: object
) -> Callable:
    """Everything that a compiler gets (joint trace, decompositions, min-cut), run as it is."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    compiler = aot_autograd(
        fw_compiler=boxed_nop,
        bw_compiler=boxed_nop,
        decompositions=_decompositions,
        partition_fn=functools.partial(min_cut_rematerialization_partition, compiler="inductor"),
    )
    return compiler(gm, inputs)


# ---- on purpose


class ReluCompileError(Exception):
    """What relu_compile_error_TESTING_ONLY raises."""


class TestingOnlyCompileError(Exception):
    """What non_leaf_compile_error_TESTING_ONLY raises."""


def _has_relu(gm: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return [node for node in gm.graph.nodes if node.target == torch.relu]


@register_debug_backend
def relu_compile_error_TESTING_ONLY(gm: torch.fx.GraphModule, inputs: Inputs) -> Callable:
    """Fails to compile torch.relu."""
    if _has_relu(gm):
        raise ReluCompileError
    return gm


@register_debug_backend
def relu_runtime_error_TESTING_ONLY(gm: torch.fx.GraphModule, inputs: Inputs) -> Callable:
    """Compiles torch.relu to a failed assertion."""
    for node in _has_relu(gm):
        node.target = torch._assert
        node.args = (False, "ReluRuntimeError")
    gm.recompile()
    return gm


@register_debug_backend
def relu_accuracy_error_TESTING_ONLY(gm: torch.fx.GraphModule, inputs: Inputs) -> Callable:
    """Compiles torch.relu to an addition."""
    for node in _has_relu(gm):
        node.target = torch.add
        node.args = (node.args[0], 1)
    gm.recompile()
    return gm


@register_debug_backend
def non_leaf_compile_error_TESTING_ONLY(gm: torch.fx.GraphModule, inputs: Inputs) -> Callable:
    """Fails to compile graphs with inputs that are leaves of autograd, or with none that is not."""
    if any(x.is_leaf for x in inputs if isinstance(x, torch.Tensor)):
        raise TestingOnlyCompileError
    return gm


# ---- explain


@dataclasses.dataclass
class ExplainOutput:
    """What torch._dynamo.explain returns: the graphs, why they ended, what they contain."""

    graphs: list[torch.fx.GraphModule]
    graph_count: int
    graph_break_count: int
    break_reasons: list[object]
    op_count: int
    ops_per_graph: list[list[object]] | None = None
    out_guards: list[object] | None = None
    compile_times: str | None = None

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            *self._table(),
            "Break Reasons:",
        ]
        for number, reason in enumerate(self.break_reasons, 1):
            lines += [
                f"  Break Reason {number}:",
                f"    Reason: {reason.reason}",
                "    User Stack:",
            ]
            lines += [f"      {frame}" for frame in reason.user_stack]
        if self.ops_per_graph is not None:
            lines.append("Ops per Graph:")
            for number, ops in enumerate(self.ops_per_graph, 1):
                lines += [f"  Ops {number}:", *[f"    {op}" for op in ops]]
        if self.out_guards is not None:
            lines.append("Out Guards:")
            for number, guard in enumerate(self.out_guards, 1):
                lines += [f"  Guard {number}:", f"    {guard.guard_type} {guard.name}"]
        if self.compile_times is not None:
            lines += [f"Compile Times: {self.compile_times}"]
        return "\n".join(lines) + "\n"

    def _table(self) -> list[str]:
        """Graphs and breaks, one line each."""
        rows = [("what", "calls", "where it begins, or why it ends")]
        for number, gm in enumerate(self.graphs, 1):
            calls = [n for n in gm.graph.nodes if n.op.startswith("call_")]
            text = (calls[0].meta.get("stack_trace") or "") if calls else ""
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            rows.append((f"graph {number}", str(len(calls)), ": ".join(lines[-2:])))
        for number, reason in enumerate(self.break_reasons, 1):
            place = reason.user_stack[-1] if reason.user_stack else None
            where = f"{place.filename}:{place.lineno}: {place.line}; " if place else ""
            rows.append((f"break {number}", "", where + reason.reason.split("\n", 1)[0]))
        wide = [max(len(row[i]) for row in rows) for i in range(2)]
        return [f"  {a:{wide[0]}}  {b:>{wide[1]}}  {c}".rstrip() for a, b, c in rows]


def _explain_graph_detail(
    gm: torch.fx.GraphModule,
    graphs: list[torch.fx.GraphModule],
    op_count: int,
    ops_per_graph: list[list[object]],
    break_reasons: list[object],
) -> tuple[torch.fx.GraphModule, list, int, list, list]:
    """Notes a graph for explain."""
    graphs.append(gm)
    ops = [node.target for node in gm.graph.nodes if node.op.startswith("call_")]
    ops_per_graph.append(ops)
    reason = getattr(gm, "compile_subgraph_reason", None)
    if reason is not None and getattr(reason, "graph_break", False):
        break_reasons.append(reason)
    return gm, graphs, op_count + len(ops), ops_per_graph, break_reasons


class ExplainWithBackend:
    """A backend that notes the graphs it passes on to another."""

    def __init__(self, backend: str | CompilerFn) -> None:
        self.backend = lookup_backend(backend)
        self.graphs: list[torch.fx.GraphModule] = []
        self.op_count = 0
        self.break_reasons: list[object] = []

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: Inputs) -> Callable:
        ops: list[list[object]] = []
        noted = _explain_graph_detail(gm, self.graphs, self.op_count, ops, self.break_reasons)
        gm, self.graphs, self.op_count, _, self.break_reasons = noted
        return self.backend(gm, example_inputs)

    def output(self) -> ExplainOutput:
        """What was noted so far."""
        count = len(self.graphs)
        output = ExplainOutput(
            self.graphs,
            count,
            max(count - 1, 0),
            self.break_reasons,
            self.op_count,
        )
        return output
