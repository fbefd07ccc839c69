"""make_tensor: random tensors for tests."""

from __future__ import annotations

import collections.abc
import math

import torch

_INTEGERS = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
)
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_FLOATS_8BIT = (
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
)
_COMPLEX = {
    torch.complex32: torch.float16,
    torch.complex64: torch.float32,
    torch.complex128: torch.float64,
}


def _bounds(low, high, default, lowest, highest, dtype) -> tuple[int, int]:
    """The requested interval, or the default, cut to what the dtype holds."""
    low = default[0] if low is None else low
    high = default[1] if high is None else high
    if any(isinstance(v, float) and math.isnan(v) for v in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    if low == high and dtype in (*_FLOATS, *_FLOATS_8BIT, *_COMPLEX):
        pass
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high <= lowest or low >= highest:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} "
            f"only supports [{lowest}, {highest})"
        )
    return max(low, lowest), min(high, highest)


def _fill(shape, dtype, device, low, high):
    if dtype is torch.bool:
        low, high = _bounds(low, high, (0, 2), 0, 2, dtype)
        return torch.randint(
            int(low), max(int(high), int(low) + 1), shape, device=device, dtype=dtype
        )
    if dtype in _INTEGERS:
        info = torch.iinfo(dtype)
        low, high = _bounds(low, high, (-9, 10), info.min, info.max + 1, dtype)
        return torch.randint(math.ceil(low), math.ceil(high), shape, device=device, dtype=dtype)
    if dtype in _FLOATS or dtype in _COMPLEX:
        real = _COMPLEX.get(dtype, dtype)
        info = torch.finfo(real)
        low, high = _bounds(low, high, (-9, 9), info.min, info.max, dtype)
        result = torch.empty(shape, device=device, dtype=dtype)
        parts = torch.view_as_real(result) if dtype in _COMPLEX else result
        if high - low <= info.max:
            parts.uniform_(low, high)
        else:  # the width itself overflows
            parts.uniform_(low / 2, high / 2).mul_(2)
        return result
    if dtype in _FLOATS_8BIT:
        info = torch.finfo(dtype)
        low, high = _bounds(low, high, (-9, 9), info.min, info.max, dtype)
        return torch.empty(shape, device=device, dtype=torch.float32).uniform_(low, high).to(dtype)
    raise TypeError(
        f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor()."
    )


def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
) -> torch.Tensor:
    """A tensor of random values from [low, high).

    The default interval is [-9, 9) for floating point, [-9, 10) for integers (from 0 for
    unsigned ones) and both values for booleans. noncontiguous: with gaps in memory.
    exclude_zero: zeros become the smallest positive value."""
    if len(shape) == 1 and isinstance(shape[0], collections.abc.Sequence):
        shape = shape[0]
    shape = tuple(shape)
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"dtype={dtype}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    gaps = noncontiguous and math.prod(shape) > 1
    result = _fill((*shape[:-1], shape[-1] * 2) if gaps else shape, dtype, device, low, high)
    if gaps:
        result = result[..., 1::2]
    if exclude_zero:
        smallest = torch.finfo(dtype).tiny if dtype.is_floating_point or dtype.is_complex else 1
        result[result == 0] = True if dtype is torch.bool else smallest
    if memory_format is not None:
        result = result.clone(memory_format=memory_format)
    return result.requires_grad_() if requires_grad else result
