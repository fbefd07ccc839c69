"""Modules that one kernel computes, their forms for training (`qat`) and on quantized tensors
(`quantized`)."""

from torch.ao.nn.intrinsic.modules import *  # noqa: F403
from torch.ao.nn.intrinsic.modules import __all__ as _NAMES
from torch.ao.nn.intrinsic.modules.fused import _FusedModule  # noqa: F401

__all__ = [*_NAMES]

# Imported when asked for: both need torch.ao.nn.quantized, which needs this package.
_PARTS = ("qat", "quantized")


def __getattr__(name: str) -> object:
    if name in _PARTS:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
