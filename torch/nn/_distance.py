"""Distances and similarities of vectors under their functional names."""

from __future__ import annotations

import torch
from torch import _VF

__all__ = ["cosine_similarity", "pairwise_distance"]


def cosine_similarity(
    x1: torch.Tensor, x2: torch.Tensor, dim: int = 1, eps: float = 1e-8
) -> torch.Tensor:
    """The cosine of the angle between vectors along dim; lengths count as eps at least."""
    return _VF.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(
    x1: torch.Tensor, x2: torch.Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> torch.Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    return _VF.pairwise_distance(x1, x2, p, eps, keepdim)
