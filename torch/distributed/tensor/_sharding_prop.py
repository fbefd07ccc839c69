"""The name by which tools reach what decides how operators run on parts."""

from torch.distributed.tensor._dispatch import ShardingPropagator

__all__ = ["ShardingPropagator"]
