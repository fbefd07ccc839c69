"""Random numbers from uniform ones, and dropout: the forms that a compiler can fuse. They follow
the distribution; only `uniform` draws the same stream as the operator."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._decomp._register import decomposes
from torch._prims_common import get_computation_dtype

aten = torch.ops.aten


@decomposes(aten.uniform.default)
def uniform(
    x: Tensor,
    low: float = 0.0,
    high: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    return x.clone().uniform_(low, high, generator=generator)


@decomposes(aten.bernoulli.default)
def bernoulli(self: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    drawn = torch.rand(self.shape, dtype=torch.float32, device=self.device, generator=generator)
    return (drawn < self).to(self.dtype)


@decomposes(aten.bernoulli.p)
def bernoulli_p(
    self: Tensor, p: float = 0.5, *, generator: torch.Generator | None = None
) -> Tensor:
    drawn = torch.rand(self.shape, dtype=torch.float32, device=self.device, generator=generator)
    return (drawn < p).to(self.dtype)


@decomposes(aten.native_dropout)
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    if train is False or p == 0:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(input), torch.zeros_like(input, dtype=torch.bool)
    torch._check(
        input.dtype.is_floating_point,
        lambda: f"result type Float can't be cast to the desired output type {input.dtype}",
    )
    mask = torch.rand_like(input) > p
    wide = input.to(get_computation_dtype(input.dtype))
    return (mask * wide * (1.0 / (1.0 - p))).to(input.dtype), mask
