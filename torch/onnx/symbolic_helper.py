"""What functions for TorchScript graphs import. The decorators return the function as it is: it
translates nothing, but a module that defines it can be imported."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["parse_args", "quantized_args"]

_Function = Callable[..., object]


def parse_args(*arg_descriptors: str) -> Callable[[_Function], _Function]:
    """Says how the arguments of such a function are read."""
    return lambda fn: fn


def quantized_args(
    *arg_q_descriptors: bool,
    scale: float | None = None,
    zero_point: int | None = None,
    quantize_output: bool = True,
) -> Callable[[_Function], _Function]:
    """Says which arguments of such a function may be quantized."""
    return lambda fn: fn


def __getattr__(name: str) -> object:
    from torch.onnx import _legacy

    if name.startswith("__"):
        raise AttributeError(name)

    def raises(*args: object, **kwargs: object) -> None:
        _legacy.refuse(f"torch.onnx.symbolic_helper.{name}", _legacy._TABLE)

    return raises
