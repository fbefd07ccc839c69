"""Records of the factory family: tensors from sizes and numbers, windows, index grids."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from .core import OpInfo, SampleInput, call, error

_EMPTY = "uninitialised memory: only shape, dtype and strides are fixed"
_NO_INPUT = "there is no input tensor to enlarge or lay out"
_TOL = {torch.float16: (5e-3, 5e-3), torch.bfloat16: (4e-2, 4e-2), torch.float32: (1e-5, 1e-6)}


def _op(name, samples, ref, codes="fibc", **options) -> OpInfo:
    options.setdefault("inplace", None)
    options.setdefault("grad_codes", "")
    options.setdefault("tolerances", _TOL)
    return OpInfo(name, samples, ref, codes, **options)


def _typed(*argument_lists) -> Callable[..., object]:
    """Calls without a tensor, in the record's dtype."""
    return lambda t: [call(*a, dtype=t.dtype, device=t.device) for a in argument_lists]


def _size(*size, **kwargs) -> tuple[int, ...]:
    return tuple(size[0]) if size and isinstance(size[0], (tuple, list)) else size


def _fixed(value) -> Callable[..., object]:
    return lambda *size, **kwargs: np.full(_size(*size), value)


def _shape_only(sample, result) -> None:
    assert result.dtype == sample.kwargs.get("dtype", result.dtype)


_NEGATIVE = [error(RuntimeError, "negative dimension|negative", (-1,)), error(TypeError, "", "x")]
_SIZES = _typed(((2, 3),), ((),), ((0, 3),), (2, 3))


def _simple(name, value, codes="fibc", **options) -> OpInfo:
    return _op(
        name,
        _SIZES,
        _fixed(value),
        codes,
        out_dtype="same",
        errors=lambda t: _NEGATIVE,
        supports_out=False,
        **options,
    )


def _like(name, value) -> OpInfo:
    ref = (lambda x, *a, **k: np.full_like(x, value)) if value is not None else None
    return _op(
        name,
        lambda t: [call(t(2, 3)), call(t()), call(t(0, 3)), call(t(2, 3).mT)],
        ref,
        "fibc",
        out_dtype="same",
        kind="unary",
        check=_shape_only if value is None else None,
        skips={"layouts": _EMPTY, "threads": _EMPTY} if value is None else {},
    )


def _arange(*args, **kwargs) -> np.ndarray:
    return np.arange(*args)


def _windows():
    import importlib

    try:
        module = importlib.import_module("torch.signal.windows")
    except ImportError:
        return
    table = {
        "bartlett": "bartlett",
        "blackman": "blackman",
        "cosine": "cosine",
        "hamming": "hamming",
        "hann": "hann",
        "nuttall": "nuttall",
    }
    for name, scipy_name in table.items():
        if hasattr(module, name):
            yield _window(name, lambda n, *, sym=True, k=scipy_name, **o: _scipy_window(k, n, sym))
    extra = {
        "exponential": (
            {"tau": 2.0},
            lambda n, *, tau=1.0, sym=True, **o: _scipy_window(("exponential", None, tau), n, sym),
        ),
        "gaussian": (
            {"std": 1.5},
            lambda n, *, std=1.0, sym=True, **o: _scipy_window(("gaussian", std), n, sym),
        ),
        "kaiser": (
            {"beta": 5.0},
            lambda n, *, beta=12.0, sym=True, **o: _scipy_window(("kaiser", beta), n, sym),
        ),
        "general_hamming": (
            {"alpha": 0.6},
            lambda n, *, alpha=0.54, sym=True, **o: _scipy_window(
                ("general_hamming", alpha), n, sym
            ),
        ),
        "general_cosine": (
            {"a": [0.5, 0.3, 0.2]},
            lambda n, *, a, sym=True, **o: _scipy_window(("general_cosine", a), n, sym),
        ),
    }
    for name, (keywords, ref) in extra.items():
        if hasattr(module, name):
            yield _window(name, ref, **keywords)


def _scipy_window(which, count, sym) -> np.ndarray:
    import scipy.signal

    return scipy.signal.get_window(which, count, fftbins=not sym)


def _window(name, ref, **keywords) -> OpInfo:
    def samples(t) -> list[SampleInput]:
        options = {"dtype": t.dtype, **keywords}
        return [call(7, **options), call(8, sym=False, **options), call(1, **options)]

    return _op(
        f"signal.windows.{name}",
        samples,
        ref,
        "d",
        aten_name="",
        skips={"meta": _NO_INPUT},
        errors=lambda t: [error(ValueError, "non-negative", -1, **keywords)],
        tolerances={torch.float32: (1e-4, 1e-5)},
    )


