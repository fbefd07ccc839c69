"""Ways to exchange and combine what ranks compute."""

from torch.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
