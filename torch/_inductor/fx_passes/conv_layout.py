"""Convolutions on a GPU with the channels innermost. The kernels of convolutions read and write
that order at full speed and rearrange tensors of the other one before and after each call; a
network of many convolutions is therefore rearranged once, where it begins and ends. Results have
the strides that they have without this pass."""

from __future__ import annotations

import operator

import torch
import torch.nn.functional as F
from torch import fx
from torch._inductor import config

__all__ = ["channels_last_convolutions"]

# With fewer convolutions than this, rearranging costs more than it gives.
_FEWEST = 4
# Channels that kernels read in whole packs.
_PACK = 4
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_CONVOLUTIONS = (torch.conv2d, F.conv2d)

# What takes its operands in any order and gives results of theirs.
_ANY_ORDER = frozenset(
    {
        *_CONVOLUTIONS,
        *(F.batch_norm, F.dropout, F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d),
        *(F.relu, F.relu6, F.leaky_relu, F.elu, F.silu, F.gelu, F.hardswish, F.hardsigmoid),
        *(torch.relu, torch.sigmoid, torch.tanh, torch.add, torch.sub, torch.mul, torch.cat),
        *(operator.add, operator.sub, operator.mul, operator.iadd, operator.imul),
    }
)
_ANY_ORDER_METHODS = frozenset("add sub mul relu sigmoid tanh size dim numel".split())


def _value(node: object) -> torch.Tensor | None:
    found = node.meta.get("example_value") if isinstance(node, fx.Node) else None
    return found if isinstance(found, torch.Tensor) else None


def _is_fit(node: fx.Node) -> bool:
    """Whether a convolution gains: dense, of a type and sizes that kernels know."""
    x, weight = _value(node.args[0]), _value(node.args[1]) if len(node.args) > 1 else None
    groups = node.args[6] if len(node.args) > 6 else node.kwargs.get("groups", 1)
    if x is None or weight is None or groups != 1:
        return False
    static = all(isinstance(n, int) for n in (*x.shape, *weight.shape))
    return static and x.is_cuda and x.dim() == 4 and x.dtype in _DTYPES and x.is_contiguous()


def _gains(graph: fx.Graph) -> list[fx.Node]:
    """The convolutions of a graph that is worth it, else none."""
    nodes = [n for n in graph.nodes if n.op == "call_function" and n.target in _CONVOLUTIONS]
    if len(nodes) < _FEWEST or not all(map(_is_fit, nodes)):
        return []
    narrow = sum(any(n % _PACK for n in _value(node.args[1]).shape[:2]) for node in nodes)
    return nodes if narrow <= 1 else []  # the first takes the colours of a picture


class _Rearranged:
    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.last: set[fx.Node] = set()  # nodes whose value may have the channels innermost

    def run(self) -> None:
        for node in list(self.graph.nodes):
            if node.op == "output":
                self._restore(node)
            elif node.op in ("call_function", "call_method"):
                self._visit(node)

    def _visit(self, node: fx.Node) -> None:
        if node.op == "call_function" and node.target in _CONVOLUTIONS:
            with self.graph.inserting_before(node):
                x, weight = (self._ordered(n, torch.channels_last) for n in node.args[:2])
            node.args = (x, weight, *node.args[2:])
            self.last.add(node)
        elif not self.last.isdisjoint(node.all_input_nodes):
            name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
            known = _ANY_ORDER_METHODS if node.op == "call_method" else _ANY_ORDER
            if node.target in known or name == "setitem" or name.endswith("_"):
                self.last.add(node)
            else:
                self._restore(node)

    def _restore(self, node: fx.Node) -> None:
        node.args = fx.map_arg(node.args, lambda n: self._restored(n, node))
        node.kwargs = fx.map_arg(node.kwargs, lambda n: self._restored(n, node))

    def _restored(self, operand: fx.Node, user: fx.Node) -> fx.Node:
        """An operand as somebody expects it who saw it without this pass."""
        value = _value(operand)
        if operand not in self.last or value is None or not value.is_contiguous():
            return operand
        with self.graph.inserting_before(user):
            return self._ordered(operand, torch.contiguous_format)

    def _ordered(self, operand: fx.Node, order: torch.memory_format) -> fx.Node:
        return self.graph.call_method("contiguous", (operand,), {"memory_format": order})


def channels_last_convolutions(gm: fx.GraphModule) -> bool:
    """Rearranges a captured graph that gains from it; whether it did."""
    if not config.layout_optimization or not _gains(gm.graph):
        return False
    _Rearranged(gm.graph).run()
    gm.graph.lint()
    gm.recompile()
    return True
