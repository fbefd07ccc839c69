"""Items of plans for loading, from the parts that are wanted."""

from __future__ import annotations

from torch.distributed.checkpoint.default_planner import _overlap
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, TensorStorageMetadata
from torch.distributed.checkpoint.planner import ReadItem

__all__ = ["create_read_items_for_chunk_list"]


def create_read_items_for_chunk_list(
    fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: list[ChunkStorageMetadata]
) -> list[ReadItem]:
    """What is read to fill the given parts of a tensor."""
    return [
        item
        for wanted in local_chunks
        for i, stored in enumerate(checkpoint_md.chunks)
        for item in _overlap(fqn, wanted, stored, i)
    ]
