"""A linear layer whose weight lies on a grid."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.quantized.reference.modules.utils import ReferenceQuantizedModule

__all__ = ["Linear"]


class Linear(nn.Linear, ReferenceQuantizedModule):
    """nn.Linear with a rounded weight."""

    _IS_REFERENCE = True

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias_: bool = True,
        device: object = None,
        dtype: torch.dtype | None = None,
        weight_qparams: dict[str, object] | None = None,
    ) -> None:
        super().__init__(in_features, out_features, bias_, device, dtype)
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return "QuantizedLinear(Reference)"

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_linear: nn.Linear, weight_qparams: dict[str, object]) -> nn.Module:
        """With the parameters of a float layer."""
        made = cls(
            float_linear.in_features,
            float_linear.out_features,
            float_linear.bias is not None,
            device=float_linear.weight.device,
            dtype=float_linear.weight.dtype,
            weight_qparams=weight_qparams,
        )
        made.weight = nn.Parameter(float_linear.weight.detach())
        if float_linear.bias is not None:
            made.bias = nn.Parameter(float_linear.bias.detach())
        return made
