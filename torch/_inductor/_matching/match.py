"""What a pattern found, and what is done with it: entries of a pass hold a pattern and say how a
match changes the graph; a pass goes through a graph from its end and applies the first entry that
fits each node."""

from __future__ import annotations

import contextlib
import functools
import os
from collections import defaultdict
from collections.abc import Callable, Sequence

from torch import fx
from torch._dynamo.utils import counters
from torch._inductor._matching.expressions import PatternExpr, Search, _Node
from torch._inductor._matching.regions import (
    compute_mutation_region_ids,
    get_mutation_region_id,
    should_compute_mutation_region_ids,
)
from torch.utils import _pytree as pytree

__all__ = [
    "GraphPatternEntry",
    "LoweringPatternEntry",
    "Match",
    "MatchContext",
    "PatternEntry",
    "PatternMatcherPass",
    "ReplacementPatternEntry",
    "is_match",
]

Check = Callable[["Match"], bool]
Trace = Callable[[Callable, Sequence[object]], fx.GraphModule]


class MatchContext:
    """Where a match lies: its graph and the nodes that the outputs of the pattern stand for."""

    def __init__(
        self,
        outputs: Sequence[PatternExpr | None],
        pattern_to_node: dict[PatternExpr, fx.Node | None] | None = None,
        *,
        graph: fx.Graph,
    ) -> None:
        self.outputs = list(outputs)
        self.pattern_to_node = dict(pattern_to_node or {})
        self.graph = graph

    def filter_multi_user_patterns(self) -> dict[PatternExpr, fx.Node]:
        """What expressions that may have several users stand for."""
        found = self.pattern_to_node.items()
        return {p: n for p, n in found if p.has_multiple_users() and n is not None}


class Match:
    """What a pattern found: the nodes that belong to it and the arguments of its handler."""

    pattern: PatternExpr
    args: list[object]
    kwargs: dict[str, object]
    nodes: list[fx.Node]
    targets: dict[PatternExpr, object]
    ctx: MatchContext
    replacement_graph: fx.GraphModule | None

    def __init__(
        self,
        ctx: MatchContext,
        pattern: PatternExpr,
        args: Sequence[object] | None = None,
        kwargs: dict[str, object] | None = None,
    ) -> None:
        self.ctx = ctx
        self.pattern = pattern
        self.args = list(args or [])
        self.kwargs = dict(kwargs or {})
        self.nodes = []
        self.targets = {}
        self.replacement_graph = None

    @classmethod
    def of(cls, search: Search, pattern: PatternExpr) -> Match:
        """The match that a successful search describes."""
        first = next(iter(search.nodes))
        nodes = {p: n for p, n in search.bound.items() if isinstance(n, fx.Node)}
        made = cls(
            MatchContext(search.outputs, nodes, graph=first.graph),
            pattern,
            search.args,
            search.kwargs,
        )
        made.nodes = list(search.nodes)
        made.targets = {p: n.target for p, n in nodes.items() if isinstance(p, _Node)}
        return made

    @property
    def graph(self) -> fx.Graph:
        """The graph it was found in."""
        return self.ctx.graph

    def output_nodes(self) -> list[fx.Node | None]:
        """The nodes that the outputs of the pattern stand for."""
        return [None if p is None else self.ctx.pattern_to_node.get(p) for p in self.ctx.outputs]

    def output_node(self) -> fx.Node:
        """The first of them."""
        return next(n for n in self.output_nodes() if n is not None)

    def erase_nodes(self) -> None:
        """Removes the nodes of the match that nothing uses any more."""
        for node in reversed(self.nodes):
            if not node._erased and not node.users:
                self.graph.erase_node(node)

    def output_value(self) -> object:
        """What was traced for the first output."""
        return self.output_node().meta.get("val")

    def replace_with_graph(
        self, replacement_graph: fx.Graph | fx.GraphModule, args: Sequence[object]
    ) -> None:
        """Puts a graph in the place of the outputs; its inputs are the arguments."""
        graph = getattr(replacement_graph, "graph", replacement_graph)
        _put_graph(self, self.output_nodes(), graph, list(args))

    def replace_by_example(
        self,
        replacement_fn: Callable,
        args: Sequence[object],
        trace_fn: Trace | None = None,
        run_functional_passes: bool = True,
    ) -> None:
        """Traces a function on what the arguments were traced with and puts the graph in the place
        of the match."""
        from torch._inductor._matching.replacement import fwd_only, in_fake_mode

        if trace_fn is None:
            trace_fn = functools.partial(fwd_only, run_functional_passes=run_functional_passes)
        values = fx.map_arg(args, lambda node: node.meta["val"])
        with in_fake_mode(values):
            replacement = trace_fn(replacement_fn, values)
        self.replace_with_graph(replacement, pytree.tree_leaves(list(args)))

    def __repr__(self) -> str:
        return f"Match(..., {self.args}, {self.kwargs})"


