"""Ranges of values of expressions, and what operations make of them. A range holds integers, floats
or truth values; both ends are of one kind. Where an operation keeps or reverses order, the ends of
the result come from the ends of the operands; elsewhere the result is as wide as it may be."""

import functools
import itertools
import math
from collections.abc import Callable

import sympy
from sympy import S
from sympy.logic.boolalg import BooleanAtom

import torch
from torch.utils._sympy import functions as fn
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.reference import ReferenceAnalysis

Bound = bool | int | float | sympy.Basic


class ValueRangeError(RuntimeError):
    """A range without values."""


def _as_sympy(number: "Bound") -> sympy.Basic:
    """A Python number as a sympy one; an expression without symbols stays."""
    if not isinstance(number, (bool, int, float)):
        if not getattr(number, "free_symbols", True):
            return number
        raise AssertionError(f"{number} of type {type(number).__name__} is no bound of a range")
    if isinstance(number, float) and math.isinf(number):
        return S.Infinity if number > 0 else S.NegativeInfinity
    return sympy.sympify(number)


def _ordered(first: sympy.Basic, second: sympy.Basic) -> bool:
    """Whether `first` is not above `second`; false is below true."""
    if isinstance(first, BooleanAtom):
        return not first or bool(second)
    return bool(first <= second)


def _lowest(values: list) -> sympy.Basic:
    return functools.reduce(lambda x, y: x if _ordered(x, y) else y, values)


def _highest(values: list) -> sympy.Basic:
    return functools.reduce(lambda x, y: y if _ordered(x, y) else x, values)


def _is_integer_end(e: "Bound") -> bool:
    return e.is_Integer or e in (int_oo, -int_oo)


class ValueRanges:
    """The values from `lower` to `upper`, both included."""

    __slots__ = ("is_bool", "is_float", "is_int", "lower", "upper")

    def __init__(self, lower: "Bound", upper: "Bound") -> None:
        lower, upper = _as_sympy(lower), _as_sympy(upper)
        self.is_bool = isinstance(lower, BooleanAtom)
        if self.is_bool != isinstance(upper, BooleanAtom):
            raise AssertionError(f"the ends {lower} and {upper} are of different kinds")
        if not _ordered(lower, upper):
            raise ValueRangeError(f"Invalid ranges [{lower}:{upper}]")
        self.is_int = not self.is_bool and _is_integer_end(lower) and _is_integer_end(upper)
        self.is_float = not self.is_bool and not self.is_int
        self.lower, self.upper = lower, upper

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {self.upper}]"

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, ValueRanges)
        return same and (self.lower, self.upper) == (other.lower, other.upper)

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    # ---- ranges of one kind
    @staticmethod
    def unknown() -> "ValueRanges":
        """All floats."""
        return ValueRanges(-sympy.oo, sympy.oo)

    @staticmethod
    def unknown_int() -> "ValueRanges":
        """All integers."""
        return ValueRanges(-int_oo, int_oo)

    @staticmethod
    def unknown_bool() -> "ValueRanges":
        """Both truth values."""
        return ValueRanges(S.false, S.true)

    @staticmethod
    def wrap(arg: "Bound | ValueRanges") -> "ValueRanges":
        """The range of one value; a range itself."""
        return arg if isinstance(arg, ValueRanges) else ValueRanges(arg, arg)

    # ---- sets
    def is_everything(self) -> bool:
        """Whether it has all numbers of its kind."""
        return self in (self.unknown(), self.unknown_int())

    def __contains__(self, x: "Bound | ValueRanges") -> bool:
        return ValueRanges.wrap(x).issubset(self)

    def issubset(self, other: "ValueRanges") -> bool:
        """Whether every value of this range is in the other one."""
        whole = other.is_everything() and not self.is_bool
        return whole or (self | other) == other

    def __and__(self, other: "ValueRanges") -> "ValueRanges":
        for kept, dropped in ((self, other), (other, self)):
            if dropped.is_everything():
                return kept
        lows, highs = [self.lower, other.lower], [self.upper, other.upper]
        return ValueRanges(_highest(lows), _lowest(highs))

    def __or__(self, other: "ValueRanges") -> "ValueRanges":
        ends = [self.lower, other.lower, self.upper, other.upper]
        return ValueRanges(_lowest(ends), _highest(ends))

    def is_singleton(self) -> bool:
        """Whether it is one value."""
        return self.lower == self.upper


def _image(f: Callable, *ranges: ValueRanges) -> ValueRanges:
    """The range of a function that keeps or reverses order in each of its arguments: its extremes
    are at the ends of the arguments' ranges."""
    ends = [f(*corner) for corner in itertools.product(*((r.lower, r.upper) for r in ranges))]
    return ValueRanges(_lowest(ends), _highest(ends))


