"""Grouping nodes by the module or function of the user's program they come from, as a tracer
noted it in node.meta."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch.fx._compatibility import compatibility
from torch.fx.graph import Graph
from torch.fx.node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]

logger = logging.getLogger(__name__)


@compatibility(is_backward_compatible=False)
@dataclass
class SourcePartition:
    """The nodes that came from one call in the program."""

    nodes: list[Node]
    source: Any
    # Values that flow in, values that flow out, attributes that are read.
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def _origin(node: Node, wanted: list[Any]) -> tuple[str, Any] | None:
    """(name of the call, what was called) of a node, where it is wanted; the innermost call counts.
    Where a tracer notes the function by its name and the modules around it, either will do."""
    stack = node.meta.get("source_fn_stack")
    if stack:
        return stack[-1] if stack[-1][1] in wanted else None
    if "torch_fn" not in node.meta:
        return None
    name, kind = node.meta["torch_fn"]
    function = kind.rpartition(".")[2]
    if function in wanted:
        return name, function
    modules = node.meta.get("nn_module_stack")
    if not modules:
        return None
    path, last = list(modules.items())[-1]
    for source in wanted:
        if isinstance(source, type) and last[1] in (source, _qualified(source)):
            return path, source
    return None


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


@compatibility(is_backward_compatible=False)
def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """{source: partitions} for the modules and functions wanted; with a filter, partitions all of
    whose nodes it accepts."""
    groups: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        origin = _origin(node, wanted_sources)
        if origin is None:
            continue
        name, source = origin
        groups.setdefault(source, {}).setdefault(name, []).append(node)
    found = {
        source: [_partition(nodes, source) for nodes in calls.values()]
        for source, calls in groups.items()
    }
    if filter_fn is None:
        return found
    kept = {
        source: [p for p in partitions if all(map(filter_fn, p.nodes))]
        for source, partitions in found.items()
    }
    return {source: partitions for source, partitions in kept.items() if partitions}


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    inputs: dict[Node, None] = {}
    params: dict[Node, None] = {}
    for node in nodes:
        for used in node.all_input_nodes:
            if used not in inside:
                (params if used.op == "get_attr" else inputs).setdefault(used)
    params.update((node, None) for node in nodes if node.op == "get_attr")
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    return SourcePartition(nodes, source, list(inputs), outputs, list(params))


@compatibility(is_backward_compatible=False)
def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Whether the second takes a value that the first makes."""
    made = set(subgraph1.nodes)
    return any(used in made for node in subgraph2.nodes for used in node.all_input_nodes)
