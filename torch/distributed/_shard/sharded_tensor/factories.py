"""New tensors that are cut as a spec says; every rank makes its own parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.distributed import distributed_c10d as _core
from torch.distributed._shard.sharded_tensor.api import Shard, ShardedTensor
from torch.distributed._shard.sharded_tensor.metadata import TensorProperties


def _made(
    make: Callable[..., torch.Tensor],
    sharding_spec: Any,
    size: Sequence[Any],
    dtype: torch.dtype | None,
    layout: torch.layout,
    requires_grad: bool,
    pin_memory: bool,
    process_group: Any,
) -> ShardedTensor:
    if layout != torch.strided:
        raise ValueError("Only torch.strided layout is currently supported")
    whole = torch.Size(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    kind = dtype if dtype is not None else torch.get_default_dtype()
    properties = TensorProperties(kind, layout, requires_grad, pin_memory=pin_memory)
    metadata = sharding_spec.build_metadata(whole, properties)
    me = _core.get_rank(process_group)
    shards = [
        Shard(
            make(
                one.shard_sizes,
                dtype=kind,
                device=one.device,
                requires_grad=requires_grad,
                pin_memory=pin_memory,
            ),
            one,
        )
        for one in metadata.shards_metadata
        if one.rank == me
    ]
    return ShardedTensor._init_from_local_shards_and_global_metadata(
        shards, metadata, sharding_spec, process_group
    )


def _factory(name: str, make: Callable[..., torch.Tensor]) -> Callable[..., ShardedTensor]:
    def factory(
        sharding_spec: Any,
        *size: int | Sequence[int],
        dtype: torch.dtype | None = None,
        layout: torch.layout = torch.strided,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: torch.memory_format = torch.contiguous_format,
        process_group: Any = None,
        init_rrefs: bool = False,
    ) -> ShardedTensor:
        return _made(
            make, sharding_spec, size, dtype, layout, requires_grad, pin_memory, process_group
        )

    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = f"A new tensor, cut as a spec says, with parts of torch.{name}."
    return factory


empty = _factory("empty", torch.empty)
zeros = _factory("zeros", torch.zeros)
ones = _factory("ones", torch.ones)
rand = _factory("rand", torch.rand)


def full(
    sharding_spec: Any, size: Sequence[int], fill_value: float, **options: Any
) -> ShardedTensor:
    """A new tensor, cut as a spec says, of one value."""

    def make(sizes: Sequence[int], **rest: Any) -> torch.Tensor:
        return torch.full(sizes, fill_value, **rest)

    return _factory("full", make)(sharding_spec, size, **options)
