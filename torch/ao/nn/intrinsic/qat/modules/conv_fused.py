"""Convolutions with a normalisation, an activation, or both, that train with rounded weights."""

from __future__ import annotations

from torch import Tensor, nn
from torch.ao.nn import qat
from torch.ao.nn.intrinsic.modules import fused
from torch.ao.nn.intrinsic.modules.fused import _FusedModule
from torch.ao.nn.intrinsic.qat.modules._folded import Folded

__all__ = [
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "freeze_bn_stats",
    "update_bn_stats",
]

Size = int | tuple[int, ...]


class _ConvBnNd(Folded):
    """The constructor and the product of all convolutions with a normalisation."""

    _version = 2
    _BN: type[nn.Module]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool | None = None,
        padding_mode: str = "zeros",
        eps: float = 1e-05,
        momentum: float = 0.1,
        freeze_bn: bool = False,
        qconfig: object = None,
    ) -> None:
        self.freeze_bn = False
        self._plain_kind().__init__(
            self,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bool(bias),
            padding_mode,
        )
        self.watch(qconfig)
        self.attach_bn(self._BN(out_channels, eps, momentum), freeze_bn)
        self.reset_bn_parameters()

    def _run(self, input: Tensor, weight: Tensor) -> Tensor:
        return self._conv_forward(input, weight, None)


class ConvBn1d(_ConvBnNd, nn.Conv1d, _FusedModule):
    """Conv1d and BatchNorm1d with a rounded product of both weights."""

    _BN = nn.BatchNorm1d
    _FLOAT_MODULE = fused.ConvBn1d
    _FLOAT_CONV_MODULE = nn.Conv1d


class ConvBn2d(_ConvBnNd, nn.Conv2d, _FusedModule):
    """Conv2d and BatchNorm2d with a rounded product of both weights."""

    _BN = nn.BatchNorm2d
    _FLOAT_MODULE = fused.ConvBn2d
    _FLOAT_CONV_MODULE = nn.Conv2d


class ConvBn3d(_ConvBnNd, nn.Conv3d, _FusedModule):
    """Conv3d and BatchNorm3d with a rounded product of both weights."""

    _BN = nn.BatchNorm3d
    _FLOAT_MODULE = fused.ConvBn3d
    _FLOAT_CONV_MODULE = nn.Conv3d


class ConvBnReLU1d(ConvBn1d):
    """The same with an activation."""

    _HAS_RELU = True
    _FLOAT_MODULE = fused.ConvBnReLU1d
    _FUSED_FLOAT_MODULE = fused.ConvReLU1d


class ConvBnReLU2d(ConvBn2d):
    """The same with an activation."""

    _HAS_RELU = True
    _FLOAT_MODULE = fused.ConvBnReLU2d
    _FUSED_FLOAT_MODULE = fused.ConvReLU2d


class ConvBnReLU3d(ConvBn3d):
    """The same with an activation."""

    _HAS_RELU = True
    _FLOAT_MODULE = fused.ConvBnReLU3d
    _FUSED_FLOAT_MODULE = fused.ConvReLU3d


class _ConvReLU:
    """A convolution with a rounded weight and an activation."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        qconfig: object = None,
    ) -> None:
        qat.modules.conv._ConvNd.__init__(
            self,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            qconfig,
        )

    def forward(self, input: Tensor) -> Tensor:
        return nn.functional.relu(super().forward(input))

    def to_float(self) -> nn.Module:
        """The plain convolution and its activation."""
        return self._FLOAT_MODULE(self.plain(self._plain_class()), nn.ReLU())


class ConvReLU1d(_ConvReLU, qat.Conv1d, _FusedModule):
    """Conv1d and ReLU with a rounded weight."""

    _FLOAT_MODULE = fused.ConvReLU1d


class ConvReLU2d(_ConvReLU, qat.Conv2d, _FusedModule):
    """Conv2d and ReLU with a rounded weight."""

    _FLOAT_MODULE = fused.ConvReLU2d


class ConvReLU3d(_ConvReLU, qat.Conv3d, _FusedModule):
    """Conv3d and ReLU with a rounded weight."""

    _FLOAT_MODULE = fused.ConvReLU3d


def update_bn_stats(mod: nn.Module) -> None:
    """For Module.apply: statistics follow the batches."""
    if isinstance(mod, Folded):
        mod.update_bn_stats()


def freeze_bn_stats(mod: nn.Module) -> None:
    """For Module.apply: statistics stay as they are."""
    if isinstance(mod, Folded):
        mod.freeze_bn_stats()
