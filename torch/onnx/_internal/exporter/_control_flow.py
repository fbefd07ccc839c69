"""Operators that take graphs: branches as If, loops as Loop and Scan. Graphs in a model see the
values around them, so that operands need no inputs of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx_ir as ir

from torch import fx
from torch.onnx._internal.exporter._errors import ConversionError
from torch.onnx._internal.exporter._tensors import SymbolicTensor

if TYPE_CHECKING:
    from torch.onnx._internal.exporter._core import Translator

__all__ = ["translated"]


def translated(translator: Translator, node: fx.Node, args: list) -> object:
    """The values of an operator that takes graphs."""
    name = node.target.name()
    if name == "cond":
        return _cond(translator, node, *args)
    if name == "while_loop":
        return _while_loop(translator, node, *args)
    if name == "scan":
        return _scan(translator, node, *args)
    if name == "map_impl":
        body, along, *rest = args
        return _scan(translator, node, body, [], along, *rest)
    for index, value in enumerate(args):
        if isinstance(value, fx.GraphModule):  # a region that changes nothing in a model
            operands = [a for a in args[index + 1 :] if not isinstance(a, str)]
            found = translator.branch(value, operands)
            several = isinstance(node.meta.get("val"), (tuple, list)) or len(found) != 1
            return found if several else found[0]
    raise ConversionError(f"{node.target} has no translation")


def _several(made: object) -> tuple[object, ...]:
    return made if isinstance(made, tuple) else (made,)


def _cond(
    translator: Translator,
    node: fx.Node,
    condition: object,
    then: fx.GraphModule,
    other: fx.GraphModule,
    operands: Sequence[object] = (),
) -> object:
    branches = {}
    for key, module in (("then_branch", then), ("else_branch", other)):
        branches[key] = translator.subgraph(
            f"{node.name}_{key}", [], lambda module=module: translator.branch(module, operands)
        )
    if not isinstance(condition, ir.Value):
        condition = translator.recorder.constant(bool(condition))
    return _several(translator.opset.If(_scalar(translator, condition), **branches))


def _like(translator: Translator, values: Sequence[ir.Value], prefix: str) -> list[SymbolicTensor]:
    """Inputs of a body for values that are carried through it."""
    found = []
    for index, value in enumerate(values):
        made = SymbolicTensor(translator.opset, translator.unused(f"{prefix}_{index}"))
        made.type, made.shape = value.type, value.shape
        made.is_complex = getattr(value, "is_complex", False)
        found.append(made)
    return found


def _as_values(translator: Translator, values: Sequence[object]) -> list[ir.Value]:
    constant = translator.recorder.constant
    return [v if isinstance(v, ir.Value) else constant(v) for v in values]


def _scalar(translator: Translator, value: object) -> object:
    """A condition of one element as a number."""
    if isinstance(value, ir.Value) and value.shape is not None and len(value.shape) > 0:
        return translator.opset.Reshape(value, translator.recorder.constant([]))
    return value


def _while_loop(
    translator: Translator,
    node: fx.Node,
    condition: fx.GraphModule,
    body: fx.GraphModule,
    carried: Sequence[object],
    rest: Sequence[object] = (),
) -> object:
    start = _as_values(translator, carried)
    (first,) = translator.branch(condition, [*start, *rest])
    count = translator.value(translator.unused(f"{node.name}_i"), 0)
    go_on = translator.value(translator.unused(f"{node.name}_go_on"), True)
    inputs = _like(translator, start, f"{node.name}_carried")

    def step() -> list[object]:
        new = translator.branch(body, [*inputs, *rest])
        (again,) = translator.branch(condition, [*new, *rest])
        return [_scalar(translator, again), *new]

    graph = translator.subgraph(f"{node.name}_body", [count, go_on, *inputs], step)
    found = translator.opset.Loop(None, _scalar(translator, first), *start, body=graph)
    return _several(found)


def _scan(
    translator: Translator,
    node: fx.Node,
    body: fx.GraphModule,
    start: Sequence[object],
    along: Sequence[ir.Value],
    rest: Sequence[object] = (),
) -> object:
    carried = _as_values(translator, start)
    inputs = _like(translator, carried, f"{node.name}_carried")
    slices = _like(translator, along, f"{node.name}_slice")
    for value in slices:
        value.shape = None if value.shape is None else ir.Shape(list(value.shape)[1:])
    graph = translator.subgraph(
        f"{node.name}_body",
        [*inputs, *slices],
        lambda: translator.branch(body, [*inputs, *slices, *rest]),
    )
    made = translator.opset.Scan(*carried, *along, body=graph, num_scan_inputs=len(along))
    return _several(made)
