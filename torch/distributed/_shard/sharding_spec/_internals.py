"""Numbers of chunks, and the check that parts do not overlap."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from torch.distributed._shard.metadata import ShardMetadata


def get_split_size(dim_size: int, chunks: int) -> int:
    """How long a chunk is when a dimension is cut into so many."""
    return -(-dim_size // chunks)


def get_chunked_dim_size(dim_size: int, split_size: int, idx: int) -> int:
    """How long chunk `idx` is: the last ones are shorter, or empty."""
    return max(min(dim_size, split_size * (idx + 1)) - split_size * idx, 0)


def get_chunk_sharding_params(
    sharding_dim_size: int, world_size: int, spec: Any, rank: int
) -> tuple[int, int]:
    """Where the chunk of a rank begins and how long it is."""
    split = get_split_size(sharding_dim_size, world_size)
    place = next(i for i, p in enumerate(spec.placements) if p.rank() == rank)
    return place * split, get_chunked_dim_size(sharding_dim_size, split, place)


def _overlap(one: ShardMetadata, other: ShardMetadata) -> bool:
    pairs = zip(
        one.shard_offsets, one.shard_sizes, other.shard_offsets, other.shard_sizes, strict=True
    )
    return all(a < b + m and b < a + n for a, n, b, m in pairs)


def validate_non_overlapping_shards_metadata(
    shards: list[ShardMetadata], size: Sequence[int] | None = None
) -> None:
    """Raises where two parts overlap, and where they do not fill a tensor of the given size."""
    for one, other in itertools.combinations(shards, 2):
        if _overlap(one, other):
            raise ValueError(f"Shards {one} and {other} overlap")
    if size is not None:
        check_tensor(shards, size)


def check_tensor(shards_metadata: list[ShardMetadata], tensor_dims: Sequence[int]) -> None:
    """Raises where parts that do not overlap do not fill a tensor."""
    if any(len(shard.shard_offsets) != len(tensor_dims) for shard in shards_metadata):
        raise ValueError(
            f"Rank of tensor is {len(tensor_dims)}, but shards rank is "
            f"{len(shards_metadata[0].shard_offsets)}"
        )
    volume, total = 0, 1
    for length in tensor_dims:
        total *= length
    for shard in shards_metadata:
        part = 1
        for i, length in enumerate(shard.shard_sizes):
            part *= length
            if shard.shard_offsets[i] + length > tensor_dims[i]:
                raise ValueError(
                    f"Shard offset {shard.shard_offsets[i]} and length {length} exceeds tensor "
                    f"dim: {tensor_dims[i]} for shard {shard}"
                )
        volume += part
    if volume != total:
        raise ValueError(f"Total volume of shards: {volume} does not match tensor volume: {total}")
