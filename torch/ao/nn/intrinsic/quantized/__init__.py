"""Fused modules on quantized tensors."""

from torch.ao.nn.intrinsic.quantized.modules import *  # noqa: F403
from torch.ao.nn.intrinsic.quantized.modules import __all__ as _MODULES

from torch.ao.nn.intrinsic.quantized import dynamic, modules  # isort: skip

__all__ = [*_MODULES, "dynamic", "modules"]
