"""Turns a reference graph into operators on levels.

In the reference graph an operator stands between `dequantize` of its inputs and `quantize` of its
result. Each operator that has a kernel on levels takes both in. What is left computes in float."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.ao.nn import intrinsic, quantized
from torch.ao.nn.intrinsic import quantized as fused_quantized
from torch.ao.nn.quantized import dynamic, reference
from torch.ao.quantization.fx.match_utils import is_relu
from torch.ao.quantization.fx.utils import (
    collect_producer_nodes,
    get_new_attr_name_with_prefix,
    graph_module_from_producer_nodes,
)
from torch.fx import GraphModule, Node
from torch.nn import functional

__all__: list[str] = []

_NAMES = ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
STATIC = {getattr(reference, n): getattr(quantized, n) for n in ("Linear", *_NAMES)}
STATIC_FUSED = {
    intrinsic.LinearReLU: (reference.Linear, fused_quantized.LinearReLU),
    intrinsic.LinearLeakyReLU: (reference.Linear, fused_quantized.LinearLeakyReLU),
    intrinsic.LinearTanh: (reference.Linear, fused_quantized.LinearTanh),
    intrinsic.ConvReLU1d: (reference.Conv1d, fused_quantized.ConvReLU1d),
    intrinsic.ConvReLU2d: (reference.Conv2d, fused_quantized.ConvReLU2d),
    intrinsic.ConvReLU3d: (reference.Conv3d, fused_quantized.ConvReLU3d),
}
STATIC_TWO_INPUTS = {
    intrinsic.ConvAdd2d: (reference.Conv2d, fused_quantized.ConvAdd2d),
    intrinsic.ConvAddReLU2d: (reference.Conv2d, fused_quantized.ConvAddReLU2d),
}
DYNAMIC = {
    getattr(reference, n): getattr(dynamic, n)
    for n in ("Linear", "GRUCell", "LSTMCell", "RNNCell", "LSTM", "GRU", *_NAMES)
}
DYNAMIC_FUSED = {intrinsic.LinearReLU: (reference.Linear, fused_quantized.dynamic.LinearReLU)}
WEIGHT_ONLY = {
    reference.Embedding: quantized.Embedding,
    reference.EmbeddingBag: quantized.EmbeddingBag,
}
# Modules without weights in levels whose results have a grid of their own.
ON_GRID = {
    **{
        getattr(nn, n): getattr(quantized, n)
        for n in (
            "BatchNorm2d BatchNorm3d ELU LeakyReLU Hardswish InstanceNorm1d InstanceNorm2d "
            "InstanceNorm3d LayerNorm Dropout Softmax PReLU GroupNorm"
        ).split()
    },
    intrinsic.BNReLU2d: fused_quantized.BNReLU2d,
    intrinsic.BNReLU3d: fused_quantized.BNReLU3d,
}
ON_GRID_FUNCTIONS = {
    functional.hardswish: torch.ops.quantized.hardswish,
    functional.layer_norm: torch.ops.quantized.layer_norm,
    functional.group_norm: torch.ops.quantized.group_norm,
    functional.instance_norm: torch.ops.quantized.instance_norm,
    functional.elu: torch.ops.quantized.elu,
    functional.leaky_relu: torch.ops.quantized.leaky_relu,
    functional.dropout: torch.ops.quantized.dropout,
}
BINARY = {
    operator.add: "add",
    torch.add: "add",
    operator.mul: "mul",
    torch.mul: "mul",
    torch.matmul: "matmul",
}
_CONVS = {
    getattr(functional, f"conv{kind}{dims}d"): (f"conv{kind}{dims}d", dims)
    for kind in ("", "_transpose")
    for dims in (1, 2, 3)
}
# Operators that compute on quantized tensors as they are; the grid of the result is that of the
# input, or is known.
_FIXED = {torch.sigmoid, torch.tanh, functional.hardsigmoid, functional.sigmoid, functional.tanh}
_FIXED_METHODS = {"sigmoid", "sigmoid_", "tanh", "tanh_", "hardsigmoid", "hardsigmoid_"}


def _tables() -> tuple[set[type], set[Callable], set[str]]:
    from torch.ao.quantization.backend_config import _patterns

    modules = {getattr(nn, n) for n in _patterns._SHARED_MODULES.split()}
    modules |= {nn.Hardsigmoid, nn.Sigmoid, nn.Tanh, nn.Softmax}
    functions = {getattr(functional, n) for n in _patterns._SHARED_FUNCTIONS.split()}
    functions |= {getattr(torch, n) for n in _patterns._SHARED_TORCH.split()}
    functions |= {torch.cat, operator.floordiv, torch.relu, *_FIXED}
    methods = {*_patterns._SHARED_METHODS.split(), *_FIXED_METHODS}
    return modules, functions, methods


_SIZE_METHODS = {"size", "dim", "numel"}
_SIZE_ATTRIBUTES = {"shape", "ndim"}


def _is_dequantize(node: object) -> bool:
    return isinstance(node, Node) and node.op == "call_method" and node.target == "dequantize"


def _is_rounding(node: object) -> bool:
    return (
        isinstance(node, Node)
        and node.op == "call_function"
        and node.target is torch.quantize_per_tensor
    )


@dataclass
class _Lowering:
    model: GraphModule
    qconfigs: dict[str, Any]  # by the names of nodes
    scopes: dict[str, tuple[str, type]]

    def __post_init__(self) -> None:
        self.dynamic: set[str] = set()  # modules that compute on levels found at run time
        self.modules = dict(self.model.named_modules(remove_duplicate=False))
        self.shared_modules, self.shared_functions, self.shared_methods = _tables()

    def module(self, node: Node) -> nn.Module | None:
        return self.modules.get(str(node.target)) if node.op == "call_module" else None

    def put(self, path: str, made: nn.Module) -> None:
        parent, _, name = path.rpartition(".")
        setattr(self.model.get_submodule(parent), name, made)
        self.modules[path] = made

    def number(self, node: object) -> Any:
        """The value of a scale or zero point."""
        return getattr(self.model, node.target) if isinstance(node, Node) else node

    def finish(self, rounding: Node, made: Node) -> None:
        rounding.replace_all_uses_with(made)
        self.model.graph.erase_node(rounding)
        self.model.graph.eliminate_dead_code()

    def stays(self, node: Node) -> bool:
        """Whether an operator was chosen not to be quantized: its inputs and its result may be on
        levels for its neighbours' sake."""
        return self.qconfigs.get(node.name, node) is None

    # ---- static
    def static(self) -> None:
        for rounding in list(self.model.graph.nodes):
            if not _is_rounding(rounding) or rounding.graph is not self.model.graph:
                continue
            source = rounding.args[0]
            if not isinstance(source, Node) or len(source.users) != 1:
                continue
            if self.stays(self._called(source)[0]):
                continue
            for attempt in (
                self.weighted_module,
                self.two_inputs,
                self.weighted_function,
                self.binary,
                self.on_grid_module,
                self.on_grid_function,
                self.as_it_is,
            ):
                if attempt(source, rounding):
                    break

    def _called(self, source: Node) -> tuple[Node, bool]:
        """The operator behind a value and whether an activation follows it."""
        if is_relu(source, self.modules):
            inner = source.args[0]
            if isinstance(inner, Node) and not _is_dequantize(inner) and len(inner.users) == 1:
                return inner, True
        return source, False

    def weighted_module(self, source: Node, rounding: Node) -> bool:
        module = self.module(source)
        if module is None or not source.args or not _is_dequantize(source.args[0]):
            return False
        kind = type(module)
        if kind in STATIC_FUSED and type(module[0]) is STATIC_FUSED[kind][0]:
            target = STATIC_FUSED[kind][1]
        elif kind in STATIC:
            target = STATIC[kind]
        else:
            return False
        grid = self.number(rounding.args[1]), self.number(rounding.args[2])
        self.put(str(source.target), target.from_reference(module, *grid))
        source.args = (source.args[0].args[0], *source.args[1:])
        self.finish(rounding, source)
        return True

    def two_inputs(self, source: Node, rounding: Node) -> bool:
        module = self.module(source)
        entry = STATIC_TWO_INPUTS.get(type(module))
        if entry is None or not all(_is_dequantize(arg) for arg in source.args[:2]):
            return False
        if type(module[0]) is not entry[0]:
            return False
        grid = self.number(rounding.args[1]), self.number(rounding.args[2])
        self.put(str(source.target), entry[1].from_reference(module, *grid))
        source.args = tuple(arg.args[0] for arg in source.args[:2])
        self.finish(rounding, source)
        return True

    def weighted_function(self, source: Node, rounding: Node) -> bool:
        call, relu = self._called(source)
        if call.op != "call_function" or not call.args or not _is_dequantize(call.args[0]):
            return False
        packed = self.packed(call)
        if packed is None:
            return False
        name = "linear" if call.target is functional.linear else _CONVS[call.target][0]
        if relu and "transpose" in name:
            return False
        run = getattr(torch.ops.quantized, f"{name}_relu" if relu else name)
        with self.model.graph.inserting_before(rounding):
            made = self.model.graph.call_function(
                run, (call.args[0].args[0], packed, rounding.args[1], rounding.args[2])
            )
        self.finish(rounding, made)
        return True

    def packed(self, call: Node) -> Node | None:
        """The attribute with the packed weight of a product; None where it is no constant."""
        names = ["input", "weight", "bias", "stride", "padding"]
        transposed = call.target in _CONVS and "transpose" in _CONVS[call.target][0]
        if transposed:
            names += ["output_padding", "groups", "dilation"]
        else:
            names += ["dilation", "groups"]
        given = {**dict(zip(names, call.args, strict=False)), **call.kwargs}
        weight, bias = given.get("weight"), given.get("bias")
        values = []
        for value in (weight.args[0] if _is_dequantize(weight) else None, bias):
            if isinstance(value, Node):
                nodes = collect_producer_nodes(value)
                if nodes is None:
                    return None
                values.append(graph_module_from_producer_nodes(self.model, nodes)())
            else:
                values.append(None)
        if values[0] is None:
            return None
        tensor = values[1].detach() if values[1] is not None else None
        made = self._pack(call, values[0], tensor, given, transposed)
        return None if made is None else self._attribute(call, made)

    def _pack(
        self, call: Node, weight: object, bias: object, given: dict[str, Any], transposed: bool
    ) -> object:
        ops = torch.ops.quantized
        if call.target is functional.linear:
            if weight.dtype is torch.float16:
                return ops.linear_prepack_fp16(weight.float(), bias)
            return ops.linear_prepack(weight.detach(), bias)
        if call.target not in _CONVS:
            return None
        name, dims = _CONVS[call.target]

        def sizes(key: str, default: int) -> list[int]:
            value = given.get(key, default)
            return [value] * dims if isinstance(value, int) else list(value)

        lists = [sizes("stride", 1), sizes("padding", 0)]
        if transposed:
            lists.append(sizes("output_padding", 0))
        lists.append(sizes("dilation", 1))
        return getattr(ops, f"{name}_prepack")(
            weight.detach(), bias, *lists, given.get("groups", 1)
        )

    def _attribute(self, call: Node, value: object) -> Node:
        path = self.scopes.get(call.name, ("", None))[0]
        name = get_new_attr_name_with_prefix(f"{path}_packed_weight_")(self.model)
        setattr(self.model, name, value)
        self.model.meta.setdefault("packed_weights", set()).add(name)
        with self.model.graph.inserting_before(call):
            return self.model.graph.create_node("get_attr", name)

    def binary(self, source: Node, rounding: Node) -> bool:
        call, relu = self._called(source)
        if call.op != "call_function" or call.target not in BINARY or len(call.args) < 2:
            return False
        args = [a.args[0] if _is_dequantize(a) else a for a in call.args[:2]]
        tensors = [a for a in call.args[:2] if _is_dequantize(a)]
        if not tensors or any(isinstance(a, Node) and not _is_dequantize(a) for a in call.args[:2]):
            return False
        if call.kwargs:
            return False
        name = BINARY[call.target]
        run = getattr(torch.ops.quantized, f"{name}_relu" if relu else name, None)
        if name == "matmul" and relu:
            return False
        grid = (rounding.args[1], rounding.args[2]) if len(tensors) == 2 else ()
        with self.model.graph.inserting_before(rounding):
            made = self.model.graph.call_function(run, (*args, *grid))
        self.finish(rounding, made)
        return True

    def on_grid_module(self, source: Node, rounding: Node) -> bool:
        module = self.module(source)
        target = ON_GRID.get(type(module))
        if target is None or not source.args or not _is_dequantize(source.args[0]):
            return False
        if isinstance(module, nn.Softmax) and self.number(rounding.args[1]) == 1 / 256:
            return False
        grid = self.number(rounding.args[1]), self.number(rounding.args[2])
        self.put(str(source.target), target.from_reference(module, *grid))
        source.args = (source.args[0].args[0], *source.args[1:])
        self.finish(rounding, source)
        return True

    def on_grid_function(self, source: Node, rounding: Node) -> bool:
        if source.op != "call_function" or source.target not in ON_GRID_FUNCTIONS:
            return False
        if not source.args or not _is_dequantize(source.args[0]):
            return False
        run = ON_GRID_FUNCTIONS[source.target]
        args = _ordered(source)
        if args is None:
            return False
        head, tail = args
        values = (source.args[0].args[0], *head, rounding.args[1], rounding.args[2], *tail)
        with self.model.graph.inserting_before(rounding):
            made = self.model.graph.call_function(run, values)
        self.finish(rounding, made)
        return True

    def as_it_is(self, source: Node, rounding: Node) -> bool:
        """Operators that take quantized tensors and give them on the right grid by themselves."""
        known = (
            (source.op == "call_module" and type(self.module(source)) in self.shared_modules)
            or (source.op == "call_function" and source.target in self.shared_functions)
            or (source.op == "call_method" and source.target in self.shared_methods)
        )
        if not known or not source.args:
            return False
        first = source.args[0]
        if isinstance(first, list | tuple):
            if not all(_is_dequantize(value) for value in first) or not first:
                return False
            new: object = type(first)(value.args[0] for value in first)
        elif _is_dequantize(first):
            new = first.args[0]
        else:
            return False
        source.args = (new, *source.args[1:])
        self.finish(rounding, source)
        return True

    # ---- dynamic and weights alone
    def at_run_time(self) -> None:
        for node in list(self.model.graph.nodes):
            if node.op == "call_module":
                self._dynamic_module(node)
                self._weight_only(node)
            elif node.op == "call_function" and node.target is functional.linear:
                self._dynamic_linear(node)

    def _found_at_run_time(self, value: object) -> tuple[Node, Node] | None:
        """(what is quantized, the node that quantizes) behind a dequantized value."""
        if not _is_dequantize(value) or not isinstance(value.args[0], Node):
            return None
        rounding = value.args[0]
        if rounding.target is torch.quantize_per_tensor_dynamic:
            return rounding.args[0], rounding
        half = rounding.op == "call_method" and rounding.target == "to"
        if half and rounding.args[1] is torch.float16:
            return rounding.args[0], rounding
        return None

    def _dynamic_module(self, node: Node) -> None:
        module = self.module(node)
        kind = type(module)
        found = self._found_at_run_time(node.args[0]) if node.args else None
        if found is None or self.stays(node):
            return
        path = str(node.target)
        if path in self.dynamic:  # called more than once
            target = None
        elif kind in DYNAMIC_FUSED and type(module[0]) is DYNAMIC_FUSED[kind][0]:
            target = DYNAMIC_FUSED[kind][1]
        elif kind in DYNAMIC:
            target = DYNAMIC[kind]
        else:
            return
        if target is not None:
            self.put(path, target.from_reference(module))
            self.dynamic.add(path)
        for value in list(node.all_input_nodes):
            inner = self._found_at_run_time(value)
            if inner is not None:
                node.replace_input_with(value, inner[0])

    def _weight_only(self, node: Node) -> None:
        module = self.module(node)
        target = WEIGHT_ONLY.get(type(module))
        if target is not None:
            self.put(str(node.target), target.from_reference(module))

    def _dynamic_linear(self, node: Node) -> None:
        found = self._found_at_run_time(node.args[0])
        if found is None:
            return
        packed = self.packed(node)
        if packed is None:
            return
        source, rounding = found
        users = list(node.users)
        relu = len(users) == 1 and is_relu(users[0], self.modules)
        half = rounding.op == "call_method"
        name = ("linear_relu" if relu else "linear") + ("_dynamic_fp16" if half else "_dynamic")
        args = (source, packed) if half else (source, packed, rounding.args[2])
        last = users[0] if relu else node
        with self.model.graph.inserting_before(last):
            made = self.model.graph.call_function(getattr(torch.ops.quantized, name), args)
        last.replace_all_uses_with(made)
        self.model.graph.eliminate_dead_code()

    # ---- leftovers
    def rounding_pairs(self) -> None:
        """Rounding to a grid of what lies on that grid already does nothing."""
        for rounding in list(self.model.graph.nodes):
            if not _is_rounding(rounding) or not _is_dequantize(rounding.args[0]):
                continue
            levels = rounding.args[0].args[0]
            same = (
                _is_rounding(levels)
                and self.number(levels.args[1]) == self.number(rounding.args[1])
                and self.number(levels.args[2]) == self.number(rounding.args[2])
                and levels.args[3] is rounding.args[3]
            )
            if same:
                self.finish(rounding, levels)

    def sizes(self) -> None:
        """Sizes are asked of the levels: no real numbers are needed for them."""
        for node in list(self.model.graph.nodes):
            asks = (node.op == "call_method" and node.target in _SIZE_METHODS) or (
                node.op == "call_function"
                and node.target is getattr
                and node.args[1] in _SIZE_ATTRIBUTES
            )
            if asks and _is_dequantize(node.args[0]):
                node.args = (node.args[0].args[0], *node.args[1:])

    def one_dequantize(self) -> None:
        """Users of the same dequantized value share one node again."""
        first: dict[Node, Node] = {}
        for node in list(self.model.graph.nodes):
            if _is_dequantize(node) and isinstance(node.args[0], Node):
                kept = first.setdefault(node.args[0], node)
                if kept is not node:
                    node.replace_all_uses_with(kept)
                    self.model.graph.erase_node(node)


