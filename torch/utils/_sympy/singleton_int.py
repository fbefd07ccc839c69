"""A size that stands for several lengths at once: it equals itself and its multiples can be told
from it, but it has no value."""

import sympy
from sympy.multipledispatch import dispatch


class SingletonInt(sympy.AtomicExpr):
    """`coeff` times the lengths of number `val`; at least 2."""

    _op_priority = 99999

    def __new__(cls, *args: int, coeff: int | None = None, **kwargs: object) -> "SingletonInt":
        return super().__new__(cls, *args, **kwargs)

    def __init__(self, val: int, *, coeff: int = 1) -> None:
        self._val = val
        self._coeff = coeff
        super().__init__()

    def _eval_Eq(self, other: "int | sympy.Basic") -> sympy.Basic:
        same = isinstance(other, SingletonInt) and self._key() == other._key()
        return sympy.true if same else sympy.false

    def _key(self) -> tuple:
        return self._val, self._coeff

    @property
    def free_symbols(self) -> set:
        """None: it is no symbol."""
        return set()

    def __mul__(self, other: "int | sympy.Basic") -> "SingletonInt":
        if isinstance(other, SingletonInt):
            raise ValueError("SingletonInt cannot be multiplied by another SingletonInt")
        return SingletonInt(self._val, coeff=self._coeff * other)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingletonInt) and self._key() == other._key()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._key())

    def _no(self, other: object) -> None:
        raise NotImplementedError("SingletonInt has no such operation")

    __add__ = __radd__ = __sub__ = __rsub__ = __truediv__ = __floordiv__ = __mod__ = _no


def _is_ge(a: sympy.Expr, b: sympy.Expr) -> bool:
    if isinstance(a, SingletonInt) and isinstance(b, SingletonInt):
        if a._val == b._val:
            return bool(a._coeff >= b._coeff)
        raise ValueError("ge: relation is indeterminate")
    if isinstance(a, SingletonInt):
        if b <= 2:
            return True
        raise ValueError("ge: relation is indeterminate")
    if a <= 1:
        return False
    raise ValueError("ge: relation is indeterminate")


@dispatch(sympy.Integer, SingletonInt)  # type: ignore[misc]
def _eval_is_ge(a: sympy.Expr, b: sympy.Expr) -> bool:
    return _is_ge(a, b)


@dispatch(SingletonInt, sympy.Integer)  # type: ignore[misc, no-redef]
def _eval_is_ge(a: sympy.Expr, b: sympy.Expr) -> bool:
    return _is_ge(a, b)


@dispatch(SingletonInt, SingletonInt)  # type: ignore[misc, no-redef]
def _eval_is_ge(a: sympy.Expr, b: sympy.Expr) -> bool:
    return _is_ge(a, b)
