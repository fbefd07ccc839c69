"""Operators made of a program's Triton kernels: triton_op, whose kernels a compiler sees, and
wrap_triton, which makes their launches visible. Triton is needed when a kernel is wrapped, not
before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch._library.custom_ops import CustomOpDef, custom_op
from torch._library.infer_schema import infer_schema

__all__ = ["triton_op", "wrap_triton"]


def triton_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    schema: str | None = None,
) -> Callable:
    """A custom operator whose function launches Triton kernels through wrap_triton. Unlike that of
    custom_op, the function is traced: a graph holds the launches and what is around them."""

    def define(function: Callable[..., Any]) -> CustomOpDef:
        from torch._subclasses.functional_tensor import FunctionalTensorMode

        written = schema or infer_schema(function, mutates_args=mutates_args)
        made = custom_op(name, function, mutates_args=mutates_args, schema=written)
        # Without data launches do nothing, and what is around them is computed as it is.
        made.register_fake(function)

        def taken_apart(mode: Any, op: Any, types: Any, args: tuple, kwargs: dict | None) -> Any:
            with mode:
                return function(*args, **(kwargs or {}))

        made.register_torch_dispatch(FunctionalTensorMode, taken_apart)
        made._lib.impl(made._name, function, "Functionalize")
        return made

    return define if fn is None else define(fn)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """A Triton kernel whose launches traces see: wrap_triton(kernel)[grid](...), inside of a
    triton_op or of a function that make_fx traces."""
    try:
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction
    except ImportError as error:
        raise RuntimeError(
            "torch.library.wrap_triton: Triton cannot be imported, so that no kernel of it can be "
            f"launched ({error})"
        ) from error
    from torch._higher_order_ops.triton_kernel_wrap import TraceableTritonKernelWrapper

    if isinstance(triton_kernel, TraceableTritonKernelWrapper):
        return triton_kernel
    if not isinstance(triton_kernel, (JITFunction, Autotuner)):
        raise RuntimeError(
            "wrap_triton only works on functions annotated with triton.jit or triton.autotune, got "
            f"{type(triton_kernel)}"
        )
    return TraceableTritonKernelWrapper(triton_kernel)
