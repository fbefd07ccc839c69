"""Parametrised unittest methods: `@parametrize` marks a method with the values it shall run with,
`instantiate_parametrized_tests` replaces it by one method per combination.

A mark is a function `test -> iterator of (name suffix, keyword arguments, decorators)`, stored on
the method; marks stacked on one method are composed into one.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable

import torch

_MARK = "parametrize_fn"


def dtype_name(dtype) -> str:
    """float32 for torch.float32."""
    return str(dtype).removeprefix("torch.")


class subtest:
    """One set of values with a name or decorators of its own."""

    __slots__ = ("arg_values", "decorators", "name")

    def __init__(self, arg_values, name=None, decorators=None) -> None:
        self.arg_values, self.name = arg_values, name
        self.decorators = list(decorators or ())


def _value_name(argument, value, index):
    """How a value appears in a test's name."""
    if isinstance(value, torch.dtype):
        return dtype_name(value)
    if isinstance(value, torch.device):
        return str(value)
    if hasattr(value, "formatted_name"):
        return value.formatted_name
    if isinstance(value, (str, int, float)):
        return f"{argument}_{value}"
    return f"{argument}{index}"


def _clean(name) -> str:
    """A name without dots, which separate module, class and method."""
    return name.replace(".", "_")


class _TestParametrizer:
    """A decorator that marks a method; several compose, the outermost varying slowest."""

    def _parametrize_test(self, test, generic_cls=None, device_cls=None):
        raise NotImplementedError(f"{type(self).__name__} gives no parameters")

    def __call__(self, test) -> Callable[..., object]:
        before = getattr(test, _MARK, None)
        setattr(test, _MARK, compose_parametrize_fns(before, self._parametrize_test))
        return test


def compose_parametrize_fns(inner, outer) -> Callable[..., object]:
    """The marks of both: the names joined, the arguments merged."""
    if inner is None:
        return outer

    def composed(test, generic_cls=None, device_cls=None):
        for _, suffix, arguments, decorators in outer(test, generic_cls, device_cls):
            for _, more, others, extra in inner(test, generic_cls, device_cls):
                double = set(arguments) & set(others)
                if double:
                    raise RuntimeError(f"argument {sorted(double)} is parametrized twice")
                name = "_".join(part for part in (suffix, more) if part)
                yield test, name, {**arguments, **others}, _joined(decorators, extra)

    return composed


def _joined(first, second) -> Callable[..., object]:
    return lambda kwargs: [*first(kwargs), *second(kwargs)]


class parametrize(_TestParametrizer):
    """@parametrize("x", [1, 2]) or @parametrize("x,y", [(1, "a"), subtest((2, "b"), name="b")]).

    name_fn gives the suffix of the test's name for the values of one set."""

    def __init__(self, arg_str, arg_values, name_fn=None) -> None:
        self.names = [name.strip() for name in arg_str.split(",") if name.strip()]
        self.values, self.name_fn = arg_values, name_fn

    def _suffix(self, index, given, values):
        if isinstance(given, subtest) and given.name:
            return given.name
        if self.name_fn is not None:
            return self.name_fn(*values)
        parts = [_value_name(n, v, index) for n, v in zip(self.names, values, strict=True)]
        return "_".join(parts)

    def _parametrize_test(self, test, generic_cls=None, device_cls=None):
        if not self.names:
            yield test, "", {}, lambda kwargs: []
            return
        for index, given in enumerate(self.values):
            content = given.arg_values if isinstance(given, subtest) else given
            values = content if len(self.names) > 1 else [content]
            if len(self.names) > 1 and len(values) != len(self.names):
                raise RuntimeError(
                    f"Expected # values == # arg names, but got: {len(values)} values and "
                    f"{len(self.names)} names for test '{test.__name__}'"
                )
            decorators = given.decorators if isinstance(given, subtest) else []
            arguments = dict(zip(self.names, values, strict=True))
            suffix = _clean(self._suffix(index, given, values))
            yield test, suffix, arguments, lambda kwargs, d=decorators: d


class reparametrize(_TestParametrizer):
    """Changes what another mark gives: adapter(test, suffix, arguments) -> (suffix, arguments),
    several of them, or None to drop the case."""

    def __init__(self, parametrizer, adapt_parametrization) -> None:
        self.parametrizer, self.adapt = parametrizer, adapt_parametrization

    def _parametrize_test(self, test, generic_cls=None, device_cls=None):
        cases = self.parametrizer._parametrize_test(test, generic_cls, device_cls)
        for _, suffix, arguments, decorators in cases:
            adapted = self.adapt(test, suffix, arguments, decorators)
            if adapted is not None:
                yield adapted


class decorateIf(_TestParametrizer):
    """Applies a decorator to the cases whose arguments satisfy the predicate."""

    def __init__(self, decorator, predicate_fn) -> None:
        self.decorator, self.predicate = decorator, predicate_fn

    def _parametrize_test(self, test, generic_cls=None, device_cls=None):
        yield test, "", {}, lambda kwargs: [self.decorator] if self.predicate(kwargs) else []


def make_case(test, suffix, arguments, decorators) -> Callable[..., object]:
    """The method of one case: named, with its arguments bound."""

    @functools.wraps(test)
    def method(self, *args, **kwargs):
        return test(self, *args, **arguments, **kwargs)

    method.__dict__.pop(_MARK, None)
    method.__name__ = f"{test.__name__}_{suffix}" if suffix else test.__name__
    for decorator in decorators(arguments):
        name = method.__name__
        method = decorator(method)
        method.__name__ = name
    return method


def instantiate_parametrized_tests(generic_cls):
    """Replaces every marked method of the class by one method per case; gives the class back."""
    for name in list(dir(generic_cls)):
        test = getattr(generic_cls, name, None)
        mark = getattr(test, _MARK, None)
        if mark is None or not isinstance(test, types.FunctionType):
            continue
        if name in generic_cls.__dict__:
            delattr(generic_cls, name)
        else:
            setattr(generic_cls, name, None)
        for _, suffix, arguments, decorators in mark(test, generic_cls=generic_cls):
            method = make_case(test, suffix, arguments, decorators)
            if method.__name__ in generic_cls.__dict__:
                raise RuntimeError(f"Redefinition of test {method.__name__}")
            setattr(generic_cls, method.__name__, method)
    return generic_cls
