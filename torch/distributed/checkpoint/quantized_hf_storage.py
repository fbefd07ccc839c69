"""Checkpoints whose matrices are stored in eight bits with a scale for each block of rows and
columns, in a tensor of their own called NAME_scale_inv; they are read as if they were not."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex

__all__ = ["QuantizedHuggingFaceStorageReader"]

_SCALE = "_scale_inv"


class QuantizedHuggingFaceStorageReader(HuggingFaceStorageReader):
    """Reads such files; tensors without a scale are read as they are."""

    def __init__(
        self,
        path: str,
        thread_count: int = 1,
        target_dtype: torch.dtype = torch.float32,
        block_size: int = 128,
    ) -> None:
        super().__init__(path, thread_count)
        if block_size <= 0:
            raise ValueError(f"block_size must be positive, got {block_size}")
        self.target_dtype, self.block_size = target_dtype, block_size
        self._scales: dict[str, list[MetadataIndex]] = {}

    def read_metadata(self) -> Metadata:
        """What is there, without the scales; what they belong to has the target's dtype."""
        found = super().read_metadata()
        self._scales = {}
        for index in found.storage_data:
            if index.fqn.endswith(_SCALE):
                self._scales.setdefault(index.fqn.removesuffix(_SCALE), []).append(index)
        for name in self._scales:
            found.state_dict_metadata.pop(name + _SCALE, None)
            if name in found.state_dict_metadata:
                found.state_dict_metadata[name].properties.dtype = self.target_dtype
        return found

    def _scale_rows(self, name: str, offsets: torch.Size, shape: torch.Size) -> torch.Tensor:
        """The scale of every element of a part."""
        whole = torch.cat([super(type(self), self)._values(_At(i)) for i in self._scales[name]])
        rows = torch.arange(offsets[0], offsets[0] + shape[0]) // self.block_size
        columns = torch.arange(offsets[1], offsets[1] + shape[1]) // self.block_size
        return whole.to(torch.float32)[rows][:, columns]

    def _values(self, item: Any) -> torch.Tensor:
        values = super()._values(item)
        name = item.storage_index.fqn
        if name not in self._scales:
            return values
        if values.dim() != 2:
            raise ValueError(f"{name} has scales and {values.dim()} dimensions; expected 2")
        offsets = self.storage_data[item.storage_index].offsets
        scale = self._scale_rows(name, offsets, values.shape)
        return (values.to(torch.float32) * scale).to(self.target_dtype)


class _At:
    """A place in the storage, as `_values` asks for it."""

    def __init__(self, index: MetadataIndex) -> None:
        self.storage_index = index
