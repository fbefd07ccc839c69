"""embedding_bag: sums, means or maxima of embeddings, without the embeddings themselves."""

import warnings

import torch
from torch.overrides import has_torch_function_variadic, redirect

__all__ = ["embedding_bag"]

_MODES = {"sum": 0, "mean": 1, "max": 2}


def _bags(input, offsets, include_last_offset) -> tuple[torch.Tensor, torch.Tensor]:
    """The indices as a vector, and where each bag begins in it."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {type(offsets)}"
            )
        step = input.size(1)
        stop = input.numel() + (1 if include_last_offset else 0)
        if step == 0:
            raise ValueError("embedding_bag: bags of a 2D input must not be empty")
        offsets = torch.arange(0, stop, step, dtype=input.dtype, device=input.device)
        return input.reshape(-1), offsets
    if input.dim() != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets


def _check_mode(mode, scale_grad_by_freq, sparse, per_sample_weights) -> None:
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )


def embedding_bag(
    input: torch.Tensor,
    weight: torch.Tensor,
    offsets: torch.Tensor | None = None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx=None,
) -> torch.Tensor:
    """Reduces the rows of weight that each bag of indices names."""
    tensors = (input, weight, offsets, per_sample_weights)
    if has_torch_function_variadic(*tensors):
        return redirect(embedding_bag, locals())
    if weight.dtype == torch.long and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage "
            "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
            "`embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then "
            f"it must have the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    rows = weight.size(0)
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, "
            f"but got {padding_idx}"
        )
    input, offsets = _bags(input, offsets, include_last_offset)
    if per_sample_weights is not None:
        per_sample_weights = per_sample_weights.reshape(-1)
    _check_mode(mode, scale_grad_by_freq, sparse, per_sample_weights)
    if max_norm is not None:
        with torch.no_grad():
            torch.embedding_renorm_(weight, input.contiguous(), max_norm, norm_type)
    result, _, _, _ = torch.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, _MODES[mode], sparse, per_sample_weights,
        include_last_offset, padding_idx,
    )  # fmt: skip
    return result
