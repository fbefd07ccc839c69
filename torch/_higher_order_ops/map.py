"""A function of each slice, computed one after the other."""

import torch
from torch.utils import _pytree as pytree

__all__ = ["map"]


def map(f, xs, *args):
    """f of each slice of xs along dimension 0, stacked."""
    leaves, spec = pytree.tree_flatten(xs)
    length = leaves[0].shape[0]
    results = [f(pytree.tree_unflatten([t[i] for t in leaves], spec), *args) for i in range(length)]
    return pytree.tree_map(lambda *parts: torch.stack(parts), *results)
