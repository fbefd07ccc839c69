"""What makes a graph well formed."""

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch.fx.graph import Graph
    from torch.fx.node import Node


def lint_graph(graph: "Graph") -> None:
    """Raises RuntimeError or ValueError for the first fault of a graph."""
    seen: dict[Node, None] = {}
    names: set[str] = set()
    for node in graph.nodes:
        _check_fields(graph, node)
        for used in node._input_nodes:
            _check_use(graph, node, used, seen)
        if node.name in names:
            raise RuntimeError(f"Node redefined name {node.name}!")
        seen[node] = None
        names.add(node.name)
    if graph.owning_module is not None:
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                _check_path(graph.owning_module, node)


def _check_fields(graph: "Graph", node: "Node") -> None:
    from torch.fx.node import _legal_ops

    if node.op not in _legal_ops or node.op == "root":
        raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
    if node.graph is not graph:
        raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
    if node.op == "call_function":
        if not callable(node.target):
            raise ValueError(
                f"Node {node} target {node.target} has type {torch.typename(node.target)} but a "
                "Callable is expected"
            )
    elif not isinstance(node.target, str):
        raise ValueError(
            f"Node {node} target {node.target} has type {torch.typename(node.target)} but a str "
            "is expected"
        )


def _check_use(graph: "Graph", node: "Node", used: "Node", seen: dict) -> None:
    if used.graph is not graph:
        raise RuntimeError(
            f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an "
            "argument! If you are copying nodes from another graph, make sure to use "
            "``arg_transform`` on node_copy() to remap values"
        )
    if used not in seen:
        raise RuntimeError(
            f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check "
            f"that Nodes in the graph are topologically ordered\n{graph}"
        )
    if node not in used.users:
        raise RuntimeError(
            f"Node '{node}' uses '{used}', but is not among its users: args were changed in place"
        )


def _check_path(root: torch.nn.Module, node: "Node") -> None:
    """Follows a dotted target; the last part must be what the op asks for."""
    value: object = root
    parts = node.target.split(".")
    for i, part in enumerate(parts):
        found = getattr(value, part, None) if hasattr(value, part) else _MISSING
        if found is _MISSING:
            raise RuntimeError(
                f"Node {node} target {node.target} references nonexistent attribute "
                f"{part} of {'.'.join(parts[:i])}"
            )
        value = found
    if node.op == "call_module" and not isinstance(value, torch.nn.Module):
        raise RuntimeError(
            f"Node {node} target {node.target} {node.target} of {'.'.join(parts[:-1])} does not "
            "reference an nn.Module"
        )


_MISSING = object()
