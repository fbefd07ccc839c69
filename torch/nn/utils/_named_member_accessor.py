"""Replacing one tensor of a module by another without registering it anew."""

from __future__ import annotations

import torch

_MISSING = object()


def _checked_name(module, name) -> None:
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')


def _owner_of(module, name):
    """The dictionary that holds the tensor, or that a new one goes to."""
    for table in (module._parameters, module._buffers):
        if name in table:
            return table
    return module.__dict__


def swap_tensor(module, name, tensor, allow_missing: bool = False):
    """Puts `tensor` where the module's parameter, buffer or attribute `name` is, and returns what
    was there. With allow_missing there may be none, and _MISSING stands for that both ways."""
    _checked_name(module, name)
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    table = _owner_of(module, name)
    before = table.get(name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if before is not _MISSING and before is not None and not isinstance(before, torch.Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is _MISSING:
        table.pop(name, None)
    elif table is module.__dict__:
        setattr(module, name, tensor)
    else:
        table[name] = tensor
    return before
