"""The parts of this rank, what all ranks have, and putting them together on one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed import distributed_c10d as _core
from torch.distributed._shard.metadata import ShardMetadata
from torch.distributed._shard.sharded_tensor.metadata import (
    ShardedTensorMetadata,
    TensorProperties,
)
from torch.distributed._shard.sharding_spec import _internals
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex

__all__ = [
    "Shard", "ShardedTensor", "ShardedTensorBase", "ShardedTensorMetadata", "TensorProperties",
    "init_from_local_shards",
]  # fmt: skip


@dataclass
class Shard:
    """A part with its values."""

    tensor: torch.Tensor
    metadata: ShardMetadata

    def __post_init__(self) -> None:
        if list(self.tensor.shape) != list(self.metadata.shard_sizes):
            raise ValueError(
                f"Shard tensor size does not match with metadata.shard_lengths! Found shard tensor "
                f"size: {list(self.tensor.shape)}, metadata.shard_lengths: "
                f"{self.metadata.shard_sizes}"
            )

    @classmethod
    def from_tensor_and_offsets(
        cls, tensor: torch.Tensor, shard_offsets: list[int], rank: int
    ) -> Shard:
        """A part that begins at some offsets."""
        sizes = list(tensor.shape)
        metadata = ShardMetadata(list(shard_offsets), sizes, f"rank:{rank}/{tensor.device}")
        return cls(tensor, metadata)


class ShardedTensorBase:
    """A tensor of which this rank has `local_shards()`."""

    def __init__(
        self, local_shards: list[Shard], metadata: ShardedTensorMetadata, process_group: Any = None
    ) -> None:
        self._local_shards, self._metadata = list(local_shards), metadata
        self._process_group = process_group

    @classmethod
    def _init_from_local_shards_and_global_metadata(
        cls,
        local_shards: list[Shard],
        sharded_tensor_metadata: ShardedTensorMetadata,
        sharding_spec: Any = None,
        process_group: Any = None,
        init_rrefs: bool = False,
    ) -> ShardedTensorBase:
        """Made without asking the other ranks, whose parts the metadata names."""
        every = sharded_tensor_metadata.shards_metadata
        if not every:
            raise ValueError("shards_metadata must not be empty!")
        if sharded_tensor_metadata.tensor_properties.layout != torch.strided:
            raise ValueError("Only torch.strided layout is currently supported")
        _internals.validate_non_overlapping_shards_metadata(every, sharded_tensor_metadata.size)
        for shard in local_shards:
            if shard.metadata not in every:
                raise ValueError(f"the shard {shard.metadata} is not one of the tensor's")
        made = cls(local_shards, sharded_tensor_metadata, process_group)
        made._sharding_spec = sharding_spec
        return made

    _sharding_spec: Any = None

    def sharding_spec(self) -> Any:
        """How it was cut, where that is known."""
        return self._sharding_spec

    # ---- in checkpoints
    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        return [
            ChunkStorageMetadata(
                torch.Size(one.metadata.shard_offsets), torch.Size(one.metadata.shard_sizes)
            )
            for one in self._local_shards
        ]

    def __get_tensor_shard__(self, index: MetadataIndex) -> torch.Tensor:
        for one in self._local_shards:
            if torch.Size(one.metadata.shard_offsets) == index.offset:
                return one.tensor
        raise ValueError(f"could not find shard at '{index.offset}' for FQN: '{index.fqn}'")

    def local_shards(self) -> list[Shard]:
        """The parts of this rank."""
        return self._local_shards

    def local_tensor(self) -> torch.Tensor:
        """The part of this rank, where it has one."""
        if len(self._local_shards) != 1:
            raise NotImplementedError("Only single local shard is supported.")
        return self._local_shards[0].tensor

    def metadata(self) -> ShardedTensorMetadata:
        """The parts of all ranks."""
        return self._metadata

    def size(self, dim: int | None = None) -> torch.Size | int:
        """The size of the whole."""
        return self._metadata.size if dim is None else self._metadata.size[dim]

    @property
    def shape(self) -> torch.Size:
        """The size of the whole."""
        return self._metadata.size

    @property
    def layout(self) -> torch.layout:
        """The layout of all parts."""
        return self._metadata.tensor_properties.layout

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of all parts."""
        return self._metadata.tensor_properties.dtype

    @property
    def requires_grad(self) -> bool:
        """Whether the parts take part in gradients."""
        return self._metadata.tensor_properties.requires_grad

    def dim(self) -> int:
        """How many dimensions the whole has."""
        return len(self._metadata.size)

    def numel(self) -> int:
        """How many elements the whole has."""
        return self._metadata.size.numel()

    def is_pinned(self) -> bool:
        """Whether the parts are in pinned memory."""
        return self._metadata.tensor_properties.pin_memory

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._metadata})"


class ShardedTensor(ShardedTensorBase):
    """A tensor whose ranks can put it together."""

    def gather(self, dst: int = 0, out: torch.Tensor | None = None) -> None:
        """Puts all parts together in `out` of rank `dst`; all ranks call it."""
        group = self._process_group
        me, size = _core.get_rank(group), _core.get_world_size(group)
        if me == dst and (out is None or out.shape != self.shape):
            got = None if out is None else tuple(out.shape)
            raise ValueError(f"gather needs `out` of size {tuple(self.shape)} at dst, got {got}")
        mine = [(s.metadata.shard_offsets, s.tensor.detach().cpu()) for s in self._local_shards]
        every: list[Any] = [None] * size
        _core.gather_object(mine, every if me == dst else None, group=group, group_dst=dst)
        if me != dst:
            return
        for offsets, tensor in itertools.chain.from_iterable(every):
            target = out
            for axis, (begin, length) in enumerate(zip(offsets, tensor.shape, strict=True)):
                target = target.narrow(axis, begin, length)
            target.copy_(tensor)


def init_from_local_shards(
    local_shards: list[Shard], *global_size: int | Sequence[int], process_group: Any = None
) -> ShardedTensor:
    """A tensor of the parts that all ranks have; each calls it with its own."""
    given = global_size[0] if len(global_size) == 1 else global_size
    size = torch.Size([given] if isinstance(given, int) else given)
    mine = [
        (shard.metadata, shard.tensor.dtype, shard.tensor.requires_grad) for shard in local_shards
    ]
    every: list[Any] = [None] * _core.get_world_size(process_group)
    _core.all_gather_object(every, (tuple(size), mine), group=process_group)
    sizes = {one for one, _ in every}
    if len(sizes) > 1:
        raise ValueError(f"the ranks name different sizes of the tensor: {sorted(sizes)}")
    flat = [entry for _, one in every for entry in one]
    kinds = {(dtype, grad) for _, dtype, grad in flat}
    if len(kinds) != 1:
        raise ValueError(f"the parts differ in dtype or requires_grad: {sorted(map(str, kinds))}")
    shards = [metadata for metadata, _, _ in flat]
    _internals.validate_non_overlapping_shards_metadata(shards, size)
    ((dtype, grad),) = kinds
    properties = TensorProperties(dtype=dtype, requires_grad=grad)
    return ShardedTensor(
        local_shards, ShardedTensorMetadata(shards, size, properties), process_group
    )
