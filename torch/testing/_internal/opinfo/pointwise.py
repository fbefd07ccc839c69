"""Records of the pointwise family: arithmetic, comparison, logic, bits, exponentials, rounding."""

from __future__ import annotations

import numpy as np

import torch

from . import refs
from .core import (
    OpInfo,
    SampleInput,
    binary_samples,
    call,
    error,
    scipy_special,
    unary_samples,
    with_arguments,
)

HALF = {torch.float16: (1e-2, 5e-3), torch.bfloat16: (6e-2, 3e-2)}

# ---- one operand: name, reference, dtypes, interval, dtype of the result, aliases -------------

_WIDE, _UNIT, _POSITIVE = (-2.0, 2.0), (-0.9, 0.9), (0.2, 3.0)
_UNARY = [
    ("abs", np.abs, "fiuch", _WIDE, "real", "absolute"),
    ("neg", np.negative, "fic", _WIDE, "same", "negative"),
    ("positive", np.positive, "fic", _WIDE, "same", ""),
    ("reciprocal", lambda x: 1 / x, "fibc", (0.5, 3.0), "float", ""),
    ("sqrt", np.sqrt, "fibc", (0.1, 4.0), "float", ""),
    ("rsqrt", lambda x: 1 / np.sqrt(x), "fibc", (0.5, 4.0), "float", ""),
    ("square", np.square, "fic", _WIDE, "same", ""),
    ("exp", np.exp, "fibc", _WIDE, "float", ""),
    (
        "exp2",
        lambda x: np.exp2(x) if x.dtype.kind != "c" else np.exp(x * np.log(2.0)),
        "fibc",
        _WIDE,
        "float",
        "",
    ),
    ("expm1", np.expm1, "fibc", _WIDE, "float", ""),
    ("log", np.log, "fibc", (0.5, 4.0), "float", ""),
    ("log2", np.log2, "fibc", (0.5, 4.0), "float", ""),
    ("log10", np.log10, "fibc", (0.5, 4.0), "float", ""),
    ("log1p", np.log1p, "fibc", (0.0, 4.0), "float", ""),
    ("sin", np.sin, "fibc", _WIDE, "float", ""),
    ("cos", np.cos, "fibc", _WIDE, "float", ""),
    ("tan", np.tan, "fibc", (-1.2, 1.2), "float", ""),
    ("asin", np.arcsin, "fibc", (-0.49, 0.49), "float", "arcsin"),
    ("acos", np.arccos, "fibc", (-0.49, 0.49), "float", "arccos"),
    ("atan", np.arctan, "fibc", (-0.9, 2.0), "float", "arctan"),
    ("sinh", np.sinh, "fibc", _WIDE, "float", ""),
    ("cosh", np.cosh, "fibc", _WIDE, "float", ""),
    ("tanh", np.tanh, "fibc", _WIDE, "float", ""),
    ("asinh", np.arcsinh, "fibc", _WIDE, "float", "arcsinh"),
    ("acosh", np.arccosh, "fibc", (1.2, 4.0), "float", "arccosh"),
    ("atanh", np.arctanh, "fibc", (-0.45, 0.45), "float", "arctanh"),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), "fibc", _WIDE, "float", ""),
    ("sinc", np.sinc, "fibc", (0.15, 1.9), "float", ""),
    ("deg2rad", np.deg2rad, "fib", _WIDE, "float", ""),
    ("rad2deg", np.rad2deg, "fib", _WIDE, "float", ""),
    ("erf", scipy_special("erf"), "fib", _WIDE, "float", ""),
    ("erfc", scipy_special("erfc"), "fib", _WIDE, "float", ""),
    ("erfinv", scipy_special("erfinv"), "fib", (-0.49, 0.49), "float", ""),
    ("lgamma", scipy_special("gammaln"), "fib", (0.4, 5.0), "float", ""),
    ("digamma", scipy_special("psi"), "fib", (0.5, 5.0), "float", ""),
    ("i0", scipy_special("i0"), "fib", _WIDE, "float", ""),
    ("angle", np.angle, "fibc", (0.1, 2.0), "float_real", ""),
    ("conj_physical", np.conj, "fic", _WIDE, "same", ""),
    ("sgn", refs.sgn, "fibc", _WIDE, "same", ""),
    ("sign", refs.sgn, "fib", _WIDE, "same", ""),
    ("frac", lambda x: x - np.trunc(x), "f", _WIDE, "same", ""),
    ("floor", np.floor, "fi", _WIDE, "same", ""),
    ("ceil", np.ceil, "fi", _WIDE, "same", ""),
    ("trunc", np.trunc, "fi", _WIDE, "same", "fix"),
    ("isnan", np.isnan, "fibc", _WIDE, "bool", ""),
    ("isinf", np.isinf, "fibc", _WIDE, "bool", ""),
    ("isfinite", np.isfinite, "fibc", _WIDE, "bool", ""),
    ("isposinf", np.isposinf, "fib", _WIDE, "bool", ""),
    ("isneginf", np.isneginf, "fib", _WIDE, "bool", ""),
    ("isreal", np.isreal, "fibc", _WIDE, "bool", ""),
    ("signbit", lambda x: x < 0, "fib", _WIDE, "bool", ""),
    ("logical_not", np.logical_not, "fibc", _WIDE, "bool", ""),
    ("bitwise_not", np.bitwise_not, "ib", _WIDE, "same", ""),
]
_CONSTANT = {
    "isnan",
    "isinf",
    "isfinite",
    "isposinf",
    "isneginf",
    "isreal",
    "signbit",
    "logical_not",
}
_NO_OUT = {"isnan", "isinf", "isfinite", "isreal", "positive"}

