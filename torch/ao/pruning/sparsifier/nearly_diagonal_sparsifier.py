"""Zeros away from the diagonal."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["NearlyDiagonalSparsifier"]


class NearlyDiagonalSparsifier(BaseSparsifier):
    """Keeps a band around the diagonal; `nearliness` is its width, an odd number."""

    def __init__(self, nearliness: int = 1) -> None:
        super().__init__({"nearliness": nearliness})

    def update_mask(
        self, module: nn.Module, tensor_name: str, nearliness: int, **kwargs: Any
    ) -> None:
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        height, width = mask.shape
        if nearliness % 2 == 0:
            raise ValueError("nearliness can only be an odd number")
        if nearliness // 2 >= min(width, height):
            raise ValueError("nearliness cannot be larger than the dimensions of tensor.")
        distance = torch.arange(width).view(1, -1) - torch.arange(height).view(-1, 1)
        mask.copy_((distance.abs() <= nearliness // 2).to(mask.dtype))
