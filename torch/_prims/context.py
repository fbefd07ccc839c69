"""A mode in which functions of torch are replaced by their references, and so by primitives."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable

import torch
from torch._decomp import decomposition_table
from torch.overrides import TorchFunctionMode

__all__ = ["TorchRefsMode", "torch_to_refs_map"]


@functools.cache
def torch_to_refs_map() -> dict[Callable, Callable]:
    """Functions and methods of torch that have a reference of the same name."""
    import torch._refs as refs

    found: dict[Callable, Callable] = {}
    for name in refs.__all__:
        for owner in (torch, torch.Tensor):
            original = getattr(owner, name, None)
            if callable(original):
                found[original] = getattr(refs, name)
    return found


class TorchRefsMode(TorchFunctionMode):
    """Calls references instead of the functions and operators that have one."""

    def __init__(
        self,
        strict: bool = False,
        should_fallback_fn: Callable[..., bool] = lambda *_: False,
        prims_mode_cls: type = contextlib.nullcontext,
    ) -> None:
        super().__init__()
        self.strict = strict
        self.should_fallback_fn = should_fallback_fn
        self.prims_mode_cls = prims_mode_cls

    def __torch_function__(
        self,
        func: Callable,
        types: tuple[type, ...],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        reference = torch_to_refs_map().get(func)
        if reference is None and isinstance(func, torch._ops.OpOverload):
            reference = decomposition_table.get(func)
        if reference is not None and not self.should_fallback_fn(self, reference, args, kwargs):
            with self:
                return reference(*args, **kwargs)
        if self.strict and getattr(func, "__module__", "") == "torch":
            raise RuntimeError(f"no _refs support for {torch.overrides.resolve_name(func)}")
        return func(*args, **kwargs)
