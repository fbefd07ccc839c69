"""Operators that give numbers instead of tensors, or ask about tensors only."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed import distributed_c10d as _core
from torch.distributed.tensor._rules import handler
from torch.distributed.tensor.placement_types import Replicate


@handler("_local_scalar_dense item is_nonzero")
def item(op: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The number of a tensor of one element."""
    tensor = args[0]
    if tensor._spec.mesh.get_coordinate() is None:
        return op(torch.zeros((), dtype=tensor.dtype))
    whole = tensor.redistribute(placements=[Replicate()] * tensor._spec.mesh.ndim)
    return op(whole._local_tensor)


@handler("equal")
def equal(op: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether all parts are equal, on all ranks."""
    one, other = args[:2]
    spec = one._spec
    if spec.mesh.get_coordinate() is None:
        return True
    if one.shape != other.shape:
        return False
    if other._spec.placements != spec.placements:
        other = other.redistribute(placements=spec.placements)
    same = torch.tensor(int(op(one._local_tensor, other._local_tensor)))
    same = same.to(spec.mesh.device_type)
    for dim in range(spec.mesh.ndim):
        _core.all_reduce(same, _core.ReduceOp.MIN, group=spec.mesh.get_group(dim))
    return bool(same.item())


@handler("is_same_size")
def is_same_size(op: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether the whole tensors have one shape."""
    return args[0].shape == args[1].shape


@handler("is_pinned")
def is_pinned(op: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether the part is in pinned memory."""
    return op(args[0]._local_tensor, *args[1:], **kwargs)


@handler("_linalg_check_errors")
def check_errors(op: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    """All ranks see the errors of all, so that none goes on alone."""
    op(args[0].full_tensor(), *args[1:], **kwargs)
