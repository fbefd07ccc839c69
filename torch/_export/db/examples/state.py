"""Attributes of modules, custom gradients, and writes to inputs."""

from __future__ import annotations

from enum import Enum

import torch
from torch import Tensor, nn
from torch._export.db.case import example


class _Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x.clamp(0, 1)

    @staticmethod
    def backward(ctx: object, grad: Tensor) -> Tensor:
        return grad


@example(torch.randn(3, 2), name="autograd_function")
class AutogradFunction(nn.Module):
    """Of a function with a gradient of its own, the forward part is traced."""

    def forward(self, x: Tensor) -> Tensor:
        return _Clipped.apply(x)


@example(torch.randn(3, 4), name="class_method")
class ClassMethod(nn.Module):
    """Class methods are traced, however they are reached."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)

    @classmethod
    def shifted(cls, x: Tensor) -> Tensor:
        return x + 1

    def forward(self, x: Tensor) -> Tensor:
        once = self.shifted(self.linear(x))
        return once * type(self).shifted(once) * ClassMethod.shifted(once)


@example(torch.randn(3, 2), name="model_attr_mutation", tags="python.object-model")
class ModelAttrMutation(nn.Module):
    """What a program assigns to attributes while it is traced is undone."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = [1, 2]

    def raised(self) -> list[int]:
        return [part + 1 for part in self.parts]

    def forward(self, x: Tensor) -> Tensor:
        self.parts = self.raised()
        return x.sum() + self.parts[0]


class _Kind(Enum):
    CAT = "cat"
    DOG = "dog"


@example(torch.randn(3, 2), name="specialized_attribute")
class SpecializedAttribute(nn.Module):
    """Attributes that are no tensors are fixed."""

    def __init__(self) -> None:
        super().__init__()
        self.kind = "cat"
        self.steps = 2

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == _Kind.CAT.value:
            return x * self.steps + self.steps
        raise ValueError("only cats")


@example(torch.randn(3, 2), "tag", name="tensor_setattr", tags="python.builtin")
class TensorSetattr(nn.Module):
    """setattr on a tensor leaves no trace in the program."""

    def forward(self, x: Tensor, attr: str) -> Tensor:
        setattr(x, attr, torch.ones(3, 2))
        return x + 3


@example(torch.ones(2, 2), name="user_input_mutation", tags="torch.mutation")
class UserInputMutation(nn.Module):
    """Writes to inputs are part of the program."""

    def forward(self, x: Tensor) -> Tensor:
        x.mul_(3)
        return x.sin()


@example(torch.randn(4, 3), name="assume_constant_result", tags="torch.escape-hatch")
class AssumeConstantResult(nn.Module):
    """The result of a function that is marked as constant is computed once."""

    @torch._dynamo.assume_constant_result
    def chosen(self, x: Tensor) -> int:
        return 2

    def forward(self, x: Tensor) -> Tensor:
        return x[:, : self.chosen(x)]
