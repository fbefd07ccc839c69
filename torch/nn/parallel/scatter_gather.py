"""Cutting nested inputs into a part per device, and putting nested outputs together again. Both are
made of differentiable operators, so gradients need no rule of their own."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _device(target) -> torch.device:
    return torch.device("cuda", target) if isinstance(target, int) else torch.device(target)


def _is_namedtuple(value) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def scatter(inputs, target_gpus, dim=0) -> Any:
    """A part of the inputs for each device: tensors are cut along dim, the rest is shared."""
    devices = [_device(target) for target in target_gpus]

    def parts_of(value):
        if isinstance(value, torch.Tensor):
            return [
                part.to(device)
                for part, device in zip(value.chunk(len(devices), dim), devices, strict=False)
            ]
        if _is_namedtuple(value):
            return [type(value)(*args) for args in zip(*map(parts_of, value), strict=False)]
        if isinstance(value, tuple) and value:
            return list(zip(*map(parts_of, value), strict=False))
        if isinstance(value, list) and value:
            return [list(part) for part in zip(*map(parts_of, value), strict=False)]
        if isinstance(value, dict) and value:
            pairs = zip(*(parts_of(item) for item in value.items()), strict=False)
            return [type(value)(part) for part in pairs]
        return [value for _ in devices]

    return parts_of(inputs)


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0) -> Any:
    """scatter for positional and keyword arguments: two tuples of the same length."""
    parts = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    parts += [() for _ in range(len(named) - len(parts))]
    named += [{} for _ in range(len(parts) - len(named))]
    return tuple(parts), tuple(named)


def gather(outputs, target_device, dim=0) -> torch.Tensor | dict[str, torch.Tensor]:
    """The outputs of all devices as one: tensors are joined along dim on target_device."""
    device = _device(target_device)

    def joined(parts):
        first = parts[0]
        if isinstance(first, torch.Tensor):
            if first.dim() == 0:
                # Scalars become the entries of a vector, one per device.
                return torch.stack([part.to(device) for part in parts])
            return torch.cat([part.to(device) for part in parts], dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if any(len(part) != len(first) for part in parts):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, joined([part[key] for part in parts])) for key in first)
        if _is_namedtuple(first):
            return type(first)._make(map(joined, zip(*parts, strict=True)))
        return type(first)(map(joined, zip(*parts, strict=True)))

    return joined(list(outputs))
