"""The former name of torch.distributed.tensor.experimental."""

from torch.distributed.tensor.experimental import *  # noqa: F403
