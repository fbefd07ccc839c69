"""torch.ops.quantized_decomposed: rounding to levels and back on plain integer tensors.

Graphs that other compilers read use these instead of quantized tensors: a value is an integer
tensor, and every operator names the grid. The grid comes as numbers (`.default`) or as
tensors (`.tensor`; `.tensor2` where the limits are tensors too)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

quantized_decomposed_lib = torch.library.Library("quantized_decomposed", "FRAGMENT")

_EPS = torch.finfo(torch.float32).eps
_LIMITS = {
    torch.uint8: (0, 255),
    torch.int8: (-128, 127),
    torch.uint16: (0, 2**16 - 1),
    torch.int16: (-(2**15), 2**15 - 1),
    torch.int32: (-(2**31), 2**31 - 1),
    torch.float8_e4m3fn: (-448, 448),
    torch.float8_e5m2: (-57344, 57344),
}


def _defined(*schemas: str, composite: bool = False) -> Callable[[Callable], Callable]:
    """Defines operators with one function for all devices, data or none."""

    def register(function: Callable) -> Callable:
        for schema in schemas:
            name = quantized_decomposed_lib.define(schema)
            short = name.partition("::")[2] or name
            key = "CompositeImplicitAutograd" if composite else "CompositeExplicitAutograd"
            quantized_decomposed_lib.impl(short, function, key)
        return function

    return register


def _check_limits(quant_min: int, quant_max: int, dtype: torch.dtype) -> None:
    if dtype not in _LIMITS:
        raise ValueError(f"Unsupported dtype: {dtype}")
    low, high = _LIMITS[dtype]
    if quant_min < low or quant_max > high:
        raise AssertionError(
            f"quant_min/quant_max out of bound for {dtype}: expected within [{low}, {high}], got "
            f"[{quant_min}, {quant_max}]"
        )


def _check_real(input: Tensor) -> Tensor:
    if input.dtype in (torch.float16, torch.bfloat16):
        return input.to(torch.float32)
    if input.dtype is not torch.float32:
        raise AssertionError(
            f"Expecting input to have dtype torch.float32, but got dtype: {input.dtype}"
        )
    return input


def _check_levels(input: Tensor, dtype: torch.dtype) -> None:
    if input.dtype is not dtype:
        raise AssertionError(f"Expecting input to have dtype: {dtype}, but got {input.dtype}")


def _to_levels(
    values: Tensor,
    scale: float | Tensor,
    zero: float | Tensor,
    low: int | Tensor,
    high: int | Tensor,
    dtype: torch.dtype,
) -> Tensor:
    inverse = 1.0 / scale
    return torch.clamp(torch.round(values * inverse) + zero, low, high).to(dtype)


_GRID = "float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype"
_TENSORS = "Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype"
_ALL_TENSORS = (
    "Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype"
)
_OUT = ", *, ScalarType? out_dtype=None) -> Tensor"


@_defined(
    f"quantize_per_tensor(Tensor input, {_GRID}) -> Tensor",
)
def quantize_per_tensor(
    input: Tensor,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> Tensor:
    """Levels of one grid."""
    values = _check_real(input)
    _check_limits(quant_min, quant_max, dtype)
    return _to_levels(values, scale, zero_point, quant_min, quant_max, dtype)


@_defined(f"quantize_per_tensor.tensor(Tensor input, {_TENSORS}) -> Tensor")
def quantize_per_tensor_tensor(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> Tensor:
    """The same with a grid in tensors."""
    if zero_point.numel() != 1 or scale.numel() != 1:
        raise AssertionError("Expecting scale and zero_point of one element")
    values = _check_real(input)
    _check_limits(quant_min, quant_max, dtype)
    return _to_levels(values, scale, zero_point, quant_min, quant_max, dtype)


@_defined(f"quantize_per_tensor.tensor2(Tensor input, {_ALL_TENSORS}) -> Tensor")
def quantize_per_tensor_tensor2(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: Tensor,
    quant_max: Tensor,
    dtype: torch.dtype,
) -> Tensor:
    """The same with limits in tensors."""
    return quantize_per_tensor_tensor(
        input, scale, zero_point, int(quant_min), int(quant_max), dtype
    )


@_defined(f"dequantize_per_tensor(Tensor input, {_GRID}{_OUT}")
def dequantize_per_tensor(
    input: Tensor,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Real numbers of levels."""
    _check_levels(input, dtype)
    return (input.to(out_dtype or torch.float32) - zero_point) * scale


