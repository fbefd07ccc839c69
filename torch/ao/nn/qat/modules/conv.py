"""Convolutions that train with a weight rounded to levels. Their outputs are rounded by the
observer that `prepare_qat` attaches."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.qat.modules._rounded import Rounded

__all__ = ["Conv1d", "Conv2d", "Conv3d"]

Size = int | tuple[int, ...]


class _ConvNd(Rounded):
    """The constructor and forward of all three."""

    _FLOAT_MODULE: type[nn.Module]

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
        device: object = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self._plain_class().__init__(
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
            device=device,
            dtype=dtype,
        )
        self.watch(qconfig, device, dtype)

    @classmethod
    def _plain_class(cls) -> type[nn.Module]:
        return next(c for c in cls.__mro__ if c in (nn.Conv1d, nn.Conv2d, nn.Conv3d))

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)


class Conv1d(_ConvNd, nn.Conv1d):
    """nn.Conv1d with a rounded weight."""

    _FLOAT_MODULE = nn.Conv1d
    _FLOAT_CONV_MODULE = nn.Conv1d


class Conv2d(_ConvNd, nn.Conv2d):
    """nn.Conv2d with a rounded weight."""

    _FLOAT_MODULE = nn.Conv2d
    _FLOAT_CONV_MODULE = nn.Conv2d


class Conv3d(_ConvNd, nn.Conv3d):
    """nn.Conv3d with a rounded weight."""

    _FLOAT_MODULE = nn.Conv3d
    _FLOAT_CONV_MODULE = nn.Conv3d
