"""Functions of C code written in Python, for the trace to run. They behave as what they stand
for."""

from __future__ import annotations

import collections
import functools
import sys
import types
from collections.abc import Callable, Generator, Iterable, Iterator

import torch


def call_module_with_hooks(
    module: object, before: list, after: list, *args: object, **kwargs: object
) -> object:
    """nn.Module.__call__ where the module has forward hooks. `before` and `after` hold pairs of a
    hook and whether it takes the keyword arguments."""
    for hook, with_kwargs in before:
        if with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is not None:
                args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    result = module.forward(*args, **kwargs)
    for hook, with_kwargs in after:
        if with_kwargs:
            changed = hook(module, args, kwargs, result)
        else:
            changed = hook(module, args, result)
        if changed is not None:
            result = changed
    return result


def under_autocast(device_type, dtype, enabled, cache_enabled, function, *args, **kwargs):
    """What wrap_with_autocast does."""
    with torch.autocast(device_type, dtype, enabled, cache_enabled):
        return function(*args, **kwargs)


def under_grad_mode(enabled, function, *args, **kwargs):
    """What wrap_with_set_grad_enabled does."""
    with torch.set_grad_enabled(enabled):
        return function(*args, **kwargs)


def under_context(make: Callable[[], object], fn: Callable) -> Callable:
    """A function that runs under a context manager."""

    @functools.wraps(fn)
    def wrapper(*args: object, **kwargs: object) -> object:
        with make():
            return fn(*args, **kwargs)

    return wrapper


def itemgetter(item: object, *items: object) -> Callable[[object], object]:
    """operator.itemgetter"""
    if not items:
        return lambda obj: obj[item]
    return lambda obj: tuple([obj[i] for i in (item, *items)])


def attrgetter(attr: str, *attrs: str) -> Callable[[object], object]:
    """operator.attrgetter"""

    def follow(obj: object, path: str) -> object:
        for name in path.split("."):
            obj = getattr(obj, name)
        return obj

    if not attrs:
        return lambda obj: follow(obj, attr)
    return lambda obj: tuple([follow(obj, a) for a in (attr, *attrs)])


def methodcaller(name: str, *args: object, **kwargs: object) -> Callable[[object], object]:
    """operator.methodcaller"""
    return lambda obj: getattr(obj, name)(*args, **kwargs)


def count_elements(mapping: dict, iterable: Iterable) -> None:
    """What collections.Counter counts with."""
    for item in iterable:
        mapping[item] = mapping.get(item, 0) + 1


def finished_generator() -> Generator:
    """A generator that has nothing more to give."""
    made = (item for item in ())
    list(made)
    return made


def give_traceback(error: BaseException) -> None:
    """Gives an exception a traceback, as if its caller had raised it."""
    frame = sys._getframe(1)
    error.__traceback__ = types.TracebackType(None, frame, frame.f_lasti, frame.f_lineno)


def iterator_at(iterator: Iterator, index: int) -> Iterator:
    """A new iterator over a list or tuple as if it had given its first items."""
    iterator.__setstate__(index)
    return iterator


_EMPTY = [[], (), set()]
for _table in ({}, collections.OrderedDict()):
    _EMPTY += [_table, _table.keys(), _table.values(), _table.items()]
# By the class of an iterator: what makes one without any values.
_ENDED = {
    type(walk(owner)): functools.partial(walk, owner)
    for owner in _EMPTY
    for walk in (iter, reversed)
    if walk is iter or hasattr(owner, "__reversed__")
}
_ENDED[type(iter(int, 0))] = functools.partial(iter, int, 0)


def ended(kind: type) -> Iterator:
    """An iterator that has given all: what its owner gets later does not show."""
    made = _ENDED[kind]()
    next(made, None)
    return made


def as_subclass(tensor: torch.Tensor, cls: type) -> torch.Tensor:
    """A tensor as one of another class, whatever its own class makes of such a call."""
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(cls)


def coming(iterator: Iterator, index: int) -> object:
    """What an iterator over a tuple will give, without taking it."""
    _, (sequence,), *place = iterator.__reduce__()
    return sequence[index + (place[0] if place else 0)]


def advance(iterator: Iterator, count: int) -> None:
    """Takes values from an iterator."""
    for _ in range(count):
        next(iterator)


def advanced(iterator: Iterator, count: int) -> Iterator:
    """The iterator without its first values."""
    advance(iterator, count)
    return iterator


SUBSTITUTES: dict[object, Callable] = {
    collections._count_elements: count_elements,
}
