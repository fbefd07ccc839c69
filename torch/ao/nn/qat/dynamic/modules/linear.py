"""A linear layer that trains with a rounded weight; the grid of its input is found at each call."""

from __future__ import annotations

import torch
from torch.ao.nn import qat

__all__ = ["Linear"]


class Linear(qat.modules.linear.Linear):
    """nn.Linear with a rounded weight, for a configuration whose activation is dynamic."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: object = None,
        device: object = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, qconfig, device, dtype)

    def watch(self, qconfig: object, device: object = None, dtype: object = None) -> None:
        if qconfig and not getattr(qconfig.activation(), "is_dynamic", False):
            raise ValueError(
                "Dynamic QAT requires a memoryless observer. This means a MovingAverage observer "
                "with averaging constant equal to 1"
            )
        super().watch(qconfig, device, dtype)
