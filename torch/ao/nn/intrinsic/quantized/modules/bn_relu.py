"""Batch normalisation and an activation on quantized tensors."""

from __future__ import annotations

from torch import nn
from torch.ao.nn.intrinsic.modules import fused
from torch.ao.nn.quantized.modules import batchnorm

__all__ = ["BNReLU2d", "BNReLU3d"]


class _BNReLU:
    relu = True

    @classmethod
    def from_reference(
        cls, bn_relu: nn.Module, output_scale: float, output_zero_point: int
    ) -> nn.Module:
        """The module that computes on levels what a fused float one says."""
        return super().from_reference(bn_relu, output_scale, output_zero_point)


class BNReLU2d(_BNReLU, batchnorm.BatchNorm2d):
    """BatchNorm2d and ReLU in one."""

    _FLOAT_MODULE = fused.BNReLU2d


class BNReLU3d(_BNReLU, batchnorm.BatchNorm3d):
    """BatchNorm3d and ReLU in one."""

    _FLOAT_MODULE = fused.BNReLU3d