def is_match(m: object) -> bool:
    """Whether what PatternExpr.match returned is a Match."""
    return isinstance(m, Match)


# ---- putting graphs into graphs -------------------------------------------------------------


def _put_graph(
    match: Match, outputs: Sequence[fx.Node | None], replacement: fx.Graph, args: list[object]
) -> None:
    graph = match.graph
    order = {node: i for i, node in enumerate(graph.nodes)}
    known = [node for node in outputs if node is not None]
    needed = [a for a in args if isinstance(a, fx.Node)]
    first = min(known, key=order.__getitem__)
    latest = max((order[a] for a in needed), default=-1)
    place = first if latest < order[first] else max(known, key=order.__getitem__)
    results, made = _copied(graph, replacement, args, place)
    _inherit(match, made, place)
    if len(results) < len(outputs):
        raise RuntimeError(
            f"a replacement returns {len(results)} values, its pattern {len(outputs)}: the "
            "functions of search and replacement must return as many"
        )
    for old, new in zip(outputs, results, strict=False):
        if old is None:
            continue
        if isinstance(new, fx.Node):
            old.replace_all_uses_with(new, propagate_meta=False)
            if "val" not in new.meta and "val" in old.meta:
                new.meta["val"] = old.meta["val"]
        elif old.users:
            raise RuntimeError(f"a replacement returns {new!r} for {old}, which is used")
    match.erase_nodes()
    if place is not first:
        stable_topological_sort(graph)


def _copied(
    graph: fx.Graph, replacement: fx.Graph, args: list[object], place: fx.Node
) -> tuple[list[object], list[fx.Node]]:
    """Copies the nodes of a graph in front of a node."""
    values: dict[fx.Node, object] = {}
    given = iter(args)
    made: list[fx.Node] = []
    results: object = ()
    owner = replacement.owning_module
    with graph.inserting_before(place):
        for node in replacement.nodes:
            if node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "output":
                results = fx.map_arg(node.args[0], values.__getitem__)
            elif node.op == "get_attr":
                values[node] = _constant(graph, owner, node)
                made.append(values[node])
            elif node.op == "call_function":
                copy = graph.call_function(
                    node.target,
                    _with_values(node.args, values),
                    _with_values(node.kwargs, values),
                )
                copy.meta.update(node.meta)
                values[node] = copy
                made.append(copy)
            else:
                raise NotImplementedError(
                    f"a replacement graph with {node.op} {node.target}: only calls of functions"
                )
    many = list(results) if isinstance(results, (list, tuple)) else [results]
    return many, made


def _with_values(structure: object, values: dict[fx.Node, object]) -> object:
    return fx.map_arg(structure, values.__getitem__)


def _constant(graph: fx.Graph, owner: fx.GraphModule | None, node: fx.Node) -> fx.Node:
    """A tensor of the replacement's module becomes one of the graph's module."""
    value: object = owner
    for name in node.target.split("."):
        value = getattr(value, name)
    module = graph.owning_module
    name = node.target.replace(".", "_")
    number = 0
    while hasattr(module, name) and getattr(module, name) is not value:
        number += 1
        name = f"{node.target.replace('.', '_')}_{number}"
    setattr(module, name, value)
    copy = graph.create_node("get_attr", name)
    copy.meta.update(node.meta)
    return copy


