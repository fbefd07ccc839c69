"""Functions of the time when autocast had one set of names per device; each warns and forwards."""

from __future__ import annotations

import functools
import warnings

import torch

__all__ = []


def _renamed(old, new, device_type) -> None:
    def call(*args) -> torch.dtype:
        warnings.warn(
            f"torch.{old}() is deprecated. Please use torch.{new}({device_type!r}) instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(torch, new)(device_type, *args)

    functools.update_wrapper(call, getattr(torch, new))
    call.__name__ = call.__qualname__ = old
    globals()[old] = call
    __all__.append(old)


for _device_type, _word in (("cpu", "cpu_"), ("cuda", "gpu_")):
    _renamed(f"get_autocast_{_word}dtype", "get_autocast_dtype", _device_type)
    _renamed(f"set_autocast_{_word}dtype", "set_autocast_dtype", _device_type)
_renamed("is_autocast_cpu_enabled", "is_autocast_enabled", "cpu")
_renamed("set_autocast_cpu_enabled", "set_autocast_enabled", "cpu")
