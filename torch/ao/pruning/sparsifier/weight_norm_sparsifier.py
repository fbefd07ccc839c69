"""Zeros where the norm of a block of weights is smallest."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import mul
from typing import Any

import torch
from torch import Tensor, nn
from torch.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier
from torch.nn import functional

__all__ = ["WeightNormSparsifier"]


class WeightNormSparsifier(BaseSparsifier):
    """In the share `sparsity_level` of the blocks with the smallest norm, `zeros_per_block` weights
    are zero: the smallest ones. A level of 1 with 2 zeros in blocks of (1, 4) is 2:4 sparsity."""

    def __init__(
        self,
        sparsity_level: float = 0.5,
        sparse_block_shape: tuple[int, int] = (1, 4),
        zeros_per_block: int | None = None,
        norm: Callable[[Tensor], Tensor] | int | None = None,
    ) -> None:
        size = reduce(mul, sparse_block_shape)
        powers = {None: 2, 1: 1, 2: 2}
        if callable(norm):
            self.norm_fn = norm
        elif norm in powers:
            power = powers[norm]
            self.norm_fn = lambda t: t.abs() if power == 1 else t * t
        else:
            raise NotImplementedError(f"L-{norm} is not yet implemented.")
        super().__init__(
            {
                "sparsity_level": sparsity_level,
                "sparse_block_shape": tuple(sparse_block_shape),
                "zeros_per_block": size if zeros_per_block is None else zeros_per_block,
            }
        )

    def update_mask(
        self,
        module: nn.Module,
        tensor_name: str,
        sparsity_level: float,
        sparse_block_shape: tuple[int, int],
        zeros_per_block: int,
        **kwargs: Any,
    ) -> None:
        size = reduce(mul, sparse_block_shape)
        if zeros_per_block > size:
            raise ValueError(
                "Number of zeros per block cannot be more than the total number of elements in "
                "that block."
            )
        if zeros_per_block < 0:
            raise ValueError("Number of zeros per block should be positive.")
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.fill_(1)
        elif sparsity_level >= 1 and zeros_per_block == size:
            mask.fill_(0)
        else:
            weight = self.norm_fn(getattr(module, tensor_name))
            mask.copy_(block_mask(weight, sparsity_level, sparse_block_shape, zeros_per_block))


def block_mask(
    weight: Tensor, level: float, block: tuple[int, int], zeros_per_block: int
) -> Tensor:
    """Ones, and zeros at the least elements of the blocks with the least sums."""
    rows, columns = weight.shape
    down, right = -rows % block[0], -columns % block[1]
    padded = functional.pad(weight, (0, right, 0, down))
    tall, wide = padded.shape[0] // block[0], padded.shape[1] // block[1]
    blocks = padded.reshape(tall, block[0], wide, block[1]).permute(0, 2, 1, 3)
    flat = blocks.reshape(tall * wide, -1)
    size = flat.shape[1]
    chosen = round(level * flat.shape[0])
    sums = flat.sum(1)
    order = torch.argsort(sums, stable=True)[:chosen]
    mask = torch.ones_like(flat)
    if zeros_per_block == size:
        mask[order] = 0
    else:
        least = torch.argsort(flat[order], dim=1, stable=True)[:, :zeros_per_block]
        mask[order] = mask[order].scatter(1, least, 0.0)
    whole = mask.reshape(tall, wide, block[0], block[1]).permute(0, 2, 1, 3)
    return whole.reshape(padded.shape)[:rows, :columns]