def _inherit(match: Match, made: Sequence[fx.Node], place: fx.Node) -> None:
    """New nodes take over notes on where the old ones came from."""
    for name in ("stack_trace", "nn_module_stack", "source_fn_stack", "recompute", "ac_graph_id"):
        found = next((n.meta[name] for n in match.nodes if n.meta.get(name) is not None), None)
        if found is not None:
            for node in made:
                node.meta.setdefault(name, found)
    region = place.meta.get("mutation_region_id")
    if region is not None:
        for node in made:
            node.meta["mutation_region_id"] = region


def stable_topological_sort(graph: fx.Graph) -> None:
    """Moves nodes behind what they read; otherwise the order stays. A node that has to wait is put
    directly behind the last one it waits for."""
    pending = list(reversed(graph.nodes))
    ready: set[fx.Node] = set()
    waiting: defaultdict[fx.Node, list[fx.Node]] = defaultdict(list)
    cursor: fx.Node | None = None
    while pending:
        node = pending.pop()
        missing = [n for n in node.all_input_nodes if n not in ready]
        if missing:
            waiting[missing[-1]].append(node)
            continue
        ready.add(node)
        if cursor is not None and cursor.next is not node:
            cursor.append(node)
        cursor = node
        pending.extend(reversed(waiting.pop(node, ())))
    if waiting or len(ready) != len(graph.nodes):
        raise AssertionError("the nodes of the graph depend on each other in a circle")


# ---- entries --------------------------------------------------------------------------------


class PatternEntry:
    """A pattern, and what is done with a match."""

    def __init__(self, pattern: PatternExpr, extra_check: Check) -> None:
        self.pattern = pattern
        self.extra_check = extra_check

    def apply(self, match: Match, graph: fx.Graph, node: fx.Node) -> None:
        """Changes the graph."""
        raise NotImplementedError(f"{type(self).__name__} does not define apply")

    def register(
        self,
        pass_dicts: object,
        target: object = None,
        prepend: bool = False,
    ) -> None:
        """Adds the entry to passes: one, or several."""
        if target is None:
            for fn in self.pattern.fns:
                self.register(pass_dicts, fn, prepend=prepend)
            return
        if isinstance(pass_dicts, (dict, PatternMatcherPass)):
            entries = pass_dicts[(self.pattern.op, target)]
            entries.insert(0 if prepend else len(entries), self)
            return
        for one in pass_dicts:
            self.register(one, target, prepend=prepend)


class GraphPatternEntry(PatternEntry):
    """The handler changes the graph itself."""

    def __init__(self, pattern: PatternExpr, extra_check: Check, handler: Callable) -> None:
        super().__init__(pattern, extra_check)
        self.handler = handler

    def apply(self, match: Match, graph: fx.Graph, node: fx.Node) -> None:
        with graph.inserting_before(node):
            self.handler(match, *match.args, **match.kwargs)


class LoweringPatternEntry(PatternEntry):
    """The handler takes and returns values of the lowering; it runs when the graph is lowered."""

    def __init__(self, pattern: PatternExpr, extra_check: Check, handler: Callable) -> None:
        super().__init__(pattern, extra_check)
        self.handler = handler

    def apply(self, match: Match, graph: fx.Graph, node: fx.Node) -> None:
        lowered = functools.partial(self.handler, match)
        lowered._inductor_lowering_function = True
        lowered.__name__ = getattr(self.handler, "__name__", "lowered_pattern")
        with graph.inserting_after(node):
            made = graph.call_function(lowered, tuple(match.args), dict(match.kwargs))
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made, delete_user_cb=lambda user: user is not made)
        match.nodes = list(dict.fromkeys([*match.nodes, node]))
        match.erase_nodes()


