"""The first interface to operators written in Python, kept for programs that import it;
torch.library.custom_op is its successor and does the work.

    custom_op("ns::name", "(Tensor x) -> Tensor")    define
    impl("ns::name")(f)                              kernel for the CPU and CUDA
    impl_abstract("ns::name")(f)                     shapes and dtypes
    impl_save_for_backward, impl_backward            the gradient, in two parts"""

import types

import torch
from torch import library

__all__ = ["custom_op", "impl", "impl_abstract", "impl_save_for_backward", "impl_backward"]

_save, _backward = {}, {}


def custom_op(qualname, func_or_schema=None):
    """Defines an operator from a schema, or, as a decorator, from a function's annotations."""
    if isinstance(func_or_schema, str):
        library.define(qualname, func_or_schema)
        return None
    if func_or_schema is None:
        return lambda func: custom_op(qualname, func) or func
    library.define(qualname, library.infer_schema(func_or_schema, mutates_args=()))
    return None


def impl(qualname, *, device_types=("cpu", "cuda"), func=None):
    """A decorator: the function is the operator's kernel for these kinds of device."""
    return library.impl(qualname, device_types, func)


def impl_abstract(qualname, *, func=None):
    """A decorator: the function computes shapes and dtypes."""
    return library.register_fake(qualname, func)


def impl_save_for_backward(qualname, *, func=None):
    """A decorator: func(inputs, output) returns what impl_backward's function gets as `saved`."""
    return _half(_save, qualname, func)


def impl_backward(qualname, output_differentiability=None, *, func=None):
    """A decorator: func(ctx, saved, *grads) returns a dict from arguments to their gradients."""
    if output_differentiability is not None and not all(output_differentiability):
        raise NotImplementedError(
            f"impl_backward({qualname!r}): output_differentiability with an output that is not "
            "differentiable"
        )
    return _half(_backward, qualname, func)


def _half(table, qualname, func):
    def register(function):
        if qualname in table:
            raise RuntimeError(f"{qualname} already has a function of this kind")
        table[qualname] = function
        if qualname in _save and qualname in _backward:
            _register_gradient(qualname)
        return function

    return register if func is None else register(func)


def _register_gradient(qualname) -> None:
    save, backward = _save[qualname], _backward[qualname]
    space, _, name = qualname.partition("::")
    schema = getattr(getattr(torch.ops, space), name).default._schema
    names = [argument.name for argument in schema.arguments]

    def setup(ctx, inputs, output) -> None:
        named = types.SimpleNamespace(**dict(zip(names, inputs, strict=True)))
        ctx.saved_for_backward = save(named, output)

    def gradient(ctx, *grads):
        answer = backward(ctx, ctx.saved_for_backward, *grads)
        return tuple(answer.get(argument) for argument in names)

    library.register_autograd(qualname, gradient, setup_context=setup)
