"""Operators over lists of tensors as one operator per tensor. Each is then fused with what comes
before and after it, which is what makes a step of an optimizer one kernel per parameter instead of
one pass over all parameters per operator."""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch
from torch import fx

__all__ = ["decompose_foreach"]

aten = torch.ops.aten
_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor lgamma log log10 log1p log2 neg "
    "reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
_BINARY = {
    "add": aten.add,
    "sub": aten.sub,
    "mul": aten.mul,
    "div": aten.div,
    "maximum": aten.maximum,
    "minimum": aten.minimum,
    "clamp_max": aten.minimum,
    "clamp_min": aten.maximum,
}
_WITH_NUMBER = {
    "add": aten.add.Scalar,
    "sub": aten.sub.Scalar,
    "mul": aten.mul.Scalar,
    "div": aten.div.Scalar,
    "clamp_max": aten.clamp_max.default,
    "clamp_min": aten.clamp_min.default,
    "maximum": aten.clamp_min.default,
    "minimum": aten.clamp_max.default,
    "pow": aten.pow.Tensor_Scalar,
}
Rule = Callable[[fx.Node, int], tuple[object, tuple, dict[str, object]]]


def _item(node: fx.Node, place: int, at: int) -> object:
    return node.args[place][at]


def _rule(target: object) -> Rule | None:
    """What one item of the call is: an operator with its arguments."""
    name = target._schema.name.partition("::_foreach_")[2]
    overload = target._schema.overload_name or "default"
    if overload == "default" and name in _UNARY:
        op = getattr(aten, name).default
        return lambda node, at: (op, (_item(node, 0, at),), {})
    if overload == "List" and name in _BINARY:
        op = _BINARY[name]
        chosen = op.Tensor if "Tensor" in op.overloads() else op.default
        return lambda node, at: (
            chosen,
            (_item(node, 0, at), _item(node, 1, at)),
            {"alpha": node.kwargs["alpha"]} if "alpha" in node.kwargs else {},
        )
    if overload == "Scalar" and name in _WITH_NUMBER:
        op = _WITH_NUMBER[name]
        return lambda node, at: (op, (_item(node, 0, at), node.args[1]), {})
    if overload == "ScalarList" and name in _WITH_NUMBER:
        op = _WITH_NUMBER[name]
        return lambda node, at: (op, (_item(node, 0, at), _item(node, 1, at)), {})
    if overload == "Scalar" and name in ("addcmul", "addcdiv"):
        op = getattr(aten, name).default
        return lambda node, at: (
            op,
            tuple(_item(node, place, at) for place in range(3)),
            {"value": node.args[3] if len(node.args) > 3 else node.kwargs.get("value", 1)},
        )
    if overload == "Scalar" and name == "lerp":
        op = aten.lerp.Scalar
        return lambda node, at: (op, (_item(node, 0, at), _item(node, 1, at), node.args[2]), {})
    return None


def _is_foreach(node: fx.Node) -> bool:
    target = node.target
    return (
        isinstance(target, torch._ops.OpOverload)
        and target._schema.name.startswith("aten::_foreach_")
        and not target._schema.is_mutable
    )


def decompose_foreach(graph: fx.Graph) -> bool:
    """Replaces the operators that have a rule; whether there was any."""
    changed = False
    for node in [n for n in graph.nodes if _is_foreach(n)]:
        rule = _rule(node.target)
        users = list(node.users)
        if rule is None or not isinstance(node.args[0], (list, tuple)):
            continue
        if any(user.target is not operator.getitem for user in users):
            continue
        for user in users:
            op, args, kwargs = rule(node, user.args[1])
            with graph.inserting_before(node):
                made = graph.call_function(op, args, kwargs)
            made.meta.update(user.meta)
            user.replace_all_uses_with(made)
            graph.erase_node(user)
        graph.erase_node(node)
        changed = True
    return changed
