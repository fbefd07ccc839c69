"""Fold and Unfold, under the name PyTorch's module has."""

from torch.nn.modules.conv import Fold, Unfold

__all__ = ["Fold", "Unfold"]
