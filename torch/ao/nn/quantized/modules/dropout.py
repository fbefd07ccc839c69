"""Dropout of quantized tensors, which does nothing in evaluation."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["Dropout"]


class Dropout(nn.Dropout):
    """nn.Dropout on quantized tensors."""

    def forward(self, input: Tensor) -> Tensor:
        return input

    def _get_name(self) -> str:
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> nn.Module:
        return cls(mod.p, mod.inplace)
