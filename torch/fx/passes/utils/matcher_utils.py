"""Finding a pattern in a graph. A pattern is a small graph whose placeholders stand for
anything; it is matched backwards from its results, which are tried against every node of the
graph in turn."""

import copy
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx._compatibility import compatibility
from torch.fx.graph import Graph
from torch.fx.node import Node
from torch.utils._pytree import tree_flatten

__all__ = ["InternalMatch", "SubgraphMatcher"]

logger = logging.getLogger(__name__)


@compatibility(is_backward_compatible=False)
@dataclass
class InternalMatch:
    """One place where the pattern occurs."""

    anchors: list[Node]  # results of the pattern
    nodes_map: dict[Node, Any] = field(default_factory=dict)  # of the pattern -> of the graph
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> "InternalMatch":
        return InternalMatch(
            list(self.anchors),
            dict(self.nodes_map),
            list(self.placeholder_nodes),
            list(self.returning_nodes),
            dict(self.name_node_map),
        )


@compatibility(is_backward_compatible=False)
class SubgraphMatcher:
    """Finds a pattern. With match_output the pattern's output must be the graph's, with
    match_placeholder its inputs must be inputs of the graph; ignore_literals lets any number stand
    for any other."""

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        for node in pattern.nodes:
            if node.op != "output" and not node.is_impure() and not node.users:
                raise AssertionError(
                    "SubgraphMatcher cannot be initialized with an pattern with dead code"
                )
        output = pattern.output_node()
        self.pattern_placeholder_nodes = pattern.find_nodes(op="placeholder")
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        if match_output:
            self.pattern_anchors = [output]
        else:
            # A result that another result is computed from is reached from that one.
            alone = [n for n in self.pattern_returning_nodes if len(n.users) == 1]
            self.pattern_anchors = alone or self.pattern_returning_nodes

    # ---- comparing
    def _attributes_match(self, pn: Node, gn: Node) -> bool:
        values = [_attribute(n) for n in (pn, gn)]
        if all(isinstance(v, torch.Tensor) for v in values):
            return True
        return type(values[0]) is type(values[1])

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        """Whether a node of the graph may stand for one of the pattern, arguments aside."""
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return self._attributes_match(pn, gn)
        return pn.target == gn.target

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        if isinstance(pn, Node):
            if pn.op != "placeholder" or self.match_placeholder:
                return False
            if pn in match.nodes_map:
                return match.nodes_map[pn] == gn
            match.nodes_map[pn] = gn
            return True
        if isinstance(gn, Node):
            return False
        if self.ignore_literals and isinstance(pn, int | float) and isinstance(gn, int | float):
            return True
        return type(pn) is type(gn) and pn == gn

    def _match_arg(self, pa: Any, ga: Any, match: InternalMatch) -> bool:
        if isinstance(pa, Node) and isinstance(ga, Node):
            return self._match_nodes(pa, ga, match)
        if isinstance(pa, list | tuple) and isinstance(ga, list | tuple):
            return len(pa) == len(ga) and all(
                self._match_arg(p, g, match) for p, g in zip(pa, ga, strict=True)
            )
        return self._match_literals(pa, ga, match)

    def _match_nodes(
        self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = ""
    ) -> bool:
        """Matches two nodes and what they are computed from, noting pairs in `match`."""
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if gn in match.nodes_map.values() and pn.op != "placeholder":
            return False
        if not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        before = dict(match.nodes_map)
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        pairs = _aligned_arguments(pn, gn)
        if pairs is not None and all(self._match_arg(p, g, match) for p, g in pairs):
            return True
        match.nodes_map = before
        return False

    # ---- searching
    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether values inside the match are used by nothing outside; results may be."""
        inside = {gn: pn for pn, gn in nodes_map.items() if isinstance(gn, Node)}
        for gn, pn in inside.items():
            if pn.op == "placeholder" or pn in self.pattern_returning_nodes:
                continue
            if any(user not in inside for user in gn.users):
                return False
        return True

    def _inputs_come_first(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether no input of the match is computed from its inside: as one call it would wait for
        itself."""
        inside, inputs = set(), set()
        for pn, gn in nodes_map.items():
            if isinstance(gn, Node):
                (inputs if pn.op == "placeholder" else inside).add(gn)
        inputs -= inside
        if not inputs or not inside:
            return True
        last = max(inputs)
        seen: set[Node] = set()
        todo = [user for node in inside for user in node.users if user not in inside]
        while todo:
            node = todo.pop()
            if node in inputs:
                return False
            if node not in seen and node < last:
                seen.add(node)
                todo += node.users
        return True

    def _anchored(
        self, graph: Graph, match: InternalMatch, depth: int, node_name_match: str
    ) -> Iterator[InternalMatch]:
        """Every way to match the anchors from number `depth` on."""
        if depth == len(self.pattern_anchors):
            yield match
            return
        anchor = self.pattern_anchors[depth]
        for node in graph.nodes:
            if not self._nodes_are_equal(anchor, node, node_name_match):
                continue
            attempt = copy.copy(match)
            if self._match_nodes(anchor, node, attempt, node_name_match):
                attempt.anchors.append(node)
                yield from self._anchored(graph, attempt, depth + 1, node_name_match)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places where the pattern occurs, in the order of the graph. A node belongs to one of
        them only, unless overlaps were allowed."""
        found: list[InternalMatch] = []
        taken: set[Node] = set()
        for match in self._anchored(graph, InternalMatch([]), 0, node_name_match):
            if not self._is_contained(match.nodes_map):
                continue
            if not self._inputs_come_first(match.nodes_map):
                continue
            mine = [
                gn
                for pn, gn in match.nodes_map.items()
                if isinstance(gn, Node) and pn.op not in ("placeholder", "output", "get_attr")
            ]
            if self.remove_overlapping_matches:
                if any(node in taken for node in mine):
                    continue
                taken.update(mine)
            match.placeholder_nodes = [
                match.nodes_map[pn]
                for pn in self.pattern_placeholder_nodes
                if pn in match.nodes_map
            ]
            match.returning_nodes = [match.nodes_map[pn] for pn in self.pattern_returning_nodes]
            found.append(match)
        return found


def _attribute(node: Node) -> Any:
    value: Any = node.graph.owning_module
    for part in node.target.split("."):
        value = getattr(value, part)
    return value


def _aligned_arguments(pn: Node, gn: Node) -> list[tuple[Any, Any]] | None:
    """Pairs of arguments that must match; None where the calls have different ones. Operators are
    compared by their schema, with defaults."""
    schema = getattr(pn.target, "_schema", None) if pn.op == "call_function" else None
    if schema is not None:
        sides = [_by_schema(schema, node) for node in (pn, gn)]
        return [(sides[0][name], sides[1][name]) for name in sides[0]]
    if list(pn.kwargs) != list(gn.kwargs) and set(pn.kwargs) != set(gn.kwargs):
        return None
    left, spec = tree_flatten(pn.args)
    right, other = tree_flatten(gn.args)
    if len(left) != len(right) and len(pn.args) != len(gn.args):
        return None
    if spec != other:
        if len(pn.args) != len(gn.args):
            return None
        pairs = list(zip(pn.args, gn.args, strict=True))
    else:
        pairs = list(zip(left, right, strict=True))
    return pairs + [(pn.kwargs[k], gn.kwargs[k]) for k in pn.kwargs]


def _by_schema(schema: Any, node: Node) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for i, argument in enumerate(schema.arguments):
        if not argument.kwarg_only and i < len(node.args):
            out[argument.name] = node.args[i]
        else:
            out[argument.name] = node.kwargs.get(argument.name, argument.default_value)
    return out
