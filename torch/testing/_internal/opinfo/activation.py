"""Records of the activation family: nn.functional's activations and the softmax functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from . import refs
from .core import OpInfo, SampleInput, call, error, unary_samples, with_arguments

HALF = {torch.float16: (1e-2, 5e-3), torch.bfloat16: (6e-2, 3e-2)}


def _sigmoid(x) -> np.ndarray | np.generic:
    return 1 / (1 + np.exp(-x))


def _softplus(x, beta=1, threshold=20) -> np.ndarray:
    return np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta)


def _erf(x) -> np.ndarray | np.generic:
    import scipy.special

    return scipy.special.erf(x)


def _gelu(x, approximate="none") -> np.ndarray | np.generic:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _erf(x / np.sqrt(2)))


def _elu(x, alpha=1.0) -> np.ndarray:
    return np.where(x > 0, x, alpha * np.expm1(x))


def _glu(x, dim=-1) -> np.ndarray:
    a, b = np.split(x, 2, dim)
    return a * _sigmoid(b)


_SELU = (1.0507009873554805, 1.6732632423543772)

# name -> (reference, further argument lists, dtypes, in-place form)
_TABLE = {
    "relu": (lambda x: np.maximum(x, 0), [], "fi", "relu_"),
    "relu6": (lambda x: np.clip(x, 0, 6), [], "fi", None),
    "silu": (lambda x: x * _sigmoid(x), [], "fc", None),
    "mish": (lambda x: x * np.tanh(_softplus(x)), [], "f", None),
    "hardswish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, [], "f", None),
    "hardsigmoid": (lambda x: np.clip(x + 3, 0, 6) / 6, [], "f", None),
    "elu": (_elu, [(0.7,)], "f", None),
    "celu": (
        lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x / alpha)),
        [(1.3,)],
        "f",
        "celu_",
    ),
    "selu": (lambda x: _SELU[0] * _elu(x, _SELU[1]), [], "f", "selu_"),
    "leaky_relu": (lambda x, s=0.01: np.where(x > 0, x, x * s), [(0.2,)], "f", None),
    "hardtanh": (lambda x, a=-1.0, b=1.0: np.clip(x, a, b), [(-0.5, 0.7)], "f", None),
    "softplus": (_softplus, [(2.0, 1.0)], "f", None),
    "threshold": (lambda x, a, v: np.where(x > a, x, v), None, "fi", "threshold_"),
    "hardshrink": (lambda x, k=0.5: np.where(np.abs(x) > k, x, 0), [(1.0,)], "f", None),
    "softshrink": (lambda x, k=0.5: np.sign(x) * np.maximum(np.abs(x) - k, 0), [(1.0,)], "f", None),
    "softsign": (lambda x: x / (1 + np.abs(x)), [], "fic", None),
    "tanhshrink": (lambda x: x - np.tanh(x), [], "fc", None),
    "logsigmoid": (lambda x: -_softplus(-x), [], "f", None),
    "gelu": (_gelu, [({"approximate": "tanh"},)], "f", None),
    "sigmoid": (_sigmoid, [], "fibc", None),
    "tanh": (np.tanh, [], "fibc", None),
}
_FLOAT = {"sigmoid", "tanh", "softsign"}
_ERRORS = {
    "gelu": lambda t: [error(RuntimeError, "approximate argument must be", t(2), approximate="x")],
    "softshrink": lambda t: [error(RuntimeError, "greater or equal to 0|in range", t(2), -1.0)],
    "celu": lambda t: [error(RuntimeError, "alpha|cannot be 0|zero|ZeroDivision", t(2), 0)],
    "leaky_relu": lambda t: [error(TypeError, "must be Number|must be float|str", t(2), "x")],
    "hardtanh": lambda t: [error((ValueError, RuntimeError), "", t(2), 1.0, -1.0)],
}
_COVERS = {
    "logsigmoid": ("log_sigmoid", "log_sigmoid_forward", "log_sigmoid_backward"),
}


def _activation(name, ref, more, codes, inplace) -> OpInfo:
    rest = [(0.1, 2)] if more is None else [(), *more]

    def samples(t) -> list[SampleInput]:
        base = unary_samples(t) if more is not None else []
        return base + with_arguments(*rest)(t)

    backward = (
        ()
        if name in ("relu", "relu6", "celu", "selu", "softsign", "tanhshrink")
        else (f"{name}_backward",)
    )
    return OpInfo(
        f"nn.functional.{name}",
        samples,
        ref,
        codes,
        out_dtype="float" if name in _FLOAT else "same",
        kind="unary" if more is not None else "",
        bounds=(-2.5, 2.5),
        inplace=inplace,
        tolerances=HALF,
        errors=_ERRORS.get(name),
        covers=(*backward, *_COVERS.get(name, ())),
    )


def _dim_samples(t) -> list[SampleInput]:
    return [call(t(2, 3), 1), call(t(2, 3, 4), 0), call(t(), 0), call(t(67), -1), call(t(0, 3), 1)]


def _softmax_ref(log) -> Callable[..., object]:
    def ref(x, dim, **kwargs) -> np.ndarray:
        if x.ndim == 0:
            return np.zeros(()) if log else np.ones(())
        return refs.softmax(x, dim, log) if x.size else x

    return ref


_BAD_DIM = lambda t: [
    error(IndexError, "Dimension out of range", t(2, 3), 2),
    error(IndexError, "Dimension out of range", t(2, 3), -3),
]


def _softmax(name, log, **options) -> OpInfo:
    return OpInfo(
        name,
        _dim_samples,
        _softmax_ref(log),
        "f",
        out_dtype="same",
        tolerances=HALF,
        errors=_BAD_DIM,
        inplace=None,
        **options,
    )


def _safe_softmax(x, dim, dtype=None) -> np.ndarray:
    dead = (x == -np.inf).all(axis=dim, keepdims=True)
    return np.where(dead, 0.0, refs.softmax(np.where(dead, 0, x), dim))


def _with_dead_row(t) -> list[SampleInput]:
    x = t(2, 3, grad=False)
    x[0] = float("-inf")
    return [call(x.requires_grad_(t.requires_grad), -1), call(t(2, 3), 0)]


def _softmax_backward(g, y, dim, dtype) -> np.ndarray:
    return y * (g - (g * y).sum(axis=dim, keepdims=True))


def _softmax_backward_samples(t) -> list[SampleInput]:
    y = t(2, 3, low=0.1, high=0.9)
    return [call(t(2, 3), y, 1, t.dtype), call(t(2, 3), t(2, 3), 0, t.dtype)]


RECORDS = [
    *[_activation(name, *row) for name, row in _TABLE.items()],
    _softmax(
        "softmax",
        False,
        covers=("_softmax", "_softmax_backward_data", "special_softmax"),
        aliases=("special.softmax",),
    ),
    _softmax(
        "log_softmax",
        True,
        aliases=("special.log_softmax",),
        covers=("_log_softmax", "_log_softmax_backward_data", "special_log_softmax"),
    ),
    _softmax("nn.functional.softmax", False),
    _softmax("nn.functional.log_softmax", True),
    OpInfo(
        "nn.functional.softmin",
        _dim_samples,
        lambda x, dim: _softmax_ref(False)(-x, dim),
        "f",
        out_dtype="same",
        tolerances=HALF,
        errors=_BAD_DIM,
    ),
    OpInfo(
        "torch.ops.aten._safe_softmax.default",
        _with_dead_row,
        _safe_softmax,
        "f",
        op=torch.ops.aten._safe_softmax,
        aten_name="_safe_softmax",
        tolerances=HALF,
        inplace=None,
        grad_samples=lambda t: [call(t(2, 3), 0)],
        generic_errors=False,
    ),
    OpInfo(
        "_softmax_backward_data",
        _softmax_backward_samples,
        _softmax_backward,
        "f",
        op=torch.ops.aten._softmax_backward_data,
        tolerances=HALF,
        inplace=None,
        generic_errors=False,
    ),
    OpInfo(
        "nn.functional.glu",
        lambda t: [call(t(2, 4)), call(t(4, 3), 0), call(t(2, 6, 3), 1)],
        _glu,
        "f",
        out_dtype="same",
        tolerances=HALF,
        covers=("glu_backward", "glu_jvp"),
        errors=lambda t: [
            error(RuntimeError, "must be even", t(2, 3)),
            error(RuntimeError, "0-dimensional|scalars", t()),
            error(IndexError, "Dimension out of range", t(2, 4), 2),
        ],
    ),
    OpInfo(
        "nn.functional.prelu",
        lambda t: [call(t(2, 3), t(1)), call(t(2, 3, 4), t(3)), call(t(5), t(1))],
        lambda x, w: np.where(
            x > 0, x, x * (w.reshape(-1, *[1] * (x.ndim - 2)) if w.size > 1 else w)
        ),
        "f",
        out_dtype="same",
        tolerances=HALF,
        aliases=("prelu",),
        covers=("_prelu_kernel", "_prelu_kernel_backward"),
        errors=lambda t: [
            error(RuntimeError, "number of parameters|Mismatch", t(2, 3), t(2)),
            error(RuntimeError, "dim|scalar|0D or 1D", t(2, 3), t(3, 1)),
        ],
    ),
]
