"""Whether a node of a graph ends a pattern. Patterns are nested from the last operator back:
(relu, (bn, conv)) is relu of bn of conv."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.ao.quantization.utils import MatchAllNode
from torch.fx import Node
from torch.nn.utils.parametrize import type_before_parametrizations

__all__: list[str] = []

Modules = dict[str, nn.Module]


def _own_match(modules: Modules, node: Node, wanted: object) -> bool:
    if isinstance(wanted, type) and issubclass(wanted, nn.Module):
        if node.op != "call_module":
            return False
        return type_before_parametrizations(modules[str(node.target)]) is wanted
    if callable(wanted):
        if node.op != "call_function":
            return False
        if node.target is getattr and wanted is not getattr:
            return False
        return node.target is wanted or node.target == wanted
    if isinstance(wanted, str):
        shape = node.op == "call_function" and node.target is getattr and node.args[1] == wanted
        return shape or (node.op == "call_method" and node.target == wanted)
    return node.target == wanted


def _is_match(modules: Modules, node: object, pattern: object, max_uses: int | None = None) -> bool:
    """Whether a pattern ends at a node; inner nodes have no other users."""
    inner = max_uses is not None
    if isinstance(pattern, tuple):
        wanted, *inputs = pattern
    else:
        wanted, inputs = pattern, []
    if wanted is MatchAllNode:
        return True
    if not isinstance(node, Node) or (inner and len(node.users) > max_uses):
        return False
    if isinstance(wanted, Node):
        return node is wanted
    if not _own_match(modules, node, wanted):
        return False
    if not inputs:
        return True
    given = node.args
    if len(given) < len(inputs) or (len(inputs) > 1 and len(given) != len(inputs)):
        return False
    return all(
        _is_match(modules, arg, part, max_uses=1) for arg, part in zip(given, inputs, strict=False)
    )


def matched_nodes(node: Node, pattern: object) -> Iterator[tuple[Node, object]]:
    """The nodes of a match with the parts of the pattern they stand for, last first."""
    if isinstance(pattern, tuple):
        wanted, *inputs = pattern
        yield node, wanted
        for arg, part in zip(node.args, inputs, strict=False):
            yield from matched_nodes(arg, part)
    elif pattern is not MatchAllNode and isinstance(node, Node):
        yield node, pattern


def nested_nodes(node: object, pattern: object) -> object:
    """The match in the form of its pattern."""
    if not isinstance(pattern, tuple):
        return node
    _, *inputs = pattern
    rest = [nested_nodes(a, p) for a, p in zip(node.args, inputs, strict=False)]
    return (node, *rest)


def length(pattern: object) -> int:
    """How many operators a pattern has."""
    return sum(length(part) for part in pattern) if isinstance(pattern, tuple) else 1


def is_relu(node: object, modules: Modules) -> bool:
    """Whether a node is an activation that the products take in."""
    if not isinstance(node, Node):
        return False
    if node.op == "call_module":
        return type(modules.get(str(node.target))) is nn.ReLU
    if node.op == "call_method":
        return node.target in ("relu", "relu_")
    functions = (nn.functional.relu, torch.relu, nn.functional.relu_, torch.relu_)
    return node.op == "call_function" and node.target in functions
