"""Convolutions on 8-bit integers. One class holds all of it; the public ones say how many
dimensions there are and which operators to call."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.intrinsic.modules import fused
from torch.ao.nn.quantized.modules.utils import (
    OnGrid,
    WeightedQuantizedModule,
    inner_layer,
    observed_weight,
    output_grid,
)
from torch.nn.utils.fusion import fuse_conv_bn_weights
from torch.nn.utils.parametrize import type_before_parametrizations

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_MODES = ("zeros", "reflect")
Size = int | tuple[int, ...]


def _tuple(value: Size, dims: int) -> tuple[int, ...]:
    return (value,) * dims if isinstance(value, int) else tuple(value)


def _reverse_repeat_padding(padding: tuple[int, ...]) -> list[int]:
    """Both sides of each dimension, the last dimension first, as nn.functional.pad takes them."""
    return [side for side in reversed(padding) for _ in range(2)]


class _ConvNd(OnGrid, WeightedQuantizedModule):
    """Everything but the list of arguments."""

    dims: int
    operator: str
    _layout: str
    _reversed_padding: list[int]
    suffix: str = ""  # of the operator: "_relu", "_dynamic"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if hasattr(cls, "dims"):
            cls._run = cls._operator(cls.suffix)
            cls._layout = ("(N, C, L)", "(N, C, H, W)", "(N, C, D, H, W)")[cls.dims - 1]

    def _set_up(
        self,
        channels: tuple[int, int],
        sizes: dict[str, Size],
        groups: int,
        bias: bool,
        padding_mode: str,
        transposed: bool,
    ) -> None:
        nn.Module.__init__(self)
        in_channels, out_channels = channels
        if padding_mode not in _MODES:
            raise NotImplementedError(
                f"'padding_mode' {padding_mode} is not supported by quantized convolution"
            )
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        for name, value in sizes.items():
            setattr(self, name, _tuple(value, self.dims))
        self.transposed, self.padding_mode = transposed, padding_mode
        self._reversed_padding = _reverse_repeat_padding(self.padding)
        self.scale, self.zero_point = 1.0, 0
        rows, columns = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        weight = torch._empty_affine_quantized(
            [rows, columns // groups, *self.kernel_size], scale=1, zero_point=0, dtype=torch.qint8
        )
        self.set_weight_bias(weight.fill_(0.0), torch.zeros(out_channels) if bias else None)

    @classmethod
    def _operator(cls, suffix: str) -> object:
        return getattr(torch.ops.quantized, f"{cls.operator}{cls.dims}d{suffix}")

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Packs another weight."""
        padding = (0,) * self.dims if self.padding_mode == "reflect" else self.padding
        sizes = [list(self.stride), list(padding)]
        if self.transposed:
            sizes.append(list(self.output_padding))
        self._packed_params = self._operator("_prepack")(
            w, b, *sizes, list(self.dilation), self.groups
        )

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._operator("_unpack")(self._packed_params)

    def weight(self) -> Tensor:
        """The quantized weight."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The float bias."""
        return self._weight_bias()[1]

    def _padded(self, input: Tensor) -> Tensor:
        if input.dim() != self.dims + 2:
            raise ValueError(f"Input shape must be `{self._layout}`!")
        if self.padding_mode != "reflect":
            return input
        return nn.functional.pad(input, self._reversed_padding, mode="reflect")

    def forward(self, input: Tensor) -> Tensor:
        return self._run(self._padded(input), self._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, scale={self.scale}, zero_point={self.zero_point}"
        )
        if any(self.padding):
            text += f", padding={self.padding}"
        if any(d != 1 for d in self.dilation):
            text += f", dilation={self.dilation}"
        if any(self.output_padding):
            text += f", output_padding={self.output_padding}"
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
    def _empty(cls, layer: nn.Module) -> nn.Module:
        """A layer with the sizes of another one, to be filled."""
        extra = {"output_padding": layer.output_padding} if layer.transposed else {}
        return cls(
            layer.in_channels,
            layer.out_channels,
            layer.kernel_size,
            layer.stride,
            layer.padding,
            dilation=layer.dilation,
            groups=layer.groups,
            bias=layer.bias is not None,
            padding_mode=layer.padding_mode,
            **extra,
        )

    @classmethod
    def _check_source(cls, mod: nn.Module) -> None:
        kind = type_before_parametrizations(mod)
        if kind not in cls._sources():
            names = [k.__name__ for k in cls._sources()]
            raise AssertionError(
                f" nnq.{cls.__name__}.from_float only works for {names}, but got: {type(mod)}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined.")

    @classmethod
    def _sources(cls) -> tuple[type[nn.Module], ...]:
        plain = getattr(nn, f"Conv{'Transpose' if cls.operator != 'conv' else ''}{cls.dims}d")
        extra = tuple(getattr(fused, f"{name}{cls.dims}d") for name in ("ConvReLU", "ConvBn"))
        return (plain, *extra)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The quantized form of an observed or fake-quantized layer."""
        layer = inner_layer(mod)
        if not hasattr(layer, "weight_fake_quant"):
            cls._check_source(mod)
        elif hasattr(layer, "bn"):
            bn = layer.bn
            layer.weight, layer.bias = fuse_conv_bn_weights(
                layer.weight,
                layer.bias,
                bn.running_mean,
                bn.running_var,
                bn.eps,
                bn.weight,
                bn.bias,
            )
        made = cls._empty(layer)
        bias = None if layer.bias is None else layer.bias.detach().float()
        weight = observed_weight(mod, layer, precomputed=use_precomputed_fake_quant)
        made.set_weight_bias(weight, bias)
        watcher = getattr(mod, "activation_post_process", None)
        if watcher is not None and getattr(watcher, "dtype", None) is not torch.float:
            made.scale, made.zero_point = output_grid(mod)
        return made

    @classmethod
    def from_reference(
        cls, ref_qconv: nn.Module, output_scale: float, output_zero_point: int
    ) -> nn.Module:
        """The layer that computes on levels what a reference layer says."""
        layer = inner_layer(ref_qconv)
        made = cls._empty(layer)
        made.set_weight_bias(layer.get_quantized_weight(), layer.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


class _Forward(_ConvNd):
    operator = "conv"

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
    ) -> None:
        sizes = {
            "kernel_size": kernel_size,
            "stride": stride,
            "padding": padding,
            "dilation": dilation,
            "output_padding": 0,
        }
        self._set_up((in_channels, out_channels), sizes, groups, bias, padding_mode, False)


class _ConvTransposeNd(_ConvNd):
    operator = "conv_transpose"

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
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        sizes = {
            "kernel_size": kernel_size,
            "stride": stride,
            "padding": padding,
            "dilation": dilation,
            "output_padding": output_padding,
        }
        self._set_up((in_channels, out_channels), sizes, groups, bias, padding_mode, True)

    @classmethod
    def _sources(cls) -> tuple[type[nn.Module], ...]:
        return (getattr(nn, f"ConvTranspose{cls.dims}d"),)

    @classmethod
    def from_reference(
        cls, ref_qconvt: nn.Module, output_scale: float, output_zero_point: int
    ) -> nn.Module:
        """The layer that computes on levels what a reference layer says."""
        return super().from_reference(ref_qconvt, output_scale, output_zero_point)


class Conv1d(_Forward):
    """nn.Conv1d on quantized tensors."""

    dims = 1
    _FLOAT_MODULE = nn.Conv1d


class Conv2d(_Forward):
    """nn.Conv2d on quantized tensors."""

    dims = 2
    _FLOAT_MODULE = nn.Conv2d


class Conv3d(_Forward):
    """nn.Conv3d on quantized tensors."""

    dims = 3
    _FLOAT_MODULE = nn.Conv3d


class ConvTranspose1d(_ConvTransposeNd):
    """nn.ConvTranspose1d on quantized tensors."""

    dims = 1
    _FLOAT_MODULE = nn.ConvTranspose1d


class ConvTranspose2d(_ConvTransposeNd):
    """nn.ConvTranspose2d on quantized tensors."""

    dims = 2
    _FLOAT_MODULE = nn.ConvTranspose2d


class ConvTranspose3d(_ConvTransposeNd):
    """nn.ConvTranspose3d on quantized tensors."""

    dims = 3
    _FLOAT_MODULE = nn.ConvTranspose3d
