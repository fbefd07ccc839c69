"""Declares operators of torch.ops.quantized."""

from collections.abc import Callable

import torch
from torch import Tensor

LIBRARY = torch.library.Library("quantized", "FRAGMENT")

Kernel = Callable[..., object]


def defined(*schemas: str) -> Callable[[Kernel], Kernel]:
    """Defines operators with one function for all devices."""

    def register(function: Kernel) -> Kernel:
        for schema in schemas:
            name = LIBRARY.define(schema)
            LIBRARY.impl(name.partition("::")[2] or name, function, "CompositeExplicitAutograd")
        return function

    return register


def on_grid(values: Tensor, like: Tensor, scale: float, zero_point: int) -> Tensor:
    """Real numbers rounded to a grid of the dtype of a quantized tensor."""
    return torch.quantize_per_tensor(values, scale, zero_point, like.dtype)


def on_grid_of(values: Tensor, like: Tensor) -> Tensor:
    return on_grid(values, like, like.q_scale(), like.q_zero_point())
