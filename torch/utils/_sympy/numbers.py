"""The infinity of integers. It bounds ranges of integers as sympy.oo bounds ranges of floats, and
is smaller than sympy.oo, so that an integer range lies within the float range of the same form."""

import sympy
from sympy import S
from sympy.core.singleton import Singleton
from sympy.multipledispatch import dispatch


class _IntInfinite(sympy.Number):
    """What both infinities share: arithmetic by sign."""

    # Operations with other numbers come here, whichever side this one stands on.
    _op_priority = 100.0
    is_integer = True
    is_number = True
    is_commutative = True
    is_comparable = True
    sign = 0
    __slots__ = ()

    # Properties, because sympy takes an assumed integer to be finite.
    @property
    def is_finite(self) -> bool:
        """No."""
        return False

    @property
    def is_infinite(self) -> bool:
        """Yes."""
        return True

    def __new__(cls) -> "_IntInfinite":
        return sympy.AtomicExpr.__new__(cls)

    def _opposite(self) -> "_IntInfinite":
        return S.IntInfinity if self.sign < 0 else S.NegativeIntInfinity

    def __add__(self, other: object) -> sympy.Expr:
        other = sympy.sympify(other)
        if other in (S.Infinity, S.NegativeInfinity, S.NaN):
            return other
        if isinstance(other, _IntInfinite):
            return self if other.sign == self.sign else S.NaN
        return self if other.is_Number else sympy.Add(self, other, evaluate=False)

    __radd__ = __add__

    def __sub__(self, other: object) -> sympy.Expr:
        return self + (-sympy.sympify(other))

    def __rsub__(self, other: object) -> sympy.Expr:
        return self._opposite() + other

    def __neg__(self) -> sympy.Expr:
        return self._opposite()

    def __abs__(self) -> sympy.Expr:
        return int_oo

    def __mul__(self, other: object) -> sympy.Expr:
        other = sympy.sympify(other)
        if isinstance(other, _IntInfinite):
            return int_oo if other.sign == self.sign else -int_oo
        if not other.is_Number:
            return sympy.Mul(self, other, evaluate=False)
        if other.is_zero or other is S.NaN:
            return S.NaN
        same = other.is_extended_positive
        if other.is_infinite:
            return S.Infinity if same == (self.sign > 0) else S.NegativeInfinity
        return self if same else self._opposite()

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> sympy.Expr:
        other = sympy.sympify(other)
        if other.is_infinite or other.is_zero:
            return S.NaN
        positive = other.is_extended_positive == (self.sign > 0)
        return S.Infinity if positive else S.NegativeInfinity

    def __rtruediv__(self, other: object) -> sympy.Expr:
        return S.NaN if sympy.sympify(other).is_infinite else S.Zero

    def _eval_power(self, expt: sympy.Expr) -> sympy.Expr | None:
        if expt.is_extended_negative:
            return S.Zero
        if expt.is_zero:
            return S.One
        if not expt.is_extended_positive:
            return None
        if self.sign > 0 or (expt.is_finite and expt.is_even):
            return int_oo
        return self if expt.is_odd else S.NaN

    def __pow__(self, expt: object) -> sympy.Expr:
        out = self._eval_power(sympy.sympify(expt))
        return sympy.Pow(self, expt, evaluate=False) if out is None else out

    def _as_mpf_val(self, prec: int) -> tuple:
        return (S.Infinity if self.sign > 0 else S.NegativeInfinity)._as_mpf_val(prec)

    def __float__(self) -> float:
        return float("inf") if self.sign > 0 else float("-inf")

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.sign))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __ne__(self, other: object) -> bool:
        return type(self) is not type(other)

    def _less(self, other: object) -> bool:
        """Whether self < other."""
        other = sympy.sympify(other)
        if isinstance(other, _IntInfinite):
            return self.sign < other.sign
        if other in (S.Infinity, S.NegativeInfinity):
            return other is S.Infinity
        return self.sign < 0

    def __lt__(self, other: object) -> sympy.Basic:
        return sympy.sympify(self._less(other))

    def __ge__(self, other: object) -> sympy.Basic:
        return sympy.sympify(not self._less(other))

    def __le__(self, other: object) -> sympy.Basic:
        return sympy.sympify(self == other or self._less(other))

    def __gt__(self, other: object) -> sympy.Basic:
        return sympy.sympify(not (self == other or self._less(other)))


class IntInfinity(_IntInfinite, metaclass=Singleton):
    """Larger than every integer."""

    is_positive = True
    sign = 1
    __slots__ = ()

    def _sympystr(self, printer: sympy.printing.StrPrinter) -> str:
        return "int_oo"


class NegativeIntInfinity(_IntInfinite, metaclass=Singleton):
    """Smaller than every integer."""

    is_negative = True
    sign = -1
    __slots__ = ()

    def _sympystr(self, printer: sympy.printing.StrPrinter) -> str:
        return "-int_oo"


int_oo = S.IntInfinity


@dispatch(_IntInfinite, _IntInfinite)  # type: ignore[misc, no-redef]
def _eval_is_ge(left: sympy.Number, right: sympy.Number) -> bool:
    return left.sign >= right.sign


@dispatch(_IntInfinite, sympy.Number)  # type: ignore[misc]
def _eval_is_ge(left: sympy.Number, right: sympy.Number) -> bool:
    return bool(left >= right)


@dispatch(sympy.Number, _IntInfinite)  # type: ignore[misc, no-redef]
def _eval_is_ge(left: sympy.Number, right: sympy.Number) -> bool:
    return bool(right <= left)
