"""What a distributed tensor is, apart from its data: the mesh, a placement for each of the mesh's
dimensions, and the shape, strides and dtype of the whole."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
    cut,
)


class TensorMeta(NamedTuple):
    """Shape, strides and dtype of a tensor."""

    shape: torch.Size
    stride: tuple[int, ...]
    dtype: torch.dtype


class DTensorSpec:
    """Mesh, placements and the whole tensor's geometry. Never changed after it is made, so that it
    can be the key of tables; the hash is computed once."""

    __slots__ = ("_hash", "mesh", "placements", "tensor_meta")

    def __init__(
        self,
        mesh: DeviceMesh,
        placements: tuple[Placement, ...],
        tensor_meta: TensorMeta | None = None,
    ) -> None:
        self.mesh, self.tensor_meta = mesh, tensor_meta
        self.placements = tuple(placements)
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.mesh, self.placements, self.tensor_meta))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, DTensorSpec)
            and self.placements == other.placements
            and self.tensor_meta == other.tensor_meta
            and (self.mesh is other.mesh or self.mesh == other.mesh)
        )

    def __reduce__(self) -> tuple:
        return DTensorSpec, (self.mesh, self.placements, self.tensor_meta)

    def __str__(self) -> str:
        places = "".join(str(placement) for placement in self.placements)
        shape = tuple(self.shape) if self.tensor_meta is not None else "unknown shape"
        return f"Spec({places} on {shape})"

    __repr__ = __str__

    # ---- questions
    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh."""
        return self.mesh

    def _meta(self) -> TensorMeta:
        if self.tensor_meta is None:
            raise ValueError("tensor_meta is not set")
        return self.tensor_meta

    @property
    def shape(self) -> torch.Size:
        """The shape of the whole."""
        return self._meta().shape

    @property
    def stride(self) -> tuple[int, ...]:
        """The strides of the whole."""
        return self._meta().stride

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._meta().shape)

    @property
    def num_shards(self) -> int:
        """How many different parts there are."""
        count = 1
        for dim, placement in enumerate(self.placements):
            if placement.is_shard():
                count *= self.mesh.size(dim)
        return count

    @property
    def dim_map(self) -> list[int]:
        """For each dimension of the tensor the mesh dimension that cuts it, or -1."""
        found = [-1] * self.ndim
        for mesh_dim, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                if found[placement.dim] >= 0:
                    raise ValueError(
                        f"Tensor dim {placement.dim} is already sharded on mesh dim "
                        f"{found[placement.dim]}, DTensor operator implementation does not "
                        "support things like hybrid sharding strategies yet (i.e. [Shard(0), "
                        "Shard(0)])"
                    )
                found[placement.dim] = mesh_dim
        return found

    @property
    def num_shards_map(self) -> list[int]:
        """For each dimension of the tensor into how many parts it is cut."""
        cuts = [
            (placement.dim, self.mesh.size(mesh_dim))
            for mesh_dim, placement in enumerate(self.placements)
            if isinstance(placement, Shard)
        ]
        return [math.prod(parts for at, parts in cuts if at == dim) for dim in range(self.ndim)]

    @property
    def sums(self) -> list[int]:
        """The mesh dimensions on which parts wait for a reduction."""
        return [dim for dim, placement in enumerate(self.placements) if placement.is_partial()]

    @classmethod
    def from_dim_map(
        cls,
        mesh: DeviceMesh,
        dim_map: list[int],
        sums: list[int],
        tensor_meta: TensorMeta | None = None,
    ) -> DTensorSpec:
        """The spec that dim_map and sums describe."""
        placements: list[Placement] = [Replicate()] * mesh.ndim
        for dim in sums:
            placements[dim] = Partial()
        for dim, mesh_dim in enumerate(dim_map):
            if mesh_dim >= 0:
                if placements[mesh_dim].is_partial():
                    raise RuntimeError(
                        f"DeviceMesh dimension cannot be both mapped and partial: {mesh_dim}"
                    )
                if placements[mesh_dim].is_shard():
                    raise RuntimeError(
                        f"DeviceMesh dimension can't be mapped to two dimension of the same "
                        f"tensor: {placements[mesh_dim].dim} and {dim}"
                    )
                placements[mesh_dim] = Shard(dim)
        return cls(mesh, tuple(placements), tensor_meta)

    def is_replicated(self) -> bool:
        """Whether every device has the whole."""
        return all(placement.is_replicate() for placement in self.placements)

    def is_sharded(self) -> bool:
        """Whether some dimension is cut."""
        return any(placement.is_shard() for placement in self.placements)

    def with_placements(self, placements: tuple[Placement, ...]) -> DTensorSpec:
        """The same tensor, placed in another way."""
        return DTensorSpec(self.mesh, placements, self.tensor_meta)

    def shallow_copy_with_tensor_meta(self, tensor_meta: TensorMeta | None) -> DTensorSpec:
        """The same placements for another tensor."""
        return DTensorSpec(self.mesh, self.placements, tensor_meta)


def cut_order(placements: tuple[Placement, ...]) -> list[int]:
    """The mesh dimensions in the order in which they cut: an inner cut divides what the outer ones
    left. Plain shards come first, in the order of the mesh; then strided ones from the last."""
    plain = [i for i, p in enumerate(placements) if type(p) is Shard]
    strided = [i for i, p in enumerate(placements) if isinstance(p, _StridedShard)]
    return plain + strided[::-1]


def local_shape_and_offset(
    shape: tuple[int, ...],
    mesh_shape: tuple[int, ...],
    coordinate: list[int] | tuple[int, ...],
    placements: tuple[Placement, ...],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which part of a tensor the device at a coordinate of the mesh holds."""
    sizes, offsets = list(shape), [0] * len(shape)
    for i in cut_order(placements):
        dim = placements[i].dim
        if not 0 <= dim < len(sizes):
            raise ValueError(f"{placements[i]!r} is out of range for a tensor of {len(sizes)} dims")
        sizes[dim], begin = cut(sizes[dim], mesh_shape[i], coordinate[i])
        offsets[dim] += begin
    return tuple(sizes), tuple(offsets)


def local_part(spec: DTensorSpec) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(shape, offset) of this process's part; outside of the mesh it is empty."""
    coordinate = spec.mesh.get_coordinate()
    if coordinate is None:
        return (0,), ()
    return local_shape_and_offset(spec.shape, spec.mesh.shape, coordinate, spec.placements)
