"""Operators for tests of fusion."""

from __future__ import annotations

import torch
import torch.library

__all__ = ["realize"]

_library = torch.library.Library("_inductor_test", "DEF")
_library.define("realize(Tensor self) -> Tensor", tags=torch.Tag.pt2_compliant_tag)


def _copy(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


for _key in ("CPU", "CUDA", "Meta"):
    _library.impl("realize", _copy, _key)


class Realize(torch.autograd.Function):
    """The identity, whose gradient is the identity."""

    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return torch.ops._inductor_test.realize(x)

    @staticmethod
    def backward(ctx: object, grad_output: torch.Tensor) -> torch.Tensor:
        return grad_output


def realize(x: torch.Tensor) -> torch.Tensor:
    """x, in memory: kernels on both sides of it are not fused."""
    return Realize.apply(x)
