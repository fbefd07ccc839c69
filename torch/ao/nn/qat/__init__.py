"""Layers that train with a weight rounded to levels."""

from torch.ao.nn.qat import modules  # noqa: F401, I001
from torch.ao.nn.qat import dynamic
from torch.ao.nn.qat.modules import (
    Conv1d,
    Conv2d,
    Conv3d,
    Embedding,
    EmbeddingBag,
    Linear,
)

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear", "dynamic"]
