"""The mesh of a sharded module: along which of its dimensions parameters are cut, and along which
they are replicated."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.distributed import distributed_c10d as _core
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor.placement_types import Placement, _StridedShard


@dataclass(frozen=True)
class MeshInfo:
    """A mesh of one dimension that cuts, or of two: the first replicates, the second cuts."""

    mesh: DeviceMesh

    @property
    def shard_dim(self) -> int:
        """The mesh dimension that cuts parameters."""
        return self.mesh.ndim - 1

    @property
    def shard_size(self) -> int:
        """Into how many parts parameters are cut."""
        return self.mesh.size(self.shard_dim)

    @property
    def shard_rank(self) -> int:
        """Which part is this process's."""
        return self.mesh.get_local_rank(self.shard_dim)

    @property
    def shard_group(self) -> _core.ProcessGroup:
        """The processes that have one parameter together."""
        return self.mesh.get_group(self.shard_dim)

    @property
    def replicate_group(self) -> _core.ProcessGroup | None:
        """The processes that have the same part, if several do."""
        return self.mesh.get_group(0) if self.mesh.ndim == 2 else None

    @property
    def ranks(self) -> int:
        """Over how many processes gradients are averaged."""
        return self.mesh.size()

    def placements(self, dim: int) -> tuple[Placement, ...]:
        """The placements of a parameter that is cut along a dimension."""
        return (*(Replicate(),) * (self.mesh.ndim - 1), Shard(dim))


def default_mesh() -> DeviceMesh:
    """All processes, on the device that they have."""
    if not _core.is_initialized():
        _core.init_process_group()
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    return init_device_mesh(kind, (_core.get_world_size(),))


def checked(mesh: DeviceMesh) -> MeshInfo:
    """The mesh, when it is one that parameters can be sharded on."""
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    if mesh.ndim == 2 and mesh.mesh_dim_names is None:
        raise AssertionError("Please init the 2D mesh for HSDP with mesh_dim_names specified")
    return MeshInfo(mesh)


def spec_of(info: MeshInfo, parameter: torch.Tensor, dim: int) -> DTensorSpec:
    """How the sharded parameter lies. One that tensor parallelism has placed already is cut once
    more: its spec spans both meshes."""
    if not isinstance(parameter, DTensor):
        meta = TensorMeta(parameter.size(), parameter.stride(), parameter.dtype)
        return DTensorSpec(info.mesh, info.placements(dim), meta)
    inner = parameter._spec
    outer_root, inner_root = info.mesh._root_mesh(), inner.mesh._root_mesh()
    if outer_root != inner_root or outer_root is info.mesh:
        raise AssertionError(
            "FSDP requires the DP and model parallel TP/EP mesh to have the same parent mesh but "
            f"got:\nDP's global mesh: {outer_root}\nTP/EP's global mesh: {inner_root}"
        )
    names = (*(info.mesh.mesh_dim_names or ()), *(inner.mesh.mesh_dim_names or ()))
    mesh = outer_root[names]
    before = 1
    for i, placement in enumerate(inner.placements):
        if placement.is_shard(dim):
            before *= inner.mesh.size(i)
    cut = Shard(dim) if before == 1 else _StridedShard(dim, before)
    placements = (*(Replicate(),) * (info.mesh.ndim - 1), cut, *inner.placements)
    return DTensorSpec(mesh, placements, inner.tensor_meta)
