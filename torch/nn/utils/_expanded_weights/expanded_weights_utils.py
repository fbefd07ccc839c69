"""Helpers around ExpandedWeight, for code that registers functions of its own for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.nn.utils._expanded_weights.expanded_weights_impl import ExpandedWeight

__all__ = [
    "forward_helper",
    "set_grad_sample_if_exists",
    "standard_kwargs",
    "sum_over_all_but_batch_and_last_n",
    "unpack_expanded_weight_or_tensor",
]

_MIXTURE = (
    "ExpandedWeights currently does not support a mixture of ExpandedWeight parameters and normal "
    "Parameters. Please file and issue: gradients of the one would be by sample and not of the "
    "other"
)


def standard_kwargs(
    kwarg_names: Sequence[str], expanded_args: Sequence[object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Arguments and keyword arguments apart: the last ones of a call are those of the names."""
    first = len(expanded_args) - len(kwarg_names)
    named = dict(zip(kwarg_names, expanded_args[first:], strict=True))
    return tuple(expanded_args[:first]), named


def _check_input(expanded: Sequence[object]) -> None:
    first = expanded[0]
    if not isinstance(first, torch.Tensor):
        raise RuntimeError(
            f"Expanded Weights requires a Tensor as the first input to get the batch dimension, "
            f"got {type(first).__name__}"
        )
    if isinstance(first, ExpandedWeight):
        raise RuntimeError("Expanded Weights do not support inputs that are also ExpandedWeights.")
    if first.dim() == 0:
        raise RuntimeError("Expanded Weights requires a batch dimension but got an input of size 0")
    if first.shape[0] == 0:
        raise RuntimeError(
            "0 is not a valid batch size for Expanded Weights but got input tensor of "
            f"{tuple(first.shape)}"
        )
    for value in expanded[1:]:
        if isinstance(value, ExpandedWeight) and value.batch_size != first.shape[0]:
            raise RuntimeError(
                "Expected ExpandedWeights to have batch size matching input but got input batch "
                f"size of {first.shape[0]} with ExpandedWeight of batch size {value.batch_size}"
            )


def forward_helper(
    func: Callable[..., torch.Tensor],
    expanded_args: Sequence[object],
    expanded_kwargs: dict[str, object],
) -> torch.Tensor:
    """What the function gives on the weights themselves, as one call for the whole batch."""
    _check_input([*expanded_args, *expanded_kwargs.values()])
    plain = [a.orig_weight if isinstance(a, ExpandedWeight) else a for a in expanded_args]
    named = {
        name: a.orig_weight if isinstance(a, ExpandedWeight) else a
        for name, a in expanded_kwargs.items()
    }
    return func(*plain, **named)


def unpack_expanded_weight_or_tensor(
    maybe_expanded_weight: object, func: Callable[[torch.Tensor], object] = lambda t: t
) -> object:
    """func of the weight behind an ExpandedWeight, or of a tensor; None for other objects."""
    if isinstance(maybe_expanded_weight, ExpandedWeight):
        return func(maybe_expanded_weight.orig_weight)
    if not isinstance(maybe_expanded_weight, torch.Tensor):
        return None
    if maybe_expanded_weight.requires_grad:
        raise RuntimeError(_MIXTURE)
    return func(maybe_expanded_weight)


def set_grad_sample_if_exists(
    maybe_expanded_weight: object, per_sample_grad_fn: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """Adds per_sample_grad_fn(weight) to grad_sample of the weight behind an ExpandedWeight."""
    found = unpack_expanded_weight_or_tensor(maybe_expanded_weight, per_sample_grad_fn)
    if isinstance(maybe_expanded_weight, ExpandedWeight):
        maybe_expanded_weight.add_grad_sample(found)


def sum_over_all_but_batch_and_last_n(tensor: torch.Tensor, n_dims: int) -> torch.Tensor:
    """The sum over all dimensions but the first and the last `n_dims`."""
    if tensor.dim() == n_dims + 1:
        return tensor
    return tensor.sum(dim=list(range(1, tensor.dim() - n_dims)))
