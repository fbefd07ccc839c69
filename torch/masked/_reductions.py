"""Reductions over the elements that a mask selects.

A masked-out element is replaced by the value that leaves the reduction unchanged (0 for a sum, -inf
for a maximum, nan for a median), and the ordinary operator does the rest. A slice without any
selected element therefore gives that value, or nan for means and deviations.
"""

from __future__ import annotations

import torch
from torch.masked._common import (
    as_dtype,
    checked_mask,
    combined_mask,
    dims_of,
    filled,
    highest,
    layouts,
    lowest,
)

__all__ = ["amax", "amin", "argmax", "argmin", "logsumexp", "mean", "median", "norm", "prod",
           "std", "sum", "var"]  # fmt: skip


def _is_integral(dtype) -> bool:
    return not (dtype.is_floating_point or dtype.is_complex)


@layouts
def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> torch.Tensor:
    """The sum of the selected elements."""
    dtype = dtype or (torch.int64 if _is_integral(input.dtype) else input.dtype)
    input, mask = combined_mask(as_dtype(input, dtype), mask)
    return filled(input, mask, 0).sum(dims_of(dim, input.ndim), keepdim=keepdim).to(dtype)


@layouts
def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> torch.Tensor:
    """The product of the selected elements."""
    dtype = dtype or (torch.int64 if _is_integral(input.dtype) else input.dtype)
    input, mask = combined_mask(as_dtype(input, dtype), mask)
    result = filled(input, mask, 1)
    # prod reduces one dimension at a time; from the last one on, so that the others keep their
    # numbers.
    for d in reversed(dims_of(dim, input.ndim)):
        result = result.prod(d, keepdim=keepdim)
    return result.to(dtype)


def _extremum(operator, neutral, input, dim, keepdim, dtype, mask) -> torch.Tensor:
    dtype = dtype or input.dtype
    input, mask = combined_mask(as_dtype(input, dtype), mask)
    return operator(filled(input, mask, neutral(dtype)), dims_of(dim, input.ndim), keepdim)


@layouts
def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> torch.Tensor:
    """The largest of the selected elements."""
    return _extremum(torch.amax, lowest, input, dim, keepdim, dtype, mask)


@layouts
def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> torch.Tensor:
    """The smallest of the selected elements."""
    return _extremum(torch.amin, highest, input, dim, keepdim, dtype, mask)


def _position(operator, neutral, input, dim, keepdim, dtype, mask) -> torch.Tensor:
    dtype = dtype or input.dtype
    input, mask = combined_mask(as_dtype(input, dtype), mask)
    return operator(filled(input, mask, neutral(dtype)), dim, bool(keepdim)).to(dtype)


@layouts
def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> torch.Tensor:
    """The place of the largest of the selected elements, in the input's dtype."""
    return _position(torch.argmax, lowest, input, dim, keepdim, dtype, mask)


@layouts
def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> torch.Tensor:
    """The place of the smallest of the selected elements, in the input's dtype."""
    return _position(torch.argmin, highest, input, dim, keepdim, dtype, mask)


def _count(input, mask, dims, keepdim) -> torch.Tensor:
    ones = torch.ones_like(input, dtype=torch.int64)
    return filled(ones, mask, 0).sum(dims, keepdim=keepdim)


@layouts
def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> torch.Tensor:
    """The mean of the selected elements; nan where there is none."""
    dtype = dtype or input.dtype
    if _is_integral(dtype):
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {dtype}"
        )
    dims = dims_of(dim, input.ndim)
    if mask is None:
        return torch.mean(input, dims, keepdim, dtype=dtype)
    mask = checked_mask(input, mask)
    total = sum(input, dims, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _count(input, mask, dims, keepdim)


@layouts
def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The lower median of the selected elements along dim; nan where there is none."""
    dtype = dtype or input.dtype
    input, mask = combined_mask(as_dtype(input, dtype), mask)
    if not _is_integral(dtype):
        return filled(input, mask, float("nan")).nanmedian(dim, keepdim).values
    if mask is None or bool(mask.all()):
        return input.median(dim, keepdim).values
    # Integers have no value that a median leaves out; doubles hold them, and it is one of them.
    wide = filled(input.to(torch.float64), mask, float("nan")).nanmedian(dim, keepdim).values
    if bool(wide.isnan().any()):
        raise ValueError("masked median expected no fully masked out rows for integer inputs")
    return wide.to(dtype)


@layouts
def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None) -> torch.Tensor:
    """The logarithm of the sum of the exponentials of the selected elements."""
    dtype = dtype or input.dtype
    input, mask = combined_mask(as_dtype(input, dtype), mask)
    dims = dims_of(dim, input.ndim)
    return torch.logsumexp(filled(input, mask, lowest(dtype)), dims, keepdim).to(dtype)


@layouts
def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None) -> torch.Tensor:
    """The p-norm of the selected elements."""
    dtype = dtype or input.dtype
    neutral = 0
    if ord is not None and float(ord) == float("-inf"):
        neutral = highest(input.dtype)
    input, mask = combined_mask(as_dtype(input, dtype), mask)
    dims = dims_of(dim, input.ndim)
    return torch.linalg.vector_norm(filled(input, mask, neutral), ord, dims, keepdim, dtype=dtype)


def _variance(input, dim, unbiased, correction, keepdim, dtype, mask) -> torch.Tensor:
    assert unbiased is None or correction is None, (
        "Only one of unbiased and correction may be given"
    )
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    compute = dtype or input.dtype
    if _is_integral(compute):
        compute = torch.get_default_dtype()
    mask = checked_mask(input, mask)
    dims = dims_of(dim, input.ndim)
    count = _count(input, mask, dims, True)
    centre = sum(input, dims, keepdim=True, dtype=compute, mask=mask) / count
    centred = input - centre
    squares = centred * centred.conj() if centred.is_complex() else centred * centred
    if mask is None:
        total = squares.sum(dims, keepdim=keepdim).to(compute)
    else:
        total = sum(squares, dims, keepdim=keepdim, dtype=compute, mask=mask)
    count = count if keepdim else count.reshape(total.shape)
    if correction:
        count = torch.clamp_min(count - correction, 0)
    result = (total / count).to(total.dtype)
    return result if dtype is None else result.to(dtype)


@layouts
def var(
    input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None
) -> torch.Tensor:
    """The variance of the selected elements; nan where there is none."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


@layouts
def std(
    input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None
) -> torch.Tensor:
    """The standard deviation of the selected elements; nan where there is none."""
    return torch.sqrt(_variance(input, dim, unbiased, correction, keepdim, dtype, mask))
