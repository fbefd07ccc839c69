"""Functions that make a module parallel in its place."""

from torch import _later
from torch.distributed.fsdp import fully_shard

globals().update(_later.names(__name__, "checkpoint contract replicate"))

__all__ = ["fully_shard"]
