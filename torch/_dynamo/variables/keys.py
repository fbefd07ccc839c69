"""The keys under which tables of a trace hold their members: equal where the objects of the running
program are. Numbers and texts are their own keys, tuples and frozensets those of their members."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from torch._dynamo.exc import unimplemented
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.constant import LITERALS, ConstantVariable

if TYPE_CHECKING:
    from torch._dynamo.symbolic_convert import Frame


class IdentityKey:
    """The key of an object that is equal to itself alone."""

    __slots__ = ("vt",)

    def __init__(self, vt: VariableTracker) -> None:
        self.vt = vt

    def __hash__(self) -> int:
        return id(self.vt)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self.vt is other.vt


class ObjectKey:
    """The key of an object with a `__hash__` of its own."""

    __slots__ = ("code", "tx", "vt")

    def __init__(self, tx: Frame, vt: VariableTracker, code: int) -> None:
        self.tx, self.vt, self.code = tx, vt, code

    def __hash__(self) -> int:
        return self.code

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ObjectKey):
            return self.vt is other.vt or self._equals(other.vt)
        if isinstance(other, IdentityKey):
            return False
        return self._equals(ConstantVariable(other))

    def _equals(self, other: VariableTracker) -> bool:
        found, changed = self.tx.with_effects(lambda: self.tx.equal(self.vt, other))
        if changed:
            # Tables of the trace and of the code after it call this at other times.
            unimplemented("equality", repr(self.vt), "its `__eq__` changes something")
        return found


@dataclasses.dataclass(frozen=True, slots=True)
class PartsKey:
    """The key of an object that is equal where its parts are, a bound method for one."""

    parts: tuple


def has_known_hash(key: object) -> bool:
    """Whether the hash value of a key is that of the object in the running program."""
    if type(key) in (tuple, frozenset):
        return all(map(has_known_hash, key))
    return type(key) in LITERALS or type(key) is ObjectKey
