"""Where a part of a tensor begins, how large it is, and on which rank and device it lies."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.distributed.remote_device import _remote_device

__all__ = ["ShardMetadata"]


@dataclass
class ShardMetadata:
    """A part. `placement` may be given as text: "rank:0/cpu"."""

    shard_offsets: list[int]
    shard_sizes: list[int]
    placement: _remote_device | None = None

    def __post_init__(self) -> None:
        if isinstance(self.placement, str):
            self.placement = _remote_device(self.placement)
        if len(self.shard_offsets) != len(self.shard_sizes):
            raise ValueError(
                f"shard_offsets and shard_sizes should have the same number of elements, found "
                f"{len(self.shard_offsets)} and {len(self.shard_sizes)} respectively"
            )
        for begin, size in zip(self.shard_offsets, self.shard_sizes, strict=True):
            if begin < 0:
                raise ValueError("shard_offsets should be >=0")
            if size < 0:
                raise ValueError("shard_sizes should be >= 0")

    def __hash__(self) -> int:
        return hash((tuple(self.shard_offsets), tuple(self.shard_sizes), self.placement))

    @property
    def rank(self) -> int:
        """The rank that has it."""
        return (self.placement.rank() or 0) if self.placement is not None else 0

    @property
    def device(self) -> torch.device:
        """Where it lies there."""
        return self.placement.device() if self.placement is not None else torch.device("cpu")
