"""Convolution weights brought into the memory format that the kernels of a model read fastest."""

from __future__ import annotations

from typing import Any as _Any

from torch.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, kinds, memory_format):
    for submodule in module.modules():
        if isinstance(submodule, kinds):
            weight = submodule.weight.detach().clone(memory_format=memory_format)
            submodule.weight.data = weight
    return module


def convert_conv2d_weight_memory_format(module, memory_format) -> _Any:
    """Changes the weights of every two-dimensional convolution of a module, in place."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module, memory_format) -> _Any:
    """Changes the weights of every three-dimensional convolution of a module, in place."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
