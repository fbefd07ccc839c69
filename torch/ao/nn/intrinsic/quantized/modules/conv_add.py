"""A convolution whose result is added to a second quantized tensor."""

from __future__ import annotations

from torch import Tensor, nn
from torch.ao.nn.intrinsic.modules import fused
from torch.ao.nn.quantized.modules import conv

__all__ = ["ConvAdd2d", "ConvAddReLU2d"]


class _ConvAdd(conv.Conv2d):
    @classmethod
    def _sources(cls) -> tuple[type[nn.Module], ...]:
        return (cls._FLOAT_MODULE,)

    def forward(self, input: Tensor, extra_input: Tensor) -> Tensor:
        values = self._padded(input)
        return self._run(values, extra_input, self._packed_params, self.scale, self.zero_point)


class ConvAdd2d(_ConvAdd):
    """Conv2d and add in one."""

    suffix = "_add"
    _FLOAT_MODULE = fused.ConvAdd2d


class ConvAddReLU2d(_ConvAdd):
    """Conv2d, add and ReLU in one."""

    suffix = "_add_relu"
    _FLOAT_MODULE = fused.ConvAddReLU2d
