"""Records of the special family: torch.special against scipy.special."""

from __future__ import annotations

import numpy as np

import torch

from . import refs
from .core import OpInfo, binary_samples, call, scipy_special, unary_samples

HALF = {torch.float16: (1e-2, 5e-3), torch.bfloat16: (6e-2, 3e-2), torch.float32: (1e-4, 1e-5)}

# name, scipy's name, dtypes, interval
_UNARY = [
    ("entr", "entr", "fib", (0.2, 2.0)),
    ("ndtri", "ndtri", "fib", (0.1, 0.45)),
    ("ndtr", "ndtr", "fib", (-2.0, 2.0)),
    ("log_ndtr", "log_ndtr", "fib", (-2.0, 2.0)),
    ("erfcx", "erfcx", "dib", (-1.0, 2.0)),
    ("i0e", "i0e", "fib", (-2.0, 2.0)),
    ("i1", "i1", "dib", (0.2, 2.0)),
    ("i1e", "i1e", "dib", (0.2, 2.0)),
    ("bessel_j0", "j0", "dib", (0.2, 6.0)),
    ("bessel_j1", "j1", "dib", (0.2, 6.0)),
    ("bessel_y0", "y0", "dib", (0.5, 6.0)),
    ("bessel_y1", "y1", "dib", (0.5, 6.0)),
    ("modified_bessel_i0", "i0", "dib", (-2.0, 2.0)),
    ("modified_bessel_i1", "i1", "dib", (0.2, 2.0)),
    ("modified_bessel_k0", "k0", "dib", (0.5, 3.0)),
    ("modified_bessel_k1", "k1", "dib", (0.5, 3.0)),
    ("scaled_modified_bessel_k0", "k0e", "dib", (0.5, 3.0)),
    ("scaled_modified_bessel_k1", "k1e", "dib", (0.5, 3.0)),
]
# The same functions as in the pointwise family under the names of torch.special.
_ALIASES = {
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp2": "exp2",
    "expm1": "expm1",
    "log1p": "log1p",
    "sinc": "sinc",
    "digamma": "digamma",
    "psi": "digamma",
    "i0": "i0",
    "expit": "sigmoid",
    "gammaln": "lgamma",
}


def _airy(x) -> np.ndarray | np.generic:
    import scipy.special

    return scipy.special.airy(x)[0]


def _spherical(x) -> np.ndarray | np.generic:
    import scipy.special

    return scipy.special.spherical_jn(0, x)


def _float_op(name, samples, reference, codes, kind, bounds, out_dtype="float", **more) -> OpInfo:
    """The record of an operator without an in-place form."""
    return OpInfo(
        f"special.{name}",
        samples,
        reference,
        codes,
        kind=kind,
        bounds=bounds,
        out_dtype=out_dtype,
        supports_out=True,
        tolerances=HALF,
        inplace=None,
        **more,
    )


def _unary(name, scipy_name, codes, bounds) -> OpInfo:
    big = lambda t: call(t(70_001))
    reference = scipy_special(scipy_name)
    return _float_op(name, unary_samples, reference, codes, "unary", bounds, big=big)


def _alias(name, target) -> OpInfo:
    reference = {"sigmoid": "expit", "lgamma": "gammaln", "digamma": "psi"}.get(target, target)
    plain = {"exp2": np.exp2, "expm1": np.expm1, "log1p": np.log1p, "sinc": np.sinc}
    reference = plain.get(target) or scipy_special(reference)
    return _float_op(name, unary_samples, reference, "fib", "unary", (0.1, 0.45))


RECORDS = [
    *[_unary(*row) for row in _UNARY],
    *[_alias(name, target) for name, target in _ALIASES.items()],
    _float_op("airy_ai", unary_samples, _airy, "dib", "unary", (-2.0, 2.0)),
    _float_op("spherical_bessel_j0", unary_samples, _spherical, "dib", "unary", (0.5, 3.0)),
    _float_op(
        "zeta", binary_samples((2,), (0.5, 3.0)), scipy_special("zeta"), "dib", "binary", (1.5, 4.0)
    ),
    _float_op("xlog1py", binary_samples((2,)), refs.xlog1py, "fib", "binary", (0.5, 2.0)),
    _float_op("xlogy", binary_samples((2,)), refs.xlogy, "fib", "binary", (0.5, 2.0)),
    *[
        _float_op(name, binary_samples(()), scipy_special(name), "f", "binary", (0.5, 3.0), "same")
        for name in ("gammainc", "gammaincc")
    ],
]
