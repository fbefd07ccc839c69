"""Parts of distributed tensors whose form may still change."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch.distributed.tensor import _dispatch
from torch.distributed.tensor.experimental._attention import context_parallel
from torch.distributed.tensor.experimental._func_map import local_map
from torch.distributed.tensor.experimental._register_sharding import register_sharding

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Inside the block plain tensors that meet distributed ones count as replicated."""
    before = _dispatch.settings.implicit_replication
    _dispatch.settings.implicit_replication = True
    try:
        yield
    finally:
        _dispatch.settings.implicit_replication = before
