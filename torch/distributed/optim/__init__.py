"""Optimizers whose state lies on several processes, or that average parameters over them."""

from torch import _later
from torch.distributed.optim.apply_optimizer_in_backward import (
    _apply_optimizer_in_backward as _apply_optimizer_in_backward,
)
from torch.distributed.optim.apply_optimizer_in_backward import (
    _get_in_backward_optimizers as _get_in_backward_optimizers,
)
from torch.distributed.optim.named_optimizer import _NamedOptimizer as _NamedOptimizer
from torch.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from torch.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]

globals().update(_later.names(__name__, "DistributedOptimizer"))
