"""Dropout in its forms."""

from __future__ import annotations

from torch.nn import functional as F
from torch.nn.modules.module import Module

__all__ = [
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "AlphaDropout",
    "FeatureAlphaDropout",
]


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


def _dropout(name, function, doc):
    def forward(self, input):
        return getattr(F, function)(input, self.p, self.training, self.inplace)

    return type(name, (_DropoutNd,), {"__doc__": doc, "forward": forward, "__module__": __name__})


Dropout = _dropout("Dropout", "dropout", "Sets elements to 0 with probability p in training.")
Dropout1d = _dropout("Dropout1d", "dropout1d", "Dropout of whole channels of (N, C, L).")
Dropout2d = _dropout("Dropout2d", "dropout2d", "Dropout of whole channels of (N, C, H, W).")
Dropout3d = _dropout("Dropout3d", "dropout3d", "Dropout of whole channels of (N, C, D, H, W).")
AlphaDropout = _dropout("AlphaDropout", "alpha_dropout", "Dropout that keeps mean and variance.")
FeatureAlphaDropout = _dropout(
    "FeatureAlphaDropout", "feature_alpha_dropout", "AlphaDropout of whole channels."
)
