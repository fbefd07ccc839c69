"""Convolutions and an activation on quantized tensors."""

from __future__ import annotations

from torch import nn
from torch.ao.nn.intrinsic import qat
from torch.ao.nn.intrinsic.modules import fused
from torch.ao.nn.quantized.modules import conv

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d"]


class _ConvReLU:
    suffix = "_relu"

    @classmethod
    def _sources(cls) -> tuple[type[nn.Module], ...]:
        return (getattr(fused, f"ConvReLU{cls.dims}d"), getattr(qat, f"ConvReLU{cls.dims}d"))


class ConvReLU1d(_ConvReLU, conv.Conv1d):
    """Conv1d and ReLU in one."""

    _FLOAT_MODULE = fused.ConvReLU1d


class ConvReLU2d(_ConvReLU, conv.Conv2d):
    """Conv2d and ReLU in one."""

    _FLOAT_MODULE = fused.ConvReLU2d


class ConvReLU3d(_ConvReLU, conv.Conv3d):
    """Conv3d and ReLU in one."""

    _FLOAT_MODULE = fused.ConvReLU3d
