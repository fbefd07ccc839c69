"""Dictionaries. Entries stand in a Python dict under the hash keys of their trackers, so that
order, replacement and lookup are Python's own."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn

from torch._dynamo.exc import ObservedException, raise_error, raise_key_error, unimplemented
from torch._dynamo.polyfills import own_class
from torch._dynamo.variables.base import Args, Kwargs, LazyVariableTracker, VariableTracker, bodies
from torch._dynamo.variables.constant import NONE, ConstantVariable
from torch._dynamo.variables.lists import TupleVariable
from torch._dynamo.variables.sets import COMPARISONS, SetVariable, TableWalk

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame

Entries = dict[object, tuple[VariableTracker, VariableTracker]]


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
        items: Entries = {}
        for key, value in pairs:
            hashed = key.hash_key(tx)
            kept = items.setdefault(hashed, (key, value))
            items[hashed] = (kept[0], value)
        return ConstDictVariable(items, cls=cls)

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
        return TableWalk(tx, self.items, lambda hashed: self.items[hashed][0], self.ordered_name())

    def ordered_name(self) -> str | None:
        """The name of an OrderedDict, which says otherwise what changed while it was walked."""
        return "OrderedDict" if issubclass(self.cls, collections.OrderedDict) else None

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
        raise_key_error(tx, key)

    def setitem(self, tx: Frame, key: VariableTracker, value: VariableTracker) -> None:
        hashed = key.hash_key(tx)
        tx.mutate(self)
        before = self.items.get(hashed)
        self.items[hashed] = (before[0] if before is not None else key, value)

    def delete(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        """del obj[key]; the value it had."""
        hashed = key.hash_key(tx)
        if hashed not in self.items:
            raise_key_error(tx, key)
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
        if name in COMPARISONS and len(args) == 1:
            return tx.binary(COMPARISONS[name], self, args[0])
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
            raise_key_error(tx, key)
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
            ordered = issubclass(self.cls, collections.OrderedDict)
            name = "" if ordered else "popitem(): "
            raise_error(tx, KeyError, f"{name}dictionary is empty")
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
        if issubclass(self.cls, collections.OrderedDict):
            cg.effect(f"{cg.const(collections.OrderedDict)}.clear({target})")
            cg.effect(f"{cg.const(own_class.fill_ordered)}({target}, {new})")
        else:
            kind = cg.const(dict)
            cg.effect(f"{kind}.clear({target}); {kind}.update({target}, {new})")

    def hash_key(self, tx: Frame) -> object:
        raise_error(tx, TypeError, f"unhashable type: {self.cls.__name__!r}")


def keys_in_order(value: dict) -> list:
    """The keys as the dictionary itself has them, whatever a class of the program says."""
    ordered = isinstance(value, collections.OrderedDict)
    return list((collections.OrderedDict if ordered else dict).keys(value))


def _sequence(tx: Frame, item: VariableTracker, place: int) -> Args:
    try:
        return item.unpack(tx)
    except ObservedException as error:
        if not issubclass(error.value.python_type(), TypeError):
            raise
        text = f"cannot convert dictionary update sequence element #{place} to a sequence"
        raise_error(tx, TypeError, text)


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
        entry = _sequence(tx, item, len(pairs))
        if len(entry) != 2:
            raise_error(
                tx,
                ValueError,
                f"dictionary update sequence element #{len(pairs)} has length {len(entry)}; "
                "2 is required",
            )
        pairs.append((entry[0], entry[1]))
    return pairs


def _backwards(tx: Frame, items: Entries, entry: Callable) -> VariableTracker:
    from torch._dynamo.variables.iter import IteratorVariable

    walk = TableWalk(tx, reversed(items), entry)
    return IteratorVariable(walk, type(reversed({})), False)


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
    "__reversed__": lambda self, tx: _backwards(tx, self.items, lambda h: self.items[h][0]),
}


class AttributeDictVariable(ConstDictVariable):
    """The __dict__ of an object or function: what is stored in one is in the other."""

    __slots__ = ()

    def note(self, name: str, value: VariableTracker) -> None:
        """An attribute was stored."""
        key, _ = self.items.get(name) or (ConstantVariable(name), None)
        self.items[name] = (key, value)

    def name_of(self, key: VariableTracker) -> str:
        """A key as the name of an attribute."""
        if key.python_type() is not str or not key.is_python_constant():
            unimplemented("dictionary of an object", repr(key), "a key that is no text")
        return key.as_python_constant()


class PartDictVariable(ConstDictVariable):
    """A dictionary that is a part of another object, such as the keywords of a partial: a trace
    reads it, and breaks where the program changes it, since the object would change too."""

    __slots__ = ("name", "owner")

    def __init__(self, tx: Frame, owner: VariableTracker, name: str, parts: Kwargs) -> None:
        pairs = [(ConstantVariable(k), v) for k, v in parts.items()]
        super().__init__(ConstDictVariable.of(tx, pairs).items)
        self.owner, self.name = owner, name

    def _refuse(self) -> NoReturn:
        unimplemented(
            "dictionary of an object", f"{self.owner!r}.{self.name}", "a part of it is changed"
        )

    def setitem(self, tx: Frame, key: VariableTracker, value: VariableTracker) -> None:
        self._refuse()

    def delete(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        self._refuse()

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name in _CHANGING:
            self._refuse()
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.expr(self.owner)}.{self.name}"


_CHANGING = frozenset("__delitem__ __ior__ __setitem__ clear pop popitem setdefault update".split())


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
        return TableWalk(tx, self.base.items, self._entry, self.base.ordered_name())

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
            return _backwards(tx, self.base.items, self._entry)
        if name in ("isdisjoint",) or name in COMPARISONS:
            return self.as_set(tx).call_method(tx, name, args, kwargs)
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg: Codegen) -> str:
        return cg.builtin_call(self.base, self.kind)
