"""What torch.compile(module) returns. In a file of its own since it needs torch.nn, which programs
that compile functions alone do not load."""

from __future__ import annotations

import types
from collections.abc import Callable

import torch
from torch._dynamo.eval_frame import caller_of, innermost_fn

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class OptimizedModule(torch.nn.Module):
    """What torch.compile(module) returns: a module whose one child `_orig_mod` does the work, so
    that the keys of its state_dict are those of PyTorch."""

    _OWN = frozenset({"_orig_mod", "dynamo_ctx", "_compiled_forward", "_compiled_call"})

    def __init__(self, mod: torch.nn.Module, dynamo_ctx: Callable | None = None) -> None:
        super().__init__()
        self._orig_mod = mod
        object.__setattr__(self, "dynamo_ctx", dynamo_ctx)
        self._compile_again()

    def _compile_again(self) -> None:
        context = self.dynamo_ctx
        call = None if context is None else context(caller_of(self._orig_mod))
        object.__setattr__(self, "_compiled_call", call)
        object.__setattr__(self, "_compiled_forward", None)

    @property
    def training(self) -> bool:
        """The flag of the module inside, which is the one that the compiled code reads."""
        inner = self._modules.get("_orig_mod")
        return self.__dict__["training"] if inner is None else inner.training

    @training.setter
    def training(self, value: bool) -> None:
        inner = self.__dict__.get("_modules", {}).get("_orig_mod")
        if inner is None:
            self.__dict__["training"] = value
        else:
            inner.training = value

    def forward(self, *args: object, **kwargs: object) -> object:
        """The module's own call. Without hooks its forward is compiled by itself."""
        mod = self._orig_mod
        if self._compiled_call is None:
            return mod(*args, **kwargs)
        state = mod.__dict__
        if any(state[name] for name in HOOKS) or "forward" in state:
            return self._compiled_call(*args, **kwargs)
        if self._compiled_forward is None:
            function = innermost_fn(type(mod).forward)
            if not isinstance(function, types.FunctionType):
                return self._compiled_call(*args, **kwargs)
            object.__setattr__(self, "_compiled_forward", self.dynamo_ctx(function))
        return self._compiled_forward(mod, *args, **kwargs)

    def aot_compile(self, example_inputs: tuple[tuple, dict[str, object]]) -> Callable:
        """The module compiled for arguments (args, kwargs), to be saved in a file."""
        from torch._dynamo.aot_compile import aot_compile

        return aot_compile(self._orig_mod, example_inputs, self.dynamo_ctx.backend)

    def __getattr__(self, name: str) -> object:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: object) -> None:
        # All but what Module itself keeps belongs to the module inside.
        inner = self.__dict__.get("_modules", {}).get("_orig_mod")
        if inner is None or name in self._OWN or name in self.__dict__:
            super().__setattr__(name, value)
            return
        setattr(inner, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._OWN or name in self.__dict__:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __reduce__(self) -> tuple[type, tuple[torch.nn.Module, Callable | None]]:
        return type(self), (self._orig_mod, self.dynamo_ctx)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __iter__(self) -> object:
        return iter(self._orig_mod)

    def __getitem__(self, key: object) -> object:
        return self._orig_mod[key]

    def __contains__(self, key: object) -> bool:
        return key in self._orig_mod

    def __bool__(self) -> bool:
        return True
