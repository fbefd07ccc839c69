"""Moving tensors between several devices of one process."""

from __future__ import annotations

from typing import Any as _Any

import torch

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]


def _devices(devices):
    return [torch.device("cuda", d) if isinstance(d, int) else torch.device(d) for d in devices]


def broadcast(tensor, devices=None, *, out=None) -> _Any:
    """Copies of a tensor on the given devices, or into the tensors `out`."""
    if (devices is None) == (out is None):
        raise RuntimeError(
            "Exactly one of 'devices' and 'out' must be specified, but got "
            f"devices={devices} and out={out}"
        )
    if out is not None:
        return tuple(target.copy_(tensor, non_blocking=True) for target in out)
    return tuple(tensor.to(device, non_blocking=True) for device in _devices(devices))


def broadcast_coalesced(tensors, devices, buffer_size=10485760) -> _Any:
    """Copies of several tensors on the given devices: a list per device."""
    return tuple([t.to(d, non_blocking=True) for t in tensors] for d in _devices(devices))


def reduce_add(inputs, destination=None) -> _Any:
    """The sum of tensors that lie on several devices."""
    if not inputs:
        raise RuntimeError("reduce_add expects a non-empty sequence of tensors")
    target = torch.device("cuda", torch.cuda.current_device())
    if destination is not None:
        target = _devices([destination])[0]
    total = inputs[0].to(target, copy=True)
    for other in inputs[1:]:
        total += other.to(target, non_blocking=True)
    return total


def reduce_add_coalesced(inputs, destination=None, buffer_size=10485760) -> _Any:
    """The sums over devices of lists of tensors, one list per device."""
    return tuple(reduce_add(group, destination) for group in zip(*inputs, strict=True))


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None) -> _Any:
    """Parts of a tensor on the given devices, or into the tensors `out`."""
    if out is not None:
        if devices is not None or chunk_sizes is not None:
            raise RuntimeError("'devices' and 'chunk_sizes' must not be given together with 'out'")
        parts = tensor.split([target.size(dim) for target in out], dim)
        return tuple(
            target.copy_(part, non_blocking=True) for target, part in zip(out, parts, strict=True)
        )
    devices = _devices(devices)
    parts = tensor.split(chunk_sizes, dim) if chunk_sizes else tensor.chunk(len(devices), dim)
    streams = streams or [None] * len(devices)
    moved = []
    for part, device, stream in zip(parts, devices, streams, strict=False):
        with torch.cuda.stream(stream):
            moved.append(part.contiguous().to(device, non_blocking=True))
    return tuple(moved)


def gather(tensors, dim=0, destination=None, *, out=None) -> _Any:
    """Tensors of several devices joined on one; the CPU is -1 or "cpu"."""
    if out is not None:
        if destination is not None:
            raise RuntimeError("'destination' must not be specified when 'out' is specified")
        parts = out.split([t.size(dim) for t in tensors], dim)
        for part, tensor in zip(parts, tensors, strict=True):
            part.copy_(tensor, non_blocking=True)
        return out
    target = torch.device("cuda", torch.cuda.current_device())
    if destination in (-1, "cpu", torch.device("cpu")):
        target = torch.device("cpu")
    elif destination is not None:
        target = _devices([destination])[0]
    return torch.cat([t.to(target) for t in tensors], dim)
