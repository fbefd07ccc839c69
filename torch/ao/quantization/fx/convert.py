"""Turns observers into rounding to levels and back, and layers with weights into reference ones;
the graph that results says in float arithmetic what quantized operators compute."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.ao.quantization.backend_config import BackendConfig, get_native_backend_config
from torch.ao.quantization.backend_config.utils import (
    get_root_module_to_quantized_reference_module,
)
from torch.ao.quantization.fx.custom_config import ConvertCustomConfig
from torch.ao.quantization.fx.graph_module import (
    ATTRS_KEY,
    ObservedGraphModuleAttrs,
    _is_observed_standalone_module,
)
from torch.ao.quantization.fx.utils import create_getattr_from_value
from torch.ao.quantization.observer import (
    NoopObserver,
    PlaceholderObserver,
    _is_activation_post_process,
)
from torch.ao.quantization.qconfig_mapping import QConfigMapping
from torch.ao.quantization.utils import (
    get_qparam_dict,
    get_swapped_custom_module_class,
    is_per_channel,
    to_underlying_dtype,
)
from torch.fx import GraphModule, Node
from torch.nn.utils.parametrize import type_before_parametrizations

__all__ = ["convert"]

_RECURRENT = (nn.LSTM, nn.GRU)
_CELLS = (nn.LSTMCell, nn.GRUCell, nn.RNNCell)
_STATIC = (
    torch.quint8,
    torch.qint8,
    torch.qint32,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.float8_e5m2,
    torch.float8_e4m3fn,
)


class _Rounding:
    """Writes the nodes that round to levels and back, in quantized tensors or on plain integers."""

    def __init__(self, model: GraphModule, decomposed: bool) -> None:
        self.model, self.decomposed = model, decomposed

    def attribute(self, prefix: str, value: object) -> Node:
        return create_getattr_from_value(self.model, self.model.graph, prefix, value)

    def static(self, node: Node, watcher: nn.Module, prefix: str) -> Node:
        """The value of a node on the grid of its observer."""
        graph = self.model.graph
        grid = get_qparam_dict(watcher)
        scale, zero, dtype = grid["scale"], grid["zero_point"], watcher.dtype
        channels = is_per_channel(watcher.qscheme)
        if self.decomposed:
            return self._decomposed(node, watcher, grid, prefix)
        if channels:
            real = watcher.qscheme is torch.per_channel_affine_float_qparams
            numbers = [
                self.attribute(f"{prefix}_scale_", scale.float()),
                self.attribute(f"{prefix}_zero_point_", zero if real else zero.long()),
            ]
            args = (node, *numbers, grid["axis"], dtype)
            levels = graph.call_function(torch.quantize_per_channel, args)
        else:
            numbers = [
                self.attribute(f"{prefix}_scale_", float(scale)),
                self.attribute(f"{prefix}_zero_point_", int(zero)),
            ]
            levels = graph.call_function(torch.quantize_per_tensor, (node, *numbers, dtype))
        return graph.call_method("dequantize", (levels,))

    def _decomposed(
        self, node: Node, watcher: nn.Module, grid: dict[str, Any], prefix: str
    ) -> Node:
        graph, ops = self.model.graph, torch.ops.quantized_decomposed
        limits = (watcher.quant_min, watcher.quant_max, to_underlying_dtype(watcher.dtype))
        if is_per_channel(watcher.qscheme):
            numbers = (
                self.attribute(f"{prefix}_scale_", grid["scale"].float()),
                self.attribute(f"{prefix}_zero_point_", grid["zero_point"]),
                grid["axis"],
            )
            forth, back = ops.quantize_per_channel.default, ops.dequantize_per_channel.default
        else:
            numbers = (float(grid["scale"]), int(grid["zero_point"]))
            forth, back = ops.quantize_per_tensor.default, ops.dequantize_per_tensor.default
        levels = graph.call_function(forth, (node, *numbers, *limits))
        return graph.call_function(back, (levels, *numbers, *limits))

    def dynamic(self, node: Node, watcher: nn.Module) -> Node:
        """The value of a node on a grid that is found at run time."""
        graph, ops = self.model.graph, torch.ops.quantized_decomposed
        if not self.decomposed:
            reduce = torch.backends.quantized.engine in ("fbgemm", "x86")
            args = (node, watcher.dtype, reduce)
            levels = graph.call_function(torch.quantize_per_tensor_dynamic, args)
            return graph.call_method("dequantize", (levels,))
        symmetric = watcher.qscheme is torch.per_tensor_symmetric
        choose = ops.choose_qparams_symmetric if symmetric else ops.choose_qparams
        low, high = watcher.quant_min, watcher.quant_max
        eps = float(getattr(watcher, "eps", None) or torch.finfo(torch.float32).eps)
        dtype = to_underlying_dtype(watcher.dtype)
        pair = graph.call_function(choose.tensor, (node, low, high, eps, dtype))
        import operator

        numbers = [graph.call_function(operator.getitem, (pair, i)) for i in range(2)]
        args = (*numbers, low, high, dtype)
        levels = graph.call_function(ops.quantize_per_tensor.tensor, (node, *args))
        return graph.call_function(ops.dequantize_per_tensor.tensor, (levels, *args))

    def half(self, node: Node) -> Node:
        """The value of a node as float16."""
        graph = self.model.graph
        if self.decomposed:
            convert = torch.ops.quantized_decomposed.convert_element_type.no_fuse
            small = graph.call_function(convert, (node, torch.float16))
            return graph.call_function(convert, (small, torch.float))
        return graph.call_method("dequantize", (graph.call_method("to", (node, torch.float16)),))


def _prefix(observer: Node, scopes: dict[str, tuple[str, type]]) -> str:
    """What the attributes of a grid are named after: the module that made the value, or the one
    that an input of the graph goes to."""

    def path(node: Node) -> str:
        if node.op == "call_module":
            return str(node.target)
        return scopes.get(node.name, ("", None))[0]

    source = observer.args[0]
    if source.op == "placeholder":
        users = [u for u in observer.users if u.op != "output"]
        first = path(users[0]) if users else ""
        return f"{first}_input"
    return path(source)


def _replace_observer(
    model: GraphModule, node: Node, rounding: _Rounding, scopes: dict[str, tuple[str, type]]
) -> None:
    watcher = model.get_submodule(str(node.target))
    source = node.args[0]
    with model.graph.inserting_before(node):
        dtype = getattr(watcher, "dtype", torch.float)
        if getattr(watcher, "is_dynamic", False) and dtype in _STATIC:
            made = rounding.dynamic(source, watcher)
        elif isinstance(watcher, NoopObserver) or dtype in (torch.float, torch.bfloat16):
            made = source
        elif dtype is torch.float16:
            made = rounding.half(source)
        elif isinstance(watcher, PlaceholderObserver):
            made = source
        elif dtype in (*_STATIC, torch.quint4x2):
            prefix = _prefix(node, scopes)
            made = rounding.static(source, watcher, prefix)
        else:
            made = source
    node.replace_all_uses_with(made)
    model.graph.erase_node(node)


# ---- layers with weights
def _watched_weight(layer: nn.Module, name: str, qconfig: object) -> dict[str, Any]:
    watcher = qconfig.weight()
    weight = getattr(layer, name).detach()
    watcher.to(weight.device)
    watcher(weight)
    return get_qparam_dict(watcher)


def _recurrent(module: nn.Module, target: type, qconfig: object, decomposed: bool) -> nn.Module:
    grids = {
        name: _watched_weight(module, name, qconfig)
        for name, _ in module.named_parameters()
        if name.startswith("weight")
    }
    return target.from_float(module, {**grids, "is_decomposed": decomposed})


def _weighted(
    model: GraphModule,
    path: str,
    table: dict[type, type],
    decomposed: bool,
) -> None:
    """Replaces a layer with a weight by its reference form."""
    module = model.get_submodule(path)
    qconfig = getattr(module, "qconfig", None)
    if qconfig is None:
        return
    trained = getattr(module, "weight_fake_quant", None)
    if trained is not None:
        grid = get_qparam_dict(trained)
        module = module.to_float()
        _set(model, path, module)
    inner = module[0] if isinstance(module, nn.Sequential) else module
    target = table.get(type_before_parametrizations(inner))
    if target is None:
        return
    if isinstance(inner, (*_RECURRENT, *_CELLS)):
        _set(model, path, _recurrent(inner, target, qconfig, decomposed))
        return
    if trained is None:
        grid = _watched_weight(inner, "weight", qconfig)
    made = target.from_float(inner, {**grid, "is_decomposed": decomposed})
    made.train(inner.training)
    if inner is module:
        _set(model, path, made)
    else:
        module[0] = made


def _set(model: nn.Module, path: str, made: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, made)


# ---- borders
def _levels_of(value: object) -> object:
    """The quantized tensor behind a dequantized value."""
    if isinstance(value, Node) and value.op == "call_method" and value.target == "dequantize":
        return value.args[0]
    return value


def _border_inputs(model: GraphModule, indexes: list[int]) -> None:
    """Inputs that are quantized tensors are dequantized behind the border."""
    places = [n for n in model.graph.nodes if n.op == "placeholder"]
    for index in indexes:
        node = places[index]
        with model.graph.inserting_after(node):
            made = model.graph.call_method("dequantize", (node,))
        node.replace_all_uses_with(made, lambda user, made=made: user is not made)


def _border_outputs(model: GraphModule, indexes: list[int]) -> None:
    """Outputs that stay quantized give up their last dequantize."""
    output = next(n for n in reversed(list(model.graph.nodes)) if n.op == "output")
    given = output.args[0]
    values = list(given) if isinstance(given, tuple | list) else [given]
    for index in indexes:
        if index < len(values):
            values[index] = _levels_of(values[index])
    output.args = (type(given)(values) if isinstance(given, tuple | list) else values[0],)


def _part(
    model: GraphModule, node: Node, convert_part: Callable[[GraphModule], GraphModule]
) -> None:
    """Converts a module that is quantized by itself."""
    child = model.get_submodule(str(node.target))
    if not _is_observed_standalone_module(child):
        return
    attrs: ObservedGraphModuleAttrs = child.meta[ATTRS_KEY]
    args = list(node.args)
    for index in attrs.standalone_module_input_quantized_idxs:
        if index < len(args):
            args[index] = _levels_of(args[index])
    node.args = tuple(args)
    if attrs.standalone_module_output_quantized_idxs:
        with model.graph.inserting_after(node):
            made = model.graph.call_method("dequantize", (node,))
        node.replace_all_uses_with(made, lambda user: user is not made)
    _set(model, str(node.target), convert_part(child))


def _custom(model: GraphModule, node: Node, table: dict[object, dict[type, type]]) -> None:
    """Replaces a module of the user's, which takes and gives quantized tensors."""
    module = model.get_submodule(str(node.target))
    kind = get_swapped_custom_module_class(module, table, module.qconfig)
    from torch.ao.quantization.quant_type import QuantType
    from torch.ao.quantization.utils import get_quant_type

    if get_quant_type(module.qconfig) is QuantType.STATIC:
        args = list(node.args)
        if args:
            args[0] = _levels_of(args[0])
        node.args = tuple(args)
        users = list(node.users)
        for user in users:
            rounded = user.op == "call_function" and user.target is torch.quantize_per_tensor
            if rounded:
                user.replace_all_uses_with(node)
                model.graph.erase_node(user)
            elif user.op == "call_function" and user.target.__name__ == "getitem":
                if user.args[1] == 0:
                    with model.graph.inserting_after(user):
                        made = model.graph.call_method("dequantize", (user,))
                    user.replace_all_uses_with(made, lambda u, made=made: u is not made)
    _set(model, str(node.target), kind.from_observed(module))


