"""Optimizers whose state lies on several processes."""

from torch import _later
from torch.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]

globals().update(_later.names(__name__, "DistributedOptimizer PostLocalSGDOptimizer"))
