"""Collective operations of the NCCL library. Not implemented yet."""

from __future__ import annotations

from typing import Any as _Any

_NAMES = ("all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter", "version")


def __getattr__(name) -> _Any:
    if name in _NAMES:
        raise NotImplementedError(f"torch.cuda.nccl.{name} is not implemented")
    raise AttributeError(f"module 'torch.cuda.nccl' has no attribute '{name}'")


def is_available(tensors) -> _Any:
    """Whether NCCL can reduce these tensors: never, as it is not used yet."""
    return False
