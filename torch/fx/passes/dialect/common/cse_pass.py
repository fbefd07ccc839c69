"""Common subexpressions: a call with the same target and arguments as an earlier one is replaced
by it."""

from collections.abc import Collection
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx._compatibility import compatibility
from torch.fx.passes.infra.pass_base import PassBase, PassResult
from torch.utils._pytree import tree_flatten, tree_leaves

__all__ = ["CSEPass", "get_CSE_banned_ops", "owner_of_memory", "written_memory"]

_RANDOM = (
    "dropout _fused_dropout _standard_gamma bernoulli multinomial native_dropout normal poisson "
    "binomial rrelu rand_like rand randint randn randperm"
).split()
_IN_PLACE = (
    "add_ sub_ mul_ div_ pow_ lerp_ relu_ sigmoid_ tanh_ clamp_ clamp_min_ clamp_max_ fill_ zero_ "
    "copy_ masked_fill_ index_fill_ index_put_ scatter_ scatter_add_ addcmul_ addcdiv_ bernoulli_ "
    "normal_ uniform_ exponential_ random_ cauchy_ log_normal_ geometric_ set_ resize_"
).split()


@compatibility(is_backward_compatible=False)
def get_CSE_banned_ops() -> set:
    """Operators whose calls are never the same: those that draw random numbers or write."""
    return _present(_RANDOM) | _present(_IN_PLACE)


def _present(names: list[str]) -> set:
    """Those of the operators that exist by now. One that is defined when it is first asked for is
    in no graph before, and asking would define all of its kind."""
    have = (name for name in names if torch._C._get_overload_names(f"aten::{name}"))
    return {getattr(torch.ops.aten, name) for name in have}


def __getattr__(name: str) -> set:
    if name == "rand_ops":
        return _present(_RANDOM)
    if name == "inplace_ops":
        return _present(_IN_PLACE)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def _draws_or_writes(target: Any) -> bool:
    if not isinstance(target, torch._ops.OpOverload):
        return False
    return torch.Tag.nondeterministic_seeded in target.tags or target._schema.is_mutable


def _shows_its_argument(target: Any) -> bool:
    if not isinstance(target, torch._ops.OpOverload):
        return False
    return target.is_view or target is torch.ops.aten._unsafe_view.default


def owner_of_memory(node: Node) -> Node:
    """The node that made the memory which a value lies in: views are followed to their base."""
    while node.args and isinstance(node.args[0], Node) and _shows_its_argument(node.target):
        node = node.args[0]
    return node


def written_memory(graph: Graph) -> set[Node]:
    """The nodes whose memory an operator of the graph writes: calling them again would give what
    was there before."""
    found: set[Node] = set()
    for node in graph.nodes:
        target = node.target
        if not isinstance(target, torch._ops.OpOverload) or not target._schema.is_mutable:
            continue
        for place, argument in enumerate(target._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            given = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
            found.update(owner_of_memory(x) for x in tree_leaves(given) if isinstance(x, Node))
    return found


@compatibility(is_backward_compatible=False)
class CSEPass(PassBase):
    """Shares calls with equal targets and arguments, except of `banned_ops`, of operators that draw
    random numbers or write, and of those whose memory is written. Of the nodes in `apart` no two
    become one."""

    def __init__(self, banned_ops: set | None = None, apart: Collection[Node] = ()) -> None:
        self.banned_ops = banned_ops or set()
        self.apart = frozenset(apart)
        super().__init__()

    def _is_banned(self, node: Node) -> bool:
        target = node.target
        packet = getattr(target, "overloadpacket", target)
        return (
            node.op in ("placeholder", "output", "get_attr")
            or target in self.banned_ops
            or packet in self.banned_ops
            or _draws_or_writes(target)
        )

    def call(self, graph_module: GraphModule) -> PassResult:
        """A module with a graph in which each expression is computed once."""
        graph = Graph()
        copies: dict[Node, Node] = {}
        known: dict[Any, Node] = {}
        taken: set[Node] = set()  # copies of nodes that are to stay apart
        written = written_memory(graph_module.graph)
        modified = False
        if graph_module.graph.output_node().args[0] is None:
            return PassResult(graph_module, modified)
        for node in graph_module.graph.nodes:
            banned = node in written or self._is_banned(node)
            key = None if banned else _expression(node, copies)
            made = None if key is None else known.get(key)
            if made is None or (node in self.apart and made in taken):
                made = graph.node_copy(node, copies.__getitem__)
            else:
                modified = True
            copies[node] = made
            if node in self.apart:
                taken.add(made)
            if key is not None:
                known[key] = made
        return PassResult(GraphModule(graph_module, graph), modified)


def _expression(node: Node, copies: dict[Node, Node]) -> Any:
    """What a node computes, as a key; None where an argument has no hash."""
    leaves, spec = tree_flatten((node.args, node.kwargs))
    # 1 and 1.0 and True are equal, and not the same.
    parts = tuple((type(x), copies[x] if isinstance(x, Node) else x) for x in leaves)
    key = (node.op, node.target, parts, str(spec))
    try:
        hash(key)
    except TypeError:
        return None
    return key
