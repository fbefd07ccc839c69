"""Modules that say in float arithmetic what quantized ones compute: the weight is rounded to levels
and back at each call. Graph mode makes them, and turns them into quantized ones."""

from torch.ao.nn.quantized.reference.modules import *  # noqa: F403
from torch.ao.nn.quantized.reference.modules import __all__ as _NAMES

__all__ = [*_NAMES]
