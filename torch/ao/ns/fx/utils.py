"""Measures of the distance between two results. Quantized tensors count with their values; lists
and tuples are compared element by element, up to the shorter one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

Measure = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _real(t: torch.Tensor) -> torch.Tensor:
    if t.is_quantized:
        return t.dequantize()
    return t if t.is_floating_point() or t.is_complex() else t.float()


def maybe_dequantize_first_two_tensor_args_and_handle_tuples(f: Measure) -> Callable[..., Any]:
    """A measure of two tensors, extended to quantized ones and to sequences."""

    @functools.wraps(f)
    def measure(*args: Any, **kwargs: Any) -> Any:
        x, y, *rest = args
        if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
            return [measure(a, b, *rest, **kwargs) for a, b in zip(x, y, strict=False)]
        x, y = (_real(t) for t in (x, y))
        return f(x, y, *rest, **kwargs)

    del measure.__wrapped__  # calls pass through *args, and so does the signature
    return measure


@maybe_dequantize_first_two_tensor_args_and_handle_tuples
def compute_sqnr(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The ratio of x to its distance from y, in decibels."""
    return 20 * torch.log10(torch.norm(x) / torch.norm(x - y))


@maybe_dequantize_first_two_tensor_args_and_handle_tuples
def compute_normalized_l2_error(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The distance of x and y as a share of x."""
    return torch.sqrt(((x - y) ** 2).sum() / (x**2).sum())


@maybe_dequantize_first_two_tensor_args_and_handle_tuples
def compute_cosine_similarity(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The cosine of the angle between x and y, taken as vectors."""
    return torch.nn.functional.cosine_similarity(x.reshape(1, -1), y.reshape(1, -1))
