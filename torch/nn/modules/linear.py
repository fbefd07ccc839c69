"""Layers that multiply by a weight matrix."""

from __future__ import annotations

import torch
from torch.nn import functional as F
from torch.nn.modules._parameters import declare, uniform_by_fan_in, uniform_within
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.modules.module import Module
from torch.nn.parameter import UninitializedParameter

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Gives its input back; takes and ignores any arguments."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__()

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return input


class Linear(Module):
    """y = x @ weight.T + bias."""

    weight: torch.Tensor

    __constants__ = ["in_features", "out_features"]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        shapes = {"weight": (out_features, in_features), "bias": out_features if bias else None}
        declare(self, shapes, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        uniform_by_fan_in(self.weight, self.bias)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """y = x1.T @ A @ x2 + b."""

    weight: torch.Tensor

    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got ({in1_features=})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        weight = (out_features, in1_features, in2_features)
        declare(self, {"weight": weight, "bias": out_features if bias else None}, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        uniform_within([self.weight, self.bias], self.weight.size(1))

    def forward(self, input1: torch.Tensor, input2: torch.Tensor) -> torch.Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear that quantisation leaves alone: the last projection of attention."""


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear that finds in_features at its first call."""

    cls_to_become = Linear

    def __init__(
        self, out_features: int, bias: bool = True, device=None, dtype: torch.dtype | None = None
    ) -> None:
        # Nothing is drawn here: the values come with the shapes.
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Initial values, once the shapes are known."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input) -> None:
        """in_features is the size of the input's last dimension; values already loaded stay."""
        self.in_features = input.shape[-1]
        if self.has_uninitialized_params():
            rows = self.out_features
            self._give_shapes({"weight": (rows, self.in_features), "bias": (rows,)})
