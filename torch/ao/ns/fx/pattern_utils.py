"""Chains of operators that become one, and the relation of operators in one family."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn
from torch.ao.ns.fx.mappings import Families, get_base_name_to_sets_of_related_ops
from torch.ao.ns.fx.ns_types import NSNodeTargetType
from torch.ao.quantization.observer import _is_activation_post_process
from torch.fx import GraphModule, Node
from torch.nn import functional

_RELU = {nn.ReLU, functional.relu, torch.relu, "relu", "relu_", functional.relu_, torch.relu_}
_BN = {nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d}
_PRODUCTS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)


def get_type_a_related_to_b(
    base_name_to_sets_of_related_ops: Families,
) -> set[tuple[NSNodeTargetType, NSNodeTargetType]]:
    """All pairs of operators of one family."""
    return {(a, b) for f in base_name_to_sets_of_related_ops.values() for a in f for b in f}


def op_of(node: Node, gm: GraphModule) -> NSNodeTargetType | None:
    """What a node calls: the class of a module, a function, or the name of a method."""
    if node.op == "call_module":
        return type(gm.get_submodule(str(node.target)))
    return node.target if node.op in ("call_function", "call_method") else None


def is_observer(node: object, gm: GraphModule) -> bool:
    """Whether a node calls an observer or a fake quantizer."""
    if not isinstance(node, Node) or node.op != "call_module":
        return False
    return _is_activation_post_process(gm.get_submodule(str(node.target)))


def _float_products() -> set[NSNodeTargetType]:
    families = get_base_name_to_sets_of_related_ops().values()
    return {op for f in families if any(p in f for p in _PRODUCTS) for op in f}


def _additions() -> set[NSNodeTargetType]:
    families = get_base_name_to_sets_of_related_ops().values()
    return {op for f in families if torch.add in f or torch.mul in f for op in f}


def chains() -> Iterable[tuple[set[NSNodeTargetType], ...]]:
    """Sets of operators, last first, that count as one where each has no other user."""
    products = _float_products()
    yield _RELU, _BN, products
    yield _BN, products
    yield _RELU, products
    yield _RELU, _BN
    yield _RELU, _additions()
