"""The first interface to operators written in Python, kept for programs that import it;
torch.library.custom_op is its successor. torch/_custom_op/impl.py does the work.

    custom_op("ns::name", "(Tensor x) -> Tensor")    define
    impl("ns::name")(f)                              kernel for the CPU and CUDA
    impl_abstract("ns::name")(f)                     shapes and dtypes
    impl_save_for_backward, impl_backward            the gradient, in two parts"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from torch import library
from torch._custom_op.impl import _define, define_from, find
from torch.library import get_ctx as get_ctx

__all__ = ["custom_op", "impl", "impl_abstract", "impl_save_for_backward", "impl_backward"]


def custom_op(
    qualname: str, func_or_schema: str | Callable | None = None
) -> Callable[[Callable], Callable] | None:
    """Defines an operator from a schema, or, as a decorator, from a function's annotations."""
    if func_or_schema is None:
        return lambda function: define_from(qualname, function)
    if isinstance(func_or_schema, str):
        _define(qualname, func_or_schema)
        return _ignore
    return define_from(qualname, func_or_schema)


def _ignore(function: Callable) -> Callable:
    return function


def _applied(register: Callable[[Callable], Callable], func: Callable | None) -> Callable:
    return register if func is None else register(func)


def impl(
    qualname: str,
    *,
    device_types: str | Iterable[str] = ("cpu", "cuda"),
    func: Callable | None = None,
) -> Callable:
    """A decorator: the function is the operator's kernel for these kinds of device."""
    return _applied(find(qualname).impl(device_types), func)


def impl_abstract(qualname: str, *, func: Callable | None = None) -> Callable:
    """A decorator: the function computes shapes and dtypes."""
    return library.register_fake(qualname, func)


def impl_save_for_backward(qualname: str, *, func: Callable | None = None) -> Callable:
    """A decorator: func(inputs, output) returns what impl_backward's function gets as `saved`."""
    return _applied(find(qualname).impl_save_for_backward(), func)


def impl_backward(
    qualname: str,
    output_differentiability: Sequence[bool] | None = None,
    *,
    func: Callable | None = None,
) -> Callable:
    """A decorator: func(ctx, saved, *grads) returns a dict from arguments to their gradients."""
    return _applied(find(qualname).impl_backward(output_differentiability), func)


def _destroy(qualname: str) -> None:
    """Takes an operator back that was defined here."""
    find(qualname)._destroy()
