"""Small questions about graphs that the steps of the flow share."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.ao.quantization.observer import _is_activation_post_process
from torch.fx import Graph, GraphModule, Node

__all__ = [
    "all_node_args_except_first",
    "all_node_args_have_no_tensors",
    "assert_and_get_unique_device",
    "get_custom_module_class_keys",
    "get_linear_prepack_op_for_dtype",
    "get_new_attr_name_with_prefix",
    "get_qconv_prepack_op",
    "graph_module_from_producer_nodes",
    "node_arg_is_bias",
    "node_arg_is_weight",
    "return_arg_list",
]


class NodeInfo(NamedTuple):
    """A kind of node: what it does and to which target."""

    op: str
    target: Any


_NO_TENSOR_METHODS = {"size", "dim", "ndimension", "numel", "stride", "item", "tolist", "is_cuda"}
_NO_TENSOR_ATTRIBUTES = {"shape", "dtype", "device", "ndim", "layout", "requires_grad"}
_NO_TENSOR_FUNCTIONS = {len, torch.numel, isinstance}
_ARITHMETIC = {
    operator.add,
    operator.sub,
    operator.mul,
    operator.floordiv,
    operator.truediv,
    operator.mod,
    operator.getitem,
    operator.neg,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.gt,
    int,
    float,
    max,
    min,
    tuple,
    list,
}


def _get_module(node: Node, named_modules: dict[str, nn.Module]) -> nn.Module | None:
    """The module that a node calls."""
    return named_modules.get(str(node.target)) if node.op == "call_module" else None


def all_node_args_have_no_tensors(
    node: Node, modules: dict[str, nn.Module], cache: dict[Node, bool]
) -> bool:
    """Whether a node computes with sizes and other plain values alone."""
    if node not in cache:
        cache[node] = _has_no_tensor(node, modules, cache)
    return cache[node]


def _has_no_tensor(node: Node, modules: dict[str, nn.Module], cache: dict[Node, bool]) -> bool:
    if node.op in ("placeholder", "output"):
        return False
    if node.op == "get_attr":
        return False
    if node.op == "call_module":
        if _is_activation_post_process(modules.get(str(node.target))):
            return all_node_args_have_no_tensors(node.args[0], modules, cache)
        return False
    if node.op == "call_method":
        return node.target in _NO_TENSOR_METHODS
    if node.target is getattr:
        return node.args[1] in _NO_TENSOR_ATTRIBUTES
    if node.target in _NO_TENSOR_FUNCTIONS:
        return True
    if node.target in _ARITHMETIC:
        inputs = list(node.all_input_nodes)
        return all(all_node_args_have_no_tensors(n, modules, cache) for n in inputs)
    return False


def get_custom_module_class_keys(mapping: dict[str, dict[type, type]]) -> list[type]:
    """All classes that have a replacement."""
    return [kind for classes in mapping.values() for kind in classes]


def get_linear_prepack_op_for_dtype(dtype: torch.dtype) -> Callable:
    """What packs a weight of a dtype."""
    ops = torch.ops.quantized
    if dtype is torch.float16:
        return ops.linear_prepack_fp16
    if dtype is torch.qint8:
        return ops.linear_prepack
    raise Exception(f"can't get linear prepack op for dtype: {dtype}")


def get_qconv_prepack_op(conv_op: Callable) -> Callable:
    """What packs the weight of a convolution."""
    names = {
        getattr(nn.functional, f"conv{kind}{dims}d"): f"conv{kind}{dims}d_prepack"
        for kind in ("", "_transpose")
        for dims in (1, 2, 3)
    }
    if conv_op not in names:
        raise AssertionError(f"Didn't find prepack op for {conv_op}")
    return getattr(torch.ops.quantized, names[conv_op])


def get_new_attr_name_with_prefix(prefix: str) -> Callable[[nn.Module], str]:
    """A function that finds a free name of a module: the prefix and a number."""
    clean = prefix.replace(".", "_")

    def fresh(module: nn.Module) -> str:
        number = 0
        while hasattr(module, f"{clean}{number}"):
            number += 1
        return f"{clean}{number}"

    return fresh


def assert_and_get_unique_device(module: nn.Module) -> torch.device | None:
    """The device of a module; raises where it is on several."""
    devices = {t.device for t in [*module.parameters(), *module.buffers()]}
    if len(devices) > 1:
        raise AssertionError(
            f"prepare only works with cpu or single-device CUDA modules, but got devices {devices}"
        )
    return next(iter(devices)) if devices else None


def create_getattr_from_value(module: nn.Module, graph: Graph, prefix: str, value: Any) -> Node:
    """A buffer with a value, and the node that reads it."""
    name = get_new_attr_name_with_prefix(prefix)(module)
    device = assert_and_get_unique_device(module)
    tensor = value.detach().clone() if isinstance(value, torch.Tensor) else torch.tensor(value)
    module.register_buffer(name, tensor.to(device) if device is not None else tensor)
    return graph.create_node("get_attr", name)


def collect_producer_nodes(node: Node) -> list[Node] | None:
    """The nodes behind a value, last first; None where an input of the graph is among them."""
    found, frontier = [node], [node]
    while frontier:
        for source in frontier.pop().all_input_nodes:
            if source.op == "placeholder":
                return None
            if source not in found:
                found.append(source)
                frontier.append(source)
    return found


def graph_module_from_producer_nodes(root: GraphModule, producer_nodes: list[Node]) -> GraphModule:
    """A graph that computes one value from attributes."""
    wanted = set(producer_nodes)
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in root.graph.nodes:
        if node in wanted:
            copies[node] = graph.node_copy(node, lambda n: copies[n])
    graph.output(copies[producer_nodes[0]])
    return GraphModule(root, graph)


def return_arg_list(arg_indices: list[int]) -> Callable[[Node], list[int]]:
    """A function that gives those of some positions that a node has."""

    def places(node: Node) -> list[int]:
        return [i for i in arg_indices if i < len(node.args)]

    return places


def all_node_args_except_first(node: Node) -> list[int]:
    """The positions of all arguments but the first."""
    return list(range(1, len(node.args)))


def _place_of(node: Node, arg: Any, config: Any) -> str | None:
    table = config._input_type_to_index if config is not None else {}
    for kind, index in table.items():
        if index < len(node.args) and node.args[index] is arg:
            return kind
    for kind in ("weight", "bias"):
        if node.kwargs.get(kind) is arg and (table or kind in node.kwargs):
            return kind
    return None


def node_arg_is_weight(node: Node, arg: Any) -> bool:
    """Whether an argument is the weight of its node."""
    return _place_of(node, arg, node.meta.get("backend_config")) == "weight"


def node_arg_is_bias(node: Node, arg: Any) -> bool:
    """Whether an argument is the bias of its node."""
    return _place_of(node, arg, node.meta.get("backend_config")) == "bias"


def _reroute_tuple_getitem_pattern(graph: Graph) -> None:
    """Lets users of an element of a tuple that was just made use the element itself."""
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target is not operator.getitem:
            continue
        value, path = node, []
        while isinstance(value, Node) and value.target is operator.getitem:
            path.append(value.args[1])
            value = value.args[0]
            while path and isinstance(value, Node) and value.target is tuple:
                value = value.args[0][path.pop()]
        if not path and isinstance(value, Node) and value is not node:
            node.replace_all_uses_with(value)
    graph.eliminate_dead_code()