def _drop_dead_observers(model: GraphModule) -> None:
    used = {str(n.target) for n in model.graph.nodes if n.op == "call_module"}
    for name, module in list(model.named_children()):
        if _is_activation_post_process(module) and name not in used:
            delattr(model, name)


def _one_dequantize_each(model: GraphModule) -> None:
    """Gives every user of a dequantized value its own node, so that each can take it in."""
    for node in list(model.graph.nodes):
        if node.op == "call_method" and node.target == "dequantize" and len(node.users) > 1:
            for user in list(node.users)[1:]:
                with model.graph.inserting_before(node):
                    made = model.graph.node_copy(node)
                user.replace_input_with(node, made)


def convert(
    model: GraphModule,
    is_reference: bool = False,
    convert_custom_config: ConvertCustomConfig | dict[str, Any] | None = None,
    is_standalone_module: bool = False,
    _remove_qconfig_flag: bool = True,
    qconfig_mapping: QConfigMapping | dict[str, Any] | None = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
    is_decomposed: bool = False,
    keep_original_weights: bool = False,
) -> GraphModule:
    """The quantized form of an observed graph; a reference one keeps float arithmetic."""
    from torch.ao.quantization.fx._lower_to_native_backend import _lower_to_native_backend

    settings = convert_custom_config
    if isinstance(settings, dict):
        settings = ConvertCustomConfig.from_dict(settings)
    settings = settings or ConvertCustomConfig()
    if isinstance(backend_config, dict):
        backend_config = BackendConfig.from_dict(backend_config)
    backend = backend_config or get_native_backend_config()
    attrs: ObservedGraphModuleAttrs = model.meta[ATTRS_KEY]
    if qconfig_mapping:
        _drop_choices(model, attrs, qconfig_mapping)
    table = get_root_module_to_quantized_reference_module(backend)
    custom = settings.observed_to_quantized_mapping
    classes = {kind for classes in custom.values() for kind in classes}
    rounding = _Rounding(model, is_decomposed)
    done: set[str] = set()
    for node in list(model.graph.nodes):
        if node.op != "call_module":
            continue
        module = model.get_submodule(str(node.target))
        if _is_activation_post_process(module):
            _replace_observer(model, node, rounding, attrs.node_name_to_scope)
    for node in list(model.graph.nodes):
        if node.op != "call_module":
            continue
        path = str(node.target)
        module = model.get_submodule(path)
        if type(module) in classes:
            _custom(model, node, custom)
        elif _is_observed_standalone_module(module):
            _part(
                model,
                node,
                lambda child: convert(
                    child,
                    is_reference,
                    settings,
                    True,
                    backend_config=backend_config,
                    is_decomposed=is_decomposed,
                ),
            )
        elif path not in done and node.name in attrs.observed_node_names:
            done.add(path)
            _weighted(model, path, table, is_decomposed)
    prepared = attrs.prepare_custom_config
    _border_inputs(model, prepared.input_quantized_indexes)
    _border_outputs(model, prepared.output_quantized_indexes)
    model.graph.eliminate_dead_code()
    _drop_dead_observers(model)
    _one_dequantize_each(model)
    if not is_reference:
        model = _lower_to_native_backend(
            model, attrs.node_name_to_qconfig, attrs.node_name_to_scope, keep_original_weights
        )
    if _remove_qconfig_flag:
        for module in model.modules():
            module.__dict__.pop("qconfig", None)
    _clean(model)
    model.meta.pop(ATTRS_KEY, None)
    model.recompile()
    return model


