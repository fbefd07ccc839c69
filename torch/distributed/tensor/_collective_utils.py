"""The collectives that move a tensor between placements along one dimension of a mesh, on local
parts. All go through the operators of functional collectives, so that modes and graphs see them."""

from __future__ import annotations

import torch
from torch.distributed import _functional_collectives as _functional
from torch.distributed import distributed_c10d as _core
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor.placement_types import Partial, Placement, Shard, cut, padded

Tensor = torch.Tensor


def pad_tensor(tensor: Tensor, pad_dim: int, pad_size: int) -> Tensor:
    """The tensor with zeros at the end of a dimension."""
    return padded(tensor, pad_dim, pad_size)


def unpad_tensor(tensor: Tensor, pad_dim: int, pad_size: int) -> Tensor:
    """The tensor without the last `pad_size` of a dimension."""
    return tensor.narrow(pad_dim, 0, tensor.size(pad_dim) - pad_size) if pad_size else tensor


def _ended(tensor: Tensor, wait: bool = True) -> Tensor:
    return _functional.wait_tensor(tensor) if wait else tensor


def gather_parts(
    local: Tensor, dim: int, size: int, mesh: DeviceMesh, mesh_dim: int, wait: bool = True
) -> Tensor:
    """The whole dimension of `size` elements of which each rank has its part."""
    parts = mesh.size(mesh_dim)
    longest = cut(size, parts, 0)[0]
    sent = padded(local, dim, longest - local.size(dim)).contiguous()
    whole = _ended(_functional.all_gather_tensor(sent, dim, (mesh, mesh_dim)), wait)
    if size == longest * parts:
        return whole
    # The padding is at the end of parts, and parts before the last full one have none.
    return whole.narrow(dim, 0, size).contiguous()


def reduce_parts(
    local: Tensor, partial: Partial, mesh: DeviceMesh, mesh_dim: int, wait: bool = True
) -> Tensor:
    """The value of which each rank has a part to be reduced."""
    op = partial.reduce_op
    whole = _ended(_functional.all_reduce(partial.before(local), op, (mesh, mesh_dim)), wait)
    return partial.after(whole)


def reduce_and_cut(
    local: Tensor,
    partial: Partial,
    dim: int,
    mesh: DeviceMesh,
    mesh_dim: int,
    wait: bool = True,
) -> Tensor:
    """This rank's part along a dimension of the value that the ranks' tensors reduce to."""
    parts, size = mesh.size(mesh_dim), local.size(dim)
    longest = cut(size, parts, 0)[0]
    sent = padded(partial.before(local), dim, longest * parts - size)
    part = _functional.reduce_scatter_tensor(sent, partial.reduce_op, dim, (mesh, mesh_dim))
    part = _ended(part, wait)
    length = cut(size, parts, mesh.get_local_rank(mesh_dim))[0]
    return partial.after(part.narrow(dim, 0, length) if length != longest else part)


def take_part(local: Tensor, dim: int, mesh: DeviceMesh, mesh_dim: int) -> Tensor:
    """This rank's part of a tensor that every rank has."""
    length, offset = cut(local.size(dim), mesh.size(mesh_dim), mesh.get_local_rank(mesh_dim))
    return local.narrow(dim, offset, length).clone(memory_format=torch.contiguous_format)


def change_cut(
    local: Tensor, old: int, new: int, size: int, mesh: DeviceMesh, mesh_dim: int
) -> Tensor:
    """A tensor cut along another dimension. `size` is the length of the old one before the cut."""
    if local.device.type == "cpu":
        # Gloo has no all-to-all that beats gathering on the sizes this is used for.
        return take_part(gather_parts(local, old, size, mesh, mesh_dim), new, mesh, mesh_dim)
    parts, rank = mesh.size(mesh_dim), mesh.get_local_rank(mesh_dim)
    longest_old = cut(size, parts, 0)[0]
    length_new = cut(local.size(new), parts, rank)[0]
    longest_new = cut(local.size(new), parts, 0)[0]
    sent = padded(local, old, longest_old - local.size(old))
    sent = padded(sent, new, longest_new * parts - sent.size(new))
    whole = shard_dim_alltoall(sent, old, new, mesh, mesh_dim)
    return whole.narrow(old, 0, size).narrow(new, 0, length_new).contiguous()


def shard_dim_alltoall(
    input: Tensor, gather_dim: int, shard_dim: int, mesh: DeviceMesh, mesh_dim: int
) -> Tensor:
    """The tensor joined along one dimension and cut along another; all parts have equal lengths."""
    parts = mesh.size(mesh_dim)
    if input.device.type == "cpu" or input.is_meta:
        whole = _ended(_functional.all_gather_tensor(input, gather_dim, (mesh, mesh_dim)))
        return whole.chunk(parts, shard_dim)[mesh.get_local_rank(mesh_dim)].contiguous()
    sent = torch.cat([part.contiguous().flatten() for part in input.chunk(parts, shard_dim)])
    got = _ended(_functional.all_to_all_single(sent, None, None, (mesh, mesh_dim)))
    shape = list(input.shape)
    shape[shard_dim] //= parts
    return torch.cat([part.view(shape) for part in got.chunk(parts)], gather_dim)


