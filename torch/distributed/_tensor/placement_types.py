"""The former name of torch.distributed.tensor.placement_types."""

from torch.distributed.tensor.placement_types import *  # noqa: F403
