"""Tensors that wrap other tensors (`__tensor_flatten__`): a graph has their inner tensors as inputs
and outputs. A Layout tells, for a row of values, which are wrappers and how they are put together
again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

__all__ = ["Layout", "Wrapper", "parts_of", "wrapper_of"]


@dataclasses.dataclass
class Wrapper:
    """How a wrapper is made from inner tensors, which may be wrappers too."""

    kind: type
    inner: list[tuple[str, Wrapper | None]]
    context: object
    size: torch.Size
    stride: tuple[int, ...]

    def build(self, parts: Iterator[Tensor]) -> Tensor:
        """The wrapper of the next inner tensors."""
        tensors = {
            name: next(parts) if spec is None else spec.build(parts) for name, spec in self.inner
        }
        return self.kind.__tensor_unflatten__(tensors, self.context, self.size, self.stride)

    def count(self) -> int:
        """How many plain tensors it is made of."""
        return sum(1 if spec is None else spec.count() for _, spec in self.inner)

    def matches(self, value: object) -> bool:
        """Whether a value is made of the same classes."""
        if type(value) is not self.kind:
            return False
        return all(
            spec.matches(getattr(value, name))
            if spec is not None
            else not is_traceable_wrapper_subclass(getattr(value, name))
            for name, spec in self.inner
        )


def wrapper_of(value: object) -> Wrapper | None:
    """How a value is wrapped; None for anything that is no wrapper."""
    if not is_traceable_wrapper_subclass(value):
        return None
    names, context = value.__tensor_flatten__()
    inner = [(name, wrapper_of(getattr(value, name))) for name in names]
    return Wrapper(type(value), inner, context, value.size(), value.stride())


def parts_of(value: object) -> list[object]:
    """The plain tensors of a wrapper; any other value alone."""
    if not is_traceable_wrapper_subclass(value):
        return [value]
    names, _ = value.__tensor_flatten__()
    return [part for name in names for part in parts_of(getattr(value, name))]


class Layout:
    """Which of a row of values are wrappers."""

    def __init__(self, values: Sequence[object]) -> None:
        self.wrappers = [wrapper_of(v) for v in values]
        self.plain = not any(self.wrappers)

    def flatten(self, values: Sequence[object]) -> list[object]:
        """The values with wrappers replaced by what they wrap."""
        if self.plain:
            return list(values)
        return [part for value in values for part in parts_of(value)]

    def restore(self, parts: Sequence[object]) -> list[object]:
        """The values from their parts."""
        if self.plain:
            return list(parts)
        rest = iter(parts)
        return [next(rest) if w is None else w.build(rest) for w in self.wrappers]

    def first_parts(self) -> list[int]:
        """For every value the place of its first part."""
        found, place = [], 0
        for wrapper in self.wrappers:
            found.append(place)
            place += 1 if wrapper is None else wrapper.count()
        return found

    def check(self, values: Sequence[object], traced: str) -> None:
        """Raises where a value has other classes than the one that was traced."""
        if self.plain and not any(map(is_traceable_wrapper_subclass, values)):
            return
        for i, (wrapper, value) in enumerate(zip(self.wrappers, values, strict=True)):
            fits = (
                wrapper.matches(value)
                if wrapper is not None
                else not is_traceable_wrapper_subclass(value)
            )
            if not fits:
                expected = "a plain tensor" if wrapper is None else wrapper.kind.__name__
                raise RuntimeError(
                    "\nDuring the backward, we encountered a tensor subclass where we guessed its\n"
                    f"metadata incorrectly.\n\n{traced} {i}: expected {expected}, got "
                    f"{type(value).__name__}.\n"
                )
