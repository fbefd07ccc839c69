"""The order of a tensor's dimensions in memory."""

import torch


def formats_to_check(ambiguity_check):
    """The memory formats among which the order has to be unique."""
    if ambiguity_check is True:
        return [torch.contiguous_format, torch.channels_last, torch.channels_last_3d]
    if ambiguity_check is False:
        return []
    formats = list(ambiguity_check)
    if not all(isinstance(item, torch.memory_format) for item in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    return formats


def dim_order(tensor, formats=()):
    """Dimensions from the largest stride to the smallest; equal strides keep their order."""
    strides, sizes = tensor.stride(), tensor.size()
    matching = sum(
        tensor.is_contiguous(memory_format=item)
        for item in formats
        if item is torch.contiguous_format
        or tensor.dim() == (4 if item is torch.channels_last else 5)
    )
    if matching > 1 or (formats and not matching):
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the "
            "given memory formats: "
            f"size {tuple(sizes)}, strides {tuple(strides)}."
        )
    return tuple(sorted(range(tensor.dim()), key=lambda d: -strides[d]))
