"""Tools to look at distributed tensors."""

from __future__ import annotations

from torch.distributed.tensor.debug._comm_mode import CommDebugMode
from torch.distributed.tensor.debug._visualize_sharding import visualize_sharding

__all__ = ["CommDebugMode", "visualize_sharding"]


def _get_sharding_prop_cache_info() -> int:
    """How many plans of operator calls are kept."""
    from torch.distributed.tensor import _dispatch

    return len(_dispatch._plans)
