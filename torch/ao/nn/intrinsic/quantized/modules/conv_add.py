"""A convolution whose result is added to a second quantized tensor."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.intrinsic.modules import fused
from torch.ao.nn.quantized.modules import conv

__all__ = ["ConvAdd2d", "ConvAddReLU2d"]


class _ConvAdd(conv.Conv2d):
    added: str

    @classmethod
    def _sources(cls) -> tuple[type[nn.Module], ...]:
        return (cls._FLOAT_MODULE,)

    def forward(self, input: Tensor, extra_input: Tensor) -> Tensor:
        run = getattr(torch.ops.quantized, self.added)
        values = self._padded(input)
        return run(values, extra_input, self._packed_params, self.scale, self.zero_point)


class ConvAdd2d(_ConvAdd):
    """Conv2d and add in one."""

    added = "conv2d_add"
    _FLOAT_MODULE = fused.ConvAdd2d


class ConvAddReLU2d(_ConvAdd):
    """Conv2d, add and ReLU in one."""

    added = "conv2d_add_relu"
    _FLOAT_MODULE = fused.ConvAddReLU2d
