"""Cross entropy of scores that were widened from a half type. The kernel computes in float32 from
what it reads, so it may read the half type itself: the loss and gradient of the same numbers, with
rows summed in another order, and no copy of the scores in float32, which in a language model is the
largest tensor of all."""

from __future__ import annotations

import torch
from torch import fx

__all__ = ["read_half_scores"]

aten = torch.ops.aten
_VIEWS = (aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.alias.default)
_HALVES = (torch.float16, torch.bfloat16)


def read_half_scores(graph: fx.Graph) -> int:
    """Changes a traced graph in place; how many calls read another tensor now."""
    count = 0
    for node in graph.find_nodes(op="call_function", target=aten._cross_entropy_rows.default):
        if node.args[2] is not None:  # weights come in the dtype of the scores
            continue
        scores = _half_scores(graph, node, node.args[0])
        if scores is not None:
            node.args = (scores, *node.args[1:5], True)
            count += 1
    backward = aten._cross_entropy_rows_backward.default
    for node in graph.find_nodes(op="call_function", target=backward):
        rounded = _only_rounding(node)
        if rounded is None or node.args[3] is not None:
            continue
        scores = _half_scores(graph, node, node.args[1])
        if scores is None or _value(scores).dtype is not _value(rounded).dtype:
            continue
        node.args = (node.args[0], scores, *node.args[2:])
        _narrow(node, rounded)
        count += 1
    return count


def _value(node: object) -> torch.Tensor | None:
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    return value if isinstance(value, torch.Tensor) else None


def _converts(node: object, source: tuple[torch.dtype, ...], target: torch.dtype | None) -> bool:
    """Whether a node does nothing but convert from one of `source` to `target`, or to any half."""
    if not isinstance(node, fx.Node) or node.target is not aten._to_copy.default:
        return False
    given, made = _value(node.args[0]), _value(node)
    if given is None or made is None or given.device != made.device:
        return False
    if node.kwargs.get("memory_format", torch.preserve_format) is not torch.preserve_format:
        return False
    if node.kwargs.keys() - {"dtype", "device", "memory_format"}:
        return False
    fits = made.dtype is target if target is not None else made.dtype in _HALVES
    return fits and given.dtype in source


def _half_scores(graph: fx.Graph, user: fx.Node, scores: object) -> fx.Node | None:
    """What `scores` was widened from, in the same shape; None where it was not."""
    views = []
    while isinstance(scores, fx.Node) and scores.target in _VIEWS:
        views.append(scores)
        scores = scores.args[0]
    if not _converts(scores, _HALVES, torch.float32):
        return None
    found = scores.args[0]
    for view in reversed(views):
        with graph.inserting_before(user):
            made = graph.call_function(aten.reshape.default, (found, *view.args[1:]))
        made.meta.update(view.meta)
        with _value(view).fake_mode:
            made.meta["val"] = _value(found).reshape(_value(view).shape)
        found = made
    return found


def _only_rounding(node: fx.Node) -> fx.Node | None:
    """The conversion to a half type that alone reads the result of a node, behind views."""
    while len(node.users) == 1:
        node = next(iter(node.users))
        if _converts(node, (torch.float32,), None):
            return node
        if node.target not in _VIEWS:
            return None
    return None


def _narrow(node: fx.Node, rounded: fx.Node) -> None:
    """Gives a node, and the views between it and `rounded`, the dtype of that one, and leaves that
    one out."""
    dtype = rounded.meta["val"].dtype
    while node is not rounded:
        value = node.meta["val"]
        with value.fake_mode:
            node.meta["val"] = torch.empty_like(value, dtype=dtype)
        last, node = node, next(iter(node.users))
    rounded.replace_all_uses_with(last)
    rounded.graph.erase_node(rounded)
