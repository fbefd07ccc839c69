"""Convolutions with quantized weights on float tensors, whose grid is found at each call."""

from __future__ import annotations

from torch import Tensor, nn
from torch.ao.nn.quantized.modules import conv as static

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Dynamic:
    """The forward of all, and the way from a reference layer, which needs no output grid."""

    suffix = "_dynamic"

    def forward(self, input: Tensor, reduce_range: bool = True) -> Tensor:
        return self._run(self._padded(input), self._packed_params, reduce_range)

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    @classmethod
    def from_reference(cls, ref_qconv: nn.Module) -> nn.Module:
        """With the weight of a reference layer."""
        made = cls._empty(ref_qconv)
        made.set_weight_bias(ref_qconv.get_quantized_weight(), ref_qconv.bias)
        return made


class Conv1d(_Dynamic, static.Conv1d):
    """nn.Conv1d with a weight of 8 bits."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: static.Size,
        stride: static.Size = 1,
        padding: static.Size = 0,
        dilation: static.Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: object = None,
        dtype: object = None,
        reduce_range: bool = True,
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


class Conv2d(_Dynamic, static.Conv2d):
    """nn.Conv2d with a weight of 8 bits."""


class Conv3d(_Dynamic, static.Conv3d):
    """nn.Conv3d with a weight of 8 bits."""


class ConvTranspose1d(_Dynamic, static.ConvTranspose1d):
    """nn.ConvTranspose1d with a weight of 8 bits."""


class ConvTranspose2d(_Dynamic, static.ConvTranspose2d):
    """nn.ConvTranspose2d with a weight of 8 bits."""


class ConvTranspose3d(_Dynamic, static.ConvTranspose3d):
    """nn.ConvTranspose3d with a weight of 8 bits."""
