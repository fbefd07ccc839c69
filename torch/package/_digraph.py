"""A directed graph with attributes at its nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator


class DiGraph:
    def __init__(self) -> None:
        self._attributes: dict[Hashable, dict[str, object]] = {}
        self._next: dict[Hashable, dict[Hashable, None]] = {}
        self._previous: dict[Hashable, dict[Hashable, None]] = {}

    def add_node(self, n: Hashable, **kwargs: object) -> None:
        """Adds a node, or updates the attributes of one."""
        self._attributes.setdefault(n, {}).update(kwargs)
        self._next.setdefault(n, {})
        self._previous.setdefault(n, {})

    def add_edge(self, u: Hashable, v: Hashable) -> None:
        self.add_node(u)
        self.add_node(v)
        self._next[u][v] = None
        self._previous[v][u] = None

    def _known(self, n: Hashable, table: dict) -> Iterator[Hashable]:
        if n not in self:
            raise ValueError(f"The node {n} is not in the digraph.")
        return iter(table[n])

    def successors(self, n: Hashable) -> Iterator[Hashable]:
        return self._known(n, self._next)

    def predecessors(self, n: Hashable) -> Iterator[Hashable]:
        return self._known(n, self._previous)

    @property
    def edges(self) -> Iterator[tuple[Hashable, Hashable]]:
        return ((u, v) for u, after in self._next.items() for v in after)

    @property
    def nodes(self) -> dict[Hashable, dict[str, object]]:
        return self._attributes

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._attributes)

    def __contains__(self, n: object) -> bool:
        try:
            return n in self._attributes
        except TypeError:
            return False

    def _reached(self, start: Hashable, table: dict) -> set[Hashable]:
        seen, waiting = {start}, deque(self._known(start, table))
        while waiting:
            n = waiting.popleft()
            if n not in seen:
                seen.add(n)
                waiting.extend(table[n])
        return seen

    def forward_transitive_closure(self, src: Hashable) -> set[Hashable]:
        return self._reached(src, self._next)

    def backward_transitive_closure(self, src: Hashable) -> set[Hashable]:
        return self._reached(src, self._previous)

    def all_paths(self, src: Hashable, dst: Hashable) -> str:
        """The part of the graph on paths from one node to another, in the language of dot."""
        between = self.forward_transitive_closure(src) & self.backward_transitive_closure(dst)
        part = DiGraph()
        for u, v in self.edges:
            if u in between and v in between:
                part.add_edge(u, v)
        return part.to_dot()

    def first_path(self, dst: Hashable) -> list[Hashable]:
        """One way to a node from a node without predecessors."""
        path = [dst]
        while path[-1] in self:
            before = next((p for p in self._previous[path[-1]] if p not in path), None)
            if before is None:
                break
            path.append(before)
        return path[::-1]

    def to_dot(self) -> str:
        lines = "\n".join(f'"{u}" -> "{v}";' for u, v in self.edges)
        return f"digraph G {{\nrankdir = LR;\nnode [shape=box];\n{lines}\n}}\n"
