"""A value computed when it is first asked for."""

from collections.abc import Callable
from typing import Generic, TypeVar

R = TypeVar("R")


class Thunk(Generic[R]):
    """Calls a function once, on the first force(), and keeps what it returned."""

    __slots__ = ("_make", "_values")

    def __init__(self, make: Callable[[], R]) -> None:
        self._make: Callable[[], R] = make
        self._values: list[R] = []

    def force(self) -> R:
        """The value."""
        if not self._values:
            self._values.append(self._make())
        return self._values[0]
