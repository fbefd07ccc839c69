"""Sharded data parallelism. fully_shard is here; the names of the older wrapper are
placeholders."""

from torch import _later
from torch.distributed.fsdp._fully_shard import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
)

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle",
    "fully_shard", "register_fsdp_forward_method",
]  # fmt: skip

globals().update(
    _later.names(
        __name__,
        "BackwardPrefetch CPUOffload FlatParameter FullOptimStateDictConfig FullStateDictConfig "
        "FullyShardedDataParallel LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision "
        "OptimStateDictConfig OptimStateKeyType ShardedOptimStateDictConfig "
        "ShardedStateDictConfig ShardingStrategy StateDictConfig StateDictSettings StateDictType",
    )
)
