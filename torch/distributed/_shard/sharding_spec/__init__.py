"""How a tensor is cut: into chunks along one dimension, or into parts that are listed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch.distributed._shard.metadata import ShardMetadata
from torch.distributed._shard.sharded_tensor.metadata import (
    ShardedTensorMetadata,
    TensorProperties,
)
from torch.distributed._shard.sharding_spec._internals import (
    get_chunked_dim_size,
    get_split_size,
    validate_non_overlapping_shards_metadata,
)
from torch.distributed.remote_device import _remote_device

__all__ = [
    "ChunkShardingSpec", "DevicePlacementSpec", "EnumerableShardingSpec", "PlacementSpec",
    "ShardMetadata", "ShardingSpec",
]  # fmt: skip


class PlacementSpec(ABC):  # noqa: B024
    """Where a thing lies."""


@dataclass
class DevicePlacementSpec(PlacementSpec):
    """On a device of a process."""

    device: _remote_device | str | torch.device

    def __post_init__(self) -> None:
        if not isinstance(self.device, _remote_device):
            self.device = _remote_device(self.device)


class ShardingSpec(ABC):
    """How a tensor is cut."""

    @abstractmethod
    def build_metadata(
        self, tensor_sizes: torch.Size, tensor_properties: TensorProperties
    ) -> ShardedTensorMetadata:
        """The parts of a tensor of some size."""


@dataclass
class ChunkShardingSpec(ShardingSpec):
    """Chunks along a dimension, in the order of the places they go to. Chunks are as large as
    torch.chunk makes them; the last places may get less, or nothing."""

    dim: int
    placements: list[_remote_device | str | torch.device]

    def __post_init__(self) -> None:
        if isinstance(self.dim, str):
            raise NotImplementedError(
                "ChunkShardingSpec does not support named dimension yet. Consider specifying it "
                "by an integer"
            )
        if not isinstance(self.dim, int):
            raise ValueError(f"Sharding dim needs to be an integer, found: {self.dim}")
        self.placements = [
            p if isinstance(p, _remote_device) else _remote_device(p) for p in self.placements
        ]

    def build_metadata(
        self, tensor_sizes: torch.Size, tensor_properties: TensorProperties
    ) -> ShardedTensorMetadata:
        """The chunks of a tensor of some size."""
        count = len(tensor_sizes)
        if not -count <= self.dim < count:
            raise ValueError(f"Invalid sharding dim: {self.dim}")
        dim = self.dim % count
        split = get_split_size(tensor_sizes[dim], len(self.placements))
        parts = []
        for i, placement in enumerate(self.placements):
            offsets, sizes = [0] * count, list(tensor_sizes)
            sizes[dim] = get_chunked_dim_size(tensor_sizes[dim], split, i)
            offsets[dim] = min(split * i, tensor_sizes[dim])
            if sizes[dim]:
                parts.append(ShardMetadata(offsets, sizes, placement))
        return ShardedTensorMetadata(parts, torch.Size(tensor_sizes), tensor_properties)


@dataclass
class EnumerableShardingSpec(ShardingSpec):
    """Parts that are listed, in any number and on any rank."""

    shards: list[ShardMetadata]

    def __post_init__(self) -> None:
        if not self.shards:
            raise ValueError(f"Empty shard list provided: {self.shards}")
        ranks = {len(shard.shard_offsets) for shard in self.shards}
        if len(ranks) > 1:
            raise ValueError(f"Found inconsistent ranks for shards: {sorted(ranks)}")
        validate_non_overlapping_shards_metadata(self.shards)

    def build_metadata(
        self, tensor_sizes: torch.Size, tensor_properties: TensorProperties
    ) -> ShardedTensorMetadata:
        """The listed parts, which must fill the tensor."""
        validate_non_overlapping_shards_metadata(self.shards, tensor_sizes)
        return ShardedTensorMetadata(self.shards, torch.Size(tensor_sizes), tensor_properties)
