"""A linear layer and an activation with a quantized weight on float tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.intrinsic.modules import fused
from torch.ao.nn.quantized import dynamic

__all__ = ["LinearReLU"]


class LinearReLU(dynamic.Linear):
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
        return "DynamicQuantizedLinearReLU"

    def forward(self, x: Tensor) -> Tensor:
        packed = self._packed_params._packed_params
        if self._packed_params.dtype == torch.qint8:
            return torch.ops.quantized.linear_relu_dynamic(x, packed, True)
        return torch.ops.quantized.linear_relu_dynamic_fp16(x, packed)

    @classmethod
    def from_reference(cls, ref_qlinear_relu: nn.Module) -> nn.Module:
        """With the weight of a fused reference layer."""
        return super().from_reference(ref_qlinear_relu)