def _image_by_size(f: Callable, x: ValueRanges) -> ValueRanges:
    """The same of a function of the distance from 0, which is 0 there."""
    out = _image(f, x)
    return out | ValueRanges.wrap(out.upper * 0) if 0 in x else out


def _product(a: "Bound | ValueRanges", b: "Bound | ValueRanges") -> sympy.Basic | None:
    """A zero end times an open one is 0: the open end is never reached."""
    return (a * 0 if a.is_finite else b * 0) if a.is_zero or b.is_zero else a * b


def _wrapped(method: Callable) -> staticmethod:
    """Numbers are ranges too; an operation on single values is the operation itself."""
    reference = getattr(ReferenceAnalysis, method.__name__, None)

    def run(*args: "Bound | ValueRanges") -> ValueRanges:
        ranges = [ValueRanges.wrap(arg) for arg in args]
        if reference is not None and all(r.is_singleton() for r in ranges):
            value = _try(reference, [r.lower for r in ranges])
            if value is not None:
                return ValueRanges.wrap(value)
        return method(*ranges)

    run.__name__, run.__doc__ = method.__name__, method.__doc__
    return staticmethod(run)


def _try(reference: Callable, values: list) -> sympy.Basic | None:
    try:
        value = reference(*values)
    except (ZeroDivisionError, ValueError, TypeError, OverflowError, NotImplementedError):
        return None
    known = isinstance(value, (sympy.Number, BooleanAtom)) and value is not S.NaN
    return value if known else None


def _boolean(x: ValueRanges) -> ValueRanges:
    """A truth value among integers is 0 or 1."""
    return ValueRanges(int(bool(x.lower)), int(bool(x.upper))) if x.is_bool else x


