"""Functions that read sizes as tensors, for programs that were written for tracing."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["reshape_from_tensor_shape", "shape_as_tensor"]


def shape_as_tensor(input: Tensor) -> Tensor:
    """The sizes of a tensor as a tensor."""
    return torch._shape_as_tensor(input)


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """A tensor with sizes that another tensor holds."""
    return torch._reshape_from_tensor(x, shape)
