"""Rearranging dimensions by a pattern, under the name functorch gave it."""

from torch.func import rearrange

__all__ = ["rearrange"]
