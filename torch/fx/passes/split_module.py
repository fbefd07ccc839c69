"""split_module cuts a module into submodules by a function that numbers its nodes. Inputs and
attributes stay with the new root, which calls the parts in an order their values allow."""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx._compatibility import compatibility
from torch.fx._lazy_graph_module import _make_graph_module
from torch.fx.graph import Graph
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node, map_arg

__all__ = ["Partition", "split_module", "split_module_simple"]


@compatibility(is_backward_compatible=True)
@dataclass(eq=False, repr=False)
class Partition:
    """One part while it is made: its graph, and what flows in and out. Dicts are sets in order."""

    name: str
    submod_name: str = field(init=False)
    graph: Graph = field(default_factory=Graph)
    targets: dict[str, Any] = field(default_factory=dict)
    environment: dict[Node, Node] = field(default_factory=dict)
    node_names: list[str] = field(default_factory=list)
    inputs: dict[str, None] = field(default_factory=dict)
    outputs: dict[str, None] = field(default_factory=dict)
    dependencies: dict[str, None] = field(default_factory=dict)
    dependents: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.submod_name = f"submod_{self.name}"

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {list(self.inputs)},\n "
            f"outputs: {list(self.outputs)},\n "
            f"partitions depended on: {list(self.dependencies)},\n "
            f"partition dependents: {list(self.dependents)}"
        )


