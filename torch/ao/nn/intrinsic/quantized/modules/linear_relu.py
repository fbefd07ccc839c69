"""Linear layers and an activation on quantized tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.intrinsic.modules import fused
from torch.ao.nn.quantized.modules import linear
from torch.ao.nn.quantized.modules.utils import inner_layer

__all__ = ["LinearLeakyReLU", "LinearReLU", "LinearTanh"]


class LinearReLU(linear.Linear):
    """Linear and ReLU in one."""

    _FLOAT_MODULE = fused.LinearReLU

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        dtype: torch.dtype = torch.qint8,
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.quantized.linear_relu(
            x, self._packed_params._packed_params, self.scale, self.zero_point
        )

    @classmethod
    def from_reference(
        cls, ref_linear_relu: nn.Module, output_scale: float, output_zero_point: int
    ) -> nn.Module:
        """The layer that computes on levels what a fused reference layer says."""
        return super().from_reference(ref_linear_relu, output_scale, output_zero_point)


class LinearLeakyReLU(linear.Linear):
    """Linear and LeakyReLU in one."""

    _FLOAT_MODULE = fused.LinearLeakyReLU

    def __init__(
        self,
        in_features: int,
        out_features: int,
        negative_slope: float,
        bias: bool = True,
        dtype: torch.dtype = torch.qint8,
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    def _get_name(self) -> str:
        return "QuantizedLinearLeakyReLU"

    def forward(self, x: Tensor) -> Tensor:
        packed = self._packed_params._packed_params
        grid = self.scale, self.zero_point
        return torch.ops.quantized.linear_leaky_relu(x, packed, *grid, self.negative_slope)

    @classmethod
    def _empty(cls, mod: nn.Module) -> nn.Module:
        layer = inner_layer(mod)
        return cls(layer.in_features, layer.out_features, mod[1].negative_slope)

    @classmethod
    def from_reference(
        cls, ref_mod: nn.Module, output_scale: float, output_zero_point: int
    ) -> nn.Module:
        """The layer that computes on levels what a fused reference layer says."""
        return super().from_reference(ref_mod, output_scale, output_zero_point)


class LinearTanh(linear.Linear):
    """Linear and Tanh in one."""

    _FLOAT_MODULE = fused.LinearTanh

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        dtype: torch.dtype = torch.qint8,
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)

    def _get_name(self) -> str:
        return "QuantizedLinearTanh"

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.quantized.linear_tanh(
            x, self._packed_params._packed_params, self.scale, self.zero_point
        )

    @classmethod
    def from_reference(
        cls, ref_mod: nn.Module, output_scale: float, output_zero_point: int
    ) -> nn.Module:
        """The layer that computes on levels what a fused reference layer says."""
        return super().from_reference(ref_mod, output_scale, output_zero_point)