RECORDS = [
    _simple("zeros", 0),
    _simple("ones", 1),
    _op(
        "empty",
        _SIZES,
        None,
        "fibc",
        check=_shape_only,
        errors=lambda t: _NEGATIVE,
        skips={"layouts": _EMPTY, "threads": _EMPTY},
    ),
    _op(
        "empty_strided",
        _typed(((2, 3), (1, 2)), ((2, 2), (4, 1))),
        None,
        "fibc",
        check=_shape_only,
        errors=lambda t: [
            error(RuntimeError, "", (2,), (1, 1)),
            error(RuntimeError, "negative", (-1,), (1,)),
        ],
        skips={"layouts": _EMPTY, "threads": _EMPTY},
    ),
    _op(
        "empty_permuted",
        _typed(((2, 3, 4), (2, 0, 1)), ((2, 3), (0, 1))),
        None,
        "fibc",
        check=_shape_only,
        errors=lambda t: [
            error(RuntimeError, "", (2, 3), (0, 0)),
            error(RuntimeError, "", (2, 3), (0,)),
        ],
        skips={"layouts": _EMPTY, "threads": _EMPTY},
    ),
    _op(
        "full",
        _typed(((2, 3), 1), ((), 1), ((0, 3), 1)),
        lambda s, v, **k: np.full(s, v),
        out_dtype="same",
        errors=lambda t: [
            error(RuntimeError, "negative", (-1,), 1),
            error(TypeError, "", (2,), "x"),
        ],
    ),
    _op(
        "scalar_tensor",
        _typed((1,), (0,)),
        lambda v, **k: np.asarray(v),
        out_dtype="same",
        errors=lambda t: [error(TypeError, "", "x")],
    ),
    _op(
        "eye",
        _typed((3,), (2, 4), (0,)),
        lambda n, m=None, **k: np.eye(n, m),
        out_dtype="same",
        errors=lambda t: [
            error(RuntimeError, "greater or equal to 0", -1),
            error(RuntimeError, "greater or equal to 0", 2, -1),
        ],
    ),
    _op(
        "arange",
        _typed((5,), (1, 7), (1, 8, 2), (0,)),
        _arange,
        "fi",
        out_dtype="same",
        errors=lambda t: [
            error(RuntimeError, "nonzero", 0, 5, 0),
            error(RuntimeError, "upper bound and (larger|lower) bound|inconsistent", 5, 0, 1),
            error(TypeError, "", "x"),
        ],
    ),
    _op(
        "range",
        _typed((1, 7), (1, 8, 2)),
        lambda a, b, s=1, **k: np.arange(a, b + s / 2, s),
        "fi",
        out_dtype="same",
        errors=lambda t: [
            error(RuntimeError, "nonzero", 0, 5, 0),
            error(RuntimeError, "bound|inconsistent", 5, 0, 1),
        ],
    ),
    _op(
        "linspace",
        _typed((0, 8, 5), (1, 2, 1), (3, 3, 0), (0, 100, 67)),
        lambda a, b, n, **k: np.linspace(a, b, n),
        "f",
        out_dtype="same",
        errors=lambda t: [
            error(RuntimeError, "non-negative", 0, 1, -1),
            error(TypeError, "", 0, 1, "x"),
        ],
    ),
    _op(
        "logspace",
        _typed((0, 2, 5), (1, 2, 3, 2.0)),
        lambda a, b, n, base=10.0, **k: np.logspace(a, b, n, base=base),
        "f",
        out_dtype="same",
        errors=lambda t: [error(RuntimeError, "non-negative", 0, 1, -1)],
    ),
    _op(
        "tril_indices",
        lambda t: [call(3, 4), call(3, 3, 1), call(4, 2, -1)],
        lambda r, c, k=0: np.stack(np.tril_indices(r, k, c)),
        "l",
        out_dtype="int64",
        skips={"meta": _NO_INPUT},
        errors=lambda t: [error(RuntimeError, "non-negative", -1, 2)],
    ),
    _op(
        "triu_indices",
        lambda t: [call(3, 4), call(3, 3, 1), call(4, 2, -1)],
        lambda r, c, k=0: np.stack(np.triu_indices(r, k, c)),
        "l",
        out_dtype="int64",
        skips={"meta": _NO_INPUT},
        errors=lambda t: [error(RuntimeError, "non-negative", -1, 2)],
    ),
    _like("zeros_like", 0),
    _like("ones_like", 1),
    _like("empty_like", None),
    _op(
        "full_like",
        lambda t: [call(t(2, 3), 1), call(t(), 1)],
        lambda x, v: np.full_like(x, v),
        out_dtype="same",
        errors=lambda t: [error(TypeError, "", t(2), "x")],
    ),
    _op(
        "new_zeros",
        lambda t: [call(t(2), (2, 3)), call(t(2), (0,))],
        lambda x, s: np.zeros(s),
        out_dtype="same",
        big=lambda t: call(t(2), (600, 500)),
    ),
    _op(
        "new_ones",
        lambda t: [call(t(2), (2, 3)), call(t(2), (0,))],
        lambda x, s: np.ones(s),
        out_dtype="same",
        big=lambda t: call(t(2), (600, 500)),
    ),
    _op(
        "new_full",
        lambda t: [call(t(2), (2, 3), 1)],
        lambda x, s, v: np.full(s, v),
        out_dtype="same",
        big=lambda t: call(t(2), (600, 500), 1),
    ),
    _op(
        "new_empty",
        lambda t: [call(t(2), (2, 3))],
        None,
        check=lambda s, r: None,
        skips={"layouts": _EMPTY, "threads": _EMPTY},
    ),
    _op(
        "new_empty_strided",
        lambda t: [call(t(2), (2, 3), (1, 2))],
        None,
        check=lambda s, r: None,
        skips={"layouts": _EMPTY, "threads": _EMPTY},
    ),
    _op(
        "fill",
        lambda t: [call(t(2, 3), 1), call(t(0, 3), 1), call(t(2, 3), t())],
        lambda x, v: np.full_like(x, v),
        out_dtype="same",
        inplace="fill_",
        grad_codes="dc",
        op=lambda x, v: torch.fill(x, v),
        errors=lambda t: [
            error(RuntimeError, "0-dimension", t(2), t(2)),
            error(TypeError, "", t(2), "x"),
        ],
    ),
    _op(
        "zero_",
        lambda t: [call(t(2, 3)), call(t(0, 3))],
        lambda x: np.zeros_like(x),
        op=lambda x: x.clone().zero_(),
        aten_name="zero_",
        covers=("zero",),
        out_dtype="same",
        generic_errors=False,
    ),
    *_windows(),
]
