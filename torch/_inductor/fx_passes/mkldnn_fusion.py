"""Activations as patterns over the result of a product: what their decompositions leave of them.
Rewrites of quantized graphs match them behind a product to fuse both."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx
from torch._inductor.pattern_matcher import CallFunction, KeywordArg

aten = torch.ops.aten


def _call(name: str, *args: Any) -> CallFunction:
    """A call of any overload of an operator on numbers or tensors."""
    return CallFunction(getattr(aten, name), *args)


def _gelu_fusion_1(computation_call: Any) -> CallFunction:
    """x / 2 * (1 + erf(x / sqrt(2)))."""
    x = computation_call
    inner = _call("erf", _call("mul", x, math.sqrt(0.5)))
    return _call("mul", _call("mul", x, 0.5), _call("add", inner, 1))


def _gelu_fusion_2(computation_call: Any) -> CallFunction:
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))."""
    x = computation_call
    cube = _call("mul", _call("mul", x, x), x)
    argument = _call("add", x, _call("mul", cube, 0.044715))
    inner = _call("tanh", _call("mul", argument, math.sqrt(2 / math.pi)))
    return _call("mul", _call("mul", x, 0.5), _call("add", inner, 1))


def _hardswish_fusion(computation_call: Any) -> CallFunction:
    """x * clamp(x + 3, 0, 6) / 6."""
    x = computation_call
    gate = _call("clamp_max", _call("clamp_min", _call("add", x, 3), 0), 6)
    return _call("div", _call("mul", x, gate), 6)


def _hardtanh_fusion(computation_call: Any) -> CallFunction:
    """clamp(x, min_value, max_value)."""
    low = _call("clamp_min", computation_call, KeywordArg("min_value"))
    return _call("clamp_max", low, KeywordArg("max_value"))


def _silu_fusion(computation_call: Any) -> CallFunction:
    """x / (1 + exp(-x))."""
    x = computation_call
    return _call("div", x, _call("add", _call("exp", _call("neg", x)), 1))


def _get_remaining_users(extra_input_node: fx.Node, compute_node: fx.Node) -> list[fx.Node]:
    """The users of a node that do not come before another one, that other one left out."""
    order = {node: i for i, node in enumerate(compute_node.graph.nodes)}
    return [
        user
        for user in extra_input_node.users
        if user is not compute_node and order[user] > order[compute_node]
    ]