class ReplacementPatternEntry(PatternEntry):
    """A match is replaced by a graph that was traced for it."""

    def __init__(
        self,
        pattern: PatternExpr,
        extra_check: Check,
        normalize_args: Callable[..., list[object]],
    ) -> None:
        super().__init__(pattern, extra_check)
        self.normalize_args = normalize_args

    @staticmethod
    def replace_with_graph(
        match: Match,
        graph: fx.Graph,
        replacement_graph: fx.Graph | fx.GraphModule,
        args: Sequence[object],
    ) -> None:
        """Puts a graph in the place of a match."""
        match.replace_with_graph(replacement_graph, args)

    def apply(self, match: Match, graph: fx.Graph, node: fx.Node) -> None:
        if match.replacement_graph is None:
            raise RuntimeError("a replacement was not traced before it is applied")
        args = self.normalize_args(*match.args, **match.kwargs)
        self.replace_with_graph(match, graph, match.replacement_graph, args)


# ---- passes ---------------------------------------------------------------------------------


class PatternMatcherPass:
    """Entries by the kind and target of the node where their patterns end."""

    def __init__(self, pass_name: str | None = None, subsystem: str | None = None) -> None:
        self.patterns: defaultdict[tuple[str, object], list[PatternEntry]] = defaultdict(list)
        self.pass_name = pass_name
        self.subsystem = subsystem
        self.seen_patterns: defaultdict[str, list[str]] = defaultdict(list)

    def __getitem__(self, item: tuple[str, object]) -> list[PatternEntry]:
        return self.patterns[item]

    def apply(self, gm: fx.GraphModule | fx.Graph) -> int:
        """Applies the entries to a graph; the number of matches."""
        if not self.patterns:
            return 0
        graph = gm.graph if isinstance(gm, fx.GraphModule) else gm
        targets = {target for op, target in self.patterns if op != "call_module"}
        modules = any(op == "call_module" for op, _ in self.patterns)
        wanted = [
            node
            for node in graph.nodes
            if (node.op == "call_module" and modules) or _is_one_of(node.target, targets)
        ]
        count = 0
        with self._observed(gm):
            for node in reversed(wanted):
                count += self._apply_at(node, graph)
        return count

    def _observed(self, gm: fx.GraphModule | fx.Graph) -> contextlib.AbstractContextManager:
        if self.pass_name is None or not isinstance(gm, fx.GraphModule):
            return contextlib.nullcontext()
        from torch.fx.passes.graph_transform_observer import GraphTransformObserver

        return GraphTransformObserver(gm, self.pass_name, self.subsystem)

    def _apply_at(self, node: fx.Node, graph: fx.Graph) -> int:
        key: object = node.target
        if node.op == "call_module":
            owner = graph.owning_module
            key = type(owner.get_submodule(node.target)) if owner is not None else key
        count = 0
        for entry in self.patterns.get((node.op, key), ()):
            if node._erased:
                break
            match = entry.pattern.match(node)
            if not is_match(match) or not _in_one_region(match, graph):
                continue
            if os.environ.get("TORCHINDUCTOR_PATTERN_MATCH_DEBUG") == node.name:
                print(f"{node} matches {entry.pattern}")
            if not entry.extra_check(match):
                continue
            count += 1
            entry.apply(match, graph, node)
            counters["inductor"]["pattern_matcher_count"] += 1
            counters["inductor"]["pattern_matcher_nodes"] += len(match.nodes)
        return count

    def clear(self) -> None:
        """Forgets all entries."""
        self.patterns.clear()


def _is_one_of(target: object, targets: set[object]) -> bool:
    try:
        return target in targets
    except TypeError:
        return False  # a target without a hash


def _in_one_region(match: Match, graph: fx.Graph) -> bool:
    """Whether nothing is written between the nodes of a match."""
    if should_compute_mutation_region_ids(graph):
        compute_mutation_region_ids(graph)
    return len({get_mutation_region_id(graph, node) for node in match.nodes}) <= 1
