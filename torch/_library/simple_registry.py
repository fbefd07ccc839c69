"""Which Python functions were registered as the fake forms of operators, and where they stand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

__all__ = ["FakeImplHolder", "Kernel", "SimpleLibraryRegistry", "SimpleOperatorEntry", "singleton"]


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A registered function and its place, "file:line"."""

    func: Callable
    source: str

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self.func(*args, **kwargs)


class FakeImplHolder:
    """The fake form of one operator; the last one that was registered."""

    def __init__(self, qualname: str) -> None:
        self.qualname = qualname
        self.kernel: Kernel | None = None

    def register(self, func: Callable, source: str) -> None:
        """Takes a function as the fake form."""
        self.kernel = Kernel(func, source)


class SimpleOperatorEntry:
    """What is known of one operator."""

    def __init__(self, qualname: str) -> None:
        self.qualname = qualname
        self.fake_impl = FakeImplHolder(qualname)

    @property
    def abstract_impl(self) -> FakeImplHolder:
        """The old name of fake_impl."""
        return self.fake_impl


class SimpleLibraryRegistry:
    """Entries by name, "ns::name" or "ns::name.overload"."""

    def __init__(self) -> None:
        self._data: dict[str, SimpleOperatorEntry] = {}

    def find(self, qualname: str) -> SimpleOperatorEntry:
        """The entry of an operator, an empty one if nothing was registered."""
        return self._data.setdefault(qualname, SimpleOperatorEntry(qualname))


singleton = SimpleLibraryRegistry()
