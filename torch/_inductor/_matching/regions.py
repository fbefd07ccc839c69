"""Parts of a graph between which something is written. A match must lie within one, since values
read before and after a write may differ."""

from __future__ import annotations

import itertools
import operator

import torch
from torch import fx

__all__ = [
    "compute_mutation_region_ids",
    "get_mutation_region_id",
    "is_mutation_op",
    "is_start_of_fx_graph",
    "same_mutation_regions",
    "should_compute_mutation_region_ids",
]

_STATE_FUNCTIONS = (
    torch._C._set_grad_enabled,
    torch.manual_seed,
    torch.amp.autocast_mode._enter_autocast,
    torch.amp.autocast_mode._exit_autocast,
)


def is_mutation_op(node: fx.Node) -> bool:
    """Whether a node writes to an argument or changes the state that others run in."""
    if node.op == "call_method":
        return node.target.endswith("_") and not node.target.endswith("__")
    if node.op != "call_function":
        return False
    target = node.target
    if target in _STATE_FUNCTIONS or target is operator.setitem:
        return True
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.is_mutable
    if isinstance(target, torch._ops.OpOverloadPacket):
        first = getattr(target, target.overloads()[0], None)
        return first is not None and first._schema.is_mutable
    if node.kwargs.get("out") is not None:
        return True
    name = getattr(target, "__name__", "")
    return name.endswith("_") and not name.endswith("__")


def is_start_of_fx_graph(graph: fx.Graph, node: fx.Node) -> bool:
    """Whether it is the first node."""
    return node is next(iter(graph.nodes))


def should_compute_mutation_region_ids(graph: fx.Graph) -> bool:
    """Whether the nodes are not numbered yet."""
    return "mutation_region_id" not in next(iter(graph.nodes)).meta


def compute_mutation_region_ids(graph: fx.Graph) -> None:
    """Numbers the parts."""
    region = 0
    for node in graph.nodes:
        region += is_mutation_op(node)
        node.meta["mutation_region_id"] = region


def get_mutation_region_id(graph: fx.Graph, node: fx.Node) -> int:
    """The part a node lies in; a node that was added takes that of the nodes before it."""
    added = 0
    current = node
    while "mutation_region_id" not in current.meta and not is_start_of_fx_graph(graph, current):
        added += is_mutation_op(current)
        current = current.prev
    region = current.meta.get("mutation_region_id", 0)
    for node_ in _between(current, node):
        region += is_mutation_op(node_)
        node_.meta["mutation_region_id"] = region
    return region


def _between(start: fx.Node, end: fx.Node) -> list[fx.Node]:
    """The nodes behind the first up to the second."""
    if start is end:
        return []
    chain = itertools.takewhile(lambda n: n is not end, _following(start))
    return [*chain, end]


def _following(node: fx.Node):
    while True:
        node = node.next
        yield node


def same_mutation_regions(a: fx.Node, b: fx.Node) -> bool:
    """Whether nothing is written between two nodes."""
    return a.meta["mutation_region_id"] == b.meta["mutation_region_id"]