@compatibility(is_backward_compatible=True)
def split_module(
    m: GraphModule,
    root_m: torch.nn.Module | None,
    split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A module that calls submodules submod_0, submod_1, ...: split_callback says for each call
    of the graph which one it goes to. `qualname_map` is filled with {new path: old path} of
    submodules; with keep_original_order parts are called in the order of their first nodes; with
    tuple_return every part returns a tuple."""
    splitter = _Splitter(m, m if root_m is None else root_m, qualname_map)
    splitter.assign(split_callback, partition_affix)
    order = splitter.original_order() if keep_original_order else splitter.sorted_parts()
    splitter.fill(bool(keep_original_node_name), keep_original_input_name)
    return splitter.assemble(order, tuple_return)


@compatibility(is_backward_compatible=False)
def split_module_simple(
    m: GraphModule, node_to_partition: dict[Node, Any], *, partition_affix: str | None = None
) -> GraphModule:
    """split_module by a dict {node: part}; nodes that it does not name go with their inputs."""
    last: dict[Node, Any] = {}

    def part_of(node: Node) -> Any:
        part = node_to_partition.get(node)
        if part is None:
            part = max((last[i] for i in node.all_input_nodes if i in last), default=0)
        last[node] = part
        return part

    return split_module(m, None, part_of, partition_affix=partition_affix)


class _Splitter:
    """The splitting of one module."""

    def __init__(
        self, m: GraphModule, root: torch.nn.Module, qualname_map: dict[str, str] | None
    ) -> None:
        self.m = m
        self.root = root
        self.qualname_map = qualname_map
        self.parts: dict[str, Partition] = {}
        self.part_of: dict[Node, Partition] = {}
        # In the order of definition: what parts are given and what they give.
        self.inputs: dict[str, dict[Node, None]] = {}
        self.outputs: dict[str, dict[Node, None]] = {}

    # ---- who goes where
    def assign(self, callback: Callable[[Node], Any], affix: str | None) -> None:
        for node in self.m.graph.nodes:
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            name = str(callback(node))
            if affix is not None:
                name = f"{affix}_{name}"
            if name not in self.parts:
                self.parts[name] = Partition(name)
                self.inputs[name], self.outputs[name] = {}, {}
            self.parts[name].node_names.append(node.name)
            self.part_of[node] = self.parts[name]
        for node in self.m.graph.nodes:
            for used in node.all_input_nodes:
                self._note_flow(used, node)

    def _note_flow(self, used: Node, node: Node) -> None:
        source, target = self.part_of.get(used), self.part_of.get(node)
        if source is target:
            return
        if source is not None:
            source.outputs.setdefault(used.name)
            self.outputs[source.name].setdefault(used)
        if target is not None:
            target.inputs.setdefault(used.name)
            self.inputs[target.name].setdefault(used)
        if source is not None and target is not None:
            target.dependencies.setdefault(source.name)
            source.dependents.setdefault(target.name)

    # ---- in which order
    def original_order(self) -> list[str]:
        seen: set[str] = set()
        for name, part in self.parts.items():
            if not seen.issuperset(part.dependencies):
                raise RuntimeError(
                    f"partition {name} is called before one whose values it needs: the original "
                    "order cannot be kept"
                )
            seen.add(name)
        return list(self.parts)

    def sorted_parts(self) -> list[str]:
        missing = {name: len(part.dependencies) for name, part in self.parts.items()}
        order = [name for name, count in missing.items() if count == 0]
        for name in order:
            for dependent in self.parts[name].dependents:
                missing[dependent] -= 1
                if missing[dependent] == 0:
                    order.append(dependent)
        if len(order) != len(self.parts):
            raise RuntimeError("cycle exists between partitions!")
        return order

    # ---- the graphs of the parts
    def fill(self, keep_names: bool, keep_input_names: bool) -> None:
        for name, part in self.parts.items():
            for i, used in enumerate(self.inputs[name]):
                label = used.name if keep_input_names else f"arg_{i}"
                made = part.graph.placeholder(label, type_expr=used.type)
                made.meta = dict(used.meta)
                part.environment[used] = made
        for node in self.m.graph.nodes:
            part = self.part_of.get(node)
            if part is None:
                continue
            target = node.target
            if node.op == "call_module":
                target = self._take_module(part, node.target)
            args, kwargs = map_arg((node.args, node.kwargs), part.environment.__getitem__)
            made = part.graph.create_node(
                node.op, target, args, kwargs, node.name if keep_names else None, node.type
            )
            made.meta = dict(node.meta)
            part.environment[node] = made

    def _take_module(self, part: Partition, target: str) -> str:
        """Gives a part the submodule under one flat name; returns the name."""
        value: Any = self.root
        for piece in target.split("."):
            if not hasattr(value, piece):
                raise AttributeError(f"Operator target {target} not found!")
            value = getattr(value, piece)
        flat = target.replace(".", "_")
        part.targets[flat] = value
        if self.qualname_map is not None:
            self.qualname_map[f"{part.submod_name}.{flat}"] = target
        return flat

    # ---- the root
    def assemble(self, order: list[str], tuple_return: bool) -> GraphModule:
        graph = Graph()
        values: dict[Node, Any] = {}
        attributes: dict[str, Any] = {}
        for node in self.m.graph.nodes:
            if node.op == "placeholder":
                default = node.args
                made = graph.create_node("placeholder", node.target, default, type_expr=node.type)
            elif node.op == "get_attr":
                made = graph.get_attr(node.target, node.type)
                value: Any = self.m
                for piece in node.target.split("."):
                    value = getattr(value, piece)
                attributes[node.target] = value
            else:
                continue
            made.meta = dict(node.meta)
            values[node] = made
        for name in order:
            self._call_part(graph, self.parts[name], values, attributes, tuple_return)
        for node in self.m.graph.find_nodes(op="output"):
            made = graph.output(map_arg(node.args[0], values.__getitem__), node.type)
            made.meta = dict(node.meta)
        result = _make_graph_module(attributes, graph)
        result.meta = {**result.meta, **getattr(self.m, "meta", {})}
        return result

    def _call_part(
        self,
        graph: Graph,
        part: Partition,
        values: dict[Node, Any],
        attributes: dict[str, Any],
        tuple_return: bool,
    ) -> None:
        outputs = list(self.outputs[part.name])
        results = tuple(part.environment[node] for node in outputs)
        alone = len(results) == 1 and not tuple_return
        part.graph.output(results[0] if alone else results)
        module = _make_graph_module(part.targets, part.graph)
        module.train(self.m.training)
        attributes[part.submod_name] = module
        given = tuple(values[node] for node in self.inputs[part.name])
        call = graph.call_module(part.submod_name, given)
        for i, node in enumerate(outputs):
            made = call if alone else graph.call_function(operator.getitem, (call, i))
            if "val" in node.meta:
                made.meta["val"] = node.meta["val"]
            values[node] = made
