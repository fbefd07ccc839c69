"""Tools to look at distributed tensors."""

from __future__ import annotations

from torch.distributed.tensor.debug._comm_mode import CommDebugMode
from torch.distributed.tensor.debug._visualize_sharding import visualize_sharding

__all__ = ["CommDebugMode", "visualize_sharding"]


def _get_sharding_prop_cache_info() -> tuple[int, int, int, int]:
    """Of the table of plans for operator calls: hits, misses, the most it holds, what it holds."""
    from torch.distributed.tensor import _dispatch

    found = _dispatch._lookups
    return found["hits"], found["misses"], _dispatch._MOST_PLANS, len(_dispatch._plans)
