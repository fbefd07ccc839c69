"""Functions of numbers that may be symbolic. A symbolic number (torch.SymInt, SymFloat, SymBool) is
what a size is while a program is traced with shapes that are not fixed; the functions below work on
plain numbers and symbolic ones alike, so that library code need not ask which it has."""

from __future__ import annotations

import functools
import math

from torch._C import SymBool, SymFloat, SymInt
from torch.overrides import handle_torch_function, has_torch_function


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


def sym_constrain_range(size, *, min: int | None = None, max: int | None = None) -> None:
    """Says that a number lies between two bounds; a plain number that does not is an error."""
    from torch import ops

    ops.aten.sym_constrain_range(size, min=min, max=max)


def sym_constrain_range_for_size(size, *, min: int | None = None, max: int | None = None) -> None:
    """sym_constrain_range for a number that is used as a size."""
    from torch import ops

    ops.aten.sym_constrain_range_for_size(size, min=min, max=max)


@_overridable
def sym_not(a):
    """`not a`, also for symbolic truth values."""
    if hasattr(a, "__sym_not__"):
        return a.__sym_not__()
    return a == 0 if isinstance(a, SymInt) else not a


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
            return x.__sym_max__(y)
    return _float_if_mixed(a, b, max(a, b))


@_overridable
def sym_min(a, b):
    """min(a, b), also for symbolic numbers; a float if either is one."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, (SymInt, SymFloat)):
            return x.__sym_min__(y)
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
    return b.__sym_ite__(t, f) if isinstance(b, SymBool) else (t if b else f)


def _sym_math(name):
    """The function `name` of math, also for a symbolic number."""
    plain = getattr(math, name)

    def function(a):
        return a._sym_function(name) if isinstance(a, (SymInt, SymFloat)) else plain(a)

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
_sym_log2 = _sym_math("log2")


def _sym_is_integer(a):
    """Whether a number is whole, also of a symbolic one."""
    return a.is_integer()


class _ConstantNode:
    """The node of a symbolic number that is one value: operations on it are operations on the
    value."""

    __slots__ = ("constant",)

    def __init__(self, constant) -> None:
        self.constant = constant

    def maybe_as_bool(self):
        """The value."""
        return self.constant

    def guard_bool(self, file="", line=0):
        """The value."""
        return self.constant

    def is_symbolic(self) -> bool:
        """No: it has no symbols."""
        return False

    def __str__(self) -> str:
        return str(self.constant)

    def __eq__(self, other):
        return isinstance(other, _ConstantNode) and self.constant == other.constant

    def __hash__(self) -> int:
        return hash(self.constant)
