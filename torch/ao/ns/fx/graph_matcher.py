"""Pairs the operators of two graphs of one model: float, observed, trained or quantized. Both are
walked from their outputs back, passing over observers, conversions and what only moves values; the
operators met at the same step must be forms of one another."""

from __future__ import annotations

import collections
from collections.abc import Iterator

from torch.ao.ns.fx import pattern_utils
from torch.ao.ns.fx.mappings import (
    Families,
    get_base_name_for_op,
    get_base_name_to_sets_of_related_ops,
    get_unmatchable_types_map,
)
from torch.ao.ns.fx.ns_types import NSNodeTargetType, NSSubgraph
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg


class GraphMatchingException(Exception):
    """The graphs are not two forms of one model."""


def _inputs(node: Node) -> list[Node]:
    found: list[Node] = []
    map_arg((node.args, node.kwargs), lambda n: found.append(n) or n)
    return found


class _Walk:
    """The operators of one graph, from its outputs back."""

    def __init__(self, gm: GraphModule, families: Families, passed: set[NSNodeTargetType]) -> None:
        self.gm, self.passed = gm, passed
        self.known = set().union(*families.values()) if families else set()
        self.chains = list(pattern_utils.chains())
        self.seen: set[Node] = set()

    def op(self, node: Node) -> NSNodeTargetType | None:
        return pattern_utils.op_of(node, self.gm)

    def counts(self, node: Node) -> bool:
        op = self.op(node)
        return op is not None and op not in self.passed and op in self.known

    def subgraph(self, node: Node) -> tuple[NSSubgraph, Node] | None:
        """The operator that ends at a node, with its observer, and its first node."""
        last = node
        if pattern_utils.is_observer(node, self.gm) and isinstance(node.args[0], Node):
            last = node.args[0]
        if not self.counts(last) or last in self.seen:
            return None
        for chain in self.chains:
            nodes = self._chain(last, chain)
            if nodes is not None:
                self.seen.update(nodes)
                return NSSubgraph(nodes[-1], node, nodes[-1]), nodes[-1]
        self.seen.add(last)
        return NSSubgraph(last, node, last), last

    def _chain(self, node: Node, chain: tuple[set[NSNodeTargetType], ...]) -> list[Node] | None:
        nodes: list[Node] = []
        for allowed in chain:
            if not isinstance(node, Node) or self.op(node) not in allowed:
                return None
            if nodes and len(node.users) > 1:
                return None
            nodes.append(node)
            node = next(iter(_inputs(node)), None)
        return nodes

    def __iter__(self) -> Iterator[NSSubgraph]:
        stack = [n for n in self.gm.graph.nodes if n.op == "output"]
        visited: set[Node] = set()
        while stack:
            node = stack.pop()
            if node in visited:
                continue
            visited.add(node)
            found = self.subgraph(node)
            if found is None:
                stack += _inputs(node)
                continue
            yield found[0]
            stack += _inputs(found[1])


def get_matching_subgraph_pairs(
    gm_a: GraphModule,
    gm_b: GraphModule,
    base_name_to_sets_of_related_ops: Families | None = None,
    unmatchable_types_map: dict[str, set[NSNodeTargetType]] | None = None,
) -> dict[str, tuple[NSSubgraph, NSSubgraph]]:
    """The operators of two graphs that stand for each other, from the inputs on, by names that are
    made of the family and of the number from the end. GraphMatchingException where the graphs
    differ in what they compute."""
    families = base_name_to_sets_of_related_ops
    families = get_base_name_to_sets_of_related_ops() if families is None else families
    passed_over = unmatchable_types_map or get_unmatchable_types_map()
    passed = set().union(*passed_over.values())
    walks = [_Walk(gm, families, passed) for gm in (gm_a, gm_b)]
    lists = [list(walk) for walk in walks]
    counts: dict[str, int] = collections.Counter()
    pairs: dict[str, tuple[NSSubgraph, NSSubgraph]] = {}
    for a, b in zip(*lists, strict=False):
        ops = [walk.op(part.base_op_node) for walk, part in zip(walks, (a, b), strict=True)]
        names = [get_base_name_for_op(families, op) for op in ops]
        if names[0] != names[1]:
            raise GraphMatchingException(
                f"{a.base_op_node.format_node()} ({ops[0]}) of the first graph and "
                f"{b.base_op_node.format_node()} ({ops[1]}) of the second are not related: see "
                "get_base_name_to_sets_of_related_ops for the operators that are"
            )
        pairs[f"base_op_{names[0]}_{counts[names[0]]}"] = (a, b)
        counts[names[0]] += 1
    if len(lists[0]) != len(lists[1]):
        raise GraphMatchingException(
            f"the first graph has {len(lists[0])} operators to match, the second {len(lists[1])}"
        )
    return dict(reversed(pairs.items()))
