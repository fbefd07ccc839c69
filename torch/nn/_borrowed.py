"""Helpers of torch.nn.functional that were never announced and that projects import all the same,
most often for an attention layer of their own. torch.nn.functional hands them out on first use."""

from __future__ import annotations

import warnings

import torch
from torch.nn import functional

__all__ = ["_canonical_mask", "_in_projection", "_in_projection_packed", "_none_or_dtype"]


def _in_projection(
    q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Query, key and value through a linear map each."""
    return (
        functional.linear(q, w_q, b_q),
        functional.linear(k, w_k, b_k),
        functional.linear(v, w_v, b_v),
    )


def _in_projection_packed(q, k, v, w, b=None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same with the three weights stacked in one, and the three biases."""
    weights = w.chunk(3)
    biases = (None, None, None) if b is None else b.chunk(3)
    if k is v and q is k:
        # One product is faster than three.
        parts = functional.linear(q, w, b).unflatten(-1, (3, q.size(-1)))
        return tuple(part.contiguous() for part in parts.unbind(-2))
    return _in_projection(q, k, v, *weights, *biases)


def _none_or_dtype(input) -> torch.dtype | None:
    """The dtype of a tensor, None for None."""
    if input is None:
        return None
    if isinstance(input, torch.Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask as numbers to be added: True becomes minus infinity."""
    if mask is None:
        return None
    floating = mask.is_floating_point()
    if mask.dtype is not torch.bool and not floating:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. "
            "Use same type for both instead.",
            stacklevel=2,
        )
    if floating:
        return mask
    return torch.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))
