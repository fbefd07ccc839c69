"""Gives a recorded graph the structure of its modules: what ran inside of a submodule becomes a
method of the submodule's type and a call of it. Values of the surroundings that the method uses are
parameters beside the module's own inputs."""

from __future__ import annotations

import contextlib
import typing
from collections.abc import Iterator

import torch
from torch.jit import _types as T
from torch.jit._function import Parameter, ScriptFunction
from torch.jit._ir import Graph, Node, Value, copy_node
from torch.nn.modules import module as module_hooks

if typing.TYPE_CHECKING:
    from torch.jit._trace import Recorder

Path = tuple[str, ...]


class Segment:
    """The nodes from `start` to `end`, recorded while one call of a module ran."""

    def __init__(self, path: Path, start: int, given: list[Value]) -> None:
        self.path, self.start, self.end, self.given = path, start, start, given
        self.inner: list[Segment] = []


class Segments:
    """Watches calls of modules while a trace runs."""

    def __init__(self, recorder: Recorder, paths: dict[int, Path]) -> None:
        self.recorder, self.paths = recorder, paths
        self.top = Segment((), 0, [])
        self.open = [self.top]

    def count(self) -> int:
        return len(self.recorder.graph.block.nodes_list)

    def enter(self, module: torch.nn.Module, args: tuple[object, ...]) -> None:
        path = self.paths.get(id(module))
        if path and not self.recorder.paused and not hasattr(module, "_script_handle"):
            tensors = [a for a in args if isinstance(a, torch.Tensor)]
            known = self.recorder.values
            given = [known[id(t)] for t in tensors if id(t) in known]
            self.open.append(Segment(path, self.count(), given))

    def leave(self, module: torch.nn.Module, args: object, out: object) -> None:
        path = self.paths.get(id(module))
        if path and self.open[-1].path == path and not self.recorder.paused:
            made = self.open.pop()
            made.end = self.count()
            self.open[-1].inner.append(made)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Follows the calls of modules."""
        handles = (
            module_hooks.register_module_forward_pre_hook(self.enter),
            module_hooks.register_module_forward_hook(self.leave),
        )
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
            self.top.end = self.count()


def structured(graph: Graph, top: Segment) -> Graph:
    """The graph with calls for the segments of submodules."""
    if not top.inner:
        return graph
    top.end = len(graph.block.nodes_list)
    return _Builder(graph, top).top(top)


class _Builder:
    """The old graph while it is taken apart."""

    def __init__(self, graph: Graph, top: Segment) -> None:
        self.graph = graph
        self.nodes = graph.block.nodes_list
        self.position = {n: i for i, n in enumerate(self.nodes)}
        self.paths: dict[Value, Path] = {graph.block.params[0]: ()}
        for node in self.nodes:
            if node.kind_name == "prim::GetAttr" and node.input() in self.paths:
                self.paths[node.output()] = (*self.paths[node.input()], node.attrs["name"])
        self.last: dict[Value, int] = {}
        for i, node in enumerate(self.nodes):
            for value in node.inputs_list:
                self.last[value] = i
        for value in graph.block.results:
            self.last[value] = len(self.nodes)
        self.note_given(top)

    def note_given(self, segment: Segment) -> None:
        """A call uses what it is given, whether or not anything inside of it does."""
        for value in segment.given:
            self.last[value] = max(self.last.get(value, -1), segment.start)
        for inner in segment.inner:
            self.note_given(inner)

    def top(self, segment: Segment) -> Graph:
        part = _Part(self, segment, self.graph.block.params[0].type())
        for value in self.graph.block.params[1:]:
            part.values[value] = part.graph.block.add_param(value.type(), value.hint())
        part.fill()
        part.graph.block.results[:] = [part.value(v) for v in self.graph.block.results]
        return part.graph

    def results_of(self, segment: Segment) -> list[Value]:
        """What the segment computes for the nodes behind it."""
        return [
            v
            for node in self.nodes[segment.start : segment.end]
            if node.kind_name not in ("prim::Constant", "prim::GetAttr")
            for v in node.outputs_list
            if self.last.get(v, -1) >= segment.end
        ]


class _Part:
    """The new graph of one segment."""

    def __init__(self, owner: _Builder, segment: Segment, kind: T.ClassType) -> None:
        self.owner, self.segment, self.kind = owner, segment, kind
        self.graph = Graph()
        self.receiver = self.graph.block.add_param(kind, "self")
        self.values: dict[Value, Value] = {}
        self.captured: list[Value] = []
        self.reached: dict[Path, Value] = {(): self.receiver}

    def value(self, old: Value) -> Value:
        """The value of this graph that stands for an old one."""
        found = self.values.get(old)
        if found is not None:
            return found
        path, own = self.owner.paths.get(old), self.segment.path
        if path is not None and path[: len(own)] == own:
            self.values[old] = self.attribute(path[len(own) :])
            return self.values[old]
        origin = old.origin
        if isinstance(origin, Node) and origin.kind_name == "prim::Constant":
            copy_node(origin, self.graph.block, self.values)
            return self.values[old]
        return self.capture(old)

    def capture(self, old: Value) -> Value:
        self.captured.append(old)
        self.values[old] = self.graph.block.add_param(old.type(), old.hint())
        return self.values[old]

    def attribute(self, path: Path) -> Value:
        if path not in self.reached:
            holder = self.attribute(path[:-1])
            node = Node("prim::GetAttr", self.graph.block, [holder])
            node.attrs["name"] = path[-1]
            self.graph.block.nodes_list.append(node)
            kind = holder.type().attributes[path[-1]]
            self.reached[path] = node.add_output(kind, path[-1])
        return self.reached[path]

    def fill(self) -> None:
        at = self.segment.start
        for inner in self.segment.inner:
            self.copy(at, inner.start)
            self.call(inner)
            at = inner.end
        self.copy(at, self.segment.end)

    def copy(self, start: int, end: int) -> None:
        for node in self.owner.nodes[start:end]:
            attribute = node.kind_name == "prim::GetAttr" and node.output() in self.owner.paths
            if attribute or node.kind_name == "prim::Constant":
                continue
            for value in node.inputs_list:
                self.value(value)
            copy_node(node, self.graph.block, self.values)

    def call(self, segment: Segment) -> None:
        """A call of the method that the segment becomes; a segment without results stays inline."""
        results = self.owner.results_of(segment)
        own = self.segment.path
        if not results or segment.path[: len(own)] != own:
            for inner in segment.inner:
                self.copy(segment.start, inner.start)
                self.call(inner)
                segment.start = inner.end
            self.copy(segment.start, segment.end)
            return
        receiver = self.attribute(segment.path[len(own) :])
        part = _Part(self.owner, segment, receiver.type())
        for value in dict.fromkeys(segment.given):
            part.capture(value)
        part.fill()
        function = part.method(results)
        inputs = [receiver, *(self.value(v) for v in part.captured)]
        node = Node("prim::CallMethod", self.graph.block, inputs)
        node.attrs.update(name=function.name, function=function)
        self.graph.block.nodes_list.append(node)
        made = node.add_output(function.returns)
        if len(results) == 1:
            self.values[results[0]] = made
            return
        unpacked = Node("prim::TupleUnpack", self.graph.block, [made])
        self.graph.block.nodes_list.append(unpacked)
        for value in results:
            self.values[value] = unpacked.add_output(value.type(), value.hint())

    def method(self, results: list[Value]) -> ScriptFunction:
        from torch.jit._trace import TraceSource

        block = self.graph.block
        made = [self.value(v) for v in results]
        if len(made) > 1:
            packed = Node("prim::TupleConstruct", block, made)
            block.nodes_list.append(packed)
            made = [packed.add_output(T.tuple_of(*(v.type() for v in made)))]
        block.results[:] = made
        name, number = "forward", 0
        while name in self.kind.methods:
            number += 1
            name = f"forward{number}"
        labels = self.graph.names()
        parameters = [Parameter(labels[v].replace(".", "_"), v.type()) for v in block.params]
        parameters = [
            p if p.name.isidentifier() else p._replace(name=f"argument_{i}")
            for i, p in enumerate(parameters)
        ]
        function = ScriptFunction(
            name, f"{self.kind.qualified_name}.{name}", TraceSource(self.graph, parameters)
        )
        self.kind.add_method(name, function)
        function.ensure_compiled()
        return function
