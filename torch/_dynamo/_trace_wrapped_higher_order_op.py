"""A mode for functions of indices, such as the mask functions of attention, that read tables:
`table[index]` with a tensor as the index."""

import torch
from torch.overrides import TorchFunctionMode

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(TorchFunctionMode):
    """Reads `table[i]`, where i is a tensor without dimensions, by the index operator: under vmap
    such an i has a value for each sample, and no integer stands for it."""

    def __torch_function__(self, func, types, args, kwargs=None):
        if func is torch.Tensor.__getitem__:
            table, index = args
            items = index if isinstance(index, tuple) else (index,)
            if items and all(isinstance(item, torch.Tensor) for item in items):
                return torch.ops.aten.index.Tensor(table, list(items))
        return func(*args, **(kwargs or {}))
