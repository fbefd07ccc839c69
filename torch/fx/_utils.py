"""Small helpers of passes that go between graphs and nodes."""

from typing import Any

import torch
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node

LOGGER_NAME = "torch.fx"


def lazy_format_graph_code(
    name: str, gm: GraphModule, maybe_id: int | None = None, **kwargs: Any
) -> "_LazyText":
    """The readable code of a module under a title, made when it is printed."""
    title = name if maybe_id is None else f"{name} {maybe_id}"
    return _LazyText(
        lambda: f"===== {title} =====\n {gm.print_readable(print_output=False, **kwargs)}\n"
    )


class _LazyText:
    """A text made when it is needed; what loggers are given."""

    def __init__(self, make: Any) -> None:
        self._make = make

    def __str__(self) -> str:
        return self._make()


def first_call_function_nn_module_stack(graph: torch.fx.Graph) -> dict | None:
    """The module stack of the first call of a function that has one."""
    for node in graph.nodes:
        if node.op == "call_function" and "nn_module_stack" in node.meta:
            return node.meta["nn_module_stack"]
    return None


def get_node_context(node: Node, num_nodes: int = 2) -> str:
    """The lines of a node and of those before it."""
    lines: list[str] = []
    current = node
    while current.op != "root" and len(lines) <= num_nodes:
        lines.insert(0, str(current.format_node()))
        current = current.prev
    return "\n".join(lines)
