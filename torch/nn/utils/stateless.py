"""A module called with other parameters and buffers than its own, which it keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["functional_call"]


_ABSENT = object()


def _submodule(module, path):
    """The submodule of a dotted name."""
    for name in filter(None, path.split(".")):
        inner = getattr(module, name, None)
        if not isinstance(inner, torch.nn.Module):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        module = inner
    return module


def _slot(module, path):
    """The dictionary of a submodule that holds the tensor of a dotted name, or would hold it, and
    its key there. A tensor may also be a plain attribute."""
    owner, _, name = path.rpartition(".")
    submodule = _submodule(module, owner)
    for tensors in (submodule._parameters, submodule._buffers):
        if name in tensors:
            return tensors, name
    held = getattr(submodule, name, _ABSENT)
    if held is not _ABSENT and held is not None and not isinstance(held, torch.Tensor):
        raise TypeError(f"attribute `{name}`: {held} is not an instance of torch.Tensor")
    return submodule.__dict__, name


def _all_slots(module):
    """Every dotted name of a parameter or buffer, tied ones included, with its tensor."""
    for prefix, submodule in module.named_modules(remove_duplicate=False):
        for tensors in (submodule._parameters, submodule._buffers):
            for name, tensor in tensors.items():
                if tensor is not None:
                    yield (f"{prefix}.{name}" if prefix else name), tensor


def _with_tied(module, given) -> dict[str, int | torch.Tensor]:
    """Extends the given tensors to the other names of the tensors they replace."""
    named = dict(_all_slots(module))
    by_tensor = {}
    for name, value in given.items():
        if name in named:
            known = by_tensor.setdefault(id(named[name]), value)
            if known is not value:
                tied = [other for other in given if named.get(other) is named[name]]
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted(tied)}, which are "
                    "tied. Consider using tie_weights=False"
                )
    out = dict(given)
    for name, tensor in named.items():
        if id(tensor) in by_tensor:
            out.setdefault(name, by_tensor[id(tensor)])
    return out


def _check_strict(module, given) -> None:
    names = {name for name, _ in _all_slots(module)}
    missing, unexpected = sorted(names - set(given)), sorted(set(given) - names)
    if missing or unexpected:
        text = "Error(s) in reparametrizing for " + type(module).__name__ + ":"
        if unexpected:
            text += "\n\tUnexpected key(s): " + ", ".join(map(repr, unexpected)) + "."
        if missing:
            text += "\n\tMissing key(s): " + ", ".join(map(repr, missing)) + "."
        raise RuntimeError(text)


@contextmanager
def _swapped(module, tensors, given) -> Iterator[None]:
    """The module has `tensors` inside. What it then holds in their places, which may be others if
    it assigned to them, is left in the dictionary that was `given`."""
    for value in tensors.values():
        if value is not None and not isinstance(value, torch.Tensor):
            raise TypeError(f"{value} is not an instance of torch.Tensor")
    slots = [(*_slot(module, path), path, value) for path, value in tensors.items()]
    kept = [(owner, name, owner.get(name, _ABSENT), path) for owner, name, path, _ in slots]
    try:
        for owner, name, _, value in slots:
            owner[name] = value
        yield
    finally:
        for owner, name, value, path in kept:
            if path in given and name in owner:
                given[path] = owner[name]
            if value is not _ABSENT:
                owner[name] = value
            else:
                owner.pop(name, None)


@contextmanager
def _reparametrize_module(
    module, parameters_and_buffers, tie_weights=False, strict=False, stack_weights=False
) -> Iterator[None]:
    """The module has the given tensors, by dotted name, for the length of a block. stack_weights
    asks that blocks within blocks end in their order; they always do."""
    tensors = dict(parameters_and_buffers)
    if tie_weights:
        tensors = _with_tied(module, tensors)
    if strict:
        _check_strict(module, tensors)
    with _swapped(module, tensors, parameters_and_buffers):
        yield


def functional_call(
    module,
    parameters_and_buffers,
    args=None,
    kwargs=None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
):
    """module(*args, **kwargs) with the given tensors, by dotted name, in place of its own."""
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))
