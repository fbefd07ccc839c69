"""Sets, and the walk over tables whose keys may change meanwhile. Members stand in a Python dict
under the hash keys of their trackers; beside it a Python set of those keys goes through the same
changes, because the order in which a set is walked depends on its history."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from torch._dynamo.exc import raise_error, raise_key_error, raise_observed, unimplemented
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import NONE, ConstantVariable
from torch._dynamo.variables.keys import has_known_hash

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame

COMPARISONS = {
    "__eq__": operator.eq,
    "__ne__": operator.ne,
    "__or__": operator.or_,
    "__ior__": operator.ior,
    "__and__": operator.and_,
    "__sub__": operator.sub,
    "__xor__": operator.xor,
    "__le__": operator.le,
    "__lt__": operator.lt,
    "__ge__": operator.ge,
    "__gt__": operator.gt,
}

Members = dict[object, VariableTracker]
# Methods that make a set of several, and whether they change the first.
_ALGEBRA = {
    "union": False,
    "update": True,
    "intersection": False,
    "intersection_update": True,
    "difference": False,
    "difference_update": True,
    "symmetric_difference": False,
    "symmetric_difference_update": True,
}
# The methods that change a set as operators with `=` do.
SET_OPERATORS = {
    operator.or_: "update",
    operator.and_: "intersection_update",
    operator.sub: "difference_update",
    operator.xor: "symmetric_difference_update",
}


class TableWalk:
    """A walk by Python's own iterator over the keys, so that changes meanwhile have the effects
    that they have in Python. `taken` counts what it gave, `ended` says that there is no more."""

    __slots__ = ("_entry", "_keys", "_name", "_tx", "ended", "taken")

    def __init__(
        self,
        tx: Frame,
        keys: Collection,
        entry: Callable[[object], VariableTracker],
        name: str | None = None,
    ) -> None:
        self._tx = tx
        self._keys = iter(keys)
        self._entry = entry
        self._name = name
        self.taken = 0
        self.ended = False

    def __iter__(self) -> TableWalk:
        return self

    def __next__(self) -> VariableTracker:
        try:
            key = next(self._keys)
        except StopIteration:
            self.ended = True
            raise
        except RuntimeError as error:
            if self._name == "Set" and "keys changed" in str(error):
                unimplemented("iteration", self._name, "its members changed meanwhile")
            if self._name == "Set":
                error = RuntimeError("Set changed size during iteration")
            elif self._name is not None:
                error = RuntimeError(f"{self._name} mutated during iteration")
            raise_observed(self._tx, error)
        self.taken += 1
        return self._entry(key)


def walk_set(value: set | frozenset) -> Iterator:
    """The members as the set itself has them, whatever a class of the program says."""
    return (set if isinstance(value, set) else frozenset).__iter__(value)


def _members(order: set | frozenset, known: list[tuple[object, VariableTracker]]) -> Members:
    """The members of a result in the order of those that are known. Of equal ones Python's own set
    chose: 1 & 1.0 is one of them."""
    chosen = {key: key for key in order}
    by_object: dict[int, VariableTracker] = {}
    for key, value in known:
        by_object.setdefault(id(key), value)
    kept: Members = {}
    for key, value in known:
        if key in chosen and key not in kept:
            key = chosen[key]
            kept[key] = by_object.get(id(key), value)
    return kept


class SetVariable(VariableTracker):
    """A set or frozenset. `order` holds the keys as Python would; `entry` are the members with
    which the running program's set came."""

    __slots__ = ("cls", "entry", "history", "items", "order")

    def __init__(
        self,
        items: Members,
        source: object = None,
        cls: type = set,
        order: set | frozenset | None = None,
    ) -> None:
        super().__init__(source)
        self.items = items
        self.cls = cls
        # One after the other: a table that is made at once has another size.
        self.order = cls(list(items)) if order is None else order
        self.entry: Members = {} if source is None else dict(items)
        # The methods that changed it, with their arguments: a member, a set, or members.
        self.history: list[tuple[str, list[VariableTracker | Args]]] = []

    @staticmethod
    def of(tx: Frame, values: Args, cls: type = set) -> SetVariable:
        """A new set of these values."""
        items: Members = {}
        for value in values:
            items.setdefault(value.hash_key(tx), value)
        return SetVariable(items, cls=cls)

    @staticmethod
    def copy_of(tx: Frame, vt: VariableTracker, cls: type = set) -> SetVariable:
        """cls(vt)"""
        if isinstance(vt, SetVariable):
            return SetVariable(dict(vt.items), cls=cls, order=cls(vt.order))
        made = SetVariable.of(tx, vt.unpack(tx), cls)
        if vt.python_type() is dict:
            made.order = cls(made.items)
        return made

    def python_type(self) -> type:
        return self.cls

    def is_mutable(self) -> bool:
        return self.cls is not frozenset

    def is_python_constant(self) -> bool:
        return all(item.is_python_constant() for item in self.items.values())

    def as_python_constant(self) -> object:
        return self.cls([item.as_python_constant() for item in self.items.values()])

    def children(self) -> Iterator[VariableTracker]:
        return iter(self.items.values())

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        kind = "Set"
        if not self._is_ordered():
            # The order of objects depends on their addresses.
            return TableWalk(tx, self.items, self.items.__getitem__, kind)
        if self.source is not None and len(self.entry) > 1:
            order = [item.as_python_constant() for item in self.entry.values()]
            tx.out.guard(self.source, "SET_ORDER", order)
        return TableWalk(tx, self.order, self.items.__getitem__)

    def _is_ordered(self) -> bool:
        """Whether the hash values are those of the running program."""
        return all(has_known_hash(k) or v.is_python_constant() for k, v in self.items.items())

    def unpack(self, tx: Frame) -> Args:
        return list(self.iterate(tx))

    def truth(self, tx: Frame) -> bool:
        return bool(self.items)

    def length(self, tx: Frame) -> VariableTracker:
        """len(obj)"""
        return ConstantVariable(len(self.items))

    def hash_key(self, tx: Frame) -> object:
        if self.cls is frozenset:
            return frozenset(self.items)
        raise_error(tx, TypeError, "unhashable type: 'set'")

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        return tx.attribute_of_builtin(self, name)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name in ("__len__", "__iter__", "__contains__"):
            return self._basic(tx, name, args)
        if name in COMPARISONS and len(args) == 1:
            return tx.binary(COMPARISONS[name], self, args[0])
        if name in ("add", "discard", "remove", "pop", "clear"):
            return self._change(tx, name, args)
        if name in _ALGEBRA:
            return self._algebra(tx, name, args)
        if name in ("issubset", "issuperset", "isdisjoint"):
            other = {v.hash_key(tx) for v in args[0].unpack(tx)}
            return ConstantVariable(getattr(set(self.items), name)(other))
        if name == "copy":
            return SetVariable.copy_of(tx, self, self.cls)
        if name == "__init__":
            if self.cls is set:
                new = SetVariable.copy_of(tx, args[0]) if args else SetVariable({})
                tx.mutate(self)
                self.items, self.order = new.items, new.order
                self.history += [("clear", []), ("update", [new])]
            return NONE
        if not hasattr(self.cls, name):
            raise_error(
                tx, AttributeError, f"{self.cls.__name__!r} object has no attribute {name!r}"
            )
        return super().call_method(tx, name, args, kwargs)

    def _basic(self, tx: Frame, name: str, args: Args) -> VariableTracker:
        if name == "__len__":
            return self.length(tx)
        if name == "__iter__":
            return tx.make_iterator(self)
        return ConstantVariable(args[0].hash_key(tx) in self.items)

    def add(self, tx: Frame, value: VariableTracker) -> None:
        """obj.add(value)"""
        hashed = value.hash_key(tx)
        tx.mutate(self)
        self.items.setdefault(hashed, value)
        self.order.add(hashed)
        last = self.history[-1] if self.history else None
        if last is not None and last[0] == "update" and isinstance(last[1][-1], list):
            last[1][-1].append(value)
        else:
            self.history.append(("update", [[value]]))

    def _change(self, tx: Frame, name: str, args: Args) -> VariableTracker:
        if name == "add":
            self.add(tx, *args)
            return NONE
        tx.mutate(self)
        if name == "clear":
            self.items.clear()
            self.order.clear()
            self.history = [("clear", [])]
            return NONE
        if name == "pop":
            if not self.items:
                raise_error(tx, KeyError, "pop from an empty set")
            walk = self.iterate(tx)
            hashed = self.order.pop() if self._is_ordered() else next(walk).hash_key(tx)
            first = self.items[hashed]
        else:
            hashed = args[0].hash_key(tx)
            if name == "remove" and hashed not in self.items:
                raise_key_error(tx, args[0])
            first = NONE
        gone = self.items.pop(hashed, None)
        self.order.discard(hashed)
        if gone is not None:
            self.history.append(("discard", [gone]))
        return first

    def _algebra(self, tx: Frame, name: str, args: Args) -> VariableTracker:
        others, given, known = [], [], list(self.items.items())
        for arg in args:
            if isinstance(arg, SetVariable):
                others.append(arg.order)
                given.append(SetVariable.copy_of(tx, arg))
                known += arg.items.items()
                continue
            values = arg.unpack(tx)
            keys = [value.hash_key(tx) for value in values]
            others.append(keys)
            given.append(values)
            known += zip(keys, values, strict=True)
        if not _ALGEBRA[name]:
            order = getattr(self.order, name)(*others)
            return SetVariable(_members(order, known), cls=self.cls, order=order)
        tx.mutate(self)
        self.history.append((name, given))
        getattr(self.order, name)(*others)
        self.items = _members(self.order, known)
        return NONE

    def combined(self, tx: Frame, op: Callable, other: SetVariable) -> VariableTracker:
        """The operators | & - ^ of sets."""
        order = op(self.order, other.order)
        kept = _members(order, [*self.items.items(), *other.items.items()])
        return SetVariable(kept, cls=self.cls, order=order)

    def combine_into(self, tx: Frame, op: Callable, other: SetVariable) -> None:
        """The operators |= &= -= ^= of sets."""
        self._algebra(tx, SET_OPERATORS[op], [other])

    def reconstruct(self, cg: Codegen) -> str:
        keys = self.order if self._is_ordered() else self.items
        members = ", ".join(cg.expr(self.items[key]) for key in keys)
        return f"{cg.const(self.cls)}([{members}])"

    def write_back(self, cg: Codegen, target: str) -> None:
        """Changes the running program's set in the same steps, since its order depends on them."""
        for name, args in self.history:
            texts = [
                f"[{', '.join(cg.expr(value) for value in arg)}]"
                if isinstance(arg, list)
                else cg.expr(arg)
                for arg in args
            ]
            cg.effect(f"{cg.const(self.cls)}.{name}({', '.join((target, *texts))})")
