"""Layers whose weights are mostly zeros in blocks."""

from torch.ao.nn.sparse import quantized

__all__ = ["quantized"]
