"""Splitting by tags: nodes with the same `node.tag` become one submodule."""

import copy
import operator
from dataclasses import dataclass, field
from typing import Any

import torch.fx
from torch.fx._compatibility import compatibility
from torch.fx.graph import Graph
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node, map_arg
from torch.fx.passes.tools_common import CALLABLE_NODE_OPS, NodeList, is_node_output_tensor
from torch.fx.passes.utils import HolderModule, lift_subgraph_as_module

__all__ = [
    "Component",
    "getattr_recursive",
    "move_non_tensor_nodes_on_boundary",
    "setattr_recursive",
    "split_by_tags",
]


@compatibility(is_backward_compatible=False)
def getattr_recursive(obj: Any, name: str) -> Any:
    """What a dotted path leads to; None where it leads nowhere."""
    for part in name.split("."):
        if not hasattr(obj, part):
            return None
        obj = getattr(obj, part)
    return obj


@compatibility(is_backward_compatible=False)
def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Sets what a dotted path leads to."""
    *path, last = attr.split(".")
    for part in path:
        obj = getattr(obj, part)
    setattr(obj, last, value)


@compatibility(is_backward_compatible=False)
@dataclass
class Component:
    """A part while it is made. `orig_inputs` and `input_placeholders` correspond, and so do
    `orig_outputs` and what the part returns."""

    graph: Graph
    order: int
    name: str
    input_placeholders: list = field(default_factory=list)
    orig_inputs: list = field(default_factory=list)
    orig_outputs: list = field(default_factory=list)
    getattr_maps: dict = field(default_factory=dict)
    constructor_args: list = field(default_factory=list)
    gm: GraphModule | None = None


@compatibility(is_backward_compatible=False)
def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> Any:
    """A module that calls one submodule per tag, in the order of the tags; each node that computes
    must have one of them as its `tag`. With return_fqn_mapping also {old path: new path}."""
    parts = {tag: Component(Graph(), i, tag) for i, tag in enumerate(tags)}
    home = _homes(gm, parts)
    inside: dict[Node, Node] = {}
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output", "get_attr"):
            continue
        part = home[node]

        def value_of(used: Node, part: Component = part) -> Node:
            return _value_in_part(used, part, home, inside)

        inside[node] = part.graph.node_copy(node, value_of)
        inside[node].tag = part.name
    output = gm.graph.output_node()
    for node in gm.graph.nodes:
        outward = any(home.get(user) is not home.get(node) for user in node.users)
        if node in inside and outward:
            home[node].orig_outputs.append(node)
    return _assembled(gm, parts, inside, output, return_fqn_mapping, return_tuple, GraphModuleCls)


def _homes(gm: GraphModule, parts: dict[str, Component]) -> dict[Node, Component]:
    home: dict[Node, Component] = {}
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output", "get_attr"):
            continue
        tag = getattr(node, "tag", None)
        if tag is None:
            raise AssertionError(f"node {node} ({node.op}) has no tag")
        home[node] = parts[tag]
        for used in node.all_input_nodes:
            if used in home and home[used].order > parts[tag].order:
                raise AssertionError(
                    f"{node} of {tag} needs {used} of {home[used].name}, which comes later"
                )
    return home


def _value_in_part(
    used: Node, part: Component, home: dict[Node, Component], inside: dict[Node, Node]
) -> Node:
    """What stands in a part for a value of the whole: attributes are read there, values of other
    parts flow in."""
    if used.op == "get_attr":
        if used not in part.getattr_maps:
            with part.graph.inserting_before(next(iter(part.graph.nodes), None)):
                part.getattr_maps[used] = part.graph.node_copy(used)
        return part.getattr_maps[used]
    if home.get(used) is part:
        return inside[used]
    if used not in part.orig_inputs:
        after = part.input_placeholders[-1] if part.input_placeholders else None
        place = (
            part.graph.inserting_after(after)
            if after is not None
            else part.graph.inserting_before(next(iter(part.graph.nodes), None))
        )
        with place:
            made = part.graph.placeholder(used.name, type_expr=used.type)
        made.meta = copy.copy(used.meta)
        part.orig_inputs.append(used)
        part.input_placeholders.append(made)
    return part.input_placeholders[part.orig_inputs.index(used)]


def _assembled(
    gm: GraphModule,
    parts: dict[str, Component],
    inside: dict[Node, Node],
    output: Node,
    return_fqn_mapping: bool,
    return_tuple: bool,
    cls: type[GraphModule],
) -> Any:
    graph = Graph()
    values: dict[Node, Any] = {}
    for node in gm.graph.find_nodes(op="placeholder"):
        values[node] = graph.node_copy(node)
    moved: dict[str, str] = {}
    for part in parts.values():
        results = tuple(inside[node] for node in part.orig_outputs)
        alone = len(results) == 1 and not return_tuple
        part.graph.output(results[0] if alone else results)
        part.gm, names = lift_subgraph_as_module(gm, part.graph, comp_name=part.name)
        moved.update({old: new for new, old in names.items()})
        call = graph.call_module(part.name, tuple(values[n] for n in part.orig_inputs))
        for i, node in enumerate(part.orig_outputs):
            made = call if alone else graph.call_function(operator.getitem, (call, i))
            made.meta = copy.copy(node.meta)
            values[node] = made
    for used in output.all_input_nodes:
        if used.op == "get_attr":
            values[used] = graph.node_copy(used)
    made = graph.output(map_arg(output.args[0], values.__getitem__))
    made.meta = copy.copy(output.meta)
    graph.set_codegen(copy.deepcopy(gm.graph._codegen))
    root = HolderModule({part.name: part.gm for part in parts.values()})
    for node in graph.find_nodes(op="get_attr"):
        torch.fx.graph_module._copy_attr(gm, root, node.target)
    result = cls(root, graph)
    return (result, moved) if return_fqn_mapping else result


@compatibility(is_backward_compatible=False)
def move_non_tensor_nodes_on_boundary(subgraphs: list) -> None:
    """Moves values that are no tensors from a part of the accelerator to the part of the host
    before which they are needed, with what is computed from them there: a boundary carries
    tensors only."""
    place = {node: i for i, part in enumerate(subgraphs) for node in part.nodes}
    for i, part in enumerate(subgraphs):
        if not part.is_acc:
            continue
        for node in [n for n in part.nodes if n.op in CALLABLE_NODE_OPS]:
            if is_node_output_tensor(node) or place.get(node) != i:
                continue
            users = [u for u in node.users if u in place and place[u] != i]
            if users and all(place[u] > i for u in users if u in place):
                target = min(place[u] for u in users)
                for moved in _downstream(node, part.nodes):
                    part.nodes.remove(moved)
                    subgraphs[target].nodes.append(moved)
                    place[moved] = target
                subgraphs[target].nodes.sort()


def _downstream(node: Node, within: NodeList) -> NodeList:
    """A node and those of a list that are computed from it."""
    below = {node}
    for other in sorted(within):
        if any(i in below for i in other.all_input_nodes):
            below.add(other)
    return sorted(below)
