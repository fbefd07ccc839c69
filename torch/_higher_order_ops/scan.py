"""A recurrence over slices, computed eagerly."""

import torch
from torch.utils import _pytree as pytree

__all__ = ["scan"]


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """carry, y = combine_fn(carry, x) along dim of xs; the last carry and all y stacked."""
    leaves, spec = pytree.tree_flatten(xs)
    places = range(leaves[0].shape[dim])
    carry, outputs = init, []
    for i in reversed(places) if reverse else places:
        x = pytree.tree_unflatten([t.select(dim, i) for t in leaves], spec)
        carry, y = combine_fn(carry, x)
        outputs.append(y)
    if reverse:
        outputs.reverse()
    return carry, pytree.tree_map(lambda *parts: torch.stack(parts), *outputs)
