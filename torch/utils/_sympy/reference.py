"""What each operation of symbolic programs is, on sympy expressions, on Python numbers and on
tensors. Interpreters and range analysis are checked against these."""

import math
import operator
from collections.abc import Callable

import sympy

import torch
from torch.utils._sympy import functions as fn


class ReferenceAnalysis:
    """Operations on sympy expressions."""

    @staticmethod
    def constant(c: object, dtype: torch.dtype) -> sympy.Basic:
        """A number."""
        return sympy.sympify(c)

    @staticmethod
    def eq(a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """a == b; of expressions a relation."""
        if isinstance(a, sympy.Expr) or isinstance(b, sympy.Expr):
            return sympy.Eq(a, b)
        return a == b

    @classmethod
    def ne(cls, a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """a != b."""
        return cls.not_(cls.eq(a, b))

    @staticmethod
    def to_dtype(x: sympy.Basic, dtype: torch.dtype) -> sympy.Basic:
        """A number as a float where that is asked."""
        if dtype == torch.float64:
            return fn.ToFloat(x)
        raise NotImplementedError(f"to_dtype {dtype} is not implemented")

    @staticmethod
    def mod(x: sympy.Basic, y: sympy.Basic) -> sympy.Basic:
        """x % y of numbers that are not negative."""
        return fn.Mod(x, y)

    @staticmethod
    def python_mod(x: sympy.Basic, y: sympy.Basic) -> sympy.Basic:
        """x % y as Python's."""
        return fn.PythonMod(x, y)

    @staticmethod
    def truediv(a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """a / b of floats."""
        return fn.FloatTrueDiv(a, b)

    @staticmethod
    def int_truediv(a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """a / b of integers."""
        return fn.IntTrueDiv(a, b)

    @staticmethod
    def floordiv(a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """a // b."""
        return fn.FloorDiv(a, b)

    @staticmethod
    def truncdiv(a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """a / b rounded towards zero: sympy has no such expression."""
        raise NotImplementedError("truncdiv of sympy expressions is not implemented")

    @classmethod
    def sym_sum(cls, args: list) -> sympy.Basic:
        """The sum."""
        return sympy.Add(*args)

    @staticmethod
    def pow(a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """a ** b of floats."""
        return fn.FloatPow(a, b)

    @staticmethod
    def pow_by_natural(a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """a ** b of integers."""
        return fn.PowByNatural(a, b)

    @staticmethod
    def minimum(a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """The smaller."""
        return fn.Min(a, b)

    @staticmethod
    def maximum(a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """The larger."""
        return fn.Max(a, b)

    @staticmethod
    def bitwise_and(a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """a & b of integers."""
        return fn.BitwiseFn_bitwise_and(a, b)

    @staticmethod
    def bitwise_or(a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """a | b of integers."""
        return fn.BitwiseFn_bitwise_or(a, b)

    @staticmethod
    def lshift(a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """a << b."""
        return fn.LShift(a, b)

    @staticmethod
    def rshift(a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """a >> b."""
        return fn.RShift(a, b)

    @staticmethod
    def reciprocal(x: sympy.Basic) -> sympy.Basic:
        """1 / x."""
        return fn.FloatTrueDiv(1.0, x)

    @staticmethod
    def square(x: sympy.Basic) -> sympy.Basic:
        """x * x."""
        return fn.PowByNatural(x, 2)

    @staticmethod
    def where(c: object, a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """a where c holds."""
        return fn.Where(c, a, b)

    @staticmethod
    def trunc_to_int(a: sympy.Basic, dtype: torch.dtype) -> sympy.Basic:
        """Towards zero."""
        return fn.TruncToInt(a)

    @staticmethod
    def floor_to_int(a: sympy.Basic, dtype: torch.dtype) -> sympy.Basic:
        """Down."""
        return fn.FloorToInt(a)

    @staticmethod
    def ceil_to_int(a: sympy.Basic, dtype: torch.dtype) -> sympy.Basic:
        """Up."""
        return fn.CeilToInt(a)

    @staticmethod
    def round_to_int(a: sympy.Basic, dtype: torch.dtype) -> sympy.Basic:
        """To the nearest."""
        return fn.RoundToInt(a)

    @staticmethod
    def round_decimal(a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
        """To digits."""
        return fn.RoundDecimal(a, b)

    @staticmethod
    def floor(x: sympy.Basic) -> sympy.Basic:
        """Down, of a float."""
        return fn.FloorToInt(x)

    @staticmethod
    def ceil(x: sympy.Basic) -> sympy.Basic:
        """Up, of a float."""
        return fn.CeilToInt(x)

    @staticmethod
    def identity(x: sympy.Basic) -> sympy.Basic:
        """x."""
        return x


def _add_functions(cls: type, make: Callable[[str], Callable]) -> None:
    for name in (
        "sqrt",
        "exp",
        "log",
        "log2",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "asin",
        "acos",
        "atan",
    ):
        method = make(name)
        method.__name__, method.__doc__ = name, f"{name}(x)."
        setattr(cls, name, staticmethod(method))


# Where Python's own operator is the operation.
for _name in "or_ and_ lt gt le ge abs neg add mul sub".split():
    setattr(ReferenceAnalysis, _name, staticmethod(getattr(operator, _name)))
ReferenceAnalysis.not_ = staticmethod(operator.invert)
_add_functions(ReferenceAnalysis, lambda name: lambda x: getattr(fn, f"OpaqueUnaryFn_{name}")(x))


class PythonReferenceAnalysis(ReferenceAnalysis):
    """Operations on Python numbers and on what overloads their operators."""

    constant = staticmethod(
        lambda c, dtype: (
            int(c) if dtype is torch.int64 else dtype(c) if isinstance(dtype, type) else c
        )
    )
    not_ = staticmethod(torch.sym_not)
    eq = staticmethod(operator.eq)
    ne = staticmethod(operator.ne)
    mod = staticmethod(operator.mod)
    python_mod = staticmethod(operator.mod)
    truediv = staticmethod(operator.truediv)
    int_truediv = staticmethod(operator.truediv)
    floordiv = staticmethod(operator.floordiv)
    pow = staticmethod(operator.pow)
    pow_by_natural = staticmethod(operator.pow)
    minimum = staticmethod(torch.sym_min)
    maximum = staticmethod(torch.sym_max)
    bitwise_and = staticmethod(operator.and_)
    bitwise_or = staticmethod(operator.or_)
    lshift = staticmethod(operator.lshift)
    rshift = staticmethod(operator.rshift)
    trunc_to_int = staticmethod(lambda x, dtype: math.trunc(x))
    floor_to_int = staticmethod(lambda x, dtype: math.floor(x))
    ceil_to_int = staticmethod(lambda x, dtype: math.ceil(x))
    round_to_int = staticmethod(lambda x, dtype: round(x))
    round_decimal = staticmethod(lambda x, digits: round(x, ndigits=digits))
    floor = staticmethod(math.floor)
    ceil = staticmethod(math.ceil)
    reciprocal = staticmethod(lambda x: 1.0 / x)
    square = staticmethod(lambda x: x * x)
    where = staticmethod(torch.sym_ite)
    to_dtype = staticmethod(lambda x, dtype: torch.sym_float(x))
    sym_sum = staticmethod(torch.sym_sum)


_add_functions(
    PythonReferenceAnalysis,
    lambda name: getattr(torch, f"_sym_{name}", None) or (lambda x: getattr(math, name)(x)),
)


class OptimizedPythonReferenceAnalysis(PythonReferenceAnalysis):
    """The same, with sums as one call."""


def _to_double(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten._to_copy.default(x, dtype=torch.float64)


class TensorReferenceAnalysis:
    """Operations on tensors, as calls of operators that a graph may hold."""

    or_ = staticmethod(lambda a, b: torch.ops.aten.logical_or.default(a, b))
    and_ = staticmethod(lambda a, b: torch.ops.aten.logical_and.default(a, b))
    not_ = staticmethod(lambda a: torch.ops.aten.logical_not.default(a))
    eq = staticmethod(lambda a, b: torch.ops.aten.eq.Tensor(a, b))
    ne = staticmethod(lambda a, b: torch.ops.aten.ne.Tensor(a, b))
    lt = staticmethod(lambda a, b: torch.ops.aten.lt.Tensor(a, b))
    gt = staticmethod(lambda a, b: torch.ops.aten.gt.Tensor(a, b))
    le = staticmethod(lambda a, b: torch.ops.aten.le.Tensor(a, b))
    ge = staticmethod(lambda a, b: torch.ops.aten.ge.Tensor(a, b))
    add = staticmethod(lambda a, b: torch.ops.aten.add.Tensor(a, b))
    sub = staticmethod(lambda a, b: torch.ops.aten.sub.Tensor(a, b))
    mul = staticmethod(lambda a, b: torch.ops.aten.mul.Tensor(a, b))
    neg = staticmethod(lambda a: torch.ops.aten.neg.default(a))
    abs = staticmethod(lambda a: torch.ops.aten.abs.default(a))
    square = staticmethod(lambda a: torch.ops.aten.mul.Tensor(a, a))
    truediv = staticmethod(lambda a, b: torch.ops.aten.true_divide.Tensor(a, b))
    int_truediv = staticmethod(lambda a, b: torch.ops.aten.true_divide.Tensor(a, b))
    floordiv = staticmethod(
        lambda a, b: torch.ops.aten.div.Tensor_mode(a, b, rounding_mode="floor")
    )
    mod = staticmethod(lambda a, b: torch.ops.aten.remainder.Tensor(a, b))
    python_mod = staticmethod(lambda a, b: torch.ops.aten.remainder.Tensor(a, b))
    pow = staticmethod(lambda a, b: torch.ops.aten.pow.Tensor_Tensor(_to_double(a), _to_double(b)))
    pow_by_natural = staticmethod(lambda a, b: torch.ops.aten.pow.Tensor_Tensor(a, b))
    minimum = staticmethod(lambda a, b: torch.ops.aten.minimum.default(a, b))
    maximum = staticmethod(lambda a, b: torch.ops.aten.maximum.default(a, b))
    bitwise_and = staticmethod(lambda a, b: torch.ops.aten.bitwise_and.Tensor(a, b))
    bitwise_or = staticmethod(lambda a, b: torch.ops.aten.bitwise_or.Tensor(a, b))
    reciprocal = staticmethod(lambda a: torch.ops.aten.reciprocal.default(a))
    where = staticmethod(lambda c, a, b: torch.ops.aten.where.self(c, a, b))
    trunc_to_int = staticmethod(lambda x, dtype: torch.ops.aten.trunc.default(x).to(dtype))
    floor_to_int = staticmethod(lambda x, dtype: torch.ops.aten.floor.default(x).to(dtype))
    ceil_to_int = staticmethod(lambda x, dtype: torch.ops.aten.ceil.default(x).to(dtype))
    round_to_int = staticmethod(lambda x, dtype: torch.ops.aten.round.default(x).to(dtype))
    floor = staticmethod(lambda x: torch.ops.aten.floor.default(x).to(torch.int64))
    ceil = staticmethod(lambda x: torch.ops.aten.ceil.default(x).to(torch.int64))
    to_dtype = staticmethod(
        lambda x, dtype: torch.ops.aten._to_copy.default(torch.as_tensor(x), dtype=dtype)
    )

    @staticmethod
    def constant(c: object, dtype: torch.dtype) -> torch.Tensor:
        """A number as a tensor."""
        kind = torch.float64 if dtype is float else torch.int64 if dtype is int else dtype
        return torch.ops.aten.scalar_tensor.default(c, dtype=kind)

    @staticmethod
    def round_decimal(a: sympy.Basic, b: sympy.Basic) -> torch.Tensor:
        """To digits."""
        raise NotImplementedError("round_decimal of tensors is not implemented")

    @staticmethod
    def sym_sum(args: list) -> torch.Tensor:
        """The sum."""
        out = args[0]
        for arg in args[1:]:
            out = torch.ops.aten.add.Tensor(out, arg)
        return out


_add_functions(
    TensorReferenceAnalysis, lambda name: lambda x: getattr(torch.ops.aten, name).default(x)
)
