"""Logic variables. A variable is known by its token; without one it gets a number of its own."""

import contextlib
import itertools
from collections.abc import Hashable, Iterator
from typing import Any

_numbers = itertools.count(1)
# Plain values that count as variables while `variables` lasts.
_extra: set[Hashable] = set()


class Var:
    """A logic variable: Var("x") is the same as any other Var("x")."""

    def __init__(self, token: Hashable | None = None) -> None:
        self.token = f"_{next(_numbers)}" if token is None else token

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.token == other.token

    def __hash__(self) -> int:
        return hash((type(self), self.token))

    def __str__(self) -> str:
        return f"~{self.token}"

    __repr__ = __str__


def var(*args: Any) -> Var:
    """A logic variable."""
    return Var(*args)


def vars(n: int) -> list[Var]:
    """That many new variables."""
    return [Var() for _ in range(n)]


def isvar(n: Any) -> bool:
    """Whether a value is a logic variable."""
    if isinstance(n, Var):
        return True
    if not _extra or not isinstance(n, Hashable):
        return False
    return n in _extra


@contextlib.contextmanager
def variables(*variables: Hashable) -> Iterator[None]:
    """While it lasts, these plain values are variables too."""
    added = [v for v in variables if v not in _extra]
    _extra.update(added)
    try:
        yield
    finally:
        _extra.difference_update(added)
