"""Functions that make a module parallel in its place."""

from torch.distributed._composable.checkpoint_activation import checkpoint
from torch.distributed._composable.contract import _get_registry, contract
from torch.distributed._composable.replicate import replicate
from torch.distributed.fsdp import fully_shard

__all__ = ["_get_registry", "checkpoint", "contract", "fully_shard", "replicate"]