def _ordered(node: Node) -> tuple[list[object], list[object]] | None:
    """The arguments of an operator with a grid: those before the grid and those behind it."""
    import inspect

    names = list(inspect.signature(node.target).parameters)
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    target = node.target
    if target is functional.hardswish:
        return [], []
    if target is functional.elu:
        return [], [given.get("alpha", 1.0)]
    if target is functional.leaky_relu:
        return [given.get("negative_slope", 0.01), given.get("inplace", False)], []
    if target is functional.dropout:
        return [], [given.get("p", 0.5), given.get("training", True)]
    eps = given.get("eps", 1e-5)
    parts = [given.get("weight"), given.get("bias"), eps]
    if target is functional.layer_norm:
        return [given["normalized_shape"], *parts], []
    if target is functional.group_norm:
        return [given["num_groups"], *parts], []
    if target is functional.instance_norm:
        return parts, []
    return None


def _lower_to_native_backend(
    model: GraphModule,
    qconfig_map: dict[str, Any],
    node_name_to_scope: dict[str, tuple[str, type]],
    keep_original_weights: bool = False,
) -> GraphModule:
    """The graph with operators on levels."""
    lowering = _Lowering(model, qconfig_map, node_name_to_scope)
    lowering.static()
    lowering.at_run_time()
    lowering.rounding_pairs()
    lowering.sizes()
    model.graph.eliminate_dead_code()
    lowering.one_dequantize()
    model.graph.lint()
    names = model.meta.pop("packed_weights", set())
    if names:
        from torch.ao.quantization.fx._packed_state import keep_packed_weights

        keep_packed_weights(model, names)
    return model
