"""Questions about specs and dimensions that rules of users ask."""

from __future__ import annotations

from collections.abc import Sequence

from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._rules import normal

__all__ = ["is_tensor_partial", "is_tensor_shardable", "normalize_dim", "normalize_dims"]


def normalize_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front."""
    return normal(dim, ndim)


def normalize_dims(dims: int | Sequence[int], ndim: int) -> Sequence[int]:
    """Dimensions counted from the front."""
    return tuple(normal(dim, ndim) for dim in ([dims] if isinstance(dims, int) else dims))


def is_tensor_partial(spec: DTensorSpec) -> bool:
    """Whether a reduction is still to be done on some mesh dimension."""
    return bool(spec.sums)


def is_tensor_shardable(shape: Sequence[int], spec: DTensorSpec) -> bool:
    """Whether every part of a tensor of that shape would have elements."""
    return all(size >= parts for size, parts in zip(shape, spec.num_shards_map, strict=True))
