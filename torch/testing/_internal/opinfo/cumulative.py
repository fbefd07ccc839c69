"""Records of the cumulative family: running sums, products and extremes, differences, integrals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from .core import OpInfo, SampleInput, call, error

HALF = {torch.float16: (2e-2, 1e-2), torch.bfloat16: (8e-2, 6e-2)}


def _along(t) -> list[SampleInput]:
    return [call(t(2, 3), 1), call(t(2, 3, 4), 0), call(t(), 0), call(t(67), -1), call(t(0, 3), 1)]


def _scan(function) -> Callable[..., object]:
    return lambda x, dim: function(x, axis=dim) if x.ndim else x


def _logcumsumexp(x, dim) -> np.ndarray:
    return np.log(np.cumsum(np.exp(x), axis=dim)) if x.ndim else x


def _running(better) -> Callable[..., object]:
    """cummax and cummin: the value and where it was last met."""

    def ref(x, dim) -> tuple[np.ndarray, np.ndarray]:
        if x.ndim == 0 or not x.size:
            return x, np.zeros(x.shape, np.int64)
        moved = np.moveaxis(x, dim, -1)
        values, index = moved.copy(), np.zeros(moved.shape, np.int64)
        for line in np.ndindex(*moved.shape[:-1]):
            best = 0
            for k in range(moved.shape[-1]):
                if better(moved[line][k], moved[line][best]):
                    best = k
                values[line][k], index[line][k] = moved[line][best], best
        return np.moveaxis(values, -1, dim), np.moveaxis(index, -1, dim)

    return ref


def _diff(x, n=1, dim=-1, prepend=None, append=None) -> np.ndarray:
    extra = {k: v for k, v in (("prepend", prepend), ("append", append)) if v is not None}
    return np.diff(x, n, dim, **extra)


def _trapezoid(y, x=None, dx=1.0, dim=-1) -> np.ndarray:
    return np.trapezoid(y, x, dx, dim)


def _cumulative_trapezoid(y, x=None, dx=1.0, dim=-1) -> np.ndarray:
    import scipy.integrate

    return scipy.integrate.cumulative_trapezoid(y, x, dx, dim)


def _gradient(x, spacing=1, dim=None, edge_order=1) -> list[np.ndarray]:
    result = np.gradient(x, spacing, axis=dim, edge_order=edge_order)
    return list(result) if isinstance(result, (list, tuple)) else [result]


_DIM = lambda t: [
    error(IndexError, "Dimension out of range", t(2, 3), 2),
    error(TypeError, "", t(2, 3), "x"),
]
_CASTS = {
    "out_dtype": "computes in the dtype of out=, whatever it is",
    "inplace:bool": "computes in the dtype of self, even in bool",
}
_RULE = lambda t: [call(t(2, 3)), call(t(2, 3), t(3)), call(t(2, 3), dx=0.5), call(t(3, 4), dim=0)]

RECORDS = [
    OpInfo(
        "cumsum",
        _along,
        _scan(np.cumsum),
        "fibc",
        out_dtype="acc",
        supports_out=True,
        tolerances=HALF,
        errors=_DIM,
        skips=_CASTS,
    ),
    OpInfo(
        "cumprod",
        _along,
        _scan(np.cumprod),
        "fibc",
        bounds=(0.7, 1.3),
        out_dtype="acc",
        supports_out=True,
        tolerances=HALF,
        errors=_DIM,
        skips=_CASTS,
    ),
    OpInfo(
        "logcumsumexp",
        _along,
        _logcumsumexp,
        "fc",
        out_dtype="same",
        supports_out=True,
        tolerances=HALF,
        covers=("_logcumsumexp",),
        errors=_DIM,
    ),
    OpInfo(
        "cummax",
        _along,
        _running(lambda a, b: a >= b),
        "fib",
        out_dtype="same",
        supports_out=True,
        covers=("_cummax_helper",),
        errors=_DIM,
    ),
    OpInfo(
        "cummin",
        _along,
        _running(lambda a, b: a <= b),
        "fib",
        out_dtype="same",
        supports_out=True,
        covers=("_cummin_helper",),
        errors=_DIM,
    ),
    OpInfo(
        "diff",
        lambda t: [
            call(t(5)),
            call(t(2, 4), 2),
            call(t(3, 2), 1, 0),
            call(t(2, 3), 1, -1, t(2, 1), t(2, 2)),
        ],
        _diff,
        "fic",
        out_dtype="same",
        tolerances=HALF,
        errors=lambda t: [
            error(RuntimeError, "at least one-dimensional", t()),
            error(RuntimeError, "non-negative", t(3), -1),
        ],
    ),
    OpInfo(
        "trapezoid",
        _RULE,
        _trapezoid,
        "fc",
        out_dtype="same",
        tolerances=HALF,
        errors=lambda t: [
            error(RuntimeError, "one `x` value", t(2, 3), t(2)),
            error(IndexError, "Dimension out of range", t(2, 3), dim=2),
        ],
    ),
    OpInfo(
        "trapz",
        _RULE,
        _trapezoid,
        "fc",
        out_dtype="same",
        tolerances=HALF,
        errors=lambda t: [error(IndexError, "Dimension out of range", t(2, 3), dim=2)],
    ),
    OpInfo(
        "cumulative_trapezoid",
        _RULE,
        _cumulative_trapezoid,
        "fc",
        out_dtype="same",
        tolerances=HALF,
        errors=lambda t: [error(IndexError, "Dimension out of range", t(2, 3), dim=2)],
    ),
    OpInfo(
        "gradient",
        lambda t: [
            call(t(5)),
            call(t(3, 4), spacing=2.0),
            call(t(3, 4), dim=1),
            call(t(4, 3), dim=0, edge_order=2),
        ],
        _gradient,
        "fc",
        tolerances=HALF,
        errors=lambda t: [
            error(RuntimeError, "edge_order", t(5), edge_order=3),
            error(RuntimeError, "at least", t(1)),
        ],
    ),
]
