"""What a graph calls where the program calls NumPy: functions of torch._numpy by their names, on
tensors that are taken for arrays. The names are those of NumPy, so that a printed graph reads like
the program. torch._numpy is loaded by the first call: most programs never make one."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch.utils import _pytree as pytree

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["numpy_attribute", "numpy_call", "numpy_method", "numpy_operator"]


@functools.cache
def _numpy() -> ModuleType:
    import torch._numpy

    return torch._numpy


@functools.cache
def _function(name: str) -> Callable:
    return functools.reduce(getattr, name.split("."), _numpy())


def _arrays(values: object) -> object:
    return pytree.tree_map_only(torch.Tensor, _numpy().ndarray, values)


def _tensors(values: object) -> object:
    return pytree.tree_map_only(_numpy().ndarray, lambda array: array.tensor, values)


def numpy_call(name: str, *args: object, **kwargs: object) -> object:
    """numpy.NAME(...), of a function or of the type of a number; `name` may have dots."""
    args, kwargs = _arrays((args, kwargs))
    return _tensors(_function(name)(*args, **kwargs))


def numpy_method(name: str, array: torch.Tensor, *args: object, **kwargs: object) -> object:
    """array.NAME(...)"""
    args, kwargs = _arrays((args, kwargs))
    return _tensors(getattr(_numpy().ndarray(array), name)(*args, **kwargs))


def numpy_attribute(name: str, array: torch.Tensor) -> torch.Tensor:
    """array.NAME"""
    return _tensors(getattr(_numpy().ndarray(array), name))


def numpy_operator(name: str, *args: object) -> object:
    """The function NAME of the module operator."""
    first, *rest = _arrays(args)
    if isinstance(first, torch.SymInt | torch.SymFloat):
        # It has operators of its own, which know nothing of arrays.
        first = _numpy().asarray(first)
    return _tensors(getattr(operator, name)(first, *rest))
