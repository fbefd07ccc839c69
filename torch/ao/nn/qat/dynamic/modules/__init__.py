"""Layers that train for dynamic quantization."""

from torch.ao.nn.qat.dynamic.modules.linear import Linear

__all__ = ["Linear"]
