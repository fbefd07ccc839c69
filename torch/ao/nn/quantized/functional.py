"""Functions from quantized tensors to quantized tensors."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor
from torch.nn import functional as plain

Size = int | tuple[int, ...]

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool2d",
    "avg_pool3d",
    "celu",
    "clamp",
    "conv1d",
    "conv2d",
    "conv3d",
    "elu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "interpolate",
    "leaky_relu",
    "linear",
    "max_pool1d",
    "max_pool2d",
    "threshold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


def _check(name: str, input: Tensor) -> None:
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def avg_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Means over windows."""
    _check("avg_pool2d", input)
    return plain.avg_pool2d(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Means over windows."""
    _check("avg_pool3d", input)
    return plain.avg_pool3d(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def adaptive_avg_pool2d(input: Tensor, output_size: Size) -> Tensor:
    """Means over as many windows as wanted."""
    _check("adaptive_avg_pool2d", input)
    return plain.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Size) -> Tensor:
    """Means over as many windows as wanted."""
    _check("adaptive_avg_pool3d", input)
    return plain.adaptive_avg_pool3d(input, output_size)


def _conv(
    dims: int,
    tensors: tuple[Tensor, Tensor, Tensor | None],
    sizes: tuple[Size, Size, Size],
    groups: int,
    padding_mode: str,
    result: tuple[float, int, torch.dtype],
) -> Tensor:
    input, weight, bias = tensors
    scale, zero_point, _ = result
    if padding_mode != "zeros":
        raise NotImplementedError("Only zero-padding is supported!")
    if input.dtype is not torch.quint8:
        raise NotImplementedError(
            "Only torch.quint8 is supported for activation tensor, got " + str(input.dtype)
        )
    if weight.dtype is not torch.qint8:
        raise NotImplementedError(
            "Only torch.qint8 is supported for weight tensor, got " + str(weight.dtype)
        )
    if input.dim() != dims + 2:
        raise ValueError(f"Input shape must be of {dims + 2} dimensions, got {input.dim()}")
    lists = [[s] * dims if isinstance(s, int) else list(s) for s in sizes]
    ops = torch.ops.quantized
    packed = getattr(ops, f"conv{dims}d_prepack")(weight, bias, *lists, groups)
    return getattr(ops, f"conv{dims}d")(input, packed, scale, zero_point)


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: torch.dtype = torch.quint8,
) -> Tensor:
    """A convolution of quantized tensors."""
    sizes, grid = (stride, padding, dilation), (scale, zero_point, dtype)
    return _conv(1, (input, weight, bias), sizes, groups, padding_mode, grid)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: torch.dtype = torch.quint8,
) -> Tensor:
    """A convolution of quantized tensors."""
    sizes, grid = (stride, padding, dilation), (scale, zero_point, dtype)
    return _conv(2, (input, weight, bias), sizes, groups, padding_mode, grid)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: torch.dtype = torch.quint8,
) -> Tensor:
    """A convolution of quantized tensors."""
    sizes, grid = (stride, padding, dilation), (scale, zero_point, dtype)
    return _conv(3, (input, weight, bias), sizes, groups, padding_mode, grid)


def interpolate(
    input: Tensor,
    size: Size | None = None,
    scale_factor: float | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Resizes images."""
    _check("interpolate", input)
    return plain.interpolate(input, size, scale_factor, mode, align_corners)


def linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    scale: float | None = None,
    zero_point: int | None = None,
) -> Tensor:
    """A product of quantized tensors. The weight is packed at each call."""
    scale = input.q_scale() if scale is None else scale
    zero_point = input.q_zero_point() if zero_point is None else zero_point
    packed = torch.ops.quantized.linear_prepack(weight, bias)
    return torch.ops.quantized.linear(input, packed, scale, zero_point)


def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Maxima over windows."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return torch.max_pool1d(
        input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode
    )


def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Maxima over windows."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return torch.max_pool2d(
        input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode
    )


def celu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """celu with a grid for the result."""
    _check("celu", input)
    return torch.ops.quantized.celu(input, scale, zero_point, alpha)


def leaky_relu(
    input: Tensor,
    negative_slope: float = 0.01,
    inplace: bool = False,
    scale: float | None = None,
    zero_point: int | None = None,
) -> Tensor:
    """leaky_relu, with a grid for the result or on that of the input."""
    if scale is None or zero_point is None:
        return plain.leaky_relu(input, negative_slope, inplace)
    if inplace:
        raise AssertionError("Cannot rescale with `inplace`")
    return torch.ops.quantized.leaky_relu(input, negative_slope, False, scale, zero_point)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Values cut to a range."""
    _check("hardtanh", input)
    return plain.hardtanh(input, min_val, max_val, inplace)


def hardswish(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """hardswish with a grid for the result."""
    _check("hardswish", input)
    return torch.ops.quantized.hardswish(input, scale, zero_point)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """Values up to a threshold replaced by one value."""
    _check("threshold", input)
    if threshold is None:
        raise ValueError("Input to 'threshold' must be specified!")
    if value is None:
        raise ValueError("Input to 'value' must be specified!")
    return torch.ops.quantized.threshold(input, threshold, value)


def elu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """elu with a grid for the result."""
    _check("elu", input)
    return torch.ops.quantized.elu(input, scale, zero_point, alpha)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """hardsigmoid, on the grid of numbers between 0 and 1."""
    _check("hardsigmoid", input)
    return plain.hardsigmoid(input, inplace)


def clamp(input: Tensor, min_: float, max_: float) -> Tensor:
    """Values cut to a range."""
    _check("clamp", input)
    return torch.clamp(input, min_, max_)


def _moved(old: str) -> None:
    warnings.warn(
        f"nn.quantized.functional.{old} is deprecated. Use nn.quantized.functional.interpolate "
        "instead.",
        stacklevel=3,
    )


def upsample(
    input: Tensor,
    size: Size | None = None,
    scale_factor: float | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The old name of interpolate."""
    _moved("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(
    input: Tensor, size: Size | None = None, scale_factor: float | None = None
) -> Tensor:
    """interpolate by bilinear weights, corners aligned."""
    _moved("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def upsample_nearest(
    input: Tensor, size: Size | None = None, scale_factor: float | None = None
) -> Tensor:
    """interpolate by nearest neighbours."""
    _moved("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")
