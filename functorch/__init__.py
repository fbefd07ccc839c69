"""The transforms under their older name; torch.func is the present one, and calls here say so."""

import torch
from torch._functorch import deprecated as _deprecated
from torch._functorch.deprecated import *  # noqa: F403
from torch._functorch.make_functional import FunctionalModule, FunctionalModuleWithBuffers

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers"]
__all__ += _deprecated.__all__

__version__ = torch.__version__


def __getattr__(name: str) -> object:
    if name == "make_fx":
        from torch.fx.experimental.proxy_tensor import make_fx

        return make_fx
    if name == "compile":
        import importlib

        return importlib.import_module("functorch.compile")
    raise AttributeError(f"module 'functorch' has no attribute '{name}'")
