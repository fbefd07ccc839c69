"""Dictionaries and sets. Entries stand in a Python dict under the hash keys of their trackers, so
that order, replacement and lookup are Python's own."""

from __future__ import annotations

import collections
import operator
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch._dynamo.exc import raise_error, unimplemented
from torch._dynamo.variables.base import Args, Kwargs, LazyVariableTracker, VariableTracker, bodies
from torch._dynamo.variables.constant import NONE, ConstantVariable
from torch._dynamo.variables.lists import TupleVariable

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame

Entries = dict[object, tuple[VariableTracker, VariableTracker]]
_COMPARISONS = {
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


class ConstDictVariable(VariableTracker):
    """A dict, OrderedDict or mapping proxy."""

    __slots__ = ("cls", "items")

    def __init__(self, items: Entries, source: object = None, cls: type = dict) -> None:
        self.source = source
        self.changed = False
        self.born = bodies[0]
        self.items = items
        self.cls = cls

    @staticmethod
    def of(
        tx: Frame, pairs: list[tuple[VariableTracker, VariableTracker]], cls: type = dict
    ) -> ConstDictVariable:
        """A new dictionary of these pairs."""
        return ConstDictVariable({k.hash_key(tx): (k, v) for k, v in pairs}, cls=cls)

    def describe(self) -> str:
        return f"{len(self.items)} entries"

    def python_type(self) -> type:
        return self.cls

    def is_python_constant(self) -> bool:
        return all(
            k.realize().is_python_constant() and v.realize().is_python_constant()
            for k, v in self.items.values()
        )

    def as_python_constant(self) -> object:
        plain = {
            k.as_python_constant(): v.realize().as_python_constant() for k, v in self.items.values()
        }
        return plain if self.cls is dict else self.cls(plain)

    def children(self) -> Iterator[VariableTracker]:
        for key, value in self.items.values():
            yield key
            yield value

    def as_proxy(self) -> object:
        return {k.as_proxy(): v.realize().as_proxy() for k, v in self.items.values()}

    def truth(self, tx: Frame) -> bool:
        return bool(self.items)

    def length(self, tx: Frame) -> VariableTracker:
        """len(obj)"""
        return ConstantVariable(len(self.items))

    def lookup(self, tx: Frame, key: VariableTracker) -> VariableTracker | None:
        """The value of a key, or None."""
        return self.lookup_hash(key.hash_key(tx))

    def lookup_hash(self, hashed: object) -> VariableTracker | None:
        """The value under a hash key, or None."""
        found = self.items.get(hashed)
        if found is None:
            return None
        key, value = found
        if type(value) is LazyVariableTracker:
            value = value.realize()
            self.items[hashed] = (key, value)
        return value

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        count = len(self.items)
        for hashed in list(self.items):
            if len(self.items) != count:
                raise_error(tx, RuntimeError, "dictionary changed size during iteration")
            yield self.items[hashed][0]

    def unpack(self, tx: Frame) -> Args:
        return [key for key, _ in self.items.values()]

    def pairs(self, tx: Frame) -> list[tuple[VariableTracker, VariableTracker]]:
        """Keys with their values."""
        return [(self.items[h][0], self.lookup_hash(h)) for h in list(self.items)]

    def getitem(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        found = self.lookup(tx, key)
        return found if found is not None else self.missing(tx, key)

    def missing(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        """What obj[key] is without such a key."""
        raise_error(tx, KeyError, tx.constant_or_text(key))

    def setitem(self, tx: Frame, key: VariableTracker, value: VariableTracker) -> None:
        hashed = key.hash_key(tx)
        tx.mutate(self)
        before = self.items.get(hashed)
        self.items[hashed] = (before[0] if before is not None else key, value)

    def delete(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        """del obj[key]; the value it had."""
        hashed = key.hash_key(tx)
        if hashed not in self.items:
            raise_error(tx, KeyError, tx.constant_or_text(key))
        tx.mutate(self)
        return self.items.pop(hashed)[1].realize()

    def update(self, tx: Frame, args: Args, kwargs: Kwargs) -> None:
        """obj.update(...)"""
        pairs = pairs_of(tx, args[0]) if args else []
        pairs += [(ConstantVariable(k), v) for k, v in kwargs.items()]
        for key, value in pairs:
            self.setitem(tx, key, value)

    def copied(self) -> ConstDictVariable:
        """A new dictionary with the same entries."""
        return ConstDictVariable(dict(self.items), cls=self.cls)

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        return tx.attribute_of_builtin(self, name)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        rule = _DICT_METHODS.get(name)
        if rule is not None and (self.cls is not types.MappingProxyType or name in _READING):
            return rule(self, tx, *args, **kwargs)
        if name in _COMPARISONS and len(args) == 1:
            return tx.binary(_COMPARISONS[name], self, args[0])
        if name in ("update", "__init__"):
            self.update(tx, args, kwargs)
            return NONE
        if name == "move_to_end" and issubclass(self.cls, collections.OrderedDict):
            return self._move_to_end(tx, *args, **kwargs)
        if name == "popitem":
            return self._popitem(tx, *args, **kwargs)
        if not hasattr(self.cls, name):
            raise_error(
                tx, AttributeError, f"{self.cls.__name__!r} object has no attribute {name!r}"
            )
        unimplemented(
            "method of a dictionary", f"{self!r}.{name}", f"Dynamo does not know dict.{name}"
        )

    def _move_to_end(
        self, tx: Frame, key: VariableTracker, last: VariableTracker | None = None
    ) -> VariableTracker:
        hashed = key.hash_key(tx)
        if hashed not in self.items:
            raise_error(tx, KeyError, tx.constant_or_text(key))
        tx.mutate(self)
        entry = self.items.pop(hashed)
        if last is None or last.truth(tx):
            self.items[hashed] = entry
        else:
            rest = dict(self.items)
            self.items.clear()
            self.items.update({hashed: entry, **rest})
        return NONE

    def _popitem(self, tx: Frame, last: VariableTracker | None = None) -> VariableTracker:
        if not self.items:
            raise_error(tx, KeyError, "dictionary is empty")
        tx.mutate(self)
        hashed = (
            next(reversed(self.items)) if last is None or last.truth(tx) else next(iter(self.items))
        )
        key, value = self.items.pop(hashed)
        return TupleVariable([key, value.realize()])

    def reconstruct(self, cg: Codegen) -> str:
        inner = ", ".join(f"{cg.expr(k)}: {cg.expr(v)}" for k, v in self.items.values())
        if self.cls is dict:
            return f"{{{inner}}}"
        return f"{cg.const(self.cls)}({{{inner}}})"

    def write_back(self, cg: Codegen, target: str) -> None:
        """Gives the running program's dictionary these entries."""
        new = ConstDictVariable.reconstruct(ConstDictVariable(self.items, cls=dict), cg)
        kind = cg.const(
            collections.OrderedDict if issubclass(self.cls, collections.OrderedDict) else dict
        )
        cg.effect(f"{kind}.clear({target}); {kind}.update({target}, {new})")

    def hash_key(self, tx: Frame) -> object:
        raise_error(tx, TypeError, f"unhashable type: {self.cls.__name__!r}")


def pairs_of(tx: Frame, vt: VariableTracker) -> list[tuple[VariableTracker, VariableTracker]]:
    """The pairs that dict(vt) would hold."""
    inner = getattr(vt, "contents", None)
    if isinstance(inner, ConstDictVariable) and not tx.overrides(vt, "keys", "__iter__"):
        return inner.pairs(tx)
    if isinstance(vt, ConstDictVariable):
        return vt.pairs(tx)
    if tx.has_attribute(vt, "keys"):
        keys = vt.call_method(tx, "keys", [], {}).unpack(tx)
        return [(key, tx.getitem(vt, key)) for key in keys]
    pairs = []
    for item in vt.unpack(tx):
        entry = item.unpack(tx)
        if len(entry) != 2:
            raise_error(
                tx,
                ValueError,
                f"dictionary update sequence element #{len(pairs)} has length {len(entry)}; "
                "2 is required",
            )
        pairs.append((entry[0], entry[1]))
    return pairs


def _get(
    self: ConstDictVariable,
    tx: Frame,
    key: VariableTracker,
    default: VariableTracker = NONE,
) -> VariableTracker:
    found = self.lookup(tx, key)
    return default if found is None else found


def _pop(
    self: ConstDictVariable,
    tx: Frame,
    key: VariableTracker,
    default: VariableTracker | None = None,
) -> VariableTracker:
    if default is not None and self.lookup(tx, key) is None:
        return default
    return self.delete(tx, key)


def _setdefault(
    self: ConstDictVariable,
    tx: Frame,
    key: VariableTracker,
    default: VariableTracker = NONE,
) -> VariableTracker:
    found = self.lookup(tx, key)
    if found is None:
        self.setitem(tx, key, default)
        return default
    return found


def _clear(self: ConstDictVariable, tx: Frame) -> VariableTracker:
    tx.mutate(self)
    self.items.clear()
    return NONE


def _setitem(
    self: ConstDictVariable, tx: Frame, key: VariableTracker, value: VariableTracker
) -> VariableTracker:
    self.setitem(tx, key, value)
    return NONE


def _delitem(self: ConstDictVariable, tx: Frame, key: VariableTracker) -> VariableTracker:
    self.delete(tx, key)
    return NONE


_READING = frozenset(
    "get keys values items copy __len__ __contains__ __getitem__ __iter__ __reversed__".split()
)
_DICT_METHODS = {
    "get": _get,
    "pop": _pop,
    "setdefault": _setdefault,
    "clear": _clear,
    "__setitem__": _setitem,
    "__delitem__": _delitem,
    "__getitem__": lambda self, tx, key: self.getitem(tx, key),
    "__contains__": lambda self, tx, key: ConstantVariable(self.lookup(tx, key) is not None),
    "__len__": lambda self, tx: self.length(tx),
    "__iter__": lambda self, tx: tx.make_iterator(self),
    "keys": lambda self, tx: DictViewVariable(self, "keys"),
    "values": lambda self, tx: DictViewVariable(self, "values"),
    "items": lambda self, tx: DictViewVariable(self, "items"),
    "copy": lambda self, tx: self.copied(),
    "__reversed__": lambda self, tx: tx.make_iterator(TupleVariable(self.unpack(tx)[::-1])),
}


class DefaultDictVariable(ConstDictVariable):
    """A defaultdict."""

    __slots__ = ("default_factory",)

    def __init__(
        self, items: Entries, default_factory: VariableTracker, source: object = None
    ) -> None:
        super().__init__(items, source, collections.defaultdict)
        self.default_factory = default_factory

    def is_python_constant(self) -> bool:
        return False

    def missing(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        if self.default_factory.is_same(NONE):
            return super().missing(tx, key)
        value = self.default_factory.call_function(tx, [], {})
        self.setitem(tx, key, value)
        return value

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        if name == "default_factory":
            return self.default_factory
        return super().getattr(tx, name)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__missing__" and len(args) == 1:
            return self.missing(tx, args[0])
        return super().call_method(tx, name, args, kwargs)

    def copied(self) -> ConstDictVariable:
        return DefaultDictVariable(dict(self.items), self.default_factory)

    def reconstruct(self, cg: Codegen) -> str:
        inner = ", ".join(f"{cg.expr(k)}: {cg.expr(v)}" for k, v in self.items.values())
        factory = cg.expr(self.default_factory)
        return f"{cg.const(collections.defaultdict)}({factory}, {{{inner}}})"


class DictViewVariable(VariableTracker):
    """d.keys(), d.values() or d.items()."""

    __slots__ = ("base", "kind")

    def __init__(self, base: ConstDictVariable, kind: str) -> None:
        super().__init__(None)
        self.base = base
        self.kind = kind

    def python_type(self) -> type:
        plain: dict = (
            collections.OrderedDict() if issubclass(self.base.cls, collections.OrderedDict) else {}
        )
        return type(getattr(plain, self.kind)())

    def children(self) -> Iterator[VariableTracker]:
        yield self.base

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        count = len(self.base.items)
        for hashed in list(self.base.items):
            if len(self.base.items) != count:
                raise_error(tx, RuntimeError, "dictionary changed size during iteration")
            yield self._entry(hashed)

    def _entry(self, hashed: object) -> VariableTracker:
        if self.kind == "keys":
            return self.base.items[hashed][0]
        value = self.base.lookup_hash(hashed)
        if self.kind == "values":
            return value
        return TupleVariable([self.base.items[hashed][0], value])

    def truth(self, tx: Frame) -> bool:
        return bool(self.base.items)

    def length(self, tx: Frame) -> VariableTracker:
        """len(obj)"""
        return ConstantVariable(len(self.base.items))

    def as_set(self, tx: Frame) -> SetVariable:
        """The view as a set, for the operators of sets."""
        return SetVariable.of(tx, self.unpack(tx))

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        if name == "mapping":
            return ConstDictVariable(self.base.items, cls=types.MappingProxyType)
        return tx.attribute_of_builtin(self, name)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__len__":
            return self.length(tx)
        if name == "__iter__":
            return tx.make_iterator(self)
        if name == "__contains__" and len(args) == 1:
            if self.kind == "keys":
                return ConstantVariable(self.base.lookup(tx, args[0]) is not None)
            found = any(tx.same_or_equal(item, args[0]) for item in self.unpack(tx))
            return ConstantVariable(found)
        if name == "__reversed__":
            return tx.make_iterator(TupleVariable(self.unpack(tx)[::-1]))
        if name in ("isdisjoint",) or name in _COMPARISONS:
            return self.as_set(tx).call_method(tx, name, args, kwargs)
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.expr(self.base)}.{self.kind}()"


class SetVariable(VariableTracker):
    """A set or frozenset."""

    __slots__ = ("cls", "items")

    def __init__(
        self, items: dict[object, VariableTracker], source: object = None, cls: type = set
    ) -> None:
        super().__init__(source)
        self.items = items
        self.cls = cls

    @staticmethod
    def of(tx: Frame, values: Args, cls: type = set) -> SetVariable:
        """A new set of these values."""
        items: dict[object, VariableTracker] = {}
        for value in values:
            items.setdefault(value.hash_key(tx), value)
        return SetVariable(items, cls=cls)

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
        # The order of a set of constants is Python's; that of objects depends on addresses.
        if self.is_python_constant():
            order = dict.fromkeys(self.cls(self.items))
            return iter([self.items[key] for key in order])
        if len(self.items) < 2:
            return iter(list(self.items.values()))
        return iter(list(self.items.values()))

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
        if name in _COMPARISONS and len(args) == 1:
            return tx.binary(_COMPARISONS[name], self, args[0])
        if name in ("add", "discard", "remove", "pop", "clear"):
            return self._change(tx, name, args)
        if name in _SET_ALGEBRA:
            return self._algebra(tx, name, args)
        if name in ("issubset", "issuperset", "isdisjoint"):
            other = {v.hash_key(tx) for v in args[0].unpack(tx)}
            return ConstantVariable(getattr(set(self.items), name)(other))
        if name == "copy":
            return SetVariable(dict(self.items), cls=self.cls)
        if name == "__init__":
            if self.cls is set:
                tx.mutate(self)
                self.items = SetVariable.of(tx, args[0].unpack(tx)).items if args else {}
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

    def _change(self, tx: Frame, name: str, args: Args) -> VariableTracker:
        tx.mutate(self)
        if name == "add":
            self.items.setdefault(args[0].hash_key(tx), args[0])
        elif name == "clear":
            self.items.clear()
        elif name == "pop":
            if not self.items:
                raise_error(tx, KeyError, "pop from an empty set")
            first = next(self.iterate(tx))
            del self.items[first.hash_key(tx)]
            return first
        else:
            hashed = args[0].hash_key(tx)
            if name == "remove" and hashed not in self.items:
                raise_error(tx, KeyError, tx.constant_or_text(args[0]))
            self.items.pop(hashed, None)
        return NONE

    def _algebra(self, tx: Frame, name: str, args: Args) -> VariableTracker:
        verb = _SET_ALGEBRA[name]
        result = dict(self.items)
        for arg in args:
            other = {v.hash_key(tx): v for v in arg.unpack(tx)}
            kept = verb(set(result), set(other))
            result = {k: v for k, v in {**other, **result}.items() if k in kept}
        if name.endswith("update") or name == "update":
            tx.mutate(self)
            self.items = result
            return NONE
        return SetVariable(result, cls=self.cls)

    def combined(self, tx: Frame, op: object, other: SetVariable) -> VariableTracker:
        """The operators | & - ^ of sets."""
        kept = op(set(self.items), set(other.items))
        both = {**other.items, **self.items}
        return SetVariable({k: v for k, v in both.items() if k in kept}, cls=self.cls)

    def reconstruct(self, cg: Codegen) -> str:
        inner = ", ".join(cg.expr(item) for item in self.items.values())
        return f"{cg.const(self.cls)}([{inner}])"

    def write_back(self, cg: Codegen, target: str) -> None:
        """Gives the running program's set these members."""
        inner = ", ".join(cg.expr(item) for item in self.items.values())
        cg.effect(f"{target}.clear(); {target}.update([{inner}])")


_SET_ALGEBRA = {
    "union": operator.or_,
    "update": operator.or_,
    "intersection": operator.and_,
    "intersection_update": operator.and_,
    "difference": operator.sub,
    "difference_update": operator.sub,
    "symmetric_difference": operator.xor,
    "symmetric_difference_update": operator.xor,
}
