"""Lowering of a graph with reference modules to operators on levels, for servers. There is one such
lowering; this is its name for x86."""

from typing import Any

from torch.ao.quantization.fx._lower_to_native_backend import _lower_to_native_backend
from torch.fx import GraphModule

__all__ = ["lower_to_fbgemm"]


def lower_to_fbgemm(
    model: GraphModule,
    qconfig_map: dict[str, Any],
    node_name_to_scope: dict[str, tuple[str, type]],
    keep_original_weights: bool = False,
) -> GraphModule:
    """The graph with operators on levels."""
    return _lower_to_native_backend(
        model, qconfig_map, node_name_to_scope, keep_original_weights=keep_original_weights
    )
