"""Quantized layers whose weights are mostly zeros in blocks."""

from torch.ao.nn.sparse.quantized import dynamic
from torch.ao.nn.sparse.quantized.linear import Linear, LinearPackedParams

__all__ = ["Linear", "LinearPackedParams", "dynamic"]
