"""Checks of what pipes are given and give against their annotations, at run time."""

import collections.abc
import functools
import inspect
import types
import typing

from torch.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["argument_validation", "runtime_validation", "runtime_validation_disabled"]

_enabled = True


def _fits(value, hint):
    """Whether a value is of an annotated type; annotations this does not know fit everything."""
    if hint is typing.Any or isinstance(hint, typing.TypeVar):
        return True
    if hint is None:
        return value is None
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in args)
    if origin is tuple and isinstance(value, tuple):
        if len(args) == 2 and args[1] is Ellipsis:
            return all(_fits(item, args[0]) for item in value)
        return len(value) == len(args) and all(map(_fits, value, args))
    if isinstance(origin, type):
        if not isinstance(value, origin):
            return False
        if isinstance(value, collections.abc.Mapping) and len(args) == 2:
            return all(_fits(k, args[0]) and _fits(v, args[1]) for k, v in value.items())
        if isinstance(value, list | set | frozenset) and len(args) == 1:
            return all(_fits(item, args[0]) for item in value)
        return True
    return isinstance(value, hint) if isinstance(hint, type) else True


def _item_type(cls):
    """T of class Pipe(IterDataPipe[T])."""
    for base in cls.__mro__:
        for parent in base.__dict__.get("__orig_bases__", ()):
            origin = typing.get_origin(parent)
            if isinstance(origin, type) and issubclass(origin, IterDataPipe | MapDataPipe):
                return typing.get_args(parent)[0]
    return typing.Any


def argument_validation(f):
    """A function whose arguments that are annotated as data pipes must be data pipes."""
    signature = inspect.signature(f)
    hints = typing.get_type_hints(f)

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            hint = hints.get(name)
            kind = typing.get_origin(hint) or hint
            pipes = isinstance(kind, type) and issubclass(kind, IterDataPipe | MapDataPipe)
            if pipes and not isinstance(value, kind):
                raise TypeError(
                    f"Expected argument '{name}' as a {kind.__name__}, but found {type(value)}"
                )
        return f(*args, **kwargs)

    return wrapper


class runtime_validation_disabled:
    """Within it runtime_validation checks nothing."""

    def __init__(self) -> None:
        global _enabled
        self.prev = _enabled
        _enabled = False

    def __enter__(self) -> None:
        return None

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        global _enabled
        _enabled = self.prev


def runtime_validation(f):
    """An __iter__ whose items must be of the type the class was declared with."""
    if f.__name__ != "__iter__":
        raise TypeError(
            f"Can not decorate function {f.__name__} with 'runtime_validation', only __iter__"
        )

    @functools.wraps(f)
    def wrapper(self):
        hint = _item_type(type(self))
        for item in f(self):
            if _enabled and not _fits(item, hint):
                raise RuntimeError(
                    f"Expected an instance as subtype of {hint}, but found {item}({type(item)})"
                )
            yield item

    return wrapper
