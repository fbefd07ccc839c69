"""The weight of a layer in any of its forms: of modules by class, of functions by the tensor or the
packed object that a node gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.ao.nn import quantized
from torch.ao.nn.quantized import dynamic
from torch.ao.ns.fx.mappings import get_base_name_to_sets_of_related_ops
from torch.ao.ns.fx.ns_types import NSSingleResultType, NSSingleResultValuesType
from torch.ao.ns.fx.pattern_utils import op_of
from torch.fx import GraphModule, Node
from torch.nn import functional

Extractors = dict[str, dict[Any, Callable[..., Any]]]
_ops = torch.ops.quantized


def _mod_weight(mod: nn.Module) -> torch.Tensor:
    layer = mod if hasattr(mod, "weight") else mod[0]
    weight = layer.weight
    return weight() if callable(weight) else weight.detach()


def get_conv_mod_weight(mod: nn.Module) -> torch.Tensor:
    """The weight of a convolution, plain, fused, trained or quantized."""
    return _mod_weight(mod)


def get_linear_mod_weight(mod: nn.Module) -> torch.Tensor:
    """The weight of a linear layer, plain, fused, trained or quantized."""
    return _mod_weight(mod)


def get_lstm_mod_weights(mod: nn.Module) -> list[torch.Tensor]:
    """The weights of the first layer of an LSTM: of inputs and of hidden states."""
    names = ("weight_ih_l0", "weight_hh_l0")
    if isinstance(mod, dynamic.LSTM):
        found = mod.get_weight()["weight"]
        return [found[name] for name in names]
    return [getattr(mod, name).detach() for name in names]


def _held(node: Any, gm: GraphModule) -> Any:
    """What a node's value is made of that the module holds: behind observers and conversions."""
    while isinstance(node, Node) and node.op != "get_attr":
        if not node.args:
            return None
        node = node.args[0]
    if not isinstance(node, Node):
        return None
    held: Any = gm
    for part in str(node.target).split("."):
        held = getattr(held, part)
    return held


def _fun_weight(node: Node, gm: GraphModule) -> torch.Tensor | None:
    given = node.args[1] if len(node.args) > 1 else node.kwargs.get("weight")
    held = _held(given, gm)
    return held.detach() if isinstance(held, torch.Tensor) else None


def get_conv_fun_weight(node: Node, gm: GraphModule) -> torch.Tensor | None:
    """The weight of a call of a convolution."""
    return _fun_weight(node, gm)


def get_linear_fun_weight(node: Node, gm: GraphModule) -> torch.Tensor | None:
    """The weight of a call of linear."""
    return _fun_weight(node, gm)


def get_qconv_fun_weight(node: Node, gm: GraphModule) -> torch.Tensor | None:
    """The weight of a call of a convolution on levels."""
    packed = _held(node.args[1], gm)
    return None if packed is None else packed.unpack()[0]


def get_qlinear_fun_weight(node: Node, gm: GraphModule) -> torch.Tensor | None:
    """The weight of a call of linear on levels."""
    packed = _held(node.args[1], gm)
    return None if packed is None else _ops.linear_unpack(packed)[0]


def _modules_related_to(*kinds: type[nn.Module]) -> list[type[nn.Module]]:
    families = get_base_name_to_sets_of_related_ops().values()
    return [
        op
        for family in families
        if any(kind in family for kind in kinds)
        for op in family
        if isinstance(op, type)
    ]


def get_op_to_type_to_weight_extraction_fn() -> Extractors:
    """How the weight of each kind of node is found; the caller may add to it."""
    convolutions = _modules_related_to(nn.Conv1d, nn.Conv2d, nn.Conv3d)
    modules = dict.fromkeys(convolutions, get_conv_mod_weight)
    modules |= dict.fromkeys(_modules_related_to(nn.Linear), get_linear_mod_weight)
    modules |= {nn.LSTM: get_lstm_mod_weights, dynamic.LSTM: get_lstm_mod_weights}
    modules[quantized.Linear] = get_linear_mod_weight
    functions: dict[Any, Callable[..., Any]] = {}
    for dims in (1, 2, 3):
        functions[getattr(functional, f"conv{dims}d")] = get_conv_fun_weight
        for suffix in ("", "_relu"):
            functions[getattr(_ops, f"conv{dims}d{suffix}")] = get_qconv_fun_weight
    functions[functional.linear] = get_linear_fun_weight
    for name in ("linear", "linear_relu", "linear_dynamic", "linear_relu_dynamic"):
        functions[getattr(_ops, name)] = get_qlinear_fun_weight
    return {"call_module": modules, "call_function": functions}


def target_text(node: Node, gm: GraphModule) -> str:
    """How results name what a node calls."""
    op = op_of(node, gm)
    if isinstance(op, str) or op is None:
        return str(node.target)
    return f"{getattr(op, '__module__', '')}.{getattr(op, '__qualname__', op)}"


def extract_weight_from_node(
    node: Node, gm: GraphModule, op_to_type_to_weight_extraction_fn: Extractors | None = None
) -> NSSingleResultType | None:
    """The weight of a node as a record, or None where it has none that is known."""
    table = op_to_type_to_weight_extraction_fn or get_op_to_type_to_weight_extraction_fn()
    extract = table.get(node.op, {}).get(op_of(node, gm))
    if extract is None:
        return None
    if node.op == "call_module":
        weight = extract(gm.get_submodule(str(node.target)))
    else:
        weight = extract(node, gm)
    if weight is None:
        return None
    scopes = getattr(gm, "_node_name_to_scope", None) or {}
    return {
        "type": NSSingleResultValuesType.WEIGHT.value,
        "values": [weight],
        "prev_node_name": node.name,
        "prev_node_target_type": target_text(node, gm),
        "ref_node_name": node.name,
        "ref_node_target_type": target_text(node, gm),
        "index_within_arg": 0,
        "index_of_arg": 0,
        "fqn": scopes.get(node.name, (None,))[0],
    }
