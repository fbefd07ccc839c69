"""The former name of torch.distributed.tensor."""

from torch.distributed import tensor as _tensor
from torch.distributed.tensor import *  # noqa: F403


def __getattr__(name: str) -> object:
    return getattr(_tensor, name)
