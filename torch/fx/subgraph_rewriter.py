"""Replacing every occurrence of a pattern in a graph by something else."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.fx._compatibility import compatibility
from torch.fx._symbolic_trace import symbolic_trace
from torch.fx.graph import Graph
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node

if TYPE_CHECKING:
    from torch.fx.passes.utils.matcher_utils import InternalMatch

__all__ = [
    "Match",
    "ReplacedPatterns",
    "replace_pattern",
    "replace_pattern_with_filters",
]


@compatibility(is_backward_compatible=True)
class Match(NamedTuple):
    """An occurrence that was replaced."""

    anchor: Node  # the last node of the pattern in the graph
    nodes_map: dict[Node, Node]  # of the pattern -> of the graph


@compatibility(is_backward_compatible=False)
@dataclass
class ReplacedPatterns:
    """An occurrence that was replaced, with the nodes that came in its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


Pattern = Callable | Graph | GraphModule


@compatibility(is_backward_compatible=True)
def replace_pattern(
    gm: GraphModule, pattern: Callable | GraphModule, replacement: Callable | GraphModule
) -> list[Match]:
    """Replaces all occurrences of `pattern`, a function or graph module, by `replacement`, which
    takes the same inputs and gives the same number of results. Occurrences do not overlap."""
    done = _Rewriter(gm, pattern, replacement).run()
    return [Match(anchor=m.anchor, nodes_map=m.nodes_map) for m in done]


@compatibility(is_backward_compatible=False)
def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable | Graph | GraphModule,
    replacement: Callable | Graph | GraphModule | None = None,
    match_filters: list[Callable[["InternalMatch", Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[["InternalMatch", Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """As replace_pattern, for the occurrences that all filters accept. Each filter is called with
    (match, graph, pattern); replacement_callback, called alike, may make each replacement."""
    rewriter = _Rewriter(gm, pattern, replacement, replacement_callback)
    return rewriter.run(match_filters or [], ignore_literals, node_name_match)


def _as_graph(program: Pattern) -> Graph:
    if isinstance(program, Graph):
        return program
    if isinstance(program, GraphModule):
        return program.graph
    return symbolic_trace(program).graph


class _Rewriter:
    """The rewriting of one module."""

    def __init__(
        self,
        gm: GraphModule,
        pattern: Pattern,
        replacement: Pattern | None,
        callback: Callable | None = None,
    ) -> None:
        if (replacement is None) == (callback is None):
            if replacement is None:
                raise AssertionError(
                    "Must provide either a replacement GraphModule or a replacement callback"
                )
        self.gm = gm
        self.graph = gm.graph
        self.pattern = _as_graph(pattern)
        self.replacement = None if replacement is None else _as_graph(replacement)
        self.replacement_source = replacement
        self.callback = callback
        # Nodes replaced so far: a later match may have one as its input.
        self.replaced: dict[Node, Any] = {}

    def run(
        self, filters: list[Callable] | None = None, ignore_literals: bool = False, names: str = ""
    ) -> list[ReplacedPatterns]:
        from torch.fx.passes.utils.matcher_utils import SubgraphMatcher

        matcher = SubgraphMatcher(
            self.pattern,
            match_output=False,
            match_placeholder=False,
            remove_overlapping_matches=True,
            ignore_literals=ignore_literals,
        )
        matches = [
            m
            for m in matcher.match(self.graph, node_name_match=names)
            if all(accepts(m, self.graph, self.pattern) for accepts in filters or [])
        ]
        done = [self._replace(match) for match in matches]
        self.gm.recompile()
        if isinstance(self.replacement_source, torch.nn.Module):
            _take_attributes(self.gm, self.replacement_source)
        self.gm.graph.lint()
        return done

    def _replace(self, match: "InternalMatch") -> ReplacedPatterns:
        new_graph = self.replacement
        if self.callback is not None:
            new_graph = self.callback(match, self.graph, self.pattern)
        inputs = new_graph.find_nodes(op="placeholder")
        if len(match.placeholder_nodes) != len(inputs):
            raise AssertionError(
                f"the pattern has {len(match.placeholder_nodes)} inputs, the replacement has "
                f"{len(inputs)}"
            )
        values = {
            node: self._current(given)
            for node, given in zip(inputs, match.placeholder_nodes, strict=True)
        }
        results = [self._current(node) for node in match.returning_nodes]
        with self._insertion_point(match, results):
            copied = self.graph.graph_copy(new_graph, values)
        new_nodes = [values[n] for n in new_graph.nodes if n in values and n not in inputs]
        outputs = (copied,) if not isinstance(copied, list | tuple) else tuple(copied)
        if len(outputs) != len(results):
            raise AssertionError(
                f"the pattern has {len(results)} results, the replacement {len(outputs)}"
            )
        for old, new in zip(results, outputs, strict=True):
            old.replace_all_uses_with(new, lambda user: user not in new_nodes)
            self.replaced[old] = new
        self._erase(match)
        return ReplacedPatterns(match.anchors[0], match.nodes_map, new_nodes)

    def _current(self, value: Any) -> Any:
        while isinstance(value, Node) and value in self.replaced:
            value = self.replaced[value]
        return value

    def _insertion_point(self, match: "InternalMatch", results: list[Node]) -> Any:
        """Before the first user of a result, behind all results and inputs that come earlier."""
        inside = {n for n in match.nodes_map.values() if isinstance(n, Node)}
        users = [u for node in results for u in node.users if u not in inside]
        if users:
            return self.graph.inserting_before(min(users))
        return self.graph.inserting_after(max(results))

    def _erase(self, match: "InternalMatch") -> None:
        """Erases the nodes of the occurrence, users before what they use."""
        own = [
            gn
            for pn, gn in match.nodes_map.items()
            if isinstance(gn, Node) and pn.op not in ("placeholder", "output")
        ]
        for node in sorted(own, reverse=True):
            if not node.users and not node._erased:
                self.graph.erase_node(node)


def _take_attributes(gm: GraphModule, replacement: torch.nn.Module) -> None:
    """Gives the module the submodules and attributes that nodes of the replacement name."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        if _reaches(gm, node.target):
            continue
        if not _reaches(replacement, node.target):
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target '
                f"{node.target}, but the referenced attribute does not exist in the replacement "
                "GraphModule"
            )
        value: Any = replacement
        for part in node.target.split("."):
            value = getattr(value, part)
        value = copy.deepcopy(value)
        if isinstance(value, torch.nn.Module):
            gm.add_submodule(node.target, value)
        else:
            from torch.fx.graph_module import _assign_attr

            _assign_attr(value, gm, node.target)


def _reaches(module: torch.nn.Module, target: str) -> bool:
    value: Any = module
    for part in target.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True
