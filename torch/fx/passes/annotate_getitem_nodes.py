"""Types of the items of a node whose type says what it holds."""

import operator
import typing
from typing import Any

import torch


def annotate_getitem_nodes(graph: torch.fx.Graph) -> None:
    """Gives `x[i]` a type where that of x is a tuple, list, named tuple or tensor type."""
    for node in graph.find_nodes(op="call_function", target=operator.getitem):
        holder, index = node.args
        if isinstance(holder, torch.fx.Node) and holder.type is not None:
            kind = _item_type(holder.type, index)
            if kind is not None:
                node.type = kind


def _item_type(kind: Any, index: Any) -> Any:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and args and isinstance(index, int):
        if len(args) == 2 and args[1] is ...:
            return args[0]
        return args[index] if -len(args) <= index < len(args) else None
    if origin is list and args:
        return args[0]
    if isinstance(kind, type) and hasattr(kind, "_fields") and isinstance(index, int):
        hints = typing.get_type_hints(kind)
        names = kind._fields
        return hints.get(names[index]) if -len(names) <= index < len(names) else None
    return None
