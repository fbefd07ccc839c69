"""Batch normalisation in evaluation, from levels to levels."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.quantized.modules.utils import inner_layer, output_grid

__all__ = ["BatchNorm2d", "BatchNorm3d"]


class _BatchNorm(nn.modules.batchnorm._BatchNorm):
    """Both sizes, with or without an activation."""

    relu = False
    rank: int
    _layout: str

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if hasattr(cls, "rank"):
            name = f"batch_norm{cls.rank - 2}d" + ("_relu" if cls.relu else "")
            cls._run = getattr(torch.ops.quantized, name)
            cls._layout = "(N, C, H, W)" if cls.rank == 4 else "(N, C, H, W, D)"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        device: object = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, True, True, device=device, dtype=dtype)
        self.register_buffer("scale", torch.tensor(1.0, device=device))
        self.register_buffer("zero_point", torch.tensor(0, device=device))

    def _get_name(self) -> str:
        return f"Quantized{'BNReLU' if self.relu else 'BatchNorm'}{self.rank - 2}d"

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != self.rank:
            raise ValueError(f"Input shape must be `{self._layout}`!")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return self._run(
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.eps,
            float(self.scale),
            int(self.zero_point),
        )

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return cls._made(inner_layer(mod), *output_grid(mod))

    @classmethod
    def from_reference(
        cls, bn: nn.Module, output_scale: float, output_zero_point: int
    ) -> nn.Module:
        return cls._made(inner_layer(bn), float(output_scale), int(output_zero_point))

    @classmethod
    def _made(cls, layer: nn.Module, scale: float, zero_point: int) -> nn.Module:
        made = cls(layer.num_features, layer.eps)
        for name in ("weight", "bias", "running_mean", "running_var"):
            setattr(made, name, getattr(layer, name))
        made.scale.fill_(scale)
        made.zero_point.fill_(zero_point)
        return made


class BatchNorm2d(_BatchNorm):
    """nn.BatchNorm2d on quantized tensors."""

    rank = 4


class BatchNorm3d(_BatchNorm):
    """nn.BatchNorm3d on quantized tensors."""

    rank = 5
