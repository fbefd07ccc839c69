"""Removes the filters that others can stand for: those nearest to the geometric median of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.ao.pruning._experimental.pruner.base_structured_sparsifier import (
    BaseStructuredSparsifier,
    row_masks,
)

__all__ = ["FPGMPruner"]


class FPGMPruner(BaseStructuredSparsifier):
    """Removes the share `sparsity_level` of the filters, rounded: those with the smallest sum of
    distances to all others. `dist` is 1 or 2 for that norm, or a function of two matrices."""

    def __init__(
        self, sparsity_level: float = 0.5, dist: Callable[..., Tensor] | int | None = None
    ) -> None:
        if callable(dist):
            self.dist_fn = dist
        elif dist in (None, 1, 2):
            power = float(dist or 2)
            self.dist_fn = lambda x: torch.cdist(x, x, p=power)
        else:
            raise NotImplementedError("Distance function is not yet implemented.")
        super().__init__({"sparsity_level": sparsity_level})

    def _compute_distance(self, t: Tensor) -> Tensor:
        """For each filter, the sum of its distances to the others."""
        return self.dist_fn(t.flatten(1)).abs().sum(1)

    def update_mask(
        self, module: nn.Module, tensor_name: str, sparsity_level: float, **kwargs: Any
    ) -> None:
        weight = getattr(module, tensor_name)
        for mask in row_masks(module, tensor_name):
            mask.fill_(True)
            if sparsity_level <= 0:
                continue
            count = min(round(sparsity_level * len(mask)), len(mask))
            distance = self._compute_distance(weight)
            mask[distance.argsort(stable=True)[:count]] = False
