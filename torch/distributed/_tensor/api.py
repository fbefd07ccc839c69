"""The former name of torch.distributed.tensor._api."""

from torch.distributed.tensor._api import *  # noqa: F403
