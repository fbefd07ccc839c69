"""Fused modules on float tensors, whose grids are found at each call."""

from torch.ao.nn.intrinsic.quantized.dynamic.modules import LinearReLU

__all__ = ["LinearReLU"]