def _drop_choices(
    model: GraphModule,
    attrs: ObservedGraphModuleAttrs,
    mapping: QConfigMapping | dict[str, Any],
) -> None:
    """Takes back the choices that a mapping for convert has as None."""
    from torch.ao.quantization.fx.qconfig_mapping_utils import (
        _compare_prepare_convert_qconfig_mappings,
        _generate_node_name_to_qconfig,
    )

    given = QConfigMapping.from_dict(mapping) if isinstance(mapping, dict) else copy.copy(mapping)
    _compare_prepare_convert_qconfig_mappings(attrs.qconfig_mapping, given)
    choices = _generate_node_name_to_qconfig(model, model, given, attrs.node_name_to_scope)
    for node in list(model.graph.nodes):
        if node.name not in choices or choices[node.name] is not None:
            continue
        if node.op not in ("call_module", "call_function", "call_method"):
            continue
        if attrs.node_name_to_qconfig.get(node.name) is None:
            continue
        attrs.observed_node_names.discard(node.name)
        for user in list(node.users):
            if _observer(model, user):
                user.replace_all_uses_with(node)
                model.graph.erase_node(user)
        for source in list(node.all_input_nodes):
            if _observer(model, source) and len(source.users) == 1:
                node.replace_input_with(source, source.args[0])
                model.graph.erase_node(source)


def _observer(model: GraphModule, node: Node) -> bool:
    return node.op == "call_module" and _is_activation_post_process(
        model.get_submodule(str(node.target))
    )


def _clean(model: GraphModule) -> None:
    """Deletes attributes and modules that no node reads any more."""
    model.graph.eliminate_dead_code()
    model.delete_all_unused_submodules()
    read = {str(n.target) for n in model.graph.nodes if n.op == "get_attr"}
    for name in list(model._buffers):
        made = any(part in name for part in ("_scale_", "_zero_point_"))
        if made and name not in read:
            del model._buffers[name]
