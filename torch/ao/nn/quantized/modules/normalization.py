"""Normalisation over layers, groups and instances, from levels to levels. Weights stay float."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.quantized.modules.utils import output_grid

__all__ = ["GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm"]


class _OnGrid:
    """A normalisation with the grid of its result."""

    def _register(
        self,
        weight: Tensor | None,
        bias: Tensor | None,
        scale: float,
        zero_point: int,
        device: object,
    ) -> None:
        self.weight, self.bias = weight, bias
        self.register_buffer("scale", torch.tensor(float(scale), device=device))
        self.register_buffer("zero_point", torch.tensor(int(zero_point), device=device))

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return cls.from_reference(mod, *output_grid(mod))


class LayerNorm(_OnGrid, nn.LayerNorm):
    """nn.LayerNorm on quantized tensors."""

    def __init__(
        self,
        normalized_shape: int | list[int],
        weight: Tensor | None,
        bias: Tensor | None,
        scale: float,
        zero_point: int,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        device: object = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        nn.LayerNorm.__init__(
            self, normalized_shape, eps, elementwise_affine, device=device, dtype=dtype
        )
        self._register(weight, bias, scale, zero_point, device)

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.layer_norm(
            input,
            self.normalized_shape,
            self.weight,
            self.bias,
            self.eps,
            float(self.scale),
            int(self.zero_point),
        )

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> nn.Module:
        return cls(
            mod.normalized_shape,
            mod.weight,
            mod.bias,
            float(scale),
            int(zero_point),
            mod.eps,
            mod.elementwise_affine,
        )


class GroupNorm(_OnGrid, nn.GroupNorm):
    """nn.GroupNorm on quantized tensors."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        weight: Tensor | None,
        bias: Tensor | None,
        scale: float,
        zero_point: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: object = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        nn.GroupNorm.__init__(
            self, num_groups, num_channels, eps, affine, device=device, dtype=dtype
        )
        self._register(weight, bias, scale, zero_point, device)

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.group_norm(
            input,
            self.num_groups,
            self.weight,
            self.bias,
            self.eps,
            float(self.scale),
            int(self.zero_point),
        )

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> nn.Module:
        return cls(
            mod.num_groups,
            mod.num_channels,
            mod.weight,
            mod.bias,
            float(scale),
            int(zero_point),
            mod.eps,
            mod.affine,
        )


class _InstanceNorm(_OnGrid):
    def __init__(
        self,
        num_features: int,
        weight: Tensor | None,
        bias: Tensor | None,
        scale: float,
        zero_point: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: object = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype
        )
        self._register(weight, bias, scale, zero_point, device)

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.instance_norm(
            input,
            self.weight,
            self.bias,
            self.eps,
            float(self.scale),
            int(self.zero_point),
        )

    @classmethod
    def from_reference(cls, mod: nn.Module, scale: float, zero_point: int) -> nn.Module:
        grid = float(scale), int(zero_point)
        return cls(mod.num_features, mod.weight, mod.bias, *grid, mod.eps, affine=mod.affine)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """nn.InstanceNorm1d on quantized tensors."""


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """nn.InstanceNorm2d on quantized tensors."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """nn.InstanceNorm3d on quantized tensors."""
