"""Sequences of modules that are quantized as a whole."""

from torch.ao.nn.intrinsic.modules.fused import *  # noqa: F403
from torch.ao.nn.intrinsic.modules.fused import __all__ as _NAMES
from torch.ao.nn.intrinsic.modules.fused import _FusedModule  # noqa: F401

__all__ = [*_NAMES]
