"""torch.func.rearrange: the order of dimensions by a pattern such as "b (h w) c -> b c h w"."""

import torch
from torch._functorch._einops_pattern import (
    ParsedExpression,
    _ellipsis,
    parse_pattern,
    validate_rearrange_expressions,
)

__all__ = ["rearrange"]


def _named_groups(side: ParsedExpression, count: int) -> list[list[str]]:
    """The names of each dimension, with the ellipsis replaced by names for so many of them."""
    names = [f"_{k}" for k in range(count)]
    out: list[list[str]] = []
    for group in side.composition:
        if group == _ellipsis:
            out += [[n] for n in names]
        else:
            out.append([m for n in group for m in (names if n == _ellipsis else [n])])
    return out


def _group_sizes(group, total, lengths, pattern):
    """The sizes of the names in a group, of which one may be left to be worked out."""
    unknown = [n for n in group if n not in lengths]
    if len(unknown) > 1:
        raise ValueError(f"the sizes of {unknown} in the pattern {pattern!r} cannot be inferred")
    known = 1
    for name in group:
        known *= lengths.get(name, 1)
    if unknown:
        if known == 0 or total % known:
            raise ValueError(f"{total} cannot be divided by {known} in the pattern {pattern!r}")
        lengths[unknown[0]] = total // known
    elif known != total:
        raise ValueError(f"a dimension of size {total} does not match {group} in {pattern!r}")
    return [lengths[n] for n in group]


def rearrange(tensor, pattern, **axes_lengths):
    """The tensor with dimensions reordered, split and joined as the pattern says; a sequence of
    tensors is stacked first."""
    if not isinstance(tensor, torch.Tensor):
        tensor = torch.stack(tuple(tensor))
    given, wanted = parse_pattern(pattern, axes_lengths)
    validate_rearrange_expressions(given, wanted, axes_lengths)
    covered = len(given.composition) - given.has_ellipsis
    if tensor.dim() < covered or (not given.has_ellipsis and tensor.dim() != covered):
        raise ValueError(f"the pattern {pattern!r} does not fit a tensor of {tensor.dim()} dims")
    left = _named_groups(given, tensor.dim() - covered)
    right = _named_groups(wanted, tensor.dim() - covered)
    names = [n for g in left for n in g]
    lengths = dict(axes_lengths)
    sizes = [
        s
        for group, total in zip(left, tensor.shape, strict=True)
        for s in _group_sizes(group, total, lengths, pattern)
    ]
    order = [names.index(n) for g in right for n in g]
    out = tensor.reshape(sizes).permute(order)
    final = []
    for group in right:
        size = 1
        for name in group:
            size *= lengths[name]
        final.append(size)
    return out.reshape(final)
