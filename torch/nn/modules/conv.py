"""Convolution layers, and the two that move between images and columns."""

from __future__ import annotations

import torch
from torch.nn import functional as F
from torch.nn.modules._parameters import declare, uniform_by_fan_in
from torch.nn.modules.module import Module

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]


def _tuple(value, dims) -> tuple[int, ...]:
    return (value,) * dims if isinstance(value, int) else tuple(value)


class _ConvNd(Module):
    """What all convolutions share: weight, bias, their first values and the printed form."""

    weight: torch.Tensor

    __constants__ = [
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding",
        "in_channels", "out_channels", "kernel_size",
    ]  # fmt: skip

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups: int,
        bias,
        padding_mode,
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}"
                )
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                "padding_mode must be one of {'zeros', 'reflect', 'replicate', 'circular'}, "
                f"but got padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._both_sides()
        if transposed:
            shape = (in_channels, out_channels // groups, *kernel_size)
        else:
            shape = (out_channels, in_channels // groups, *kernel_size)
        shapes = {"weight": shape, "bias": out_channels if bias else None}
        declare(self, shapes, device, dtype)
        self.reset_parameters()

    def _both_sides(self):
        """The padding as F.pad takes it: last dimension first, before and after."""
        if not isinstance(self.padding, str):
            return tuple(p for p in reversed(self.padding) for _ in range(2))
        both = []
        for dilation, kernel in zip(self.dilation[::-1], self.kernel_size[::-1], strict=True):
            total = dilation * (kernel - 1) if self.padding == "same" else 0
            both += [total // 2, total - total // 2]
        return both

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        # Without input channels there is no bound, and the bias keeps its values.
        uniform_by_fan_in(self.weight, self.bias if self.weight.numel() else None)

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        dims = len(self.kernel_size)
        if self.padding != (0,) * dims:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * dims:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * dims:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    """A convolution over `_dims` dimensions."""

    _dims = 0

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        n = self._dims
        super().__init__(
            in_channels, out_channels, _tuple(kernel_size, n), _tuple(stride, n),
            padding if isinstance(padding, str) else _tuple(padding, n), _tuple(dilation, n),
            False, (0,) * n, groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input, weight, bias):
        function = (F.conv1d, F.conv2d, F.conv3d)[self._dims - 1]
        if self.padding_mode == "zeros":
            return function(
                input, weight, bias, self.stride, self.padding, self.dilation, self.groups
            )
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        none = (0,) * self._dims
        return function(padded, weight, bias, self.stride, none, self.dilation, self.groups)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Convolution over one dimension."""

    _dims = 1


class Conv2d(_Conv):
    """Convolution over two dimensions."""

    _dims = 2


class Conv3d(_Conv):
    """Convolution over three dimensions."""

    _dims = 3


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution over `_dims` dimensions."""

    _dims = 0

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups: int = 1,
        bias: bool = True,
        dilation=1,
        padding_mode: str = "zeros",
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {self.__class__.__name__}'
            )
        n = self._dims
        super().__init__(
            in_channels, out_channels, _tuple(kernel_size, n), _tuple(stride, n),
            _tuple(padding, n), _tuple(dilation, n), True, _tuple(output_padding, n), groups,
            bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(self, input, output_size):
        """What must be added at the ends to reach the output size asked for."""
        if output_size is None:
            return self.output_padding
        n = self._dims
        batched = input.dim() == n + 2
        leading = 2 if batched else 1
        output_size = list(output_size)
        if len(output_size) == leading + n:
            output_size = output_size[leading:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} "
                f"or {leading + n} elements (got {len(output_size)})"
            )
        smallest = [
            (input.size(d + leading) - 1) * self.stride[d] - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1) + 1
            for d in range(n)
        ]  # fmt: skip
        largest = [low + step - 1 for low, step in zip(smallest, self.stride, strict=True)]
        triples = zip(output_size, smallest, largest, strict=True)
        if any(not low <= s <= high for s, low, high in triples):
            raise ValueError(
                f"requested an output size of {tuple(output_size)}, but valid sizes range from "
                f"{smallest} to {largest} (for an input of {input.size()[leading:]})"
            )
        return [s - low for s, low in zip(output_size, smallest, strict=True)]

    def forward(self, input: torch.Tensor, output_size=None) -> torch.Tensor:
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self._dims - 1]
        return function(
            input, self.weight, self.bias, self.stride, self.padding,
            self._output_padding(input, output_size), self.groups, self.dilation,
        )  # fmt: skip


class _ConvTransposeMixin(_ConvTransposeNd):
    """The old name of the base class."""


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution over one dimension."""

    _dims = 1


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution over two dimensions."""

    _dims = 2


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution over three dimensions."""

    _dims = 3
