"""What ranks say to each other of a ShardedTensor. Old checkpoints of PyTorch have pickles of these
classes in their metadata, so names and states are PyTorch's."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import torch
from torch.distributed._shard.metadata import ShardMetadata

__all__ = ["MEM_FORMAT_ENCODING", "ShardedTensorMetadata", "TensorProperties"]


class MEM_FORMAT_ENCODING(Enum):
    """Memory formats as pickles name them."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = {
    MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT: torch.contiguous_format,
    MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST: torch.channels_last,
    MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT: torch.preserve_format,
}
_CODES = {value: key for key, value in _FORMATS.items()}


@dataclass
class TensorProperties:
    """How a tensor is made."""

    dtype: torch.dtype = field(default_factory=torch.get_default_dtype)
    layout: torch.layout = torch.strided
    requires_grad: bool = False
    memory_format: torch.memory_format = torch.contiguous_format
    pin_memory: bool = False

    def __getstate__(self) -> tuple:
        code = _CODES[self.memory_format]
        return (self.dtype, self.layout, self.requires_grad, code, self.pin_memory)

    def __setstate__(self, state: tuple) -> None:
        self.dtype, self.layout, self.requires_grad, code, self.pin_memory = state
        self.memory_format = _FORMATS[code]

    @staticmethod
    def create_from_tensor(tensor: torch.Tensor) -> TensorProperties:
        """The properties of a tensor."""
        return TensorProperties(
            tensor.dtype,
            tensor.layout,
            tensor.requires_grad,
            torch.contiguous_format,
            tensor.is_pinned(),
        )


@dataclass
class ShardedTensorMetadata:
    """The parts of all ranks, the size of the whole, and how it is made."""

    shards_metadata: list[ShardMetadata] = field(default_factory=list)
    size: torch.Size = field(default_factory=lambda: torch.Size([]))
    tensor_properties: TensorProperties = field(default_factory=TensorProperties)
