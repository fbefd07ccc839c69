"""Methods of builtin containers that make another object of the same class, or that store through
the class's own methods, as they behave for classes that derive from them."""

from __future__ import annotations

import collections
from collections.abc import Callable


def _take(target: collections.OrderedDict, other: object, /, **more: object) -> None:
    if hasattr(other, "keys"):
        for key in iter(other.keys()):  # what has keys() need not iterate over them
            target[key] = other[key]
    else:
        for key, value in other:
            target[key] = value
    for key, value in more.items():
        target[key] = value


def ordered_update(self: collections.OrderedDict, other: object = (), /, **more: object) -> None:
    """OrderedDict.update and __init__"""
    _take(self, other, **more)


def ordered_copy(self: collections.OrderedDict) -> collections.OrderedDict:
    """OrderedDict.copy"""
    made = type(self)()
    for key in collections.OrderedDict.keys(self):
        made[key] = self[key]
    return made


def ordered_or(self: collections.OrderedDict, other: object) -> object:
    """OrderedDict.__or__"""
    if not isinstance(other, dict):
        return NotImplemented
    made = type(self)(self)
    _take(made, other)
    return made


def ordered_ror(self: collections.OrderedDict, other: object) -> object:
    """OrderedDict.__ror__"""
    if not isinstance(other, dict):
        return NotImplemented
    made = type(self)(other)
    _take(made, self)
    return made


def ordered_ior(self: collections.OrderedDict, other: object) -> object:
    """OrderedDict.__ior__"""
    _take(self, other)
    return self


def table_of_keys(cls: type[dict], keys: object, value: object = None) -> dict:
    """dict.fromkeys"""
    made = cls()
    for key in keys:
        made[key] = value
    return made


def default_copy(self: collections.defaultdict) -> collections.defaultdict:
    """defaultdict.copy"""
    return type(self)(self.default_factory, self)


def default_or(self: collections.defaultdict, other: object) -> object:
    """defaultdict.__or__"""
    if not isinstance(other, dict):
        return NotImplemented
    made = type(self)(self.default_factory, self)
    made.update(other)
    return made


def default_ror(self: collections.defaultdict, other: object) -> object:
    """defaultdict.__ror__"""
    if not isinstance(other, dict):
        return NotImplemented
    made = type(self)(self.default_factory, other)
    made.update(self)
    return made


def deque_copy(self: collections.deque) -> collections.deque:
    """deque.copy"""
    if self.maxlen is None:
        return type(self)(self)
    return type(self)(self, self.maxlen)


def deque_add(self: collections.deque, other: object) -> collections.deque:
    """deque.__add__"""
    if not isinstance(other, collections.deque):
        kind = type(other).__name__
        raise TypeError(f'can only concatenate deque (not "{kind}") to deque')
    made = deque_copy(self)
    collections.deque.extend(made, other)
    return made


def deque_mul(self: collections.deque, count: int) -> collections.deque:
    """deque.__mul__"""
    made = deque_copy(self)
    items = list(made)
    collections.deque.clear(made)
    collections.deque.extend(made, items * count)
    return made


_BY_BASE: dict[type, dict[str, Callable]] = {
    collections.OrderedDict: {
        "copy": ordered_copy,
        "__or__": ordered_or,
        "__ror__": ordered_ror,
    },
    collections.defaultdict: {
        "copy": default_copy,
        "__copy__": default_copy,
        "__or__": default_or,
        "__ror__": default_ror,
    },
    collections.deque: {
        "copy": deque_copy,
        "__copy__": deque_copy,
        "__add__": deque_add,
        "__mul__": deque_mul,
        "__rmul__": deque_mul,
    },
}
# Those that matter only where a class has a __setitem__ of its own.
_STORING = {
    "__init__": ordered_update,
    "update": ordered_update,
    "__ior__": ordered_ior,
}


def for_class(cls: type, base: type, name: str) -> Callable | None:
    """The function that stands for a method of `base` when an object of `cls` is given."""
    if cls is base:
        return None
    found = _BY_BASE.get(base, {}).get(name)
    if found is None and base is collections.OrderedDict and name in _STORING:
        if cls.__setitem__ is not collections.OrderedDict.__setitem__:
            return _STORING[name]
    return found


def fill_ordered(target: collections.OrderedDict, entries: dict) -> None:
    """Puts entries into an emptied OrderedDict, whatever its class does on storing."""
    for key, value in entries.items():
        collections.OrderedDict.__setitem__(target, key, value)