# Wider tolerance where the result is sensitive to the rounding of a 16-bit input inside a library.
_SENSITIVE = {"tan", "lgamma", "digamma", "erfinv", "sinc", "exp", "sinh", "cosh"}


def _unary(name, ref, codes, bounds, out_dtype, aliases) -> OpInfo:
    return OpInfo(
        name,
        unary_samples,
        ref,
        codes,
        kind="unary",
        bounds=bounds,
        out_dtype=out_dtype,
        aliases=tuple(aliases.split()),
        supports_out=name not in _NO_OUT,
        inplace=None if name in _CONSTANT - {"logical_not"} else "",
        grad_codes="" if name in _CONSTANT else "dc",
        tolerances=HALF if name in _SENSITIVE else {},
    )


# ---- two operands ----------------------------------------------------------------------------
# name, reference, dtypes, intervals (of both), dtype of the result, numbers on the right, aliases

_BINARY = [
    ("add", np.add, "fibc", None, None, "same", (2,), ""),
    ("sub", np.subtract, "fic", None, None, "same", (2,), "subtract"),
    ("mul", np.multiply, "fibc", None, None, "same", (2,), "multiply"),
    ("div", np.true_divide, "fibc", (1.0, 3.0), None, "float", (2,), "divide"),
    ("true_divide", np.true_divide, "fibc", (1.0, 3.0), None, "float", (2,), ""),
    ("rsub", lambda a, b: b - a, "fic", None, None, "same", (2,), ""),
    ("floor_divide", np.floor_divide, "fi", (-5.0, 5.0), (1.0, 2.5), "same", (2,), ""),
    ("remainder", np.remainder, "fi", (-5.0, 5.0), (1.0, 2.5), "same", (2,), ""),
    ("fmod", np.fmod, "fi", (-5.0, 5.0), (1.0, 2.5), "same", (2,), ""),
    ("pow", np.power, "fic", (0.5, 2.0), (1.0, 2.0), "same", (2,), ""),
    (
        "float_power",
        np.float_power,
        "fibc",
        (0.5, 2.0),
        (1.0, 2.0),
        lambda d: torch.complex128 if d.is_complex else torch.float64,
        (2,),
        "",
    ),
    ("eq", np.equal, "fibc", None, None, "bool", (2,), ""),
    ("ne", np.not_equal, "fibc", None, None, "bool", (2,), "not_equal"),
    ("lt", np.less, "fib", None, None, "bool", (1,), "less"),
    ("le", np.less_equal, "fib", None, None, "bool", (1,), "less_equal"),
    ("gt", np.greater, "fib", None, None, "bool", (1,), "greater"),
    ("ge", np.greater_equal, "fib", None, None, "bool", (1,), "greater_equal"),
    ("maximum", np.maximum, "fib", None, None, "same", (), ""),
    ("minimum", np.minimum, "fib", None, None, "same", (), ""),
    ("fmax", np.fmax, "fib", None, None, "same", (), ""),
    ("fmin", np.fmin, "fib", None, None, "same", (), ""),
    ("heaviside", refs.heaviside, "fib", None, None, "same", (), ""),
    ("logical_and", np.logical_and, "fibc", None, None, "bool", (), ""),
    ("logical_or", np.logical_or, "fibc", None, None, "bool", (), ""),
    ("logical_xor", np.logical_xor, "fibc", None, None, "bool", (), ""),
    ("bitwise_and", np.bitwise_and, "ib", None, None, "same", (1,), ""),
    ("bitwise_or", np.bitwise_or, "ib", None, None, "same", (1,), ""),
    ("bitwise_xor", np.bitwise_xor, "ib", None, None, "same", (1,), ""),
    ("bitwise_left_shift", np.left_shift, "i", (0.0, 2.0), (0.0, 1.5), "same", (1,), ""),
    ("bitwise_right_shift", np.right_shift, "i", (0.0, 2.0), (0.0, 1.5), "same", (1,), ""),
    ("hypot", np.hypot, "f", (0.2, 2.0), None, "same", (), ""),
    ("copysign", np.copysign, "fib", None, None, "float", (2,), ""),
    ("nextafter", None, "d", None, None, "same", (), ""),
    ("gcd", np.gcd, "i", (0.0, 6.0), None, "same", (), ""),
    ("lcm", np.lcm, "i", (0.0, 3.0), None, "same", (), ""),
    ("atan2", np.arctan2, "fib", (0.2, 2.0), None, "float", (), "arctan2"),
    ("logaddexp", np.logaddexp, "f", None, None, "same", (), ""),
    ("logaddexp2", np.logaddexp2, "f", None, None, "same", (), ""),
    ("xlogy", refs.xlogy, "fib", (0.5, 2.0), None, "float", (2,), ""),
    ("igamma", scipy_special("gammainc"), "f", (0.5, 3.0), None, "same", (), ""),
    ("igammac", scipy_special("gammaincc"), "f", (0.5, 3.0), None, "same", (), ""),
    ("ldexp", lambda a, b: a * 2.0 ** np.asarray(b), "f", (-1.5, 1.5), None, "same", (), ""),
]
_PREDICATES = {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"}
_CONSTANT_2 = _PREDICATES | {"heaviside", "nextafter"}
_NO_OUT_2 = {"rsub"}
_BINARY_NOTES = {
    "floor_divide": {"grad_codes": ""},
    "rsub": {"inplace": None},
    "float_power": {
        "tolerances": {torch.float32: (1e-9, 1e-10)},
        "skips": {"inplace": "the result is float64, which self cannot hold"},
    },
    "nextafter": {"check": lambda s, r: _check_nextafter(s, r)},
    "pow": {"tolerances": HALF},
    "ldexp": {"tolerances": HALF},
    "heaviside": {},
}


def _check_nextafter(sample, result) -> None:
    dtype = np.float32 if result.dtype is torch.float32 else np.float64
    arrays = [x.detach().numpy().astype(dtype) for x in (sample.input, *sample.args)]
    np.testing.assert_array_equal(result.numpy(), np.nextafter(*arrays))


def _binary(name, ref, codes, bounds, second, out_dtype, numbers, aliases) -> OpInfo:
    options = {
        "kind": "binary",
        "bounds": bounds,
        "out_dtype": out_dtype,
        "aliases": tuple(aliases.split()),
        "supports_out": name not in _NO_OUT_2,
        "grad_codes": "" if name in _CONSTANT_2 else "dc",
        **_BINARY_NOTES.get(name, {}),
    }
    return OpInfo(name, binary_samples(numbers, second), ref, codes, **options)


# ---- the rest -------------------------------------------------------------------------------


def _ternary(t) -> list[SampleInput]:
    low = 0.5 if t.dtype.is_floating_point or t.dtype.is_complex else 1
    calls = []
    for a, b, c in [((2, 3), (2, 3), (2, 3)), ((2, 1), (3,), ()), ((0, 3), (3,), (0, 3))]:
        calls.append(call(t(*a), t(*b), t(*c, low=low)))
    return [*calls, call(t(2, 3), t(2, 3), t(2, 3, low=low), value=2)]


def _lerp(t) -> list[SampleInput]:
    return [
        call(t(2, 3), t(2, 3), 0.3),
        call(t(2, 3), t(3), t(2, 1, low=0.0, high=1.0)),
        call(t(0, 3), t(3), 0.7),
        call(t(), t(2, 3), t(low=0.0, high=1.0)),
    ]


def _clamp(t) -> list[SampleInput]:
    return [
        call(t(2, 3), 0, 1),
        call(t(2, 3), max=1),
        call(t(2, 3), min=0),
        call(t(2, 3), t(3, high=0.0), t(2, 1, low=0.5)),
        call(t(), 0, 1),
        call(t(0, 3), 0, 1),
        call(t(67), 0, 1),
    ]


_COMPARE_CLOSE = [(1.0, 1.0), (1.0, 1.00001), (1.0, 1.1), (float("nan"), float("nan"))]


def _isclose(t) -> list[SampleInput]:
    pairs = torch.tensor(_COMPARE_CLOSE, dtype=torch.float64).to(t.dtype)
    first, second = pairs.unbind(1)
    calls = [call(first, second), call(t(2, 3), t(2, 3), 0.5, 0.5), call(t(0), t(0))]
    if t.dtype.is_floating_point or t.dtype.is_complex:
        calls.append(call(first, second, equal_nan=True))
    return calls


def _frexp(x) -> tuple[np.ndarray | np.generic, np.ndarray | np.generic]:
    return np.frexp(x)


def _nan_values(t) -> list[SampleInput]:
    values = [float("nan"), float("inf"), float("-inf"), 0.5, -1.0, 2.0]
    special = torch.tensor(values, dtype=torch.float64).to(t.dtype)
    if not t.dtype.is_floating_point:
        special = t(6)
    return [
        call(special.requires_grad_(t.requires_grad)),
        call(t(2, 3), 1.0),
        call(special.detach().clone(), nan=2.0, posinf=3.0, neginf=-3.0),
    ]


def _cast(name, dtype) -> OpInfo:
    """Tensor.float() and its like."""

    def ref(x) -> np.ndarray | np.generic:
        x = x.real if x.dtype.kind == "c" and not dtype.is_complex else x
        if dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
            return x != 0 if dtype is torch.bool else x
        return np.trunc(x).astype(np.int64)

    kept = {"double": "d", "cdouble": "dc", "float": "", "cfloat": ""}
    rounding = {torch.float64: (3e-2, 1e-2)} if dtype.itemsize < 4 else {}
    return OpInfo(
        name,
        unary_samples,
        ref,
        "fib" + ("c" if dtype.is_complex else ""),
        op=getattr(torch.Tensor, name),
        aten_name="to",
        bounds=(0.0, 2.0),
        kind="unary",
        out_dtype=dtype,
        inplace=None,
        grad_codes=kept.get(name, ""),
        tolerances=rounding,
        generic_errors=False,
    )


def _reflected(name, ref, codes, **options) -> OpInfo:
    return OpInfo(
        name,
        lambda t: [call(t(2, 3), 2), call(t(), 3), call(t(0, 3), 1)],
        ref,
        codes,
        op=getattr(torch.Tensor, name),
        aten_name=options.pop("aten_name"),
        inplace=None,
        generic_errors=False,
        **options,
    )


_CASTS = {
    "bfloat16": torch.bfloat16,
    "bool": torch.bool,
    "byte": torch.uint8,
    "char": torch.int8,
    "short": torch.int16,
    "int": torch.int32,
    "long": torch.int64,
    "half": torch.float16,
    "float": torch.float32,
    "double": torch.float64,
    "cfloat": torch.complex64,
    "cdouble": torch.complex128,
}

RECORDS = [
    *[_unary(*row) for row in _UNARY],
    *[_binary(*row) for row in _BINARY],
    *[_cast(name, dtype) for name, dtype in _CASTS.items()],
    _reflected("__radd__", lambda a, b: b + a, "fibc", aten_name="add"),
    _reflected("__rsub__", lambda a, b: b - a, "fic", aten_name="rsub"),
    _reflected("__rmul__", lambda a, b: b * a, "fibc", aten_name="mul"),
    _reflected("__rdiv__", lambda a, b: b / a, "fibc", aten_name="div", bounds=(0.5, 2.0)),
    _reflected(
        "__rmod__", lambda a, b: np.remainder(b, a), "fi", aten_name="remainder", bounds=(0.7, 2.2)
    ),
    _reflected(
        "__rpow__", lambda a, b: np.power(float(b), a), "f", aten_name="pow", tolerances=HALF
    ),
    _reflected("__rand__", lambda a, b: b & a, "i", aten_name="bitwise_and"),
    _reflected("__ror__", lambda a, b: b | a, "i", aten_name="bitwise_or"),
    _reflected("__rxor__", lambda a, b: b ^ a, "i", aten_name="bitwise_xor"),
    OpInfo(
        "div",
        lambda t: (
            [call(t(2, 3), t(3, low=1.0), rounding_mode=mode) for mode in ("floor", "trunc", None)]
            + [call(t(2, 3), 2, rounding_mode="floor"), call(t(0), t(0), rounding_mode="trunc")]
        ),
        refs.divide,
        "fi",
        variant_test_name="rounding_mode",
        bounds=(-5.0, 5.0),
        supports_out=True,
        errors=lambda t: [
            error(RuntimeError, "rounding_mode", t(2), t(2), rounding_mode="up"),
            error(RuntimeError, "must match the size", t(2), t(3), rounding_mode="floor"),
        ],
    ),
    OpInfo(
        "add",
        lambda t: [call(t(2, 3), t(3), alpha=2), call(t(2, 3), 3, alpha=2)],
        lambda a, b, alpha: a + alpha * b,
        "fic",
        variant_test_name="alpha",
        out_dtype="same",
        supports_out=True,
        errors=lambda t: [
            error(
                RuntimeError,
                "must not be a floating point number",
                t(2).long(),
                t(2).long(),
                alpha=0.5,
            ),
            error(RuntimeError, "Boolean alpha only supported", t(2), t(2), alpha=True),
        ],
    ),
    OpInfo(
        "addcmul",
        _ternary,
        lambda a, b, c, value=1: a + value * b * c,
        "fic",
        out_dtype="same",
        supports_out=True,
        tolerances=HALF,
        errors=lambda t: [error(RuntimeError, "must match the size", t(2), t(3), t(3))],
    ),
    OpInfo(
        "addcdiv",
        _ternary,
        lambda a, b, c, value=1: a + value * b / c,
        "fc",
        out_dtype="same",
        supports_out=True,
        tolerances=HALF,
        errors=lambda t: [
            error(
                RuntimeError,
                "Integer division with addcdiv is no longer supported",
                *[t(2).long() + 1] * 3,
            ),
            error(RuntimeError, "must match the size", t(2), t(3), t(3)),
        ],
    ),
    OpInfo(
        "lerp",
        _lerp,
        refs.lerp,
        "fc",
        out_dtype="same",
        supports_out=True,
        tolerances=HALF,
        errors=lambda t: [
            error(RuntimeError, "same dtype|expected dtype", t(2), t(2).double(), 0.5),
            error(RuntimeError, "must match the size", t(2), t(3), 0.5),
        ],
    ),
    OpInfo(
        "clamp",
        _clamp,
        refs.clamp,
        "fi",
        out_dtype="same",
        supports_out=True,
        aliases=("clip",),
        tolerances=HALF,
        errors=lambda t: [
            error(RuntimeError, "At least one of 'min' or 'max'", t(2)),
            error(RuntimeError, "complex", t(2).to(torch.complex64), 0, 1),
        ],
    ),
    OpInfo(
        "clamp_min",
        binary_samples((0,)),
        np.maximum,
        "fi",
        kind="binary",
        out_dtype="same",
        supports_out=True,
    ),
    OpInfo(
        "clamp_max",
        binary_samples((1,)),
        np.minimum,
        "fi",
        kind="binary",
        out_dtype="same",
        supports_out=True,
    ),
    OpInfo(
        "round",
        with_arguments((), ({"decimals": 0},)),
        refs.round_decimals,
        "fi",
        out_dtype="same",
        supports_out=True,
        kind="unary",
    ),
    OpInfo(
        "round",
        with_arguments(({"decimals": 1},), ({"decimals": 3},)),
        refs.round_decimals,
        "d",
        variant_test_name="decimals",
        out_dtype="same",
        supports_out=True,
    ),
    OpInfo(
        "logit",
        lambda t: [call(t(2, 3)), call(t(67), 0.3), call(t(0)), call(t(), eps=0.1)],
        refs.logit,
        "fib",
        bounds=(0.1, 0.9),
        out_dtype="float",
        supports_out=True,
        kind="unary",
        tolerances=HALF,
    ),
    OpInfo(
        "nan_to_num",
        _nan_values,
        refs.nan_to_num,
        "fib",
        out_dtype="same",
        supports_out=True,
        skips={
            f"value:{d}": "NumPy replaces infinity by the limits of float64"
            for d in ("float16", "bfloat16", "float32")
        },
    ),
    OpInfo(
        "isclose",
        _isclose,
        refs.isclose,
        "fibc",
        out_dtype="bool",
        grad_codes="",
        errors=lambda t: [
            error(RuntimeError, "rtol must be greater than or equal to zero", t(2), t(2), -1.0),
            error(
                RuntimeError, "atol must be greater than or equal to zero", t(2), t(2), 0.1, -1.0
            ),
        ],
    ),
    OpInfo("frexp", unary_samples, _frexp, "f", kind="unary", supports_out=False),
    OpInfo(
        "complex",
        lambda t: [call(t(2, 3), t(3)), call(t(), t()), call(t(0), t(0))],
        lambda a, b: a + 1j * b,
        "d",
        out_dtype=lambda d: d.to_complex(),
        supports_out=True,
        errors=lambda t: [
            error(RuntimeError, "Expected both inputs to be", t(2).long(), t(2).long()),
            error(RuntimeError, "Expected object of scalar type", t(2), t(2).double()),
        ],
    ),
    OpInfo(
        "polar",
        lambda t: [call(t(2, 3, low=0.2), t(3)), call(t(low=1.0), t())],
        lambda a, b: a * np.exp(1j * b),
        "d",
        out_dtype=lambda d: d.to_complex(),
        supports_out=True,
        errors=lambda t: [
            error(RuntimeError, "Expected both inputs to be", t(2).long(), t(2).long()),
            error(RuntimeError, "Expected object of scalar type", t(2), t(2).double()),
        ],
    ),
]
