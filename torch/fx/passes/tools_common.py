"""Names of targets, order of nodes, and the groups of nodes that belong together because what flows
between them is no tensor."""

import heapq
from collections.abc import Mapping
from typing import Any

import torch
import torch.fx
from torch.fx._compatibility import compatibility

__all__ = [
    "FxNetAccFusionsFinder",
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]

Tensors = tuple[torch.Tensor] | list[torch.Tensor]
TensorOrTensors = torch.Tensor | Tensors
NodeList = list[torch.fx.Node]
NodeSet = set[torch.fx.Node]
Names = list[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


@compatibility(is_backward_compatible=False)
def get_acc_ops_name(k: Any) -> str:
    """The name of a function as tables of supported targets write it."""
    if isinstance(k, str):
        return k
    home = getattr(k, "__module__", None)
    if home and "acc_ops" in home:
        return f"acc_ops.{k.__name__}"
    short = home.replace("torch._ops", "torch.ops") if home else ""
    return f"{short}.{k.__name__}"


@compatibility(is_backward_compatible=False)
def get_node_target(submodules: Mapping[str, torch.nn.Module], node: torch.fx.Node) -> str:
    """What a node calls: the type of a module, the qualified name of a function, or a method."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(
            f"Expect op types of {', '.join(CALLABLE_NODE_OPS)}, but found {node.op}"
        )
    if node.op == "call_module":
        module = submodules[node.target]
        return torch.typename(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_function":
        module = getattr(node.target, "__module__", None) or ""
        if "acc_ops" in module:
            return get_acc_ops_name(node.target)
        from torch.fx.node import _get_qualified_name

        return _get_qualified_name(node.target)
    return node.target


@compatibility(is_backward_compatible=False)
def is_node_output_tensor(node: torch.fx.Node) -> bool:
    """Whether the type noted on a node is that of a tensor."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, torch.Tensor)


# ---- order
def _sorted_nodes(graph: torch.fx.Graph) -> NodeList | None:
    """The nodes with inputs before users, otherwise in their order; None where there is a cycle."""
    place = {node: i for i, node in enumerate(graph.nodes)}
    by_place = list(place)
    missing = {node: len(node.all_input_nodes) for node in by_place}
    ready = [place[node] for node, count in missing.items() if count == 0]
    heapq.heapify(ready)
    out: NodeList = []
    while ready:
        node = by_place[heapq.heappop(ready)]
        out.append(node)
        for user in node.users:
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(ready, place[user])
    return out if len(out) == len(by_place) else None


@compatibility(is_backward_compatible=False)
def stable_topological_sort(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Puts inputs before users and keeps the order otherwise."""
    order = _sorted_nodes(gm.graph)
    if order is None:
        raise RuntimeError("Input graph has cycles, unable to sort its nodes topologically")
    for node in order:
        gm.graph._root.prepend(node)
    return gm


@compatibility(is_backward_compatible=False)
def legalize_graph(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Puts inputs before users after an edit that lost the order; returns the module."""
    order = _sorted_nodes(gm.graph)
    if order is None:
        raise RuntimeError("Input graph has cycles, unable to add [...] to the new graph")
    output = [node for node in order if node.op == "output"]
    for node in [n for n in order if n.op != "output"] + output:
        gm.graph._root.prepend(node)
    return gm


# ---- groups
@compatibility(is_backward_compatible=False)
class FxNetAccFusionsFinder:
    """Groups of nodes that must go to the same side: a value that is no tensor cannot cross from
    the accelerator to the host, so its maker and users stay together."""

    def __init__(self, module: torch.fx.GraphModule, acc_nodes: NodeSet) -> None:
        self.module = module
        self.nodes = list(module.graph.nodes)
        self.acc_nodes = acc_nodes

    def _group_of(self, start: torch.fx.Node) -> NodeSet:
        """What is tied to a node by values that are no tensors, with everything between."""
        tied = {start}
        todo = [start]
        while todo:
            node = todo.pop()
            near = list(node.users) if not is_node_output_tensor(node) else []
            near += [n for n in node.all_input_nodes if not is_node_output_tensor(n)]
            for other in near:
                if other.op in CALLABLE_NODE_OPS and other not in tied:
                    tied.add(other)
                    todo.append(other)
        return tied | self._between(tied)

    def _between(self, group: NodeSet) -> NodeSet:
        """Nodes on paths that leave the group and come back."""
        first, last = min(group), max(group)
        window = [n for n in self.nodes if first < n < last and n.op in CALLABLE_NODE_OPS]
        below: NodeSet = set()
        for node in window:
            if any(i in group or i in below for i in node.all_input_nodes):
                below.add(node)
        above: NodeSet = set()
        for node in reversed(window):
            if any(u in group or u in above for u in node.users):
                above.add(node)
        return (below & above) - group

    def __call__(self) -> dict[torch.fx.Node, NodeSet]:
        """{node: its group} for the accelerator's nodes that have one; groups that hold a node
        of the host leave the accelerator."""
        result: dict[torch.fx.Node, NodeSet] = {}
        for node in list(self.acc_nodes):
            if node in result or node.op not in CALLABLE_NODE_OPS or "tensor_meta" in node.meta:
                continue
            if node not in self.acc_nodes:
                continue
            group = self._group_of(node)
            for other in list(group):
                group |= result.get(other, set())
            if group <= self.acc_nodes:
                result.update(dict.fromkeys(group, group))
            else:
                self.acc_nodes -= group
        return result
