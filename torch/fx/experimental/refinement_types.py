"""Constraints between dimensions."""

from typing import Any


class Equality:
    """Two dimensions are the same."""

    def __init__(self, lhs: Any, rhs: Any) -> None:
        self.lhs = lhs
        self.rhs = rhs

    def __str__(self) -> str:
        return f"{self.lhs} = {self.rhs}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Equality):
            return False
        return (self.lhs, self.rhs) == (other.lhs, other.rhs)

    def __hash__(self) -> int:
        return hash((str(self.lhs), str(self.rhs)))
