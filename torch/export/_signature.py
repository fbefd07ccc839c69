"""From a captured graph to the parts of an exported program: what its nodes stand for, ranges of
symbols, and how its modules are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, fx, nn
from torch.export.graph_signature import (
    ArgumentSpec,
    ConstantArgument,
    CustomObjArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)

if TYPE_CHECKING:
    import sympy

    from torch.export._capture import CallRecord, Captured
    from torch.export.exported_program import ModuleCallEntry
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    from torch.utils._sympy.value_ranges import ValueRanges

__all__ = ["argument_of", "call_entries", "range_constraints", "signature_of"]

_SYMBOLIC = {
    torch.SymInt: SymIntArgument,
    torch.SymFloat: SymFloatArgument,
    torch.SymBool: SymBoolArgument,
}


def argument_of(value: object, example: object = None) -> ArgumentSpec:
    """What a node, or a constant in its place, stands for."""
    if not isinstance(value, fx.Node):
        return ConstantArgument("", value)
    held = value.meta.get("val", example)
    if isinstance(held, CustomObjArgument):
        return CustomObjArgument(value.name, held.class_fqn)
    if isinstance(held, torch._C.ScriptObject):
        return CustomObjArgument(value.name, held._type().qualified_name())
    if isinstance(held, Tensor):
        return TensorArgument(value.name)
    for kind, argument in _SYMBOLIC.items():
        if isinstance(held, kind):
            return argument(value.name)
    if value.op == "placeholder":
        return ConstantArgument(value.name, held)
    if isinstance(held, (bool, int, float)):
        known = {bool: SymBoolArgument, int: SymIntArgument, float: SymFloatArgument}
        return known[type(held)](value.name)
    return TensorArgument(value.name)


def signature_of(captured: Captured) -> ExportGraphSignature:
    """The signature of a captured graph, before constants are lifted."""
    state = captured.state
    nodes = captured.module.graph.find_nodes(op="placeholder")
    inputs: list[InputSpec] = []
    for node, name in zip(nodes, state.names, strict=False):
        argument = TensorArgument(node.name)
        if name in state.parameters:
            inputs.append(InputSpec(InputKind.PARAMETER, argument, name))
        else:
            persistent = name not in state.not_persistent
            inputs.append(InputSpec(InputKind.BUFFER, argument, name, persistent))
    leaves = captured.inputs.leaves
    for node, leaf in zip(nodes[len(state.names) :], leaves, strict=True):
        if not isinstance(leaf, (Tensor, *_SYMBOLIC, torch._C.ScriptObject)):
            node.meta["val"] = leaf
        inputs.append(InputSpec(InputKind.USER_INPUT, argument_of(node, leaf), None))
    outputs = [
        OutputSpec(OutputKind.USER_OUTPUT, argument_of(value), None)
        for value in captured.module.graph.output_node().args[0]
    ]
    return ExportGraphSignature(inputs, outputs)


def range_constraints(
    env: ShapeEnv, module: fx.GraphModule, captured: Captured | None
) -> dict[sympy.Symbol, ValueRanges]:
    """{symbol: range} of the symbols in the values of a graph. A size that the user bounded keeps
    the user's lower bound where the trace assumed only that it is neither 0 nor 1."""
    from torch.fx.experimental.symbolic_shapes import free_symbols
    from torch.utils._sympy.value_ranges import ValueRanges

    declared: dict[str, object] = {}
    if captured is not None:
        from torch.export.dynamic_shapes import Dim

        for use in captured.inputs.uses:
            if isinstance(use.dim, Dim):
                declared.setdefault(str(captured.inputs.roots[use.dim._root().__name__]), use.dim)
    found: dict[sympy.Symbol, ValueRanges] = {}
    for node in module.graph.nodes:
        value = node.meta.get("val")
        if not isinstance(value, (Tensor, tuple, list, *_SYMBOLIC)):
            continue
        for symbol in sorted(free_symbols(value), key=str):
            if symbol in found:
                continue
            known = env.bound_sympy(symbol)
            dim = declared.get(str(symbol))
            if dim is not None and known.lower <= 2:
                known = ValueRanges(min(dim._root().min, known.lower), known.upper)
            found[symbol] = known
    return found


def call_entries(
    mod: nn.Module, captured: Captured, calls: dict[str, CallRecord]
) -> list[ModuleCallEntry]:
    """Entries of the program itself, of all submodules, and of calls that were kept."""
    from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature

    root = ModuleCallSignature([], [], captured.in_spec, captured.out_spec)
    entries = [ModuleCallEntry("", root)]
    for name, _ in mod.named_modules(remove_duplicate=False):
        if name:
            record = calls.get(name)
            entries.append(ModuleCallEntry(name, None if record is None else _call(record)))
    known = {entry.fqn for entry in entries}
    for key, record in calls.items():
        if key not in known:
            entries.append(ModuleCallEntry(key, _call(record)))
    return entries


def _call(record: CallRecord) -> object:
    from torch.export.exported_program import ModuleCallSignature

    def arguments(values: Sequence[object]) -> list[ArgumentSpec]:
        return [argument_of(value) for value in values]

    return ModuleCallSignature(
        arguments(record.inputs),
        arguments(record.outputs),
        record.in_spec,
        record.out_spec,
        record.names,
    )
