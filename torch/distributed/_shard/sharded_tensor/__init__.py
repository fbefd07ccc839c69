"""ShardedTensor: a tensor of which each rank has some rectangles."""

from torch.distributed._shard.metadata import ShardMetadata
from torch.distributed._shard.sharded_tensor.api import (
    Shard,
    ShardedTensor,
    ShardedTensorBase,
    ShardedTensorMetadata,
    TensorProperties,
    init_from_local_shards,
)
from torch.distributed._shard.sharded_tensor.factories import empty, full, ones, rand, zeros
from torch.distributed._shard.sharded_tensor.hooks import pre_load_state_dict_hook, state_dict_hook

__all__ = [
    "Shard", "ShardMetadata", "ShardedTensor", "ShardedTensorBase", "ShardedTensorMetadata",
    "TensorProperties", "empty", "full", "init_from_local_shards", "ones",
    "pre_load_state_dict_hook", "rand", "state_dict_hook", "zeros",
]  # fmt: skip
