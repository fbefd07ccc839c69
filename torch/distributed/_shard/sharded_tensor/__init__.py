"""ShardedTensor: a tensor of which each rank has some rectangles."""

from torch.distributed._shard.metadata import ShardMetadata
from torch.distributed._shard.sharded_tensor.api import (
    Shard,
    ShardedTensor,
    ShardedTensorMetadata,
    TensorProperties,
    init_from_local_shards,
)

__all__ = [
    "Shard", "ShardMetadata", "ShardedTensor", "ShardedTensorMetadata", "TensorProperties",
    "init_from_local_shards",
]  # fmt: skip
