"""Fused layers that train with weights rounded to levels."""

from torch.ao.nn.intrinsic.qat.modules import *  # noqa: F403
from torch.ao.nn.intrinsic.qat.modules import __all__ as _NAMES

__all__ = [*_NAMES]
