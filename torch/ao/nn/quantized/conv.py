"""Convolutions on 8-bit integers. One class holds all of it; the public ones say how many
dimensions there are and which operators to call."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.quantized._weights import OnGrid, observed_weight, output_grid


def _tuple(value: int | tuple[int, ...], dims: int) -> tuple[int, ...]:
    return (value,) * dims if isinstance(value, int) else tuple(value)


class _QuantizedConv(OnGrid):
    dims: int
    relu = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: object = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError("in_channels and out_channels must be divisible by groups")
        if padding_mode not in ("zeros", "reflect"):
            raise NotImplementedError(f"padding_mode {padding_mode!r} of a quantized convolution")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = _tuple(kernel_size, self.dims), _tuple(stride, self.dims)
        self.padding, self.dilation = _tuple(padding, self.dims), _tuple(dilation, self.dims)
        self.output_padding, self.transposed = (0,) * self.dims, False
        self.padding_mode = padding_mode
        size = [out_channels, in_channels // groups, *self.kernel_size]
        weight = torch._empty_affine_quantized(size, scale=1, zero_point=0, dtype=torch.qint8)
        self.set_weight_bias(weight.fill_(0.0), torch.zeros(out_channels) if bias else None)

    def _operator(self, suffix: str) -> object:
        return getattr(torch.ops.quantized, f"conv{self.dims}d{suffix}")

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Packs another weight."""
        padding = (0,) * self.dims if self.padding_mode == "reflect" else self.padding
        self._packed_params = self._operator("_prepack")(
            w, b, list(self.stride), list(padding), list(self.dilation), self.groups
        )

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._operator("_unpack")(self._packed_params)

    def weight(self) -> Tensor:
        """The quantized weight."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The float bias."""
        return self._weight_bias()[1]

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != self.dims + 2:
            raise ValueError(f"Input shape must be of {self.dims + 2} dimensions!")
        if self.padding_mode == "reflect":
            sides = [side for side in reversed(self.padding) for _ in range(2)]
            input = nn.functional.pad(input, sides, mode="reflect")
        run = self._operator("_relu" if self.relu else "")
        return run(input, self._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return f"QuantizedConv{'ReLU' if self.relu else ''}{self.dims}d"

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, scale={self.scale}, zero_point={self.zero_point}"
        )
        if any(self.padding):
            text += f", padding={self.padding}"
        if any(d != 1 for d in self.dilation):
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text if self.bias() is not None else text + ", bias=False"

    def entries(self) -> dict[str, object]:
        weight, bias = self._weight_bias()
        return {"weight": weight, "bias": bias, **super().entries()}

    def take(self, name: str, value: object) -> None:
        weight, bias = self._weight_bias()
        if name == "weight":
            self.set_weight_bias(value, bias)
        elif name == "bias":
            self.set_weight_bias(weight, value)
        else:
            super().take(name, value)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The quantized form of an observed or fake-quantized layer."""
        layer = mod[0] if isinstance(mod, nn.Sequential) else mod
        made = cls(
            layer.in_channels,
            layer.out_channels,
            layer.kernel_size,
            layer.stride,
            layer.padding,
            layer.dilation,
            layer.groups,
            layer.bias is not None,
            layer.padding_mode,
        )
        bias = None if layer.bias is None else layer.bias.detach().float()
        made.set_weight_bias(observed_weight(mod, layer), bias)
        made.scale, made.zero_point = output_grid(mod)
        return made


class Conv1d(_QuantizedConv):
    """nn.Conv1d on quantized tensors."""

    dims = 1


class Conv2d(_QuantizedConv):
    """nn.Conv2d on quantized tensors."""

    dims = 2


class Conv3d(_QuantizedConv):
    """nn.Conv3d on quantized tensors."""

    dims = 3


class ConvReLU1d(Conv1d):
    """Conv1d and ReLU in one."""

    relu = True


class ConvReLU2d(Conv2d):
    """Conv2d and ReLU in one."""

    relu = True


class ConvReLU3d(Conv3d):
    """Conv3d and ReLU in one."""

    relu = True
