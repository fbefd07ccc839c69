"""Softmaxes, cumulative sums and the like over the elements that a mask selects. The others are
replaced by the value that takes no part."""

from __future__ import annotations

import torch
from torch.masked._common import (
    as_dtype,
    checked_mask,
    combined_mask,
    filled,
    highest,
    layouts,
    lowest,
)
from torch.masked._reductions import norm

__all__ = ["cumprod", "cumsum", "log_softmax", "logaddexp", "normalize", "softmax", "softmin"]


def _scan(operator, neutral, input, dim, dtype, mask) -> torch.Tensor:
    dtype = dtype or input.dtype
    input, mask = combined_mask(as_dtype(input, dtype), mask)
    return operator(filled(input, mask, neutral), dim, dtype=dtype)


@layouts
def cumsum(input, dim, *, dtype=None, mask=None) -> torch.Tensor:
    """The running sum of the selected elements along dim."""
    return _scan(torch.cumsum, 0, input, dim, dtype, mask)


@layouts
def cumprod(input, dim, *, dtype=None, mask=None) -> torch.Tensor:
    """The running product of the selected elements along dim."""
    return _scan(torch.cumprod, 1, input, dim, dtype, mask)


def _exponentials(operator, neutral, input, dim, dtype, mask) -> torch.Tensor:
    dtype = dtype or input.dtype
    input, mask = combined_mask(as_dtype(input, dtype), mask)
    return operator(filled(input, mask, neutral(dtype)), dim, dtype=dtype)


@layouts
def softmax(input, dim, *, dtype=None, mask=None) -> torch.Tensor:
    """The softmax of the selected elements along dim; 0 for the others."""
    return _exponentials(torch.nn.functional.softmax, lowest, input, dim, dtype, mask)


@layouts
def log_softmax(input, dim, *, dtype=None, mask=None) -> torch.Tensor:
    """The logarithm of the softmax of the selected elements along dim."""
    return _exponentials(torch.nn.functional.log_softmax, lowest, input, dim, dtype, mask)


@layouts
def softmin(input, dim, *, dtype=None, mask=None) -> torch.Tensor:
    """The softmax of the negated selected elements along dim."""
    return _exponentials(torch.nn.functional.softmin, highest, input, dim, dtype, mask)


@layouts
def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None) -> torch.Tensor:
    """The selected elements divided by their norm along dim; 0 for the others."""
    dtype = dtype or input.dtype
    input, mask = combined_mask(as_dtype(input, dtype), mask)
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return filled(input, mask, 0) / length.clamp_min(eps)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None) -> torch.Tensor:
    """log(exp(input) + exp(other)), where a masked-out element counts as -inf."""
    dtype = dtype or input.dtype
    parts = [
        filled(as_dtype(t, dtype), checked_mask(t, mask), lowest(dtype))
        for t, mask in ((input, input_mask), (other, other_mask))
    ]
    return torch.logaddexp(*parts).to(dtype)
