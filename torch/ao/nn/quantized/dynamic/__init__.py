"""Layers with quantized weights on float tensors, whose grids are found at each call."""

from torch.ao.nn.quantized.dynamic.modules import *  # noqa: F403
from torch.ao.nn.quantized.dynamic.modules import __all__ as _NAMES

__all__ = [*_NAMES]