class SymPyValueRangeAnalysis:
    """Operations on ranges."""

    @staticmethod
    def constant(value: "Bound | ValueRanges", dtype: torch.dtype) -> ValueRanges:
        """The range of a number."""
        if isinstance(value, ValueRanges):
            return value
        if dtype in (torch.float64, torch.float32) and not isinstance(value, bool):
            value = float(value)
        return ValueRanges.wrap(value)

    @staticmethod
    def to_dtype(
        a: "Bound | ValueRanges", dtype: torch.dtype, src_dtype: torch.dtype | None = None
    ) -> ValueRanges:
        """The same values as floats, integers or truth values."""
        a = ValueRanges.wrap(a)
        if dtype == torch.bool:
            return a if a.is_bool else SymPyValueRangeAnalysis.ne(a, ValueRanges.wrap(0))
        a = _boolean(a)
        if dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            return _image(fn.ToFloat, a) if a.is_int else a
        return _image(fn.TruncToInt, a)

    @_wrapped
    def not_(a: ValueRanges) -> ValueRanges:
        """Logical not."""
        return _image(sympy.Not, a)

    @_wrapped
    def or_(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """Logical or."""
        return _image(sympy.Or, a, b)

    @_wrapped
    def and_(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """Logical and."""
        return _image(sympy.And, a, b)

    @staticmethod
    def bitwise_and(a: "Bound | ValueRanges", b: "Bound | ValueRanges") -> ValueRanges:
        """a & b: an operand without sign bit bounds the result from both sides."""
        both = [ValueRanges.wrap(a), ValueRanges.wrap(b)]
        if all(x.is_bool for x in both):
            return SymPyValueRangeAnalysis.and_(*both)
        numbers = [_boolean(x) for x in both]
        unsigned = [x.upper for x in numbers if x.lower >= 0]
        if unsigned:
            return ValueRanges(0, min(unsigned))
        deepest = min(x.lower for x in numbers)
        if deepest.is_finite:
            # The bits that both clear reach down to the next power of two.
            deepest = sympy.Integer(-(2 ** (-int(deepest) - 1).bit_length()))
        return ValueRanges(deepest, max(x.upper for x in numbers))

    @staticmethod
    def bitwise_or(a: "Bound | ValueRanges", b: "Bound | ValueRanges") -> ValueRanges:
        """a | b: within the bits of both."""
        a, b = ValueRanges.wrap(a), ValueRanges.wrap(b)
        if a.is_bool and b.is_bool:
            return SymPyValueRangeAnalysis.or_(a, b)
        a, b = _boolean(a), _boolean(b)
        upper = max(a.upper, b.upper)
        if upper > 0 and upper.is_finite:
            upper = sympy.Integer((1 << int(upper).bit_length()) - 1)
        elif upper <= 0:
            upper = S.Zero
        return ValueRanges(min(a.lower, b.lower), upper)

    # ---- relations
    @_wrapped
    def eq(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a == b: known where the ranges do not meet."""
        apart = not a.is_bool and (a.lower > b.upper or b.lower > a.upper)
        return ValueRanges.wrap(S.false) if apart else ValueRanges.unknown_bool()

    @_wrapped
    def ne(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a != b."""
        return SymPyValueRangeAnalysis.not_(SymPyValueRangeAnalysis.eq(a, b))

    @_wrapped
    def lt(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a < b."""
        if a.is_bool:
            return SymPyValueRangeAnalysis.and_(SymPyValueRangeAnalysis.not_(a), b)
        if a.lower >= b.upper:
            return ValueRanges.wrap(S.false)
        return ValueRanges.wrap(S.true) if a.upper < b.lower else ValueRanges.unknown_bool()

    @_wrapped
    def gt(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a > b."""
        return SymPyValueRangeAnalysis.lt(b, a)

    @_wrapped
    def le(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a <= b."""
        return SymPyValueRangeAnalysis.not_(SymPyValueRangeAnalysis.lt(b, a))

    @_wrapped
    def ge(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a >= b."""
        return SymPyValueRangeAnalysis.not_(SymPyValueRangeAnalysis.lt(a, b))

    # ---- arithmetic
    @_wrapped
    def add(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a + b."""
        return ValueRanges(a.lower + b.lower, a.upper + b.upper)

    @_wrapped
    def sub(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a - b."""
        return SymPyValueRangeAnalysis.add(a, SymPyValueRangeAnalysis.neg(b))

    @_wrapped
    def mul(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a * b."""
        if a.is_bool and b.is_bool:
            return SymPyValueRangeAnalysis.and_(a, b)
        for x in (a, b):
            if x.is_singleton() and x.lower.is_zero:
                return x
        return _image(_product, _boolean(a), _boolean(b))

    @_wrapped
    def neg(a: ValueRanges) -> ValueRanges:
        """-a."""
        return _image(lambda x: -x, _boolean(a))

    @_wrapped
    def abs(a: ValueRanges) -> ValueRanges:
        """abs(a)."""
        return _image_by_size(abs, a)

    @_wrapped
    def square(a: ValueRanges) -> ValueRanges:
        """a * a."""
        return _image_by_size(lambda x: fn.PowByNatural(x, 2) if x.is_Integer else x * x, a)

    @_wrapped
    def truediv(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a / b of floats."""
        if 0 in b or not (a.lower.is_finite and a.upper.is_finite):
            return ValueRanges.unknown()
        return _image(_float_quotient, a, b)

    @_wrapped
    def int_truediv(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a / b of integers, as a float."""
        return SymPyValueRangeAnalysis.truediv(a, b)

    @_wrapped
    def floordiv(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a // b."""
        if 0 in b:
            return ValueRanges.unknown_int()
        corners = [
            fn.FloorDiv(x, y) for x, y in itertools.product((a.lower, a.upper), (b.lower, b.upper))
        ]
        known = [c for c in corners if c is not S.NaN]
        return ValueRanges(min(known), max(known)) if known else ValueRanges.unknown_int()

    @_wrapped
    def mod(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a % b with the sign of b."""
        if 0 in b:
            return ValueRanges.unknown_int()
        if b.lower > 0:
            if a.lower >= 0 and a.upper < b.lower:
                return a
            top = b.upper - 1
            return ValueRanges(0, min(a.upper, top) if a.lower >= 0 else top)
        return ValueRanges(b.lower + 1, 0)

    python_mod = mod

    @_wrapped
    def pow(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a ** b of floats: known for a base above zero."""
        finite = all(end.is_finite for end in (a.lower, a.upper, b.lower, b.upper))
        if not finite or a.lower <= 0:
            return ValueRanges.unknown()
        corners = [
            fn.FloatPow(sympy.Float(float(x)), sympy.Float(float(y)))
            for x, y in itertools.product((a.lower, a.upper), (b.lower, b.upper))
        ]
        return ValueRanges(min(corners), max(corners))

    @_wrapped
    def pow_by_natural(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a ** b of integers."""
        finite = all(end.is_finite for end in (a.lower, a.upper, b.lower, b.upper))
        if not finite:
            return ValueRanges.unknown_int()
        low = max(b.lower, S.Zero)
        high = max(b.upper, low)
        ends = [fn.PowByNatural(x, y) for x in (a.lower, a.upper) for y in (low, high)]
        if a.lower < 0:
            # The sign of the largest power depends on its parity.
            largest = max(abs(end) for end in ends)
            return ValueRanges(-largest, largest)
        return ValueRanges(min(ends), max(ends))

    @_wrapped
    def minimum(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """The smaller."""
        return SymPyValueRangeAnalysis._extremum(a, b, min)

    @_wrapped
    def maximum(a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """The larger."""
        return SymPyValueRangeAnalysis._extremum(a, b, max)

    @staticmethod
    def _extremum(a: ValueRanges, b: ValueRanges, pick: Callable) -> ValueRanges:
        a, b = _boolean(a), _boolean(b)
        if a.is_int != b.is_int:
            a, b = (_image(fn.ToFloat, x) if x.is_int else x for x in (a, b))
        return ValueRanges(pick(a.lower, b.lower), pick(a.upper, b.upper))

    @_wrapped
    def where(c: ValueRanges, a: ValueRanges, b: ValueRanges) -> ValueRanges:
        """a or b."""
        return _boolean(a) | _boolean(b) if a.is_bool != b.is_bool else a | b

    @_wrapped
    def reciprocal(x: ValueRanges) -> ValueRanges:
        """1 / x."""
        if 0 in x:
            return ValueRanges.unknown()
        return _image(lambda y: _float_quotient(sympy.Float(1.0), y), x)

    # ---- functions
    @_wrapped
    def exp(x: ValueRanges) -> ValueRanges:
        """e ** x."""
        return _image(fn.OpaqueUnaryFn_exp, x)

    @_wrapped
    def log(x: ValueRanges) -> ValueRanges:
        """The logarithm."""
        if x.lower <= 0:
            return ValueRanges.unknown()
        return _image(fn.OpaqueUnaryFn_log, x)

    @_wrapped
    def log2(x: ValueRanges) -> ValueRanges:
        """The logarithm to base 2."""
        if x.lower <= 0:
            return ValueRanges.unknown()
        return _image(fn.OpaqueUnaryFn_log2, x)

    @_wrapped
    def sqrt(x: ValueRanges) -> ValueRanges:
        """The square root."""
        if x.lower < 0:
            return ValueRanges.unknown()
        return _image(fn.OpaqueUnaryFn_sqrt, x)

    @_wrapped
    def floor(x: ValueRanges) -> ValueRanges:
        """Down."""
        return _image(fn.FloorToInt, ValueRanges.wrap(x))

    @_wrapped
    def ceil(x: ValueRanges) -> ValueRanges:
        """Up."""
        return _image(fn.CeilToInt, ValueRanges.wrap(x))

    @staticmethod
    def floor_to_int(x: "Bound | ValueRanges", dtype: torch.dtype) -> ValueRanges:
        """Down, to an integer."""
        return _image(fn.FloorToInt, ValueRanges.wrap(x))

    @staticmethod
    def ceil_to_int(x: "Bound | ValueRanges", dtype: torch.dtype) -> ValueRanges:
        """Up, to an integer."""
        return _image(fn.CeilToInt, ValueRanges.wrap(x))

    @staticmethod
    def trunc_to_int(x: "Bound | ValueRanges", dtype: torch.dtype) -> ValueRanges:
        """Towards zero, to an integer."""
        return _image(fn.TruncToInt, ValueRanges.wrap(x))

    @staticmethod
    def round_to_int(x: "Bound | ValueRanges", dtype: torch.dtype) -> ValueRanges:
        """To the nearest integer."""
        return _image(fn.RoundToInt, ValueRanges.wrap(x))

    @staticmethod
    def identity(x: "Bound | ValueRanges") -> ValueRanges:
        """x."""
        return ValueRanges.wrap(x)


def _float_quotient(a: "Bound | ValueRanges", b: "Bound | ValueRanges") -> sympy.Basic | None:
    if b.is_infinite:
        return sympy.Float(0.0)
    return sympy.Float(float(a) / float(b))


def _bounded_function(name: str, low: float, high: float) -> staticmethod:
    def method(x: "Bound | ValueRanges") -> ValueRanges:
        return ValueRanges(sympy.Float(low), sympy.Float(high))

    method.__name__, method.__doc__ = name, f"{name}(x)."
    return _wrapped(method)


for _name, _low, _high in (("sin", -1.0, 1.0), ("cos", -1.0, 1.0), ("tanh", -1.0, 1.0)):
    setattr(SymPyValueRangeAnalysis, _name, _bounded_function(_name, _low, _high))


class ValueRangeAnalysis(SymPyValueRangeAnalysis):
    """The same for programs of kernels, where an unknown operation gives an unknown value."""

    def __getattr__(self, name: str) -> Callable:
        return lambda *args, **kwargs: ValueRanges.unknown()


def bound_sympy(expr: sympy.Expr, ranges: dict | None = None) -> ValueRanges:
    """The range of an expression whose symbols have these ranges; others are bounded by what sympy
    assumes of them."""
    if isinstance(expr, (sympy.Number, BooleanAtom)):
        return ValueRanges.wrap(expr)
    known = dict(ranges or {})

    def missing(symbol: sympy.Symbol) -> ValueRanges:
        if not symbol.is_integer:
            return ValueRanges.unknown()
        if symbol.is_positive:
            return ValueRanges(1, int_oo)
        return ValueRanges(0, int_oo) if symbol.is_nonnegative else ValueRanges.unknown_int()

    return sympy_interp(SymPyValueRangeAnalysis, known, expr, missing_handler=missing)
