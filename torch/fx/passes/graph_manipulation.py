"""Replacing targets, and sizes of values in bytes."""

from typing import Any, NamedTuple

import torch
from torch.fx._compatibility import compatibility
from torch.fx.graph import Graph
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node, Target, map_aggregate
from torch.fx.passes.shape_prop import ShapeProp

__all__ = [
    "get_size_of_all_nodes",
    "get_size_of_node",
    "get_tensor_meta",
    "replace_target_nodes_with",
    "size_bytes",
]


@compatibility(is_backward_compatible=False)
def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Target, new_op: str, new_target: Target
) -> None:
    """Makes every node with one op and target a node with another."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in fx_module.graph.nodes:
        copies[node] = made = graph.node_copy(node, copies.__getitem__)
        if (node.op, node.target) == (old_op, old_target):
            made.op, made.target = new_op, new_target
    fx_module.graph = graph


@compatibility(is_backward_compatible=False)
class size_bytes(NamedTuple):
    """Bytes of a value, and of the value with the parameters it needs."""

    output_size: int
    total_size: int


@compatibility(is_backward_compatible=False)
def get_size_of_all_nodes(fx_module: GraphModule, args: list[torch.Tensor] | None = None) -> None:
    """Notes node.size_bytes on every node; with args, shapes are found by running the module."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    computed = [node for node in fx_module.graph.nodes if node.op != "output"]
    for node, size in [(node, get_size_of_node(fx_module, node)) for node in computed]:
        node.size_bytes = size


@compatibility(is_backward_compatible=False)
def get_tensor_meta(node: Node) -> Any:
    """What ShapeProp noted."""
    meta = node.meta.get("tensor_meta")
    if not meta:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation "
            "has run."
        )
    return meta


def _bytes_of(meta: Any) -> int:
    total = 0

    def add(leaf: Any) -> Any:
        nonlocal total
        if hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
            total += leaf.shape.numel() * torch.empty((), dtype=leaf.dtype).element_size()
        return leaf

    # A TensorMetadata is a tuple itself, hence not map_aggregate over it.
    if hasattr(meta, "dtype"):
        add(meta)
    elif isinstance(meta, list | tuple):
        return sum(map(_bytes_of, meta))
    else:
        map_aggregate(meta, add)
    return total


@compatibility(is_backward_compatible=False)
def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The bytes of a node's value and of the parameters of the module it calls."""
    total = 0
    if node.op == "call_module":
        module = dict(fx_module.named_modules())[node.target]
        owned = [p for _, p in module.named_parameters()] + [b for _, b in module.named_buffers()]
        total += sum(t.numel() * t.element_size() for t in owned)
    output = _bytes_of(get_tensor_meta(node))
    return size_bytes(output, total + output)
