"""Programs that compute with sizes, and with numbers that tensors hold."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch._export.db.case import example
from torch.export import Dim


@example(torch.tensor(5), name="constrain_as_size_example", tags="torch.dynamic-value")
class ConstrainAsSize(nn.Module):
    """A number from a tensor can be a size once its range is known."""

    def forward(self, x: Tensor) -> Tensor:
        count = x.item()
        torch._check_is_size(count)
        torch._check(count <= 9)
        return torch.ones(count, 3)


@example(
    torch.tensor(6),
    torch.randn(4, 4),
    name="constrain_as_value_example",
    tags="torch.dynamic-value",
)
class ConstrainAsValue(nn.Module):
    """A branch on a number from a tensor can be taken where its range decides it."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        number = x.item()
        torch._check(number >= 1)
        torch._check(number <= 8)
        return y.sin() if number < 10 else y.cos()


@example(torch.randn(3, 2), name="dynamic_shape_assert", tags="python.assert")
class DynamicShapeAssert(nn.Module):
    """assert on a size is checked while the program is traced."""

    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[0] > 2, f"{x.shape[0]} rows are too few"
        assert x.shape[0] > 1
        return x * 2


@example(torch.randn(3, 2), name="dynamic_shape_constructor", tags="torch.dynamic-shape")
class DynamicShapeConstructor(nn.Module):
    """Sizes of new tensors follow the sizes of inputs."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros(x.shape[0] * 3, x.shape[1])


@example(torch.randn(3, 2, 2), name="dynamic_shape_if_guard", tags="python.control-flow")
class DynamicShapeIfGuard(nn.Module):
    """A branch on a size is taken as for the example."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sin() if x.shape[0] == 3 else x.cos()


_half = Dim("half", min=2)


@example(
    torch.randn(6, 2),
    name="dynamic_shape_round",
    tags="torch.dynamic-shape python.builtin",
    supported=False,
    dynamic_shapes={"x": {0: _half}},
)
class DynamicShapeRound(nn.Module):
    """round of a size that varies has no form in a program."""

    def forward(self, x: Tensor) -> Tensor:
        return x[: round(x.shape[0] / 2)]


@example(torch.randn(3, 2), name="dynamic_shape_slicing", tags="torch.dynamic-shape")
class DynamicShapeSlicing(nn.Module):
    """Bounds of slices may be computed from sizes."""

    def forward(self, x: Tensor) -> Tensor:
        return x[: x.shape[0] - 1, x.shape[1] - 1 :: 2]


@example(torch.randn(8, 8), name="dynamic_shape_view", tags="torch.dynamic-shape")
class DynamicShapeView(nn.Module):
    """Sizes of views may be computed from sizes."""

    def forward(self, x: Tensor) -> Tensor:
        rows, columns = x.shape
        return x.view(rows // 2, 2, columns // 4, 4).permute(0, 2, 1, 3)


@example(torch.randn(3, 2), name="list_contains", tags="python.data-structure python.assert")
class ListContains(nn.Module):
    """Whether a size is in a list is known while the program is traced."""

    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[-1] in [2, 4, 6]
        assert "same" not in ["other", "another"]
        return x + x


@example(
    torch.randn(3, 2),
    name="scalar_output",
    tags="torch.dynamic-shape",
    dynamic_shapes={"x": {1: Dim("columns")}},
)
class ScalarOutput(nn.Module):
    """A program may return numbers."""

    def forward(self, x: Tensor) -> int:
        return x.shape[1] * 2 + 1


@example(torch.randn(3, 2), name="torch_sym_min", tags="torch.operator", supported=False)
class TorchSymMin(nn.Module):
    """torch.sym_min of a number that an unknown function makes cannot be traced."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sum() + torch.sym_min(x.sum().item(), 100)
