"""Operators that take functions. Each function is traced into a graph of its own; values of the
enclosing trace that it uses become its inputs (they are lifted)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.fx
from torch._dynamo import trace_rules
from torch._dynamo.exc import UncapturedHigherOrderOpError, Unsupported, unimplemented
from torch._dynamo.trace_rules import handler
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.dicts import ConstDictVariable
from torch._dynamo.variables.lists import BaseListVariable, ListVariable, TupleVariable
from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable
from torch._higher_order_ops.cond import cond, cond_op
from torch._higher_order_ops.wrap import tag_activation_checkpoint, wrap
from torch.utils import checkpoint as checkpointing

if TYPE_CHECKING:
    from torch._dynamo.symbolic_convert import Frame


class Body(NamedTuple):
    """A traced function: its graph, the outer values it uses, what it returned and the tensors
    among that."""

    graph: torch.fx.Graph
    attrs: dict[str, object]
    lifted: dict[torch.fx.Node, torch.fx.Node]
    result: VariableTracker
    leaves: list[VariableTracker]


def trace_body(tx: Frame, fn: VariableTracker, args: Args, kwargs: Kwargs) -> Body:
    """Traces a function into a graph of its own."""
    out = tx.out
    graph, attrs, lifted = torch.fx.Graph(), {}, {}
    saved = out.graph, out.attrs
    changes = out.side_effects.count()
    out.scopes.append((graph, lifted))
    out.graph, out.attrs = graph, attrs
    try:
        result = fn.call_function(tx, args, kwargs)
        leaves: list[VariableTracker] = []
        _collect(result, leaves)
        graph.output(tuple([out.lift(leaf.as_proxy()) for leaf in leaves]))
    finally:
        out.scopes.pop()
        out.graph, out.attrs = saved
    if out.side_effects.count() != changes:
        unimplemented(
            "HigherOrderOperator: Mutating a variable not in the current scope (SideEffects)",
            fn.describe(),
            "the function of a higher-order operator changes something outside of itself",
        )
    return Body(graph, attrs, lifted, result, leaves)


def _collect(vt: VariableTracker, leaves: list[VariableTracker]) -> None:
    vt = vt.realize()
    if isinstance(vt, TensorVariable | SymNodeVariable):
        leaves.append(vt)
    elif type(vt) in (TupleVariable, ListVariable):
        for item in vt.items:
            _collect(item, leaves)
    elif isinstance(vt, ConstDictVariable):
        for _, value in vt.items.values():
            _collect(value, leaves)
    elif not isinstance(vt, ConstantVariable):
        unimplemented("result of a higher-order operator", repr(vt), "only tensors can be returned")


def _rebuilt(vt: VariableTracker, values: list[VariableTracker]) -> VariableTracker:
    """The result with tensors of the outer graph in place of those of the body."""
    vt = vt.realize()
    if isinstance(vt, TensorVariable | SymNodeVariable):
        return values.pop(0)
    if isinstance(vt, BaseListVariable):
        return vt.like([_rebuilt(item, values) for item in vt.items])
    if isinstance(vt, ConstDictVariable):
        items = {h: (k, _rebuilt(v, values)) for h, (k, v) in vt.items.items()}
        return ConstDictVariable(items, cls=vt.cls)
    return vt


def module_node(tx: Frame, body: Body, name: str) -> torch.fx.Node:
    """A node that reads the graph of a body."""
    root = torch.nn.Module()
    for key, value in body.attrs.items():
        setattr(root, key, value)
    return tx.out.attribute_node(name, torch.fx.GraphModule(root, body.graph))


def call_operator(
    tx: Frame, op: object, args: tuple, kwargs: dict[str, object], body: Body
) -> VariableTracker:
    """A node for the operator; its result in the structure of the body's."""
    examples = tuple(leaf.as_proxy().meta["example_value"] for leaf in body.leaves)
    args = tx.out.lift_all(args)
    node = tx.out.graph.create_node("call_function", op, args, kwargs)
    node.meta["example_value"] = examples
    made = tx.out.wrap_node(tx, node, examples)
    return _rebuilt(body.result, list(made.items))


def _captured(tx: Frame, name: str, fn: VariableTracker, args: Args, kwargs: Kwargs) -> Body:
    try:
        return trace_body(tx, fn, args, kwargs)
    except Unsupported as error:
        raise UncapturedHigherOrderOpError(
            f"{name}: the function {fn.describe()} cannot be captured whole: {error}"
        ) from error


@handler(wrap)
def _wrap(
    tx: Frame, fn: VariableTracker, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker:
    body = trace_body(tx, fn, list(args), kwargs)
    node = module_node(tx, body, "wrap_body")
    return call_operator(tx, wrap, (node, *body.lifted), {}, body)


@handler(checkpointing.checkpoint)
def _checkpoint(
    tx: Frame, fn: VariableTracker, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker:
    settings, own = tag_activation_checkpoint.divide_kwargs(kwargs)
    if "context_fn" in settings and not settings["context_fn"].is_python_constant():
        unimplemented("checkpoint", "context_fn", "a policy made in the compiled function")
    body = trace_body(tx, fn, list(args), own)
    node = module_node(tx, body, "wrap_body")
    plain = {k: v.as_python_constant() for k, v in settings.items()}
    return call_operator(tx, tag_activation_checkpoint, (node, *body.lifted), plain, body)


@handler(cond)
def _cond(
    tx: Frame,
    pred: VariableTracker,
    true_fn: VariableTracker,
    false_fn: VariableTracker,
    operands: VariableTracker | None = None,
) -> VariableTracker:
    values = operands.unpack(tx) if operands is not None else []
    if pred.is_python_constant():
        fn = true_fn if pred.as_python_constant() else false_fn
        return fn.call_function(tx, values, {})
    if not isinstance(pred, TensorVariable | SymNodeVariable):
        raise UncapturedHigherOrderOpError(
            f"Expected pred to be bool or tensor, but got {pred.python_type()}"
        )
    bodies = [_captured(tx, "cond", fn, values, {}) for fn in (true_fn, false_fn)]
    if len(bodies[0].leaves) != len(bodies[1].leaves):
        raise UncapturedHigherOrderOpError(
            "Expected true_fn and false_fn to return the same number of tensors"
        )
    inputs = list(dict.fromkeys([*bodies[0].lifted, *bodies[1].lifted]))
    nodes = []
    for name, body in zip(("cond_true", "cond_false"), bodies, strict=True):
        _take_inputs(body, inputs)
        nodes.append(module_node(tx, body, name))
    return call_operator(tx, cond_op, (pred.as_proxy(), *nodes, tuple(inputs)), {}, bodies[0])


def _take_inputs(body: Body, inputs: list[torch.fx.Node]) -> None:
    """Gives the graph of a body these inputs, in this order."""
    graph = body.graph
    first = next(iter(graph.nodes))
    for outer in inputs:
        with graph.inserting_before(first):
            made = graph.placeholder(outer.name)
        made.meta["example_value"] = outer.meta["example_value"]
        known = body.lifted.get(outer)
        if known is not None:
            if known is first:
                first = first.next
            known.replace_all_uses_with(made)
            graph.erase_node(known)


for _op in (wrap, cond_op, tag_activation_checkpoint):
    if trace_rules.explicit(_op) is None:
        trace_rules.register(_op, trace_rules.SKIP)
del _op