@_defined(f"dequantize_per_tensor.tensor(Tensor input, {_TENSORS}{_OUT}")
def dequantize_per_tensor_tensor(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """The same with a grid in tensors."""
    _check_levels(input, dtype)
    kind = out_dtype or torch.float32
    return ((input.to(torch.float32) - zero_point) * scale).to(kind)


@_defined(f"dequantize_per_tensor.tensor2(Tensor input, {_ALL_TENSORS}{_OUT}")
def dequantize_per_tensor_tensor2(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: Tensor,
    quant_max: Tensor,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """The same with limits in tensors."""
    return dequantize_per_tensor_tensor(
        input, scale, zero_point, int(quant_min), int(quant_max), dtype, out_dtype=out_dtype
    )


def _range_grid(
    low: Tensor, high: Tensor, qmin: int, qmax: int, eps: float, symmetric: bool
) -> tuple[Tensor, Tensor]:
    low, high = torch.clamp(low, max=0.0), torch.clamp(high, min=0.0)
    if symmetric:
        scale = torch.maximum(-low, high) / (float(qmax - qmin) / 2)
        scale = torch.clamp(scale, min=eps)
        return scale, torch.full_like(scale, (qmin + qmax + 1) // 2, dtype=torch.int64)
    scale = torch.clamp((high - low) / float(qmax - qmin), min=eps)
    zero = torch.clamp(qmin - torch.round(low / scale), qmin, qmax)
    return scale, zero.to(torch.int64)


_CHOOSE = (
    "(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)"
)


@_defined(f"choose_qparams.tensor{_CHOOSE}")
def choose_qparams_tensor(
    input: Tensor, qmin: int, qmax: int, eps: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Scale (float64) and zero point (int64) for the range of a tensor."""
    _check_choice(qmin, qmax, dtype)
    low, high = torch.aminmax(_check_real(input))
    scale, zero = _range_grid(low, high, qmin, qmax, eps, False)
    return scale.reshape(1).to(torch.float64), zero.reshape(1)


@_defined(f"choose_qparams_symmetric.tensor{_CHOOSE}")
def choose_qparams_symmetric_tensor(
    input: Tensor, qmin: int, qmax: int, eps: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The same for a grid around zero."""
    _check_choice(qmin, qmax, dtype)
    low, high = torch.aminmax(_check_real(input))
    scale, zero = _range_grid(low, high, qmin, qmax, eps, True)
    return scale.reshape(1).to(torch.float64), zero.reshape(1)


def _check_choice(qmin: int, qmax: int, dtype: torch.dtype) -> None:
    if dtype not in _LIMITS:
        raise AssertionError(f"Expecting target dtype to be one of {list(_LIMITS)}, got {dtype}")
    if qmin >= qmax:
        raise AssertionError(f"Expecting quant_min < quant_max, got {qmin} and {qmax}")


# ---- a grid for each slice along an axis
_AXIS = (
    "Tensor scales, Tensor{opt} zero_points, int axis, int quant_min, int quant_max, "
    "ScalarType dtype"
)


def _along(numbers: Tensor, input: Tensor, axis: int) -> Tensor:
    shape = [1] * input.dim()
    shape[axis] = -1
    return numbers.reshape(shape)


@_defined("quantize_per_channel(Tensor input, " + _AXIS.replace("{opt}", "") + ") -> Tensor")
def quantize_per_channel(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> Tensor:
    """Levels of a grid for each slice."""
    values = _check_real(input)
    if axis >= input.dim():
        raise AssertionError(f"Expecting axis to be < {input.dim()}")
    _check_limits(quant_min, quant_max, dtype)
    zeros = _along(zero_points, input, axis)
    inverse = 1.0 / _along(scales, input, axis)
    levels = torch.clamp(torch.round(values * inverse) + zeros, quant_min, quant_max)
    return levels.to(dtype)


@_defined("dequantize_per_channel(Tensor input, " + _AXIS.replace("{opt}", "?") + _OUT)
def dequantize_per_channel(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Real numbers of such levels."""
    _check_levels(input, dtype)
    if axis >= input.dim():
        raise AssertionError(f"Expecting axis to be < {input.dim()}")
    values = input.to(torch.float32)
    if zero_points is not None:
        values = values - _along(zero_points, input, axis)
    return (values * _along(scales, input, axis)).to(out_dtype or torch.float32)


# ---- a grid for each token
@_defined(
    "choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
    "_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
    "choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
)
def choose_qparams_per_token_asymmetric(input: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Scale (float64) and zero point (int64) of each vector along the last dimension."""
    qmin, qmax = -128, 127
    low = torch.clamp(torch.amin(input, -1, True), max=0).float()
    high = torch.clamp(torch.amax(input, -1, True), min=0).float()
    scale = torch.clamp((high - low) / float(qmax - qmin), min=_EPS)
    # Of the two ends the zero point takes the one whose error is smaller.
    from_low, from_high = qmin + low / scale, qmax + high / scale
    zero = torch.where(from_low + from_high > 0, qmin - low / scale, qmax - high / scale)
    zero = torch.round(torch.clamp(zero, qmin, qmax)).to(torch.int64)
    return scale.to(torch.float64), zero


_TOKEN = (
    "(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, "
    "ScalarType dtype"
)


@_defined(f"quantize_per_token{_TOKEN}) -> Tensor")
def quantize_per_token(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> Tensor:
    """Levels of a grid for each token."""
    _check_limits(quant_min, quant_max, dtype)
    levels = torch.round(input / scales + zero_points)
    return torch.clamp(levels, quant_min, quant_max).to(dtype)


@_defined(f"dequantize_per_token{_TOKEN}, ScalarType output_dtype) -> Tensor")
def dequantize_per_token(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    output_dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Real numbers of such levels."""
    return (input.to(torch.float32) - zero_points).mul(scales).to(output_dtype)


# ---- a grid for each group of a row
def _grouped(values: Tensor, group_size: int) -> Tensor:
    if group_size <= 1:
        raise AssertionError(f"Expecting group_size > 1, got {group_size}")
    width = values.shape[-1]
    if width < group_size or width % group_size:
        raise AssertionError(f"Expecting groups of {group_size} to divide rows of {width}")
    return values.reshape(-1, group_size)


@_defined(
    "quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, "
    "int quant_max, ScalarType dtype, int group_size) -> Tensor"
)
def quantize_per_channel_group(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    group_size: int = 128,
) -> Tensor:
    """Levels of a grid for each group."""
    if group_size > input.shape[-1] and scales.shape[-1] == 1:
        group_size = input.shape[-1]
    rows = _grouped(input, group_size)
    scale, zero = scales.reshape(-1, 1), zero_points.reshape(-1, 1)
    levels = torch.clamp(torch.round(rows * (1.0 / scale)) + zero, quant_min, quant_max)
    return levels.to(dtype).reshape(input.shape)


@_defined(
    "dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, "
    "int quant_max, ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor"
)
def dequantize_per_channel_group(
    w_int8: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    group_size: int = 128,
    output_dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Real numbers of such levels."""
    if group_size > w_int8.shape[-1] and scales.shape[-1] == 1:
        group_size = w_int8.shape[-1]
    rows = _grouped(w_int8, group_size).to(torch.float32)
    if zero_points is not None:
        rows = rows - zero_points.reshape(-1, 1)
    return (rows * scales.reshape(-1, 1)).reshape(w_int8.shape).to(output_dtype)


@_defined(
    "fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int "
    "quant_min, int quant_max) -> Tensor",
    composite=True,
)
def fake_quant_per_channel(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
) -> Tensor:
    """Rounding to levels and back, with a gradient."""
    return torch.fake_quantize_per_channel_affine(
        input, scales, zero_points, axis, quant_min, quant_max
    )


@_defined("convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor")
def convert_element_type(input: Tensor, dtype: torch.dtype) -> Tensor:
    """A conversion that compilers leave where it is."""
    return input.to(dtype, copy=True)
