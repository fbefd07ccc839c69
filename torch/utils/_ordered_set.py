"""OrderedSet: a set that iterates in the order of insertion.

The keys of a dict already are such a set, so every method here is a line or two over one. The
operators `|`, `&`, `-`, `^` and the comparisons come from collections.abc.MutableSet; the named
methods take any number of iterables, as those of the built-in set do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from collections.abc import Set as AbstractSet
from typing import Generic, TypeVar

__all__ = ["OrderedSet"]

T = TypeVar("T")


class OrderedSet(MutableSet[T], Generic[T]):
    """A mutable set whose elements are visited in the order in which they were first added."""

    __slots__ = ("_keys",)
    __hash__ = None

    def __init__(self, iterable: Iterable[T] | None = None) -> None:
        self._keys: dict[T, None] = {} if iterable is None else dict.fromkeys(iterable)

    # ---- what MutableSet builds on
    def __contains__(self, elem: object) -> bool:
        return elem in self._keys

    def __iter__(self) -> Iterator[T]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, elem: T) -> None:
        """Adds an element; one that is there keeps its place."""
        self._keys[elem] = None

    def discard(self, elem: T) -> None:
        """Removes an element if it is there."""
        self._keys.pop(elem, None)

    # ---- the rest of the built-in set's interface
    def remove(self, elem: T) -> None:
        """Removes an element; KeyError if it is not there."""
        del self._keys[elem]

    def pop(self) -> T:
        """Removes and returns the element added last."""
        if not self._keys:
            raise KeyError("pop from an empty set")
        return self._keys.popitem()[0]

    def clear(self) -> None:
        """Removes every element."""
        self._keys.clear()

    def copy(self) -> OrderedSet[T]:
        """A new set with the same elements in the same order."""
        return OrderedSet(self._keys)

    def update(self, *others: Iterable[T]) -> None:
        """Adds the elements of all the iterables."""
        for other in others:
            self._keys.update(dict.fromkeys(other))

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """A new set with the elements of this one and of all the iterables."""
        result = self.copy()
        result.update(*others)
        return result

    def intersection(self, *others: Iterable[T]) -> OrderedSet[T]:
        """A new set with the elements that every iterable has too, in the order of this set."""
        kept = self._keys
        for other in others:
            common = _lookup(other)
            kept = dict.fromkeys(elem for elem in kept if elem in common)
        return OrderedSet(kept)

    def difference(self, *others: Iterable[T]) -> OrderedSet[T]:
        """A new set with the elements that no iterable has."""
        result = self.copy()
        result.difference_update(*others)
        return result

    def symmetric_difference(self, other: Iterable[T]) -> OrderedSet[T]:
        """A new set with the elements that are in exactly one of the two."""
        return self ^ OrderedSet(other)

    def intersection_update(self, *others: Iterable[T]) -> None:
        """Keeps only the elements that every iterable has too."""
        self._keys = self.intersection(*others)._keys

    def difference_update(self, *others: Iterable[T]) -> None:
        """Removes the elements that one of the iterables has."""
        for other in others:
            for elem in _lookup(other) if other is not self else list(self._keys):
                self._keys.pop(elem, None)

    def symmetric_difference_update(self, other: Iterable[T]) -> None:
        """Keeps the elements that are in exactly one of the two."""
        self._keys = self.symmetric_difference(other)._keys

    def issubset(self, other: Iterable[T]) -> bool:
        """Whether every element is in `other`."""
        return self <= _lookup(other)

    def issuperset(self, other: Iterable[T]) -> bool:
        """Whether every element of `other` is here."""
        return self >= _lookup(other)

    def isdisjoint(self, other: Iterable[T]) -> bool:
        """Whether the two share no element."""
        return not any(elem in self._keys for elem in other)

    def __or__(self, other: Iterable[T]) -> OrderedSet[T]:
        return self.union(other) if isinstance(other, Iterable) else NotImplemented

    def __ror__(self, other: Iterable[T]) -> OrderedSet[T]:
        return self | other

    def __ior__(self, other: Iterable[T]) -> OrderedSet[T]:
        self.update(other)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self._keys)})"

    def __reduce__(self) -> tuple[type, tuple[list[T]], dict[str, object] | None]:
        return type(self), (list(self._keys),), getattr(self, "__dict__", None) or None


def _lookup(values: Iterable[T]) -> AbstractSet[T]:
    """The values as something with set comparisons and a fast `in`."""
    return values if isinstance(values, AbstractSet) else OrderedSet(values)
