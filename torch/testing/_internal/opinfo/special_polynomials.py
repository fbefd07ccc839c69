"""Further records of the special family: orthogonal polynomials, polygamma functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from .core import OpInfo, SampleInput, call, error

TOL = {torch.float32: (1e-4, 1e-4), torch.float16: (2e-2, 2e-2), torch.bfloat16: (1e-1, 1e-1)}


def _scipy(name) -> Callable[..., object]:
    def ref(x, n) -> np.ndarray:
        import scipy.special

        return getattr(scipy.special, name)(np.asarray(n).astype(int), x)

    return ref


def _recurrence(first, step) -> Callable[..., object]:
    """A polynomial by its three-term recurrence: p0 = 1, p1 = first(x), p = step(x, n, p, p_)."""

    def ref(x, n) -> np.ndarray:
        x, n = np.broadcast_arrays(x, n)
        out = np.empty(x.shape)
        for place in np.ndindex(*x.shape):
            before, now = 1.0, first(x[place])
            for k in range(1, int(n[place])):
                before, now = now, step(x[place], k, now, before)
            out[place] = 1.0 if n[place] == 0 else now
        return out

    return ref


def _cosine(first) -> Callable[..., object]:
    """The Chebyshev polynomials: one recurrence, four first terms."""
    return _recurrence(first, lambda x, k, p, q: 2 * x * p - q)


def _shifted(first) -> Callable[..., object]:
    return lambda x, n: _cosine(first)(2 * x - 1, n)


_POLYNOMIALS = {
    "chebyshev_polynomial_t": _cosine(lambda x: x),
    "chebyshev_polynomial_u": _cosine(lambda x: 2 * x),
    "chebyshev_polynomial_v": _cosine(lambda x: 2 * x - 1),
    "chebyshev_polynomial_w": _cosine(lambda x: 2 * x + 1),
    "shifted_chebyshev_polynomial_t": _shifted(lambda x: x),
    "shifted_chebyshev_polynomial_u": _shifted(lambda x: 2 * x),
    "shifted_chebyshev_polynomial_v": _shifted(lambda x: 2 * x - 1),
    "shifted_chebyshev_polynomial_w": _shifted(lambda x: 2 * x + 1),
    "hermite_polynomial_h": _scipy("eval_hermite"),
    "hermite_polynomial_he": _scipy("eval_hermitenorm"),
    "laguerre_polynomial_l": _scipy("eval_laguerre"),
    "legendre_polynomial_p": _scipy("eval_legendre"),
}


def _orders(t) -> list[SampleInput]:
    order = t.index(2, 3, high=5).to(t.dtype) % 5
    return [call(t(2, 3), order), call(t(2, 3), 3), call(t(67), 2), call(t(0, 3), 1)]


def _polynomial(name, ref) -> OpInfo:
    return OpInfo(
        f"special.{name}",
        _orders,
        ref,
        "d",
        bounds=(0.05, 0.95),
        kind="binary",
        out_dtype="float",
        supports_out=True,
        tolerances=TOL,
        inplace=None,
        big=lambda t: call(t(300_007), 3),
    )


def _polygamma(n, x) -> np.ndarray:
    import scipy.special

    return scipy.special.polygamma(n, x)


def _multigammaln(x, p) -> np.ndarray | np.generic:
    import scipy.special

    total = sum(scipy.special.gammaln(x - i / 2) for i in range(p))
    return total + p * (p - 1) / 4 * np.log(np.pi)


def _logit(x, eps=None) -> np.ndarray:
    x = np.clip(x, eps, 1 - eps) if eps is not None else x
    return np.log(x / (1 - x))


def _polygammas(t) -> list[SampleInput]:
    return [call(n, t(2, 3)) for n in (0, 1, 2, 3)]


def _polygamma_record(name) -> OpInfo:
    return OpInfo(
        name,
        _polygammas,
        _polygamma,
        "fi",
        bounds=(0.6, 4.0),
        out_dtype="float",
        tolerances=TOL,
        inplace=None,
        supports_out=True,
        generic_errors=False,
    )


def _multigamma_record(name) -> OpInfo:
    return OpInfo(
        name,
        lambda t: [call(t(2, 3), 1), call(t(2, 3), 3), call(t(), 2)],
        _multigammaln,
        "f",
        bounds=(2.2, 6.0),
        out_dtype="float",
        tolerances=TOL,
        errors=lambda t: [error(RuntimeError, "greater than or equal to 1|p has to be", t(2), 0)],
    )


RECORDS = [
    *[_polynomial(name, ref) for name, ref in _POLYNOMIALS.items()],
    _polygamma_record("polygamma"),
    _polygamma_record("special.polygamma"),
    _multigamma_record("mvlgamma"),
    _multigamma_record("special.multigammaln"),
    OpInfo(
        "special.logit",
        lambda t: [call(t(2, 3)), call(t(2, 3), 0.3)],
        _logit,
        "f",
        bounds=(0.1, 0.9),
        out_dtype="float",
        tolerances=TOL,
        inplace=None,
    ),
    OpInfo(
        "special.round",
        lambda t: [call(t(2, 3)), call(t(2, 3), decimals=1)],
        lambda x, decimals=0: np.round(x, decimals),
        "d",
        out_dtype="same",
        inplace=None,
        supports_out=True,
    ),
]