# ---- from one rank to all ------------------------------------------------------------------------
def mesh_broadcast(
    tensor: Tensor, mesh: DeviceMesh, mesh_dim: int = 0, *, group_src: int = 0
) -> Tensor:
    """The tensor of the first rank along a mesh dimension, in place."""
    if not tensor.is_meta and mesh.get_coordinate() is not None:
        _core.broadcast(tensor, group=mesh.get_group(mesh_dim), group_src=group_src)
    return tensor


def mesh_scatter(
    output: Tensor,
    scatter_list: list[Tensor],
    mesh: DeviceMesh,
    mesh_dim: int = 0,
    *,
    group_src: int = 0,
) -> Tensor:
    """Fills `output` with this rank's tensor of the first rank's list."""
    if output.is_meta or mesh.get_coordinate() is None:
        return output
    group = mesh.get_group(mesh_dim)
    sent = scatter_list if mesh.get_local_rank(mesh_dim) == group_src else None
    _core.scatter(output, sent, group=group, group_src=group_src)
    return output


def placed_from_first(
    tensor: Tensor, mesh: DeviceMesh, placements: tuple[Placement, ...], src: int | None
) -> Tensor:
    """This rank's part of rank src's tensor (of its own, where src is None)."""
    from torch.distributed.tensor._dtensor_spec import cut_order

    order = cut_order(placements)
    rest = [i for i, placement in enumerate(placements) if i not in order]
    local = tensor
    for mesh_dim in rest:
        if placements[mesh_dim].is_replicate() and src is not None:
            local = mesh_broadcast(local.contiguous().clone(), mesh, mesh_dim, group_src=src)
        elif placements[mesh_dim].is_partial():
            local = placements[mesh_dim].share(local, mesh.size(mesh_dim))
    for mesh_dim in order:
        local = _cut_from_first(local, placements[mesh_dim], mesh, mesh_dim, src)
    return local


def _cut_from_first(
    tensor: Tensor, shard: Shard, mesh: DeviceMesh, mesh_dim: int, src: int | None
) -> Tensor:
    if src is None or tensor.is_meta:
        return take_part(tensor, shard.dim, mesh, mesh_dim)
    parts, _ = shard._split_tensor(tensor, mesh.size(mesh_dim))
    if not tensor.size(shard.dim):
        return tensor
    output = torch.empty_like(parts[0])
    mesh_scatter(output, parts, mesh, mesh_dim, group_src=src)
    length = cut(tensor.size(shard.dim), mesh.size(mesh_dim), mesh.get_local_rank(mesh_dim))[0]
    return output.narrow(shard.dim, 0, length).contiguous()


# ---- what moving costs ---------------------------------------------------------------------------
# A move without communication is not free: it should not be chosen over staying.
_TOUCH = 1e-3


def step_cost(old: Placement, new: Placement, size: float, parts: int) -> float:
    """The bytes one rank sends for a change along a mesh dimension of `parts` ranks, for a tensor
    of `size` bytes before the cut. Infinite where there is no way."""
    if old == new:
        return 0.0
    if new.is_partial():
        return (
            _TOUCH * 2 if old.is_replicate() and new.reduce_op in ("sum", "avg") else float("inf")
        )
    if old.is_replicate():
        return _TOUCH
    share = size * (parts - 1) / parts
    if old.is_shard():
        # Another cut costs a gathering too (see change_cut), and leaves one to be done later.
        return share + 1 + (0 if new.is_replicate() else _TOUCH)
    # A reduction sends everything twice; one that also cuts sends half of it, but what it leaves
    # has to be gathered later. It is chosen where another argument is cut already.
    return 2 * share + 1 + (_TOUCH if new.is_shard() else 0)


def redistribute_cost(current_spec: DTensorSpec, target_spec: DTensorSpec) -> float:
    """The bytes one rank sends for a redistribution; infinite between meshes."""
    if current_spec.mesh != target_spec.mesh:
        return float("inf")
    size = float(current_spec._meta().dtype.itemsize)
    for length in current_spec.shape:
        size *= length
    cost = 0.0
    for dim, placement in enumerate(current_spec.placements):
        if placement.is_shard():
            size /= current_spec.mesh.size(dim)
    for dim, (old, new) in enumerate(
        zip(current_spec.placements, target_spec.placements, strict=True)
    ):
        if old == new:
            continue
        parts = current_spec.mesh.size(dim)
        whole = size * parts if old.is_shard() else size
        cost += step_cost(old, new, whole, parts)
        size = whole / parts if new.is_shard() else whole
    return cost
