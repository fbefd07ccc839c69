"""Symbolic numbers: what a size is while a program is traced with shapes that are not fixed.

The classes wrap a node that knows how to build expressions; the functions below work on plain
numbers and symbolic ones alike, so that library code need not ask which it has."""

from __future__ import annotations

import functools
import math

from torch.overrides import handle_torch_function, has_torch_function

_BINARY = {
    "add": "__add__ __radd__",
    "sub": "__sub__ __rsub__",
    "mul": "__mul__ __rmul__",
    "floordiv": "__floordiv__ __rfloordiv__",
    "truediv": "__truediv__ __rtruediv__",
    "mod": "__mod__ __rmod__",
    "pow": "__pow__ __rpow__",
    "and": "__and__ __rand__",
    "or": "__or__ __ror__",
}
_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
_UNARY = ("neg", "abs", "ceil", "floor", "round", "trunc")


class _SymNumber:
    """A number known by its node. `node` offers one method per operation: add, sub, lt, guard_int,
    ...
    """

    __slots__ = ("node",)

    def __init__(self, node) -> None:
        self.node = node

    def __repr__(self) -> str:
        return str(self.node)

    def __hash__(self) -> int:
        return hash(self.node)


def _install_operators(cls) -> None:
    def binary(name, reflected):
        def method(self, other):
            other_node = getattr(other, "node", None)
            if other_node is None:
                if not isinstance(other, (bool, int, float)):
                    return NotImplemented
                other_node = self.node.wrap(other)
            left, right = (other_node, self.node) if reflected else (self.node, other_node)
            return getattr(left, name)(right)

        return method

    for name, methods in _BINARY.items():
        for method, reflected in zip(methods.split(), (False, True), strict=True):
            setattr(cls, method, binary(name, reflected))
    for name in _COMPARE:
        setattr(cls, f"__{name}__", binary(name, False))
    for name in _UNARY:
        setattr(cls, f"__{name}__", lambda self, name=name: getattr(self.node, name)())


class SymInt(_SymNumber):
    """A symbolic integer."""

    __slots__ = ()

    def __int__(self):
        return self.node.guard_int()

    __index__ = __int__

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __float__(self) -> float:
        return float(self.node.guard_int())

    def __sym_int__(self):
        return self

    def __sym_float__(self):
        return self.node.to_float()


class SymFloat(_SymNumber):
    """A symbolic floating point number."""

    __slots__ = ()

    def __float__(self):
        return self.node.guard_float()

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __int__(self) -> int:
        return int(self.node.guard_float())

    def __sym_float__(self):
        return self

    def is_integer(self):
        """Whether the value is a whole number."""
        return self.node.is_integer()


class SymBool(_SymNumber):
    """A symbolic truth value. Asking for its truth value decides it, by a guard."""

    __slots__ = ()

    def __bool__(self):
        return self.node.guard_bool()

    def __int__(self) -> int:
        return int(self.node.guard_bool())

    def __sym_not__(self):
        return self.node.sym_not()


for _cls in (SymInt, SymFloat, SymBool):
    _hash = _cls.__hash__
    _install_operators(_cls)
    _cls.__hash__ = _hash
del _cls, _hash


def _overridable(function):
    """`function` as a member of torch that __torch_function__ of an argument may take over."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs) -> float:
        values = (*args, *kwargs.values())
        asked = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
        if has_torch_function(asked):
            return handle_torch_function(wrapped, asked, *args, **kwargs)
        return function(*args, **kwargs)

    wrapped.__module__ = "torch"
    return wrapped


@_overridable
def sym_not(a):
    """`not a`, also for symbolic truth values."""
    return a.__sym_not__() if hasattr(a, "__sym_not__") else not a


@_overridable
def sym_float(a):
    """float(a), also for symbolic numbers."""
    if isinstance(a, (SymFloat, float)):
        return a
    return a.__sym_float__() if hasattr(a, "__sym_float__") else float(a)


@_overridable
def sym_int(a):
    """int(a), also for symbolic numbers."""
    if isinstance(a, (SymInt, int)):
        return a
    if isinstance(a, SymFloat):
        return math.trunc(a)
    return int(a)


def _float_if_mixed(a, b, value) -> int:
    mixed = isinstance(a, (float, SymFloat)) or isinstance(b, (float, SymFloat))
    return sym_float(value) if mixed else value


@_overridable
def sym_max(a, b):
    """max(a, b), also for symbolic numbers; a float if either is one."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, (SymInt, SymFloat)):
            return x.node.sym_max(getattr(y, "node", None) or x.node.wrap(y))
    return _float_if_mixed(a, b, max(a, b))


@_overridable
def sym_min(a, b):
    """min(a, b), also for symbolic numbers; a float if either is one."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, (SymInt, SymFloat)):
            return x.node.sym_min(getattr(y, "node", None) or x.node.wrap(y))
    return _float_if_mixed(a, b, min(a, b))


@_overridable
def sym_sum(args) -> int:
    """The sum of a sequence, also of symbolic numbers."""
    return sum(args)


@_overridable
def sym_ite(b, t, f):
    """`t if b else f`, also for a symbolic b."""
    if not isinstance(b, (SymBool, bool)) or type(t) is not type(f):
        raise TypeError("sym_ite expects a bool and two values of the same type")
    return b.node.sym_ite(t, f) if isinstance(b, SymBool) else (t if b else f)


def _sym_math(name):
    """The function `name` of math, also for a symbolic number."""
    plain = getattr(math, name)

    def function(a) -> float:
        return getattr(a.node, name)() if isinstance(a, (SymInt, SymFloat)) else plain(a)

    function.__name__ = function.__qualname__ = f"_sym_{name}"
    function.__doc__ = f"math.{name}, also of a symbolic number."
    return _overridable(function)


_sym_sqrt = sym_sqrt = _sym_math("sqrt")
_sym_cos = _sym_math("cos")
_sym_cosh = _sym_math("cosh")
_sym_sin = _sym_math("sin")
_sym_sinh = _sym_math("sinh")
_sym_tan = _sym_math("tan")
_sym_tanh = _sym_math("tanh")
_sym_asin = _sym_math("asin")
_sym_acos = _sym_math("acos")
_sym_atan = _sym_math("atan")
