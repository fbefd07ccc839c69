"""Removes hidden units of an LSTM by the magnitudes of their weights."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.ao.pruning._experimental.pruner.base_structured_sparsifier import (
    BaseStructuredSparsifier,
    row_masks,
)

__all__ = ["LSTMSaliencyPruner"]


class LSTMSaliencyPruner(BaseStructuredSparsifier):
    """Of each of the four gates, removes the share `sparsity_level` of the rows, rounded down: all
    gates keep as many."""

    def update_mask(self, module: nn.Module, tensor_name: str, **kwargs: Any) -> None:
        weight = getattr(module, tensor_name)
        if weight.dim() > 2 or weight.shape[0] % 4:
            raise AssertionError(
                f"expected a matrix of four gates as {tensor_name}, got {list(weight.shape)}"
            )
        for mask in row_masks(module, tensor_name):
            for gate, part in zip(weight.chunk(4), mask.chunk(4), strict=True):
                saliency = gate.abs().flatten(1).sum(1)
                count = int(len(saliency) * kwargs["sparsity_level"])
                part[saliency.argsort(stable=True)[:count]] = False
