"""Distances and similarities of vectors under their functional names."""

from torch import _VF

__all__ = ["cosine_similarity", "pairwise_distance"]


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angle between vectors along dim; lengths count as eps at least."""
    return _VF.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x1 - x2 + eps along the last dimension."""
    return _VF.pairwise_distance(x1, x2, p, eps, keepdim)
