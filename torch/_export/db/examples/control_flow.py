"""Branches and loops: those that Python decides once, and those that the program decides."""

from __future__ import annotations

import contextlib

import torch
from torch import Tensor, nn
from torch._export.db.case import example


class _Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


@example(torch.ones(4), name="cond_branch_class_method", tags="torch.cond torch.dynamic-shape")
class CondBranchClassMethod(nn.Module):
    """Methods and modules can be branches of torch.cond."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = _Double()

    def shifted(self, x: Tensor) -> Tensor:
        return self.twice(x) - 1

    def negated(self, x: Tensor) -> Tensor:
        return -self.twice(x)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, self.shifted, self.negated, [x])


@example(torch.ones(3), name="cond_branch_nested_function", tags="torch.cond torch.dynamic-shape")
class CondBranchNestedFunction(nn.Module):
    """A branch of torch.cond may define functions of its own."""

    def forward(self, x: Tensor) -> Tensor:
        def larger(x: Tensor) -> Tensor:
            def square(value: Tensor) -> Tensor:
                return value * value

            return square(x) + x

        def smaller(x: Tensor) -> Tensor:
            def half(value: Tensor) -> Tensor:
                return value / 2

            return half(x) - x

        return torch.cond(x.shape[0] < 8, larger, smaller, [x])


@example(torch.ones(6), name="cond_branch_nonlocal_variables", tags="torch.cond")
class CondBranchNonlocalVariables(nn.Module):
    """What branches need is passed to them as operands."""

    def forward(self, x: Tensor) -> Tensor:
        offset, scale = x + 1, 3

        def first(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
            return x + y + z

        def second(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
            return x - y - z

        return torch.cond(x.sum() > 10, first, second, [x, offset, torch.tensor(scale)])


@example(torch.tensor(True), torch.ones(3, 2), name="cond_closed_over_variable", tags="torch.cond")
class CondClosedOverVariable(nn.Module):
    """Branches of torch.cond may read variables of the function around them."""

    def forward(self, pred: Tensor, x: Tensor) -> Tensor:
        y = x + 1

        def with_y(value: Tensor) -> Tensor:
            return value * y

        def without(value: Tensor) -> Tensor:
            return value - x

        return torch.cond(pred, with_y, without, [x])


@example(
    torch.randn(3, 2),
    torch.randn(2),
    name="cond_operands",
    tags="torch.cond torch.dynamic-shape",
    extra=(torch.randn(3, 2), torch.randn(2)),
)
class CondOperands(nn.Module):
    """Operands of torch.cond are tensors; a size of theirs may decide."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        def together(x: Tensor, y: Tensor) -> Tensor:
            return x + y

        def apart(x: Tensor, y: Tensor) -> Tensor:
            return x - y

        return torch.cond(x.shape[0] > 2, together, apart, [x, y])


@example(torch.randn(6, 4, 3), name="cond_predicate", tags="torch.cond torch.dynamic-shape")
class CondPredicate(nn.Module):
    """A condition on a number of dimensions is decided while the program is traced."""

    def forward(self, x: Tensor) -> Tensor:
        many = x.dim() > 2 and x.shape[2] > 10
        return torch.cond(many, lambda x: x.cos(), lambda x: x.sin(), [x])


@example(torch.randn(3, 2), torch.randn(2), name="dynamic_shape_map", tags="torch.map")
class DynamicShapeMap(nn.Module):
    """A function of slices, for each slice along the first dimension."""

    def forward(self, xs: Tensor, y: Tensor) -> Tensor:
        from torch._higher_order_ops.map import map as mapped

        return mapped(lambda x, y: x * y + 1, xs, y)


@example(torch.randn(3, 2), name="static_for_loop", tags="python.control-flow")
class StaticForLoop(nn.Module):
    """A loop with a fixed number of rounds is unrolled."""

    def forward(self, x: Tensor) -> list[Tensor]:
        return [x * step + step for step in range(4)]


@example(torch.randn(3, 2, 2), name="static_if", tags="python.control-flow")
class StaticIf(nn.Module):
    """A condition that does not depend on data is decided once."""

    def forward(self, x: Tensor) -> Tensor:
        return x - torch.ones_like(x) if x.dim() == 3 else x


@example(torch.randn(3, 2), name="null_context_manager", tags="python.context-manager")
class NullContextManager(nn.Module):
    """A context that does nothing leaves no trace."""

    def forward(self, x: Tensor) -> Tensor:
        with contextlib.nullcontext():
            return x.sin() + x.cos()
