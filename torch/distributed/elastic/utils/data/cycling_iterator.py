"""An iterator over several epochs, each made by a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

__all__ = ["CyclingIterator"]

_Item = TypeVar("_Item")


class CyclingIterator(Iterator[_Item]):
    """Yields what generator_fn(epoch) yields, for the epochs start_epoch to n - 1."""

    def __init__(
        self, n: int, generator_fn: Callable[[int], Iterator[_Item]], start_epoch: int = 0
    ) -> None:
        self._items = (item for epoch in range(start_epoch, n) for item in generator_fn(epoch))

    def __iter__(self) -> CyclingIterator[_Item]:
        return self

    def __next__(self) -> _Item:
        return next(self._items)
