"""Records of the sort family: orders, order statistics, uniqueness, histograms, searches."""

from __future__ import annotations

import numpy as np

import torch

from .core import Maker, OpInfo, SampleInput, call, error

_VALUES = "the size of the result depends on values"


def _sort(x, dim=-1, descending=False, stable=False) -> tuple[np.ndarray, np.ndarray]:
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    key = -x.astype(float) if descending else x
    index = np.argsort(key, axis=dim, kind="stable")
    return np.take_along_axis(x, index, dim), index


def _sorts(t) -> list[SampleInput]:
    return [
        call(t(3, 4)),
        call(t(3, 4), 0),
        call(t(2, 5), -1, True),
        call(t()),
        call(t(67)),
        call(t(0, 3), 1),
    ]


def _topk(x, k, dim=-1, largest=True, sorted=True) -> tuple[np.ndarray, np.ndarray]:
    values, index = _sort(x, dim, largest)
    return values.take(range(k), dim), index.take(range(k), dim)


def _kth(x, k, dim=-1, keepdim=False) -> list[np.ndarray | np.generic]:
    values, index = _sort(x, dim)
    pick = [a.take(k - 1, dim) for a in (values, index)]
    return [np.expand_dims(a, dim) for a in pick] if keepdim else pick


def _median(x, dim=None, keepdim=False, skip=False) -> np.generic | list[np.ndarray]:
    if dim is None:
        flat = np.sort(x.ravel())
        flat = flat[~np.isnan(flat)] if skip else flat
        return flat[(len(flat) - 1) // 2]
    if skip:
        raise NotImplementedError
    return _kth(x, (x.shape[dim] + 1) // 2, dim, keepdim)


def _mode(x, dim=-1, keepdim=False):
    moved = np.moveaxis(x, dim, -1)
    values = np.empty(moved.shape[:-1], x.dtype)
    for line in np.ndindex(*moved.shape[:-1]):
        found, counts = np.unique(moved[line], return_counts=True)
        values[line] = found[counts.argmax()]
    return np.expand_dims(values, dim) if keepdim else values


def _quantile(
    x, q, dim=None, keepdim=False, *, interpolation="linear", function=np.quantile
) -> np.ndarray | np.generic:
    return function(x, q, axis=dim, keepdims=keepdim, method=interpolation)


def _quantiles(t) -> list[SampleInput]:
    q = torch.tensor([0.1, 0.5, 0.9], dtype=t.dtype, device=t.device)
    return [
        call(t(2, 5), 0.3),
        call(t(2, 5), q, 1),
        call(t(5), 0.7, 0, True),
        *[
            call(t(2, 5), 0.4, 1, interpolation=i)
            for i in ("lower", "higher", "nearest", "midpoint")
        ],
    ]


def _search(sequence, values, right=False, **kwargs) -> np.ndarray:
    side = "right" if right else kwargs.get("side", "left")
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side)
    rows = [np.searchsorted(s, v, side) for s, v in zip(sequence, values, strict=True)]
    return np.stack(rows)


def _sorted(t, *shape) -> torch.Tensor:
    return t(*shape, grad=False).sort(-1).values


def _histc(x, bins=100, min=0, max=0) -> np.ndarray:
    span = (x.min(), x.max()) if min == max == 0 else (min, max)
    return np.histogram(x, bins, span)[0].astype(float)


def _histogram(x, bins, range=None, weight=None, density=False) -> tuple[np.ndarray, np.ndarray]:
    counts, edges = np.histogram(x, bins, range, weights=weight, density=density)
    return counts.astype(float), edges


def _unique_ref(
    x, sorted=True, return_inverse=False, return_counts=False, dim=None
) -> np.ndarray | list[np.ndarray]:
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    inverse = inverse.reshape(x.shape) if dim is None else inverse.reshape(-1)
    parts = [values, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
    return parts if len(parts) > 1 else parts[0]


def _runs(x, return_inverse=False, return_counts=False, dim=None) -> np.ndarray | list[np.ndarray]:
    x = x.ravel()
    new = np.concatenate([[True], x[1:] != x[:-1]])
    starts = np.flatnonzero(new)
    counts = np.diff(np.append(starts, len(x)))
    parts = [x[new]]
    parts += [np.cumsum(new) - 1] if return_inverse else []
    parts += [counts] if return_counts else []
    return parts if len(parts) > 1 else parts[0]


def _bincounts(t) -> list[SampleInput]:
    values = t.index(6, high=5, dtype=t.dtype)
    return [
        call(values),
        call(values, minlength=8),
        call(values, torch.linspace(0, 1, len(values))),
    ]


_DIM = lambda t: [error(IndexError, "Dimension out of range", t(2, 3), 2)]
_EXPANDED = "an expanded input has ties, whose index is unspecified"
_MEDIANS = lambda t: [call(t(7)), call(t(2, 5), 1), call(t(2, 4), 0, True), call(t())]

RECORDS = [
    OpInfo(
        "sort",
        _sorts,
        _sort,
        "f",
        out_dtype="same",
        supports_out=True,
        errors=_DIM,
        skips={
            "expanded": _EXPANDED,
            "value:bfloat16": "68 values tie in bfloat16",
            "value:float16": "values may tie",
        },
        covers=("value_selecting_reduction_backward",),
    ),
    OpInfo(
        "sort",
        lambda t: [
            call(t(3, 4), stable=True),
            call(t(2, 5), stable=True, dim=0),
            call(t(67), stable=True, descending=True),
        ],
        _sort,
        "fib",
        variant_test_name="stable",
        out_dtype="same",
    ),
    OpInfo(
        "argsort",
        lambda t: [call(t(3, 4), stable=True), call(t(3, 4), stable=True, dim=0, descending=True)],
        lambda x, dim=-1, descending=False, stable=True: _sort(x, dim, descending)[1],
        "fib",
        out_dtype="int64",
        grad_codes="",
        errors=lambda t: [error(IndexError, "Dimension out of range", t(2, 3), dim=2)],
    ),
    OpInfo(
        "msort",
        lambda t: [call(t(3, 4)), call(t(67))],
        lambda x: np.sort(x, 0),
        "fib",
        out_dtype="same",
        supports_out=True,
    ),
    OpInfo(
        "topk",
        lambda t: [
            call(t(3, 5), 2),
            call(t(5, 3), 2, 0, False),
            call(t(67), 7),
            call(t(3, 4), 4, 1),
        ],
        _topk,
        "d",
        out_dtype="same",
        supports_out=True,
        errors=lambda t: [
            error(RuntimeError, "selected index k out of range", t(3), 4),
            error(IndexError, "Dimension out of range", t(3), 1, 1),
        ],
    ),
    OpInfo(
        "kthvalue",
        lambda t: [call(t(3, 5), 2), call(t(5, 3), 2, 0, True), call(t(67), 7)],
        _kth,
        "d",
        out_dtype="same",
        supports_out=True,
        errors=lambda t: [
            error(RuntimeError, "selected number k out of range", t(3), 4),
            error(IndexError, "Dimension out of range", t(3), 1, 1),
        ],
    ),
    OpInfo(
        "median",
        _MEDIANS,
        _median,
        "d",
        out_dtype="same",
        errors=_DIM,
        skips={"expanded": _EXPANDED},
    ),
    OpInfo(
        "nanmedian",
        _MEDIANS,
        lambda x, *a: _median(x, *a),
        "d",
        out_dtype="same",
        errors=_DIM,
        skips={"expanded": _EXPANDED},
    ),
    OpInfo(
        "mode",
        lambda t: [call(t(3, 5)), call(t(3, 5), 0, True)],
        None,
        "fi",
        out_dtype="same",
        check=lambda s, r: _check_mode(s, r),
        errors=_DIM,
    ),
    OpInfo(
        "quantile",
        _quantiles,
        _quantile,
        "d",
        out_dtype="same",
        supports_out=True,
        tolerances={torch.float32: (1e-5, 1e-5)},
        errors=lambda t: [
            error(RuntimeError, "range \\[0, 1\\]", t(3), 1.5),
            error(RuntimeError, "same dtype", t(3), torch.tensor(0.5, dtype=torch.float64)),
            error(RuntimeError, "interpolation", t(3), 0.5, interpolation="x"),
        ],
    ),
    OpInfo(
        "nanquantile",
        _quantiles,
        lambda *a, **k: _quantile(*a, **k, function=np.nanquantile),
        "d",
        out_dtype="same",
        supports_out=True,
        tolerances={torch.float32: (1e-5, 1e-5)},
        errors=lambda t: [error(RuntimeError, "range \\[0, 1\\]", t(3), 1.5)],
    ),
    OpInfo(
        "searchsorted",
        lambda t: [
            call(_sorted(t, 7), t(2, 3)),
            call(_sorted(t, 2, 5), t(2, 3), right=True),
            call(_sorted(t, 7), t(3), side="right"),
        ],
        _search,
        "fi",
        out_dtype="int64",
        grad_codes="",
        supports_out=True,
        skips={"expanded": "expanded sequences are not sorted"},
        errors=lambda t: [
            error(RuntimeError, "left.*right|side", t(3), t(3), side="x"),
            error(RuntimeError, "first N-1 dim", t(2, 3), t(3, 3)),
        ],
    ),
    OpInfo(
        "bucketize",
        lambda t: [call(t(2, 3), _sorted(t, 7)), call(t(3), _sorted(t, 7), right=True)],
        lambda v, b, right=False: np.searchsorted(b, v, "right" if right else "left"),
        "fi",
        out_dtype="int64",
        grad_codes="",
        supports_out=True,
        skips={"expanded": "expanded boundaries are not sorted"},
        errors=lambda t: [error(RuntimeError, "1 dimension", t(3), t(2, 2))],
    ),
    OpInfo(
        "isin",
        lambda t: [call(t(2, 3), t(4)), call(t(2, 3), t(4), invert=True), call(t(3), 1)],
        lambda a, b, invert=False: np.isin(a, b, invert=invert),
        "fi",
        out_dtype="bool",
        grad_codes="",
        supports_out=False,
        errors=lambda t: [error((RuntimeError, TypeError), "", 1, 2)],
    ),
    OpInfo(
        "bincount",
        _bincounts,
        lambda x, w=None, minlength=0: np.bincount(x, w, minlength),
        "i",
        grad_codes="",
        skips={"meta": _VALUES},
        errors=lambda t: [
            error(RuntimeError, "1-d non-negative", torch.tensor([-1])),
            error(RuntimeError, "same length", torch.tensor([1]), t(2).float()),
            error(RuntimeError, "minlength", torch.tensor([1]), minlength=-1),
        ],
    ),
    OpInfo(
        "histc",
        lambda t: [call(t(20), 5), call(t(20), 4, -1, 1), call(t(67), 10, 0, 2)],
        _histc,
        "f",
        out_dtype="same",
        grad_codes="",
        supports_out=True,
        skips={
            "value:bfloat16": "bin edges fall on values",
            "value:float16": "bin edges fall on values",
        },
        errors=lambda t: [
            error(RuntimeError, "bins must be > 0", t(3), 0),
            error(RuntimeError, "max must be larger|larger than min", t(3), 5, 2, 1),
        ],
    ),
    OpInfo(
        "histogram",
        lambda t: [
            call(t(20), 5),
            call(t(20), 4, range=(-1.0, 1.0)),
            call(t(20), 5, density=True),
            call(t(20), _sorted(t, 5)),
        ],
        _histogram,
        "d",
        grad_codes="",
        tolerances={torch.float32: (1e-5, 1e-5)},
        skips={"expanded": "expanded bin edges are not increasing"},
        errors=lambda t: [
            error(RuntimeError, "bins", t(3), 0),
            error(RuntimeError, "min|leftmost", t(3), 4, range=(2.0, 1.0)),
        ],
    ),
    OpInfo(
        "histogramdd",
        lambda t: [call(t(20, 2), [3, 4])],
        lambda x, bins: (lambda c, e: (c, list(e)))(*np.histogramdd(x, bins)),
        "d",
        grad_codes="",
        big=lambda t: call(_plain(t)(100000, 2), [30, 40]),
        tolerances={torch.float32: (1e-5, 1e-5)},
        errors=lambda t: [
            error(RuntimeError, "", t(3, 2), [3]),
            error(RuntimeError, "", t(3), [3]),
        ],
    ),
    OpInfo(
        "unique",
        lambda t: [call(t(2, 5)), call(t(8), True, True, True), call(t(5, 2), dim=0)],
        _unique_ref,
        "fib",
        grad_codes="",
        skips={"meta": _VALUES},
        covers=("_unique", "_unique2", "unique_dim"),
        errors=lambda t: [error(IndexError, "Dimension out of range", t(2), dim=1)],
    ),
    OpInfo(
        "unique_consecutive",
        lambda t: [call(_repeats(t)), call(_repeats(t), True, True)],
        _runs,
        "fib",
        grad_codes="",
        skips={"meta": _VALUES},
        covers=("unique_dim_consecutive",),
        errors=lambda t: [error(IndexError, "Dimension out of range", t(2), dim=1)],
    ),
]


def _plain(t) -> Maker:
    t.scale = 1
    return t


def _repeats(t) -> torch.Tensor:
    return t(4, grad=False).repeat_interleave(3)


def _check_mode(sample, result) -> None:
    values, index = result
    x = sample.input
    dim = sample.args[0] if sample.args else -1
    keep = len(sample.args) > 1
    np.testing.assert_array_equal(
        values.to(torch.float64).numpy(), _mode(x.to(torch.float64).numpy(), dim, keep)
    )
    picked = torch.gather(x, dim, index if keep else index.unsqueeze(dim))
    assert torch.equal(picked if keep else picked.squeeze(dim), values)
