"""Arithmetic between tensors as modules, so that observers and grids have a place to live."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.quantized.modules.utils import OnGrid, output_grid


class FloatFunctional(nn.Module):
    """Operators of float tensors whose results are observed."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the underlying "
            "operation"
        )

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return self.activation_post_process(torch.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        return torch.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        return self.activation_post_process(torch.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        return torch.mul(x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        return self.activation_post_process(torch.cat(x, dim=dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        return self.activation_post_process(torch.add(x, y).relu())

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        return self.activation_post_process(torch.matmul(x, y))


class FXFloatFunctional(FloatFunctional):
    """The same without observers: graph modes add their own."""


class QFunctional(OnGrid):
    """Operators of quantized tensors with a grid for their results."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = nn.Identity()

    def _get_name(self) -> str:
        return "QFunctional"

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError(
            "Functional is not intended to use the 'forward'. Please use the underlying operation"
        )

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        made = torch.ops.quantized.add(x, y, self.scale, self.zero_point)
        return self.activation_post_process(made)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        return torch.ops.quantized.add_scalar(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        made = torch.ops.quantized.mul(x, y, self.scale, self.zero_point)
        return self.activation_post_process(made)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        return torch.ops.quantized.mul_scalar(x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        made = torch.ops.quantized.cat(x, dim, self.scale, self.zero_point)
        return self.activation_post_process(made)

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        made = torch.ops.quantized.add_relu(x, y, self.scale, self.zero_point)
        return self.activation_post_process(made)

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        made = torch.ops.quantized.matmul(x, y, self.scale, self.zero_point)
        return self.activation_post_process(made)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """With the grid that the observer of a FloatFunctional proposes."""
        made = cls()
        made.scale, made.zero_point = output_grid(mod)
        return made
