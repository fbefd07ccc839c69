"""Removes the rows with the smallest sums of magnitudes."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.ao.pruning._experimental.pruner.base_structured_sparsifier import (
    BaseStructuredSparsifier,
    row_masks,
)

__all__ = ["SaliencyPruner"]


class SaliencyPruner(BaseStructuredSparsifier):
    """Removes the share `sparsity_level` of the rows, rounded down."""

    def update_mask(self, module: nn.Module, tensor_name: str, **kwargs: Any) -> None:
        weight = getattr(module, tensor_name)
        for mask in row_masks(module, tensor_name):
            saliency = weight.abs().flatten(1).sum(1)
            count = int(len(saliency) * kwargs["sparsity_level"])
            mask[saliency.argsort(stable=True)[:count]] = False
