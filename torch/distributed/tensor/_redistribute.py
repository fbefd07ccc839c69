"""Moving a distributed tensor from one set of placements to another: the plan, a list of steps each
along one mesh dimension; its execution on the local part; and the autograd function."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import _collective_utils as _collect
from torch.distributed.tensor._dtensor_spec import DTensorSpec, cut_order, local_shape_and_offset
from torch.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
)

Placements = tuple[Placement, ...]


class Step(NamedTuple):
    """A change of one mesh dimension's placement, and the length of the dimension that the old
    placement cuts (before that cut, on this rank)."""

    mesh_dim: int
    old: Placement
    new: Placement
    length: int


def _touched(old: Placement, new: Placement) -> set[int]:
    """The tensor dimensions whose cuts a change concerns."""
    return {p.dim for p in (old, new) if isinstance(p, Shard)}


def _order_of_changes(old: Placements, new: Placements) -> list[tuple[int, Placement]]:
    """The changes in an order in which no outer cut changes while an inner one of the same tensor
    dimension stands: inner cuts that are in the way are undone first, from the inside, then each
    mesh dimension goes to its target, from the outside."""
    changes: list[tuple[int, Placement]] = []
    now = list(old)
    strided = {p.dim for p in (*old, *new) if isinstance(p, _StridedShard)}
    for i in reversed(cut_order(old)):
        dim = now[i].dim
        outer = set().union(
            *(_touched(old[k], new[k]) for k in range(i) if old[k] != new[k]), set()
        )
        if dim in strided:
            target: Placement = Replicate()
        elif dim not in outer:
            continue
        elif isinstance(new[i], Shard) and new[i] != now[i] and new[i].dim not in outer | strided:
            target = new[i]
        else:
            target = Replicate()
        changes.append((i, target))
        now[i] = target
    cuts = cut_order(new)
    rest = [i for i in range(len(new)) if i not in cuts]
    # Cuts are joined first; reductions come last, when the tensor is as small as it gets.
    for i in [*(i for i in rest if now[i].is_shard()), *cuts, *rest]:
        if now[i] != new[i]:
            changes.append((i, new[i]))
            now[i] = new[i]
    return changes


@lru_cache(maxsize=4096)
def plan(
    shape: tuple[int, ...],
    mesh_shape: tuple[int, ...],
    coordinate: tuple[int, ...],
    old: Placements,
    new: Placements,
) -> tuple[Step, ...]:
    """The steps from one set of placements to another."""
    if old == new:
        return ()
    steps: list[Step] = []
    now = list(old)
    for i, target in _order_of_changes(old, new):
        hops = [target]
        if target.is_partial() and not now[i].is_replicate():
            hops = [Replicate(), target]
        for hop in hops:
            length = 0
            if isinstance(now[i], Shard):
                without = tuple(Replicate() if k == i else p for k, p in enumerate(now))
                sizes, _ = local_shape_and_offset(shape, mesh_shape, coordinate, without)
                length = sizes[now[i].dim]
            steps.append(Step(i, now[i], hop, length))
            now[i] = hop
    return tuple(steps)


def _take(local: torch.Tensor, step: Step, mesh: DeviceMesh, wait: bool) -> torch.Tensor:
    """The local part after one step; what it sends may still be on its way without `wait`."""
    mesh_dim, old, new, length = step
    if isinstance(old, Partial):
        if isinstance(new, Shard):
            return _collect.reduce_and_cut(local, old, new.dim, mesh, mesh_dim, wait)
        return _collect.reduce_parts(local, old, mesh, mesh_dim, wait)
    if isinstance(old, Shard):
        if isinstance(new, Shard):
            if new.dim == old.dim:
                return local
            return _collect.change_cut(local, old.dim, new.dim, length, mesh, mesh_dim)
        return _collect.gather_parts(local, old.dim, length, mesh, mesh_dim, wait)
    if isinstance(new, Shard):
        return _collect.take_part(local, new.dim, mesh, mesh_dim)
    return new.share(local, mesh.size(mesh_dim))


def redistribute_local_tensor(
    local_tensor: torch.Tensor,
    current_spec: DTensorSpec,
    target_spec: DTensorSpec,
    *,
    async_op: bool = False,
) -> torch.Tensor:
    """The local part of a tensor under other placements; with `async_op` a tensor that waits for
    the last step when it is read."""
    mesh = current_spec.mesh
    if mesh != target_spec.mesh:
        raise NotImplementedError("Cross device mesh comm not supported yet!")
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return local_tensor
    old, new = current_spec.placements, target_spec.placements
    for step in plan(tuple(current_spec.shape), mesh.shape, tuple(coordinate), old, new):
        local_tensor = _take(local_tensor, step, mesh, not async_op)
    return local_tensor


def gradient_placements(placements: Placements) -> Placements:
    """Where the gradient of a tensor lies: as the tensor, and whole where that is partial, because
    each part of a sum has the gradient of the sum."""
    return tuple(Replicate() if p.is_partial() else p for p in placements)


class Redistribute(torch.autograd.Function):
    """redistribute with its derivative: the gradient goes back to the placements of the input."""

    @staticmethod
    def forward(
        ctx: Any,
        input: torch.Tensor,
        device_mesh: DeviceMesh,
        placements: Placements,
        async_op: bool = False,
        forward_dtype: torch.dtype | None = None,
        backward_dtype: torch.dtype | None = None,
    ) -> torch.Tensor:
        from torch.distributed.tensor._api import DTensor

        spec = input._spec
        ctx.spec, ctx.async_op, ctx.dtypes = spec, async_op, (input.dtype, backward_dtype)
        local = input._local_tensor
        if forward_dtype is not None and forward_dtype != local.dtype:
            local = local.to(forward_dtype)
            spec = DTensorSpec(
                spec.mesh, spec.placements, spec.tensor_meta._replace(dtype=forward_dtype)
            )
        target = DTensorSpec(device_mesh, tuple(placements), spec.tensor_meta)
        if spec.placements == target.placements:
            local = local.view_as(local)
        else:
            local = redistribute_local_tensor(local, spec, target, async_op=async_op)
        return DTensor(local, target, requires_grad=input.requires_grad)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        from torch.distributed.tensor._api import DTensor

        dtype, wanted = ctx.dtypes
        local, spec = grad._local_tensor, grad._spec
        if wanted is not None and wanted != local.dtype:
            local = local.to(wanted)
        placements = gradient_placements(ctx.spec.placements)
        meta = spec.tensor_meta._replace(dtype=dtype)
        target = DTensorSpec(spec.mesh, placements, meta)
        local = redistribute_local_tensor(local, spec, target, async_op=ctx.async_op)
        if local.dtype != dtype:
            local = local.to(dtype)
        made = DTensor(local, target, requires_grad=grad.requires_grad)
        return made, None, None, None, None, None
