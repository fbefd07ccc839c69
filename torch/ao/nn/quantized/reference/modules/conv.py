"""Convolutions whose weights lie on a grid."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.quantized.reference.modules.utils import ReferenceQuantizedModule

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

Size = int | tuple[int, ...]


class _ConvNd(ReferenceQuantizedModule):
    """The constructor, forward and source of all."""

    _IS_REFERENCE = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: object = None,
        dtype: torch.dtype | None = None,
        weight_qparams: dict[str, object] | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"

    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_conv: nn.Module, weight_qparams: dict[str, object]) -> nn.Module:
        """With the parameters of a float layer."""
        extra = {"output_padding": float_conv.output_padding} if float_conv.transposed else {}
        made = cls(
            float_conv.in_channels,
            float_conv.out_channels,
            float_conv.kernel_size,
            float_conv.stride,
            float_conv.padding,
            groups=float_conv.groups,
            bias=float_conv.bias is not None,
            dilation=float_conv.dilation,
            padding_mode=float_conv.padding_mode,
            device=float_conv.weight.device,
            dtype=float_conv.weight.dtype,
            weight_qparams=weight_qparams,
            **extra,
        )
        made.weight = nn.Parameter(float_conv.weight.detach())
        if float_conv.bias is not None:
            made.bias = nn.Parameter(float_conv.bias.detach())
        return made


class _ConvTransposeNd(_ConvNd):
    """The same for transposed ones, which have an output padding."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: object = None,
        dtype: torch.dtype | None = None,
        weight_qparams: dict[str, object] | None = None,
    ) -> None:
        # The constructor of nn.ConvTranspose, past the one with other arguments.
        super(_ConvNd, self).__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            bias,
            dilation,
            padding_mode,
            device,
            dtype,
        )
        self._init_weight_qparams(weight_qparams, device)

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        dims = len(self.kernel_size)
        extra = self._output_padding(x, output_size)
        run = getattr(nn.functional, f"conv_transpose{dims}d")
        return run(
            x,
            self.get_weight(),
            self.bias,
            self.stride,
            self.padding,
            extra,
            self.groups,
            self.dilation,
        )


class Conv1d(_ConvNd, nn.Conv1d):
    """nn.Conv1d with a rounded weight."""


class Conv2d(_ConvNd, nn.Conv2d):
    """nn.Conv2d with a rounded weight."""


class Conv3d(_ConvNd, nn.Conv3d):
    """nn.Conv3d with a rounded weight."""


class ConvTranspose1d(_ConvTransposeNd, nn.ConvTranspose1d):
    """nn.ConvTranspose1d with a rounded weight."""


class ConvTranspose2d(_ConvTransposeNd, nn.ConvTranspose2d):
    """nn.ConvTranspose2d with a rounded weight."""


class ConvTranspose3d(_ConvTransposeNd, nn.ConvTranspose3d):
    """nn.ConvTranspose3d with a rounded weight."""
