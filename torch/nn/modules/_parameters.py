"""What constructors of layers share: a table of names and shapes becomes parameters, and the two
first distributions that nearly all layers use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import torch
from torch.nn import init
from torch.nn.parameter import Parameter

if TYPE_CHECKING:
    from torch.nn.modules.module import Module

Shape = tuple[int, ...] | int

# With this slope the bound of He's uniform distribution, sqrt(6 / ((1 + slope^2) * fan_in)), is
# 1 / sqrt(fan_in).
_PLAIN_SLOPE = math.sqrt(5)


def declare(
    module: Module,
    shapes: Mapping[str, Shape | None],
    device: torch.device | str | int | None = None,
    dtype: torch.dtype | None = None,
) -> None:
    """Gives a module parameters without values; a shape of None registers an absent one."""
    for name, shape in shapes.items():
        if shape is None:
            module.register_parameter(name, None)
        else:
            setattr(module, name, Parameter(torch.empty(shape, device=device, dtype=dtype)))


def uniform_within(tensors: Iterable[torch.Tensor | None], count: int) -> None:
    """Draws uniformly within 1 / sqrt(count)."""
    bound = 1 / math.sqrt(count) if count > 0 else 0
    for tensor in tensors:
        if tensor is not None:
            init.uniform_(tensor, -bound, bound)


def uniform_by_fan_in(weight: torch.Tensor, bias: torch.Tensor | None) -> None:
    """Draws weight and bias uniformly within 1 / sqrt(values that enter one output)."""
    init.kaiming_uniform_(weight, a=_PLAIN_SLOPE)
    uniform_within([bias], math.prod(weight.shape[1:]))
