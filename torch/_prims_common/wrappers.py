"""Decorators for operators written in Python: `out=` for a function that returns its result."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import torch

__all__ = ["out_wrapper"]


def _write(out: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    if not torch.can_cast(result.dtype, out.dtype):
        raise RuntimeError(
            f"result type {result.dtype} can't be cast to the desired output type {out.dtype}"
        )
    return torch.add(result, 0, out=out) if result.dtype is not torch.bool else out.copy_(result)


def out_wrapper() -> Callable[[Callable[..., torch.Tensor]], Callable[..., torch.Tensor]]:
    """Gives a function that returns a tensor the keyword argument `out`."""

    def decorate(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        @functools.wraps(function)
        def wrapped(*args, out: torch.Tensor | None = None, **kwargs) -> torch.Tensor:
            result = function(*args, **kwargs)
            if out is None:
                return result
            if out.shape != result.shape:
                out.resize_(result.shape)
            return _write(out, result)

        signature = inspect.signature(function)
        parameter = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
        wrapped.__signature__ = signature.replace(
            parameters=[*signature.parameters.values(), parameter]
        )
        wrapped._without_out = function
        return wrapped

    return decorate


def _maybe_remove_out_wrapper(function: Callable[..., object]) -> Callable[..., object]:
    """The function that out_wrapper was given, or the function itself."""
    return getattr(function, "_without_out", function)
