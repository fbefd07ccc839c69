"""The order of a tensor's dimensions in memory."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def checked_formats(
    ambiguity_check: bool | Sequence[torch.memory_format],
) -> list[torch.memory_format]:
    """The memory formats of which the tensor has to be in exactly one; none for a bool."""
    if isinstance(ambiguity_check, bool):
        return []
    formats = list(ambiguity_check)
    if not all(isinstance(item, torch.memory_format) for item in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    return formats


def _refuse(tensor: torch.Tensor) -> None:
    raise RuntimeError(
        "The tensor does not have unique dim order, or cannot map to exact one of the given "
        f"memory formats: size {tuple(tensor.size())}, strides {tuple(tensor.stride())}."
    )


def _is_in(tensor: torch.Tensor, item: torch.memory_format) -> bool:
    ranks = {torch.channels_last: 4, torch.channels_last_3d: 5}
    fits = item not in ranks or tensor.dim() == ranks[item]
    return fits and tensor.is_contiguous(memory_format=item)


def dim_order(
    tensor: torch.Tensor, ambiguity_check: bool | Sequence[torch.memory_format] = False
) -> tuple[int, ...]:
    """Dimensions from the largest stride to the smallest; equal strides keep their order. With
    ambiguity_check=True another order must not describe the same memory, which it does where a
    dimension has a length of 1; with formats the tensor has to be in exactly one of them."""
    rank, strides = tensor.dim(), tensor.stride()
    formats = checked_formats(ambiguity_check)
    if formats:
        matching = [item for item in formats if _is_in(tensor, item)]
        if len(matching) != 1:
            _refuse(tensor)
        return tuple(range(rank)) if matching[0] is torch.contiguous_format else (
            0, *range(2, rank), 1
        )  # fmt: skip
    if ambiguity_check is True and rank > 1:
        if min(tensor.size()) <= 1 or len(set(strides)) < rank:
            _refuse(tensor)
    return tuple(sorted(range(rank), key=lambda d: -strides[d]))
