"""What pruners of rows share: masks of rows while a model trains, and their removal at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.ao.pruning._experimental.pruner.parametrization import BiasMask, FakeStructuredSparsity
from torch.ao.pruning._experimental.pruner.row_removal import RowRemoval
from torch.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier
from torch.nn.utils import parametrize
from torch.nn.utils.parametrize import type_before_parametrizations

__all__ = ["BaseStructuredSparsifier"]

_SUPPORTED = {nn.Linear, nn.Conv2d, nn.LSTM}


def row_masks(module: nn.Module, tensor_name: str) -> Iterator[Tensor]:
    """The masks of rows of a tensor."""
    for part in getattr(module.parametrizations, tensor_name):
        if isinstance(part, FakeStructuredSparsity):
            yield part.mask


class _Tracer(fx.Tracer):
    """Layers whose tensors have masks are still layers, and parametrizations are not traced."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return type_before_parametrizations(m).__module__.startswith("torch.nn") and not isinstance(
            m, (nn.Sequential, nn.ModuleList)
        )


class BaseStructuredSparsifier(BaseSparsifier):
    """Masks for the rows of weights; a subclass chooses them in `update_mask`. `prune` removes the
    rows and what later layers read of them. The setting `prune_bias`, True unless given, says
    whether the bias of a removed row is dropped or added to the bias of the next layer."""

    def __init__(self, defaults: dict[str, Any] | None, patterns: Any = None) -> None:
        super().__init__(defaults)
        self.patterns = patterns

    def make_config_from_model(
        self, model: nn.Module, SUPPORTED_MODULES: set[type[nn.Module]] | None = None
    ) -> None:
        """Lists the weights of all supported layers of a model."""
        kinds = _SUPPORTED - {nn.LSTM} if SUPPORTED_MODULES is None else SUPPORTED_MODULES
        super().make_config_from_model(model, kinds)

    def _prepare(self, *args: Any, **kwargs: Any) -> None:
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            weight = getattr(module, name)
            mask = group.get("mask")
            if mask is None:
                mask = torch.ones(weight.shape[0], dtype=torch.bool, device=weight.device)
            self.state[group["tensor_fqn"]]["mask"] = mask
            part = group.get("parametrization", FakeStructuredSparsity)(mask)
            parametrize.register_parametrization(module, name, part)
            has_bias = name == "weight" and getattr(module, "bias", None) is not None
            if has_bias and group.get("prune_bias", True):
                parametrize.register_parametrization(module, "bias", BiasMask(part))

    def prune(self) -> fx.GraphModule:
        """Removes the masked rows and gives the smaller model, which shares its layers with the one
        that was prepared. Rows whose absence a later layer could not make up for stay, as zeros."""
        graph = _Tracer().trace(self.model)
        traced = fx.GraphModule(self.model, graph)
        masks: dict[nn.Module, dict[str, Tensor]] = {}
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            for mask in row_masks(module, name):
                masks.setdefault(module, {})[name] = mask.clone()
        for module in masks:
            for name in list(module.parametrizations):
                parametrize.remove_parametrizations(module, name, leave_parametrized=True)
        RowRemoval(traced, masks).run()
        for module in traced.modules():
            if parametrize.is_parametrized(module):
                raise RuntimeError(f"{type(module).__name__} still has masks after pruning")
        traced.graph.lint()
        traced.recompile()
        return traced
