"""Optimizers whose state lies on several processes, or that average parameters over them."""

from torch import _later
from torch.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from torch.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]

globals().update(_later.names(__name__, "DistributedOptimizer"))
