"""A program without writes: its graph is run again on tensors without data that keep apart values
and memory, and what it calls is recorded with some operators replaced by what they are made of."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, fx
from torch._functorch._aot_autograd.export import _settings
from torch._functorch._aot_autograd.pre_dispatch import trace_above_autograd
from torch._ops import OperatorBase, OpOverload
from torch.export._capture import exporting
from torch.export._names import name_inputs
from torch.export._regions import drop_switches, wrap_autocast_regions
from torch.export._signature import argument_of
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    OutputKind,
    OutputSpec,
)
from torch.fx.experimental.symbolic_shapes import rebind_unbacked

if TYPE_CHECKING:
    from torch.export.exported_program import ExportedProgram

__all__ = ["decomposed", "every_composite"]

_MUTATION = {
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}


class _Again(fx.Interpreter):
    """Runs a graph node by node. Symbols that operators bring anew are the graph's own."""

    def __init__(self, module: fx.GraphModule, env: object) -> None:
        super().__init__(module)
        self.env_of_shapes = env

    def run_node(self, n: fx.Node) -> object:
        out = super().run_node(n)
        if self.env_of_shapes is not None and n.meta.get("unbacked_bindings"):
            rebind_unbacked(self.env_of_shapes, n, out)
        return out


def every_composite(op: object) -> Callable | None:
    """For a table that takes all composite operators apart."""
    return op.decompose if isinstance(op, OpOverload) and op._can_decompose() else None


def _inputs(module: fx.GraphModule) -> list[object]:
    """The example values of a graph's inputs; constants stand for themselves."""
    return [n.meta.get("val") for n in module.graph.find_nodes(op="placeholder")]


def _values(ep: ExportedProgram) -> list[object]:
    found = []
    for spec, value in zip(ep.graph_signature.input_specs, _inputs(ep.graph_module), strict=True):
        if isinstance(spec.arg, ConstantArgument):
            value = spec.arg.value
        elif spec.kind is InputKind.CUSTOM_OBJ:
            value = ep.constants[spec.target]
        elif isinstance(value, Tensor):
            grad = value.requires_grad
            with torch.no_grad():
                value = value.detach()  # what is written now must not be seen by the old graph
            value.requires_grad_(grad)
        found.append(value)
    return found


def _mode(values: Sequence[object], ep: ExportedProgram) -> object:
    from torch._guards import detect_fake_mode
    from torch.export._inputs import fake_mode_for

    found = detect_fake_mode([v for v in values if isinstance(v, Tensor)])
    if found is None:
        nodes = [n.meta.get("val") for n in ep.graph.nodes]
        found = detect_fake_mode([v for v in nodes if isinstance(v, Tensor)])
    return found or fake_mode_for([])


def decomposed(ep: ExportedProgram, table: dict[OperatorBase, Callable]) -> ExportedProgram:
    """The program with the operators of a table replaced."""
    values = _values(ep)
    mode = _mode(values, ep)
    runner = _Again(ep.graph_module, mode.shape_env)

    def run(*flat: object) -> list[object]:
        with fx.traceback.preserve_node_meta():
            return list(runner.run(*flat, enable_io_processing=False))

    table = dict(table.items())
    table.setdefault(torch.ops.aten.lift_fresh_copy.default, torch.ops.aten.clone.default)
    settings = _settings(table, 0, pre_dispatch=True)
    allowed = mode.allow_non_fake_inputs
    mode.allow_non_fake_inputs = True
    quiet = mode.shape_env.suppress_guards if mode.shape_env else contextlib.nullcontext
    try:
        with exporting(), torch.no_grad(), mode, quiet():
            traced = trace_above_autograd(run, values, settings)
    finally:
        mode.allow_non_fake_inputs = allowed
    module = traced.module
    wrap_autocast_regions(module)
    drop_switches(module)
    _keep_grad(module, ep)
    module.graph.eliminate_dead_code()
    return _finished(ep, module, traced.meta.written)


def _keep_grad(module: fx.GraphModule, ep: ExportedProgram) -> None:
    old = ep.graph.find_nodes(op="placeholder")
    for node, before in zip(module.graph.find_nodes(op="placeholder"), old, strict=True):
        node.meta["val"] = before.meta.get("val")


def _finished(
    ep: ExportedProgram, module: fx.GraphModule, written: Sequence[int]
) -> ExportedProgram:
    from torch._export.verifier import Verifier
    from torch.export.exported_program import ExportedProgram

    old = ep.graph_signature
    inputs = [copy.deepcopy(spec) for spec in old.input_specs]
    output = module.graph.output_node()
    returned = list(output.args[0])
    specs: list[OutputSpec] = []
    kept: list[object] = []
    for index, value in zip(written, returned, strict=False):
        spec = inputs[index]
        if spec.kind not in _MUTATION:
            continue  # a constant: nobody else sees it
        target = spec.arg.name if spec.kind is InputKind.USER_INPUT else spec.target
        specs.append(OutputSpec(_MUTATION[spec.kind], argument_of(value), target))
        kept.append(value)
    for value, spec in zip(returned[len(written) :], old.output_specs, strict=True):
        specs.append(OutputSpec(spec.kind, argument_of(value), spec.target))
        kept.append(value)
    output.args = (tuple(kept),)
    signature = ExportGraphSignature(inputs, specs)
    names = [s.arg.name for s in inputs if s.kind is InputKind.USER_INPUT]
    inputs_before = {s.arg.name: s for s in inputs}
    name_inputs(module, signature, names)
    for spec in signature.output_specs:
        if spec.kind is OutputKind.USER_INPUT_MUTATION:
            spec.target = inputs_before[spec.target].arg.name
    module.meta.update({k: v for k, v in ep.graph_module.meta.items() if k == "custom"})
    made = ExportedProgram(
        module,
        module.graph,
        signature,
        dict(ep.state_dict),
        dict(ep.range_constraints),
        copy.deepcopy(ep.module_call_graph),
        ep.example_inputs,
        dict(ep.constants),
        verifiers=[Verifier],
    )
    made._guards_code = list(ep._guards_code)
    return made
