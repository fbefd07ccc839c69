"""The element-wise functions, from two tables.

A row names the function, what computes it on tensors of one dtype, and what happens to its operands
first. Numbers of Python have a kind but no size: an array of int8 plus 1 stays int8.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch._numpy import _dtypes
from torch._numpy._util import (
    UFuncTypeError,
    cast,
    cast_int_to_float,
    stored,
    to_array,
    to_tensor,
)

Operation = Callable[..., object]


def _no_bool(t: torch.Tensor) -> torch.Tensor:
    return t.to(torch.int8) if t.dtype == torch.bool else t


def _widest(t: torch.Tensor) -> torch.Tensor:
    return t.to(torch.complex128 if t.is_complex() else torch.float64)


def _same(t: torch.Tensor) -> torch.Tensor:
    return t


# ---- one operand ---------------------------------------------------------------------------------
def _cbrt(x: torch.Tensor) -> torch.Tensor:
    return torch.copysign(torch.pow(x.abs(), 1 / 3), x)


def _abs(x: torch.Tensor) -> torch.Tensor:
    return x.clone() if x.dtype == torch.bool else torch.abs(x)


def _negative(x: torch.Tensor) -> torch.Tensor:
    if x.dtype == torch.bool:
        raise TypeError("The numpy boolean negative, the `-` operator, is not supported")
    return torch.neg(x)


def _positive(x: torch.Tensor) -> torch.Tensor:
    if x.dtype == torch.bool:
        raise TypeError("The numpy boolean positive, the `+` operator, is not supported")
    return x.clone()


def _square(x: torch.Tensor) -> torch.Tensor:
    return x & x if x.dtype == torch.bool else x * x


def _whole(operation: Operation) -> Operation:
    """Rounding leaves whole numbers as they are."""
    return lambda x: operation(x) if x.is_floating_point() else x.clone()


def _reciprocal(x: torch.Tensor) -> torch.Tensor:
    if _dtypes.category(x.dtype) < 2:
        return torch.div(torch.ones_like(x), x, rounding_mode="trunc")
    return torch.reciprocal(x)


_FLOATING: dict[str, Operation] = {
    "arccos": torch.arccos,
    "arccosh": torch.arccosh,
    "arcsin": torch.arcsin,
    "arcsinh": torch.arcsinh,
    "arctan": torch.arctan,
    "arctanh": torch.arctanh,
    "cbrt": _cbrt,
    "cos": torch.cos,
    "cosh": torch.cosh,
    "deg2rad": torch.deg2rad,
    "degrees": torch.rad2deg,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "fabs": torch.abs,
    "log": torch.log,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "rad2deg": torch.rad2deg,
    "radians": torch.deg2rad,
    "rint": torch.round,
    "sin": torch.sin,
    "sinh": torch.sinh,
    "sqrt": torch.sqrt,
    "tan": torch.tan,
    "tanh": torch.tanh,
}
_KEEPING: dict[str, Operation] = {
    "abs": _abs,
    "absolute": _abs,
    "bitwise_not": torch.bitwise_not,
    "ceil": _whole(torch.ceil),
    "conj": torch.conj_physical,
    "conjugate": torch.conj_physical,
    "fix": _whole(torch.trunc),
    "floor": _whole(torch.floor),
    "invert": torch.bitwise_not,
    "isfinite": torch.isfinite,
    "isinf": torch.isinf,
    "isnan": torch.isnan,
    "logical_not": torch.logical_not,
    "negative": _negative,
    "positive": _positive,
    "reciprocal": _reciprocal,
    "sign": torch.sgn,
    "signbit": torch.signbit,
    "square": _square,
    "trunc": _whole(torch.trunc),
}


# ---- two operands --------------------------------------------------------------------------------
def _add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.add(a, b)


def _subtract(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.dtype == torch.bool:
        raise TypeError("numpy boolean subtract, the `-` operator, is not supported")
    return torch.sub(a, b)


def _power(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if _dtypes.category(b.dtype) == 1 and bool((b < 0).any()):
        raise ValueError(_NEGATIVE_POWER)
    return torch.pow(a, b)


_NEGATIVE_POWER = "Integers to negative integer powers are not allowed."


def _power_of_number(a: torch.Tensor, b: torch.Tensor, exponent: complex) -> torch.Tensor:
    """_power without a look at values, which a trace does not have."""
    if _dtypes.category(b.dtype) == 1 and exponent < 0:  # type: ignore[operator]
        raise ValueError(_NEGATIVE_POWER)
    return torch.pow(a, b)


def _divmod(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.floor_divide(a, b), torch.remainder(a, b)


def _shift(operation: Operation) -> Operation:
    def shifted(a: torch.Tensor, b: torch.Tensor) -> object:
        if _dtypes.category(a.dtype) > 1:
            raise TypeError("shifts take integers")
        return operation(a, b)

    return shifted


# Name: operation, what is done to both operands once they have one dtype.
_TWO: dict[str, tuple[Operation, Callable[[torch.Tensor], torch.Tensor]]] = {
    "add": (_add, _same),
    "arctan2": (torch.arctan2, cast_int_to_float),
    "bitwise_and": (torch.bitwise_and, _same),
    "bitwise_or": (torch.bitwise_or, _same),
    "bitwise_xor": (torch.bitwise_xor, _same),
    "copysign": (torch.copysign, cast_int_to_float),
    "divide": (torch.true_divide, cast_int_to_float),
    "equal": (torch.eq, _same),
    "float_power": (torch.pow, _widest),
    "floor_divide": (torch.floor_divide, _no_bool),
    "fmax": (torch.fmax, _same),
    "fmin": (torch.fmin, _same),
    "fmod": (torch.fmod, _no_bool),
    "gcd": (torch.gcd, _no_bool),
    "greater": (torch.gt, _same),
    "greater_equal": (torch.ge, _same),
    "heaviside": (torch.heaviside, cast_int_to_float),
    "hypot": (torch.hypot, cast_int_to_float),
    "lcm": (torch.lcm, _no_bool),
    "left_shift": (_shift(torch.bitwise_left_shift), _no_bool),
    "less": (torch.lt, _same),
    "less_equal": (torch.le, _same),
    "logaddexp": (torch.logaddexp, cast_int_to_float),
    "logaddexp2": (torch.logaddexp2, cast_int_to_float),
    "logical_and": (torch.logical_and, _same),
    "logical_or": (torch.logical_or, _same),
    "logical_xor": (torch.logical_xor, _same),
    "maximum": (torch.maximum, _same),
    "minimum": (torch.minimum, _same),
    "mod": (torch.remainder, _no_bool),
    "multiply": (torch.mul, _same),
    "nextafter": (torch.nextafter, cast_int_to_float),
    "not_equal": (torch.ne, _same),
    "power": (_power, _no_bool),
    "remainder": (torch.remainder, _no_bool),
    "right_shift": (_shift(torch.bitwise_right_shift), _no_bool),
    "subtract": (_subtract, _same),
    "true_divide": (torch.true_divide, cast_int_to_float),
}

_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_fp_unary = list(_FLOATING)
_unary = [*_FLOATING, *_KEEPING]
_binary = [*_TWO, "divmod", "ldexp", "matmul"]


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _of_number(value: complex, dtype: torch.dtype) -> torch.Tensor:
    if isinstance(value, int) and _dtypes.category(dtype) == 1:
        limits = torch.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise OverflowError(f"Python integer {value} out of bounds for {dtype}")
    return torch.tensor(value, dtype=dtype)


def operands(x1: object, x2: object) -> tuple[torch.Tensor, torch.Tensor]:
    """Two operands in their common dtype."""
    if _is_number(x1) and not _is_number(x2):
        second = to_tensor(x2)
        dtype = _dtypes.with_number(second.dtype, x1)  # type: ignore[arg-type]
        return _of_number(x1, dtype), cast(second, dtype)  # type: ignore[arg-type]
    if _is_number(x2) and not _is_number(x1):
        second, first = operands(x2, x1)
        return first, second
    first, second = to_tensor(x1), to_tensor(x2)
    dtype = _dtypes.common([first.dtype, second.dtype])
    return cast(first, dtype), cast(second, dtype)


def _refuse(where: object, options: dict[str, object]) -> None:
    if where is not True:
        raise NotImplementedError("'where' parameter is not supported.")
    for name, value in options.items():
        if name not in ("order", "subok", "signature", "extobj", "axes", "axis"):
            raise TypeError(f"unexpected keyword argument {name!r}")
        if value not in (None, "K", "C", False):
            raise NotImplementedError(f"'{name}' parameter is not supported.")


def _finish(result: object, out: object, casting: str) -> object:
    if out is None or (isinstance(out, tuple) and all(each is None for each in out)):
        return to_array(result)
    outs = out if isinstance(out, tuple) else (out,)
    results = result if isinstance(result, tuple) else (result,)
    for given, value in zip(outs, results, strict=False):
        held = getattr(given, "tensor", None)
        if held is not None and not _dtypes.may_cast(value.dtype, held.dtype, casting):
            raise UFuncTypeError(
                f"Cannot cast ufunc output from {value.dtype} to {held.dtype} with casting rule "
                f"'{casting}'"
            )
    return stored(out, result, broadcast=True)


def _one(name: str, operation: Operation, prepare: Callable) -> Callable:
    def ufunc(
        x: object,
        /,
        out: object = None,
        *,
        where: object = True,
        casting: str = "same_kind",
        dtype: object = None,
        **options: object,
    ) -> object:
        _refuse(where, options)
        operand = to_tensor(x)
        if dtype is not None:
            operand = cast(operand, _dtypes.dtype(dtype).torch_dtype)
        return _finish(operation(prepare(operand)), out, casting)

    ufunc.__name__ = ufunc.__qualname__ = name
    ufunc.__doc__ = f"numpy.{name} of an array."
    return ufunc


def _pair(name: str, operation: Operation, prepare: Callable) -> Callable:
    def ufunc(
        x1: object,
        x2: object,
        /,
        out: object = None,
        *,
        where: object = True,
        casting: str = "same_kind",
        dtype: object = None,
        **options: object,
    ) -> object:
        _refuse(where, options)
        try:
            first, second = operands(x1, x2)
        except OverflowError:
            if name not in _COMPARISONS:
                raise
            # A number outside the range of the array's integers compares as what it is.
            first, second = (to_tensor(x).to(torch.float64) for x in (x1, x2))
        if dtype is not None:
            wanted = _dtypes.dtype(dtype).torch_dtype
            if not _dtypes.may_cast(first.dtype, wanted, casting):
                raise UFuncTypeError(
                    f"Cannot cast ufunc '{name}' input from {first.dtype} to {wanted} with casting "
                    f"rule '{casting}'"
                )
            first, second = cast(first, wanted), cast(second, wanted)
        if operation is _power and _is_number(x2):
            return _finish(_power_of_number(first, second, x2), out, casting)  # type: ignore[arg-type]
        return _finish(operation(prepare(first), prepare(second)), out, casting)

    ufunc.__name__ = ufunc.__qualname__ = name
    ufunc.__doc__ = f"numpy.{name} of two arrays."
    return ufunc


def _declare() -> dict[str, Callable]:
    made = {name: _one(name, op, cast_int_to_float) for name, op in _FLOATING.items()}
    made |= {name: _one(name, op, _same) for name, op in _KEEPING.items()}
    made |= {name: _pair(name, op, prepare) for name, (op, prepare) in _TWO.items()}
    return made


_made = _declare()
globals().update(_made)


def ldexp(
    x1: object, x2: object, /, out: object = None, *, casting: str = "same_kind", **options: object
) -> object:
    """x1 * 2**x2, where x2 is an integer."""
    _refuse(options.pop("where", True), options)
    power = to_tensor(x2)
    if _dtypes.category(power.dtype) > 1:
        raise TypeError("ufunc 'ldexp' takes an integer as its second argument")
    return _finish(torch.ldexp(cast_int_to_float(to_tensor(x1)), power), out, casting)


def divmod(
    x1: object,
    x2: object,
    out1: object = None,
    out2: object = None,
    /,
    out: object = (None, None),
    *,
    casting: str = "same_kind",
    dtype: object = None,
    **options: object,
) -> object:
    """Quotient and remainder of a division that rounds down."""
    _refuse(options.pop("where", True), options)
    if (out1 is None) != (out2 is None):
        raise ValueError("both out1 and out2 need to be provided")
    if out1 is not None:
        if out != (None, None):
            raise TypeError("cannot specify both out1, out2 and out")
        out = (out1, out2)
    first, second = operands(x1, x2)
    if dtype is not None:
        wanted = _dtypes.dtype(dtype).torch_dtype
        first, second = cast(first, wanted), cast(second, wanted)
    return _finish(_divmod(_no_bool(first), _no_bool(second)), out, casting)


def modf(x: object, /, *args: object, **options: object) -> object:
    """The fractional and the whole part."""
    _refuse(options.pop("where", True), options)
    if args:
        raise NotImplementedError("'out' parameter is not supported.")
    value = cast_int_to_float(to_tensor(x))
    whole = torch.trunc(value)
    return to_array((value - whole, whole))


def matmul(
    x1: object,
    x2: object,
    /,
    out: object = None,
    *,
    casting: str = "same_kind",
    dtype: object = None,
    **options: object,
) -> object:
    """The product of matrices; further dimensions are of a batch."""
    _refuse(True, options)
    first, second = to_tensor(x1), to_tensor(x2)
    if first.dim() == 0 or second.dim() == 0:
        raise ValueError("matmul: an operand has no dimensions")
    wanted = _dtypes.common([first.dtype, second.dtype])
    if dtype is not None:
        wanted = _dtypes.dtype(dtype).torch_dtype
    product = _product(cast(first, wanted), cast(second, wanted))
    return _finish(product, out, casting)


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """torch.matmul, of truth values too."""
    if a.dtype == torch.bool:
        return torch.matmul(a.to(torch.uint8), b.to(torch.uint8)).to(torch.bool)
    return torch.matmul(a, b)


__all__ = [*_made, "divmod", "ldexp", "matmul", "modf"]
