"""Modules made without spending time on initial values."""

from __future__ import annotations

import inspect
from typing import Any as _Any

import torch

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs) -> _Any:
    """Makes a module whose parameters hold whatever memory held."""
    if not issubclass(module_cls, torch.nn.Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    shapes_only = module_cls(*args, **{**kwargs, "device": "meta"})
    return shapes_only.to_empty(device=kwargs.get("device", "cpu"))
