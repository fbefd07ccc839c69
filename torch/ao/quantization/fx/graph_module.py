"""What convert needs to know about a prepared graph, kept in its `meta`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import nn
from torch.ao.quantization.fx.custom_config import PrepareCustomConfig
from torch.ao.quantization.qconfig import QConfigAny
from torch.ao.quantization.qconfig_mapping import QConfigMapping
from torch.fx import Graph, GraphModule

__all__ = ["FusedGraphModule", "ObservedGraphModule", "ObservedStandaloneGraphModule"]

ATTRS_KEY = "_observed_graph_module_attrs"


@dataclass
class ObservedGraphModuleAttrs:
    """The facts about a prepared graph."""

    node_name_to_qconfig: dict[str, QConfigAny]
    node_name_to_scope: dict[str, tuple[str, type]]
    prepare_custom_config: PrepareCustomConfig
    equalization_node_name_to_qconfig: dict[str, Any]
    qconfig_mapping: QConfigMapping
    is_qat: bool
    observed_node_names: set[str]
    is_observed_standalone_module: bool = False
    standalone_module_input_quantized_idxs: list[int] = field(default_factory=list)
    standalone_module_output_quantized_idxs: list[int] = field(default_factory=list)


class FusedGraphModule(GraphModule):
    """A graph with fused modules; attributes that the user wants to keep are carried over."""

    def __init__(
        self, root: nn.Module | dict[str, Any], graph: Graph, preserved_attr_names: set[str]
    ) -> None:
        kept = {name: getattr(root, name) for name in preserved_attr_names if hasattr(root, name)}
        self.preserved_attr_names = preserved_attr_names
        super().__init__(root, graph)
        for name, value in kept.items():
            setattr(self, name, value)


class ObservedGraphModule(FusedGraphModule):
    """A graph with observers."""


class ObservedStandaloneGraphModule(ObservedGraphModule):
    """A graph with observers that is a part of another one."""


def _is_observed_module(module: Any) -> bool:
    return hasattr(module, "meta") and ATTRS_KEY in module.meta


def _get_observed_graph_module_attr(model: GraphModule, attr_name: str) -> Any:
    if not _is_observed_module(model):
        return None
    return getattr(model.meta[ATTRS_KEY], attr_name)


def _is_observed_standalone_module(module: Any) -> bool:
    return _is_observed_module(module) and module.meta[ATTRS_KEY].is_observed_standalone_module
