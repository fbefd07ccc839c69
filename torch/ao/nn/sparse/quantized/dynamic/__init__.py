"""Layers with sparse quantized weights on float tensors."""

from torch.ao.nn.sparse.quantized.dynamic.linear import Linear

__all__ = ["Linear"]
