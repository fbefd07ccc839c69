"""Which nodes a backend can run. A rule is an object with is_node_supported(submodules, node);
rules are combined with `chain` (all) and `any_chain` (one of them)."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx._compatibility import compatibility
from torch.fx.node import Node
from torch.fx.passes.shape_prop import TensorMetadata
from torch.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = [
    "OpSupports",
    "OperatorSupport",
    "OperatorSupportBase",
    "any_chain",
    "chain",
    "create_op_support",
]

TargetTypeName = str
# For each argument the dtypes it may have, or None; then {keyword: dtypes}.
SupportedArgumentDTypes = tuple[Any, Mapping[str, Any]] | None
SupportDict = Mapping[TargetTypeName, SupportedArgumentDTypes]
IsNodeSupported = Callable[[Mapping[str, torch.nn.Module], Node], bool]


@compatibility(is_backward_compatible=False)
class OperatorSupportBase:
    """A rule."""

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        """Whether the backend can run the node."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it supports")


@compatibility(is_backward_compatible=False)
class OperatorSupport(OperatorSupportBase):
    """A rule by a table: {target: None, or the dtypes of the arguments}. Targets are named as
    get_node_target names them."""

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        """Whether the table has the target, with the dtypes noted on the node's inputs."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        allowed = self._support_dict[target]
        if allowed is None:
            return True
        by_place, by_name = allowed
        places = zip(node.args, by_place, strict=False)
        names = ((node.kwargs.get(name), dtypes) for name, dtypes in by_name.items())
        return all(_dtype_fits(value, dtypes) for value, dtypes in (*places, *names))


def _dtype_fits(value: Any, dtypes: Any) -> bool:
    if dtypes is None:
        return True
    return isinstance(value, Node) and _get_arg_dtype(value) in dtypes


def _get_arg_dtype(arg: Node) -> Any:
    """The dtype noted on a node."""
    meta = arg.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else arg.meta.get("type")


@compatibility(is_backward_compatible=False)
def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """A rule made of a function."""
    body = {"is_node_supported": lambda self, submodules, node: is_node_supported(submodules, node)}
    return type("FunctionalOperatorSupport", (OperatorSupportBase,), body)()


@compatibility(is_backward_compatible=False)
def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports what all rules support."""
    return create_op_support(
        lambda submods, node: all(rule.is_node_supported(submods, node) for rule in op_support)
    )


@compatibility(is_backward_compatible=False)
def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports what one of the rules supports."""
    return create_op_support(
        lambda submods, node: any(rule.is_node_supported(submods, node) for rule in op_support)
    )


@compatibility(is_backward_compatible=False)
class OpSupports:
    """Rules that are often wanted."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: torch.dtype) -> OperatorSupportBase:
        """Supports nodes none of whose inputs has the dtype."""
        return create_op_support(
            lambda submods, node: all(_get_arg_dtype(arg) != dtype for arg in node.all_input_nodes)
        )

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Supports nodes of other names."""
        return create_op_support(lambda submods, node: node.name not in disallow_set)
