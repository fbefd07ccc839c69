"""A linear layer that trains with a weight rounded to levels."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.qat.modules._rounded import Rounded

__all__ = ["Linear"]


class Linear(Rounded, nn.Linear):
    """nn.Linear with a rounded weight."""

    _FLOAT_MODULE = nn.Linear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: object = None,
        device: object = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        nn.Linear.__init__(self, in_features, out_features, bias, device=device, dtype=dtype)
        self.watch(qconfig, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return nn.functional.linear(input, self.weight_fake_quant(self.weight), self.bias)
