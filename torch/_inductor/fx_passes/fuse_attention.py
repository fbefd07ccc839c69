"""Attention written by hand, softmax(q @ k.T * scale + mask) @ v, becomes one call of
scaled_dot_product_attention, which never holds the scores of all pairs in memory.

The captured graph is looked at, before derivatives are traced, so one reader serves inference and
training: it walks back from the second product through what may stand between the parts (a scale,
what is added, conversions, a dropout that does nothing). Two things are left alone: a dropout that
draws, since its numbers would be others than those of eager code, and masks that may rule out a
whole row, for which eager code has NaN and the operator zero."""

from __future__ import annotations

import dataclasses
import operator

import torch
from torch import fx
from torch._dynamo.utils import counters
from torch.nn import functional as F

__all__ = ["fuse_attention"]

_FUNCTIONS: dict[object, str] = {
    torch.matmul: "matmul",
    torch.bmm: "matmul",
    operator.matmul: "matmul",
    torch.softmax: "softmax",
    F.softmax: "softmax",
    torch.div: "div",
    torch.true_divide: "div",
    operator.truediv: "div",
    torch.mul: "mul",
    operator.mul: "mul",
    torch.add: "add",
    operator.add: "add",
    F.dropout: "dropout",
    torch.dropout: "dropout",
    torch.transpose: "transpose",
    torch.permute: "permute",
    torch.clone: "clone",
}
_METHODS = {
    "matmul", "bmm", "softmax", "div", "mul", "add", "to", "float", "half", "type_as",
    "transpose", "permute", "clone", "contiguous",
}  # fmt: skip


def _kind(node: object) -> str | None:
    if not isinstance(node, fx.Node):
        return None
    if node.op == "call_method":
        name = "matmul" if node.target == "bmm" else node.target
        return name if name in _METHODS else None
    return _FUNCTIONS.get(node.target) if node.op == "call_function" else None


def _value(node: object) -> torch.Tensor | None:
    found = node.meta.get("example_value") if isinstance(node, fx.Node) else None
    return found if isinstance(found, torch.Tensor) else None


def _argument(node: fx.Node, place: int, *names: str) -> object:
    if len(node.args) > place:
        return node.args[place]
    return next((node.kwargs[name] for name in names if name in node.kwargs), None)


@dataclasses.dataclass
class _Parts:
    """What a call of scaled_dot_product_attention needs."""

    query: fx.Node
    key: fx.Node
    is_transposed: bool
    value: fx.Node
    scale: float
    added: fx.Node | None  # to the scores: bool


class _Reader:
    """Walks back from the second product of an attention."""

    def __init__(self, last: fx.Node) -> None:
        self.last = last
        self.scale = 1.0
        self.added: fx.Node | None = None

    def read(self) -> _Parts | None:
        """The parts, or None where the node ends something else."""
        weights, value = self.last.args[0], _argument(self.last, 1, "other", "mat2")
        softmax = self._through_copies(weights, of_weights=True)
        if _kind(softmax) != "softmax" or len(softmax.users) != 1:
            return None
        if _argument(softmax, 1, "dim") not in (-1, 3):
            return None
        scores = self._through_sum_and_scale(softmax.args[0])
        if _kind(scores) != "matmul" or len(scores.users) != 1:
            return None
        query, turned = scores.args[0], _argument(scores, 1, "other", "mat2")
        key, is_transposed = self._untransposed(turned)
        parts = _Parts(query, key, is_transposed, value, self.scale, self.added)
        return parts if self._fits(parts) else None

    def _through_copies(self, node: object, *, of_weights: bool) -> object:
        """What stands before conversions, copies and a dropout that does nothing."""
        while isinstance(node, fx.Node) and len(node.users) == 1:
            kind = _kind(node)
            if kind in ("to", "float", "half", "type_as"):
                value = _value(node)
                if value is None or not value.is_floating_point():
                    return node
            elif kind == "dropout" and of_weights:
                if not _does_nothing(node):
                    return node
            elif kind not in ("clone", "contiguous"):
                return node
            node = node.args[0]
        return node

    def _through_sum_and_scale(self, node: object) -> object:
        node = self._through_copies(node, of_weights=False)
        if _kind(node) == "add" and len(node.users) == 1 and "alpha" not in node.kwargs:
            self.added = _argument(node, 1, "other")
            node = node.args[0]
        node = self._through_copies(node, of_weights=False)
        while _kind(node) in ("div", "mul") and len(node.users) == 1:
            factor = _argument(node, 1, "other")
            if not isinstance(factor, (int, float)) or not factor or "rounding_mode" in node.kwargs:
                return None
            self.scale *= 1.0 / factor if _kind(node) == "div" else float(factor)
            node = self._through_copies(node.args[0], of_weights=False)
        return node

    def _untransposed(self, node: object) -> tuple[object, bool]:
        """The key and whether it has to be transposed to be one."""
        value = _value(node)
        numbers = [a for a in getattr(node, "args", ())[1:] if isinstance(a, int)]
        if value is not None and value.dim() == 4:
            if _kind(node) == "transpose" and sorted(n % 4 for n in numbers) == [2, 3]:
                return node.args[0], False
            if _kind(node) == "permute" and numbers == [0, 1, 3, 2]:
                return node.args[0], False
        return node, True

    def _fits(self, parts: _Parts) -> bool:
        values = [_value(n) for n in (parts.query, parts.key, parts.value, self.last)]
        if any(v is None or v.dim() != 4 or not v.is_floating_point() for v in values):
            return False
        if len({v.dtype for v in values}) != 1 or len({v.device for v in values}) != 1:
            return False
        if parts.added is None:
            return True
        added = _value(parts.added)
        return added is not None and added.dtype == torch.bool and added.dim() in (2, 4)


def _does_nothing(node: fx.Node) -> bool:
    chance = _argument(node, 1, "p")
    training = _argument(node, 2, "training", "train")
    default = node.target is F.dropout
    return chance == 0 or (training is False if training is not None else not default)


def _replace(graph: fx.Graph, last: fx.Node, parts: _Parts) -> None:
    with graph.inserting_before(last):
        key = parts.key
        if parts.is_transposed:
            key = graph.call_method("transpose", (key, -2, -1))
        added = parts.added
        if added is not None:
            added = graph.call_method("to", (added, _value(parts.query).dtype))
        found = graph.call_function(
            F.scaled_dot_product_attention,
            (parts.query, key, parts.value),
            {"attn_mask": added, "dropout_p": 0.0, "scale": parts.scale},
        )
        made = graph.call_method("contiguous", (found,))
    for node in (found, made):
        node.meta.update(last.meta)
    last.replace_all_uses_with(made)
    graph.erase_node(last)


def fuse_attention(gm: fx.GraphModule) -> int:
    """Replaces every attention of a captured graph and of the graphs inside of it; their number is
    added to counters["inductor"]["fuse_attention"]."""
    count = 0
    for child in gm.children():
        if isinstance(child, fx.GraphModule):
            count += fuse_attention(child)
    mine = 0
    products = [n for n in gm.graph.nodes if _kind(n) == "matmul" and len(n.args) == 2]
    if len(products) > 1:
        for node in reversed(products):
            parts = None if node._erased else _Reader(node).read()
            if parts is not None:
                _replace(gm.graph, node, parts)
                mine += 1
    if mine:
        gm.graph.eliminate_dead_code()
        gm.graph.lint()
        gm.recompile()
        counters["inductor"]["fuse_attention"] += mine
    return count + mine
