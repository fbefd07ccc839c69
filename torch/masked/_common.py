"""What the masked functions share: masks, neutral values and dimensions."""

import torch


def checked_mask(input, mask):
    """The mask as booleans of the input's shape, or None when everything is selected."""
    if mask is None:
        return None
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the "
            "input)"
        )
    return torch.broadcast_to(mask, input.shape).to(torch.bool)


def combined_mask(input, mask):
    """A plain input beside its mask. A masked tensor brings one of its own."""
    from torch.masked.maskedtensor import is_masked_tensor

    if is_masked_tensor(input):
        own, input = input.get_mask(), input.get_data()
        mask = own if mask is None else own & checked_mask(input, mask)
    return input, checked_mask(input, mask)


def filled(input, mask, value):
    """The input with `value` where the mask does not select."""
    if mask is None:
        return input
    return torch.where(mask, input, torch.tensor(value, dtype=input.dtype, device=input.device))


def as_dtype(input, dtype):
    """The input in that dtype."""
    return input if input.dtype == dtype else input.to(dtype)


def lowest(dtype):
    """A value that no maximum chooses over another."""
    if dtype.is_floating_point or dtype.is_complex:
        return float("-inf")
    return 0 if dtype is torch.bool else torch.iinfo(dtype).min


def highest(dtype):
    """A value that no minimum chooses over another."""
    if dtype.is_floating_point or dtype.is_complex:
        return float("inf")
    return 1 if dtype is torch.bool else torch.iinfo(dtype).max


def dims_of(dim, ndim):
    """The dimensions to reduce, as sorted non-negative numbers; all of them for None and ()."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    rank = max(ndim, 1)
    found = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d < -rank or d >= rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but "
                f"got {d})"
            )
        if d % rank in found:
            raise RuntimeError(f"dim={d % rank} appears multiple times in the list of dims")
        found.append(d % rank)
    return tuple(sorted(found)) if ndim else ()
