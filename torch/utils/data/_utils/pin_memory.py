"""Batches in page-locked memory, from which copies to a GPU need not wait."""

import collections.abc

import torch
from torch.utils.data._utils.collate import _with_items, _with_values

__all__ = ["pin_memory"]


def pin_memory(data, device=None):
    """The tensors of a batch in page-locked memory, in any nesting of mappings and sequences;
    objects with a method pin_memory() do it themselves."""
    if isinstance(data, torch.Tensor):
        return data.pin_memory()
    if isinstance(data, str | bytes):
        return data
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, collections.abc.Mapping):
        return _with_values(data, {key: pin_memory(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(item) for item in data))
    if isinstance(data, tuple):
        return [pin_memory(item) for item in data]
    if isinstance(data, collections.abc.Sequence):
        return _with_items(data, [pin_memory(item) for item in data])
    return data
