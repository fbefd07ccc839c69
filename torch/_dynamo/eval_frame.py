"""The wrapper that torch.compile puts around a module."""

from __future__ import annotations

import types
from collections.abc import Callable

import torch

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported() -> bool:
    """Whether functions can be traced on this Python."""
    return True


def eager(gm: torch.fx.GraphModule, example_inputs: list[object]) -> Callable:
    """The backend that runs a graph as it is."""
    return gm.forward


def _backend(backend: str | Callable) -> Callable:
    if backend == "eager":
        return eager
    return torch._dynamo.lookup_backend(backend)


def optimize_callable(
    model: Callable, backend: str | Callable, fullgraph: bool = False, dynamic: bool | None = None
) -> Callable:
    """What torch.compile returns for a function or a module."""
    from torch._C._dynamo.eval_frame import CompiledFunction
    from torch._dynamo.convert_frame import ConvertFrame

    found = _backend(backend)
    callback = ConvertFrame(found, fullgraph, dynamic)
    if isinstance(model, torch.nn.Module):
        made = OptimizedModule(model)
        made.dynamo_ctx = callback
        made.__dict__["forward"] = CompiledFunction(_caller(model), callback, found)
        return made
    if isinstance(model, type):
        return model
    if not isinstance(model, types.FunctionType | types.MethodType):
        function = getattr(model, "__wrapped__", None) or type(model).__call__
        if isinstance(function, types.FunctionType) and not hasattr(model, "__wrapped__"):
            return CompiledFunction(types.MethodType(function, model), callback, found)
        return CompiledFunction(_caller(model), callback, found)
    return CompiledFunction(model, callback, found)


def _caller(model: Callable) -> Callable:
    """A function with bytecode that calls something without."""

    def call(*args: object, **kwargs: object) -> object:
        return model(*args, **kwargs)

    return call


class OptimizedModule(torch.nn.Module):
    """What torch.compile(module) returns: a module whose one child `_orig_mod` does the work, so
    that the keys of its state_dict are those of PyTorch."""

    def __init__(self, mod, dynamo_ctx=None) -> None:
        super().__init__()
        # None says that nothing was compiled; programs ask whether the attribute is there.
        self.dynamo_ctx = dynamo_ctx
        self._orig_mod = mod

    def forward(self, *args, **kwargs):
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value) -> None:
        # The training flag and all else belong to the module inside; what Module itself keeps, to
        # the wrapper.
        inner = self.__dict__.get("_modules", {}).get("_orig_mod")
        if inner is None or name == "_orig_mod" or name in self.__dict__:
            super().__setattr__(name, value)
            if inner is not None and name == "training":
                inner.training = value
            return
        setattr(inner, name, value)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __reduce__(self):
        return type(self), (self._orig_mod,)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __iter__(self):
        return iter(self._orig_mod)

    def __getitem__(self, key):
        return self._orig_mod[key]

    def __bool__(self) -> bool:
        return True
