"""A tracer that records modules of torch.nn, and what the user says is opaque, as single calls."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.ao.nn.intrinsic import _FusedModule
from torch.fx._symbolic_trace import Tracer
from torch.fx.proxy import Scope

__all__ = ["QuantizationTracer"]


class ScopeContextManager(torch.fx.proxy.ScopeContextManager):
    """The scope of a part while it is traced."""

    def __init__(self, scope: Scope, current_module: nn.Module, current_module_path: str) -> None:
        super().__init__(scope, Scope(current_module_path, type(current_module)))


class QuantizationTracer(Tracer):
    """Records in which module each node was made (`node_name_to_scope`)."""

    def __init__(
        self, skipped_module_names: list[str], skipped_module_classes: list[Callable]
    ) -> None:
        super().__init__()
        self.skipped_module_names = skipped_module_names
        self.skipped_module_classes = skipped_module_classes
        self.record_stack_traces = True

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        ours = m.__module__.startswith("torch.nn") or m.__module__.startswith("torch.ao.nn")
        return (
            (ours and not isinstance(m, nn.Sequential))
            or module_qualified_name in self.skipped_module_names
            or type(m) in self.skipped_module_classes
            or isinstance(m, _FusedModule)
        )
