"""Small tools for graphs of operators: shared expressions, targets without overloads, the inputs
and outputs."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import fx
from torch.fx.passes.dialect.common.cse_pass import (
    CSEPass,
    get_CSE_banned_ops,
    owner_of_memory,
)
from torch.utils._pytree import tree_leaves

__all__ = [
    "fx_graph_cse",
    "get_aten_target",
    "get_outputs",
    "get_placeholders",
    "strip_overloads",
]


def get_aten_target(node: fx.Node) -> object:
    """The name of the operator that a node calls, without the overload."""
    return getattr(node.target, "overloadpacket", node.target)


def fx_graph_cse(fx_g: fx.Graph, returned: Iterable[object] = ()) -> fx.Graph:
    """A copy of the graph in which calls with equal targets and arguments are made once. Random
    numbers are drawn and tensors written as often as before. Values that are `returned` keep memory
    of their own: a program may write to one and go on with the other."""
    owner = fx_g.owning_module
    shared = fx.GraphModule({} if owner is None else owner, fx_g)
    apart = [owner_of_memory(n) for n in returned if isinstance(n, fx.Node)]
    return CSEPass(get_CSE_banned_ops(), apart)(shared).graph_module.graph


def strip_overloads(gm: fx.GraphModule) -> None:
    """Replaces overloads by their packets, in place: TorchScript finds overloads itself."""
    for node in gm.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload):
            node.target = node.target.overloadpacket
    gm.recompile()


def get_placeholders(graph: fx.Graph) -> list[fx.Node]:
    """The inputs."""
    return graph.find_nodes(op="placeholder")


def get_outputs(graph: fx.Graph) -> list[object]:
    """What the graph returns, flat."""
    return tree_leaves(graph.output_node().args[0], is_leaf=lambda x: isinstance(x, fx.Node))
