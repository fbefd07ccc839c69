"""Shapes and offsets of parts, for planners and wrappers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor._dtensor_spec import local_shape_and_offset
from torch.distributed.tensor.placement_types import Placement, Shard


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's part, and where it begins in the whole."""
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return (0,), ()
    return local_shape_and_offset(tuple(global_shape), mesh.shape, coordinate, tuple(placements))


def compute_local_shape(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[int, ...]:
    """The shape of this process's part."""
    return compute_local_shape_and_global_offset(global_shape, mesh, placements)[0]


def compute_global_tensor_info(
    tensor: torch.Tensor, mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[list[int], list[int]]:
    """Shape and strides of a tensor of whose equal parts this is one."""
    shape, stride = list(tensor.size()), list(tensor.stride())
    for mesh_dim, placement in enumerate(placements):
        if isinstance(placement, Shard):
            dim = placement.dim
            if dim < 0:
                raise AssertionError(
                    f"Shard placements should have negative dims normalized in the user-facing "
                    f"APIs: {placement}"
                )
            if dim >= tensor.ndim:
                raise AssertionError(
                    f"Sharding dim {dim} greater than tensor ndim {tensor.ndim} for placement "
                    f"number {mesh_dim}."
                )
            parts, inner = mesh.size(mesh_dim), stride[dim]
            shape[dim] *= parts
            # Dimensions that lie outside of the grown one move apart.
            stride = [s * parts if i != dim and s >= inner else s for i, s in enumerate(stride)]
        elif not isinstance(placement, Placement) or placement.is_shard():
            raise RuntimeError(f"placement type {type(placement)} not supported!")
    return shape, stride


def compute_global_tensor_shape(
    shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> torch.Size:
    """The shape of a tensor of which this process has a part of `shape`; asks the other ranks."""
    from torch.distributed import distributed_c10d as _core

    if len(placements) != 1:
        raise NotImplementedError("compute_global_tensor_shape only supports 1 placement for now.")
    (placement,) = placements
    if placement.is_replicate():
        return torch.Size(shape)
    if not isinstance(placement, Shard):
        raise NotImplementedError(f"Placement type {type(placement)} not supported.")
    mine = torch.tensor(list(shape), device=mesh.device_type)
    every = [torch.empty_like(mine) for _ in range(mesh.size())]
    _core.all_gather(every, mine, group=mesh.get_group())
    total = list(shape)
    total[placement.dim] = 0
    for other in every:
        for dim, size in enumerate(other.tolist()):
            if dim == placement.dim:
                total[dim] += size
            elif size != total[dim]:
                raise RuntimeError(
                    f"Non-sharded dimensions should have identical size across ranks, but got "
                    f"{size} and {total[dim]} for dimension {dim}"
                )
    return torch.Size(total)


def normalize_to_torch_size(
    size: Sequence[int] | torch.Size | Sequence[Sequence[int]],
) -> torch.Size:
    """A size given as numbers or as one sequence."""
    if len(size) == 1 and isinstance(size[0], (list, tuple)):
        size = size[0]
    return torch.Size(size)
