"""Python's own values and functions around tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch._export.db.case import example
from torch.utils import _pytree as pytree


def _plus_one(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(function)
    def wrapped(*args: object, **kwargs: object) -> Tensor:
        return function(*args, **kwargs) + 1

    return wrapped


@example(torch.randn(3, 2), torch.randn(3, 2), name="decorator")
class Decorator(nn.Module):
    """A decorated function is traced through what wraps it."""

    @_plus_one
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x * y


@example(torch.randn(3, 2), torch.tensor(4), name="dictionary", tags="python.data-structure")
class Dictionary(nn.Module):
    """Dictionaries are gone after tracing."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        found = {"square": x * x}
        found["more"] = found["square"] + y
        return found["more"]


@example(
    torch.randn(4),
    (torch.randn(4), torch.randn(4)),
    torch.randn(4),
    torch.randn(4),
    name="fn_with_kwargs",
    tags="python.data-structure",
    kwargs={
        "first": torch.randn(4),
        "second": torch.randn(4),
        "third": torch.randn(4),
    },
)
class FnWithKwargs(nn.Module):
    """Arguments by position, by name and by any name are inputs."""

    def forward(
        self, start: Tensor, pair: tuple[Tensor, Tensor], *rest: Tensor, **named: Tensor
    ) -> Tensor:
        total = start + pair[0] * pair[1]
        for value in rest:
            total = total + value
        for key in ("first", "second", "third"):
            total = total * named[key]
        return total


@example(
    [torch.randn(3, 2), torch.tensor(4), torch.tensor(5)],
    name="list_unpack",
    tags="python.control-flow python.data-structure",
)
class ListUnpack(nn.Module):
    """Unpacking a list is done while the program is traced."""

    def forward(self, args: list[Tensor]) -> Tensor:
        x, *others = args
        return x + others[0] * others[-1]


@example(torch.randn(3, 2), torch.randn(2), name="nested_function", tags="python.closure")
class NestedFunction(nn.Module):
    """Functions inside functions are traced through."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        base = x + y

        def further(value: Tensor) -> Tensor:
            nonlocal base
            base = base * value
            return base - value

        return further(y) + base


class OptionalInputModel(nn.Module):
    """An argument that has a default may be left out."""

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        return x if y is None else x + y


example(torch.randn(2, 3), name="optional_input", tags="python.object-model")(OptionalInputModel)


@example({1: torch.randn(3, 2), 2: torch.randn(3, 2)}, name="pytree_flatten")
class PytreeFlatten(nn.Module):
    """Nested values can be taken apart inside a program."""

    def forward(self, x: dict[int, Tensor]) -> Tensor:
        leaves, _ = pytree.tree_flatten(x)
        return leaves[0] + leaves[-1]


class _Shape:
    @classmethod
    def bent(cls, x: Tensor) -> Tensor:
        return x + 1


@example(torch.randn(3, 4), name="type_reflection_method", tags="python.builtin")
class TypeReflectionMethod(nn.Module):
    """A method may be reached by the type of an object."""

    def forward(self, x: Tensor) -> Tensor:
        return type(_Shape()).bent(x)


@example(torch.randn(3, 2), name="unsupported_operator", tags="torch.operator", supported=False)
class UnsupportedOperator(nn.Module):
    """A branch on data is not part of a program."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 1 if x.sum() > 0 else x - 1
