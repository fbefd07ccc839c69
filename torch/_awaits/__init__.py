"""Calls that are made when somebody needs their result."""

from __future__ import annotations

import types
import typing

__all__ = ["Await"]


class _Await:
    """A call that was not made yet. Its result is computed once, by wait() or by the first use of
    one of the result's attributes."""

    def __init__(self, fn, args: tuple[object, ...], value: tuple[object, ...] = ()) -> None:
        self._fn, self._args, self._value = fn, args, value
        self._nowait = bool(value)

    __class_getitem__ = classmethod(types.GenericAlias)

    def fn(self) -> typing.Callable[..., object]:
        """The function that is called."""
        return self._fn

    def args(self) -> tuple[object, ...]:
        """What it is called with."""
        return self._args

    def is_nowait(self) -> bool:
        """Whether the result was there from the start."""
        return self._nowait

    def wait(self) -> object:
        """The result."""
        if not self._value:
            self._value = (self._fn(*self._args),)
        return self._value[0]

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.wait(), name)


Await = _Await
