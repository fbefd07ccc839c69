"""Building blocks of neural networks: modules, parameters, initial values and functional forms."""

from __future__ import annotations

from typing import Any as _Any

from torch.nn import functional, init, modules, utils
from torch.nn.modules import *  # noqa: F403
from torch.nn.parallel import DataParallel
from torch.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "factory_kwargs",
    "functional",
    "init",
    "modules",
    "utils",
    *modules.__all__,
]


def factory_kwargs(kwargs) -> _Any:
    """The device, dtype and memory_format among keyword arguments, those under "factory_kwargs"
    included; raises for anything else, so that a misspelt one is not lost in silence."""
    if kwargs is None:
        return {}
    known = {"device", "dtype", "memory_format"}
    unknown = set(kwargs) - known - {"factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for name in sorted(known & set(kwargs)):
        if name in result:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        result[name] = kwargs[name]
    return result


def __getattr__(name) -> _Any:
    if name in ("attention", "grad", "intrinsic", "qat", "quantizable", "quantized"):
        from importlib import import_module

        return import_module("torch.nn." + name)
    raise AttributeError(f"module 'torch.nn' has no attribute '{name}'")
