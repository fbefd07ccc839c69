"""Which quantized layer replaces a pruned one."""

from __future__ import annotations

from torch import nn

__all__ = ["get_dynamic_sparse_quantized_mapping", "get_static_sparse_quantized_mapping"]


def get_static_sparse_quantized_mapping() -> dict[type, type]:
    """For static quantization."""
    from torch.ao.nn.sparse import quantized

    return {nn.Linear: quantized.Linear}


def get_dynamic_sparse_quantized_mapping() -> dict[type, type]:
    """For dynamic quantization."""
    from torch.ao.nn.sparse import quantized

    return {nn.Linear: quantized.dynamic.Linear}
