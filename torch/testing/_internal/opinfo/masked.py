"""Records of the masked family: torch.masked's reductions and normalisations, against the same in
NumPy on the elements that the mask keeps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from .core import OpInfo, SampleInput, call, error

TOL = {torch.float16: (2e-2, 2e-2), torch.bfloat16: (1e-1, 1e-1), torch.float32: (1e-4, 1e-5)}


def _kept(x, mask) -> np.ndarray:
    return np.ones(x.shape, bool) if mask is None else np.broadcast_to(mask, x.shape)


def _lines(function, empty) -> Callable[..., object]:
    """A reduction line by line; empty is the result where the mask keeps nothing."""

    def ref(x, dim=None, *, keepdim=False, mask=None, **options) -> np.ndarray:
        keep = _kept(x, mask)
        axes = tuple(range(x.ndim)) if dim is None else tuple(np.atleast_1d(dim))
        axes = tuple(a % x.ndim for a in axes)
        rest = [i for i in range(x.ndim) if i not in axes]
        moved = x.transpose([*rest, *axes]).reshape(*[x.shape[i] for i in rest], -1)
        kept = keep.transpose([*rest, *axes]).reshape(moved.shape)
        out = np.empty(moved.shape[:-1], np.result_type(moved, float))
        for place in np.ndindex(*moved.shape[:-1]):
            line = moved[place][kept[place]]
            out[place] = function(line, **options) if len(line) else empty
        return np.expand_dims(out, axes) if keepdim else out

    return ref


def _norm(x, ord, dim=None, **options) -> np.ndarray:
    return _lines(lambda v: np.linalg.norm(v, ord), 0.0)(x, dim, **options)


def _mask(t) -> torch.Tensor:
    """A mask that keeps something in every line."""
    mask = t.mask(3, 4)
    mask[:, 0] = True
    mask[0] = True
    return mask


def _reductions(t) -> list[SampleInput]:
    return [
        call(t(3, 4), 1, mask=_mask(t)),
        call(t(3, 4), 0, keepdim=True, mask=_mask(t)),
        call(t(3, 4), (0, 1), mask=_mask(t)),
        call(t(3, 4), 1),
    ]


def _one_dim(t) -> list[SampleInput]:
    return [call(t(3, 4), 1, mask=_mask(t)), call(t(3, 4), 0, mask=_mask(t)), call(t(3, 4), 1)]


def _along(function) -> Callable[..., object]:
    """A map along a dimension; what the mask drops is not compared (see _hide)."""

    def ref(x, dim, *, mask=None, **options) -> np.ndarray:
        keep = _kept(x, mask)
        out = np.zeros(x.shape, np.result_type(x, float))
        for place in np.ndindex(*[s for i, s in enumerate(x.shape) if i != dim % x.ndim]):
            line = list(place)
            line.insert(dim % x.ndim, slice(None))
            line = tuple(line)
            out[line][keep[line]] = function(x[line][keep[line]], **options)
        return out

    return ref


def _hide(name) -> Callable[..., object]:
    """The operator with zeros where the mask drops: there its value is not specified."""

    def op(x, dim, *args, mask=None, **options) -> torch.Tensor:
        out = getattr(torch.masked, name)(x, dim, *args, mask=mask, **options)
        return out if mask is None else torch.where(mask, out, torch.zeros_like(out))

    return op


def _softmax(x, sign=1, log=False) -> np.ndarray:
    e = np.exp(sign * x)
    return np.log(e / e.sum()) if log else e / e.sum()


_ERRORS = lambda t: [
    error(IndexError, "Dimension out of range", t(2, 3), 2),
]


def _reduce(name, function, empty, codes="f", **options) -> OpInfo:
    return OpInfo(
        f"masked.{name}",
        options.pop("samples", _reductions),
        _lines(function, empty),
        codes,
        tolerances=TOL,
        aten_name="",
        errors=options.pop("errors", _ERRORS),
        **options,
    )


def _map(name, function) -> OpInfo:
    return OpInfo(
        f"masked.{name}",
        _one_dim,
        _along(function),
        "f",
        op=_hide(name),
        tolerances=TOL,
        aten_name="",
        errors=lambda t: [error(IndexError, "Dimension out of range", t(2, 3), 2)],
    )


RECORDS = [
    _reduce("sum", np.sum, 0.0),
    _reduce("prod", np.prod, 1.0, bounds=(0.7, 1.3)),
    _reduce("amax", np.max, -np.inf),
    _reduce("amin", np.min, np.inf),
    _reduce("mean", np.mean, np.nan),
    _reduce("median", lambda v: np.sort(v)[(len(v) - 1) // 2], np.nan, samples=_one_dim),
    _reduce(
        "var",
        lambda v, unbiased: np.var(v),
        np.nan,
        samples=lambda t: [
            call(t(3, 4), 1, unbiased=False, mask=_mask(t)),
            call(t(3, 4), 0, unbiased=False),
        ],
        errors=None,
    ),
    _reduce(
        "std",
        lambda v, unbiased: np.std(v),
        np.nan,
        samples=lambda t: [
            call(t(3, 4), 1, unbiased=False, mask=_mask(t)),
            call(t(3, 4), 0, unbiased=False),
        ],
        errors=None,
    ),
    _reduce("logsumexp", lambda v: np.log(np.exp(v).sum()), -np.inf, samples=_one_dim),
    OpInfo(
        "masked.norm",
        lambda t: [call(t(3, 4), 2, 1, mask=_mask(t)), call(t(3, 4), 1, 0)],
        _norm,
        "f",
        tolerances=TOL,
        aten_name="",
        errors=lambda t: [error(IndexError, "Dimension out of range", t(2, 3), 2, 2)],
    ),
    OpInfo(
        "masked.argmax",
        _one_dim,
        lambda x, dim, mask=None: np.where(_kept(x, mask), x, -np.inf).argmax(dim),
        "f",
        grad_codes="",
        aten_name="",
        errors=_ERRORS,
    ),
    OpInfo(
        "masked.argmin",
        _one_dim,
        lambda x, dim, mask=None: np.where(_kept(x, mask), x, np.inf).argmin(dim),
        "f",
        grad_codes="",
        aten_name="",
        errors=_ERRORS,
    ),
    _map("softmax", _softmax),
    _map("log_softmax", lambda v: _softmax(v, log=True)),
    _map("softmin", lambda v: _softmax(v, -1)),
    OpInfo(
        "masked.normalize",
        lambda t: [call(t(3, 4), 2.0, 1, mask=_mask(t)), call(t(3, 4), 1.0, 0)],
        lambda x, p, dim, mask=None: _along(lambda v: v / np.linalg.norm(v, p))(x, dim, mask=mask),
        "f",
        op=lambda x, p, dim, mask=None: torch.where(
            torch.ones_like(x, dtype=torch.bool) if mask is None else mask,
            torch.masked.normalize(x, p, dim, mask=mask),
            torch.zeros_like(x),
        ),
        tolerances=TOL,
        aten_name="",
        errors=lambda t: [error(IndexError, "Dimension out of range", t(2, 3), 2.0, 2)],
    ),
    _map("cumsum", np.cumsum),
    _map("cumprod", np.cumprod),
    OpInfo(
        "masked.logaddexp",
        lambda t: [
            call(t(3, 4), t(3, 4), input_mask=_all(t), other_mask=_all(t)),
            call(t(3, 4), t(3, 4)),
        ],
        lambda a, b, input_mask=None, other_mask=None: np.logaddexp(a, b),
        "f",
        tolerances=TOL,
        aten_name="",
    ),
]


def _all(t) -> torch.Tensor:
    return torch.ones(t.shape((3, 4)), dtype=torch.bool, device=t.device)
