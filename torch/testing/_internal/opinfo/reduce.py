"""Records of the reduce family: sums, products, extremes, moments, norms, predicates."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

import torch

from .core import OpInfo, SampleInput, axis, call, error, reduce_samples

HALF = {torch.float16: (2e-2, 1e-2), torch.bfloat16: (8e-2, 6e-2)}


def _bad_dims(t):
    return [error(RuntimeError, "appears multiple times|repeated", t(2, 3), (0, 0))]


def _variance(function, mean=False) -> Callable[..., object]:
    """var, std and their means: the second argument is the list of dimensions."""

    def ref(x, dim=None, *, correction=1, keepdim=False):
        axes = tuple(dim) if isinstance(dim, (list, tuple)) else dim
        axes = None if axes == () or x.ndim == 0 else axes
        keep = keepdim and x.ndim > 0
        spread = function(x, axis=axes, ddof=correction, keepdims=keep)
        return (spread, x.mean(axis=axes, keepdims=keep)) if mean else spread

    return ref


def _variance_samples(t) -> list[SampleInput]:
    return [
        call(t(2, 3)),
        call(t(2, 3, 4), 1),
        call(t(2, 3), (0, 1), correction=0),
        call(t(2, 3, 4), (0, 2), correction=2, keepdim=True),
        call(t(67)),
    ]


def _extreme(function, which) -> Callable[..., object]:
    """max and min: of everything, with indices along a dimension, or of two tensors."""

    def ref(x, other=None, keepdim=False) -> object:
        if other is None:
            return function(x)
        if isinstance(other, np.ndarray):
            return {"max": np.maximum, "min": np.minimum}[which](x, other)
        index = getattr(np, "arg" + which)(x, axis=other, keepdims=True) if x.ndim else 0
        if x.ndim == 0:
            return x, np.zeros((), np.int64)
        values = np.take_along_axis(x, index, other)
        return (values, index) if keepdim else (values.squeeze(other), index.squeeze(other))

    return ref


def _extreme_samples(t) -> list[SampleInput]:
    return [
        call(t(67)),
        call(t()),
        call(t(2, 3, 4), 1),
        call(t(2, 3), -1, keepdim=True),
        call(t(), 0),
        call(t(2, 3), t(3)),
        call(t(0, 3), 1),
    ]


def _arg(function) -> Callable[..., object]:
    def ref(x, dim=None, keepdim=False) -> np.ndarray | np.generic:
        if x.ndim == 0:
            return np.zeros((), np.int64)
        return function(x, axis=dim, keepdims=keepdim)

    return ref


def _norm(x, p=2, dim=None, keepdim=False):
    if x.ndim == 0:
        return np.abs(x) if p != 0 else (x != 0) * 1.0
    axes = tuple(dim) if isinstance(dim, (list, tuple)) else dim
    size = np.abs(x)
    keep = {"axis": axes, "keepdims": keepdim}
    if p == np.inf:
        return size.max(**keep)
    if p == -np.inf:
        return size.min(**keep)
    if p == 0:
        return (size != 0).sum(**keep).astype(float)
    return (size**p).sum(**keep) ** (1 / p)


def _norm_samples(t) -> list[SampleInput]:
    inf = float("inf")
    calls = [call(t(2, 3), p, 1) for p in (1, 2, 3, inf, -inf, 0)]
    return [*calls, call(t(2, 3)), call(t(2, 3, 4), 2, (0, 2), keepdim=True), call(t(67), 1.5)]


def _vector_norm(x, ord=2, dim=None, keepdim=False) -> np.ndarray | np.generic:
    return _norm(x, ord, dim, keepdim)


def _logsumexp(x, dim, keepdim=False) -> np.ndarray | np.generic:
    axes = tuple(dim) if isinstance(dim, (list, tuple)) else dim
    if x.ndim == 0:
        return x * 1.0
    return np.log(np.exp(x * 1.0).sum(axis=axes, keepdims=keepdim))


def _logsumexp_samples(t) -> list[SampleInput]:
    return [
        call(t(2, 3), 1),
        call(t(2, 3, 4), (0, 2)),
        call(t(2, 3), -1, True),
        call(t(), 0),
        call(t(67), 0),
    ]


def _aminmax(x, dim=None, keepdim=False) -> tuple[np.ndarray | np.generic, np.ndarray | np.generic]:
    if x.ndim == 0:
        return x, x
    return x.min(axis=dim, keepdims=keepdim), x.max(axis=dim, keepdims=keepdim)


def _nan_input(t) -> torch.Tensor:
    """A matrix with a NaN in it where the dtype has one."""
    x = t(2, 3, grad=False)
    if t.dtype.is_floating_point:
        x[0, 1] = float("nan")
    return x.requires_grad_(t.requires_grad and t.dtype.is_floating_point)


def _nan_samples(t) -> list[SampleInput]:
    calls = [call(_nan_input(t), *a) for a in [(), (1,), (0, True), ((0, 1),)]]
    return [*calls, call(t(67)), call(t())]


def _segment(data, reduce, *, lengths, axis=0, unsafe=False, initial=None) -> np.ndarray:
    """Reductions of consecutive runs of rows."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    rows = []
    for begin, end in itertools.pairwise(starts):
        part = data[begin:end]
        neutral = {"sum": 0.0, "mean": np.nan, "max": -np.inf, "min": np.inf, "prod": 1.0}[reduce]
        if not len(part):
            rows.append(np.full(data.shape[1:], neutral))
        else:
            rows.append(getattr(np, reduce)(part, axis=0))
    return np.stack(rows)


def _segment_samples(t) -> list[SampleInput]:
    lengths = torch.tensor([2, 1, 3], device=t.device)
    return [
        call(t(6, 2), reduce, lengths=lengths, axis=0)
        for reduce in ("sum", "mean", "max", "min", "prod")
    ]


def _big_segments(t) -> SampleInput:
    lengths = torch.full((400,), 7, device=t.device)
    t.scale = 1
    return call(t(2800, 100), "sum", lengths=lengths, axis=0)


def _sum_to_size(x, *size) -> np.ndarray:
    for i, (have, want) in enumerate(zip(x.shape, size, strict=True)):
        x = x.sum(axis=i, keepdims=True) if have != want else x
    return x


def _dist(a, b, p=2) -> np.generic:
    return _norm((a - b).ravel(), p)


def _trace_error(t):
    return [
        error(RuntimeError, "expected a matrix", t(2)),
        error(RuntimeError, "expected a matrix", t(2, 2, 2)),
    ]


_PAIRS = lambda t: [call(t(2, 3), t(2, 3)), call(t(0), t(0)), call(t(3), t(2)), call(t(), t())]

RECORDS = [
    OpInfo(
        "sum",
        reduce_samples(),
        axis(np.sum),
        "fibc",
        kind="reduce",
        out_dtype="acc",
        supports_out=True,
        tolerances=HALF,
        errors=_bad_dims,
        skips={"out": "sum over everything takes no out="},
    ),
    OpInfo(
        "nansum",
        _nan_samples,
        axis(np.nansum),
        "fib",
        kind="reduce",
        out_dtype="acc",
        tolerances=HALF,
        errors=_bad_dims,
    ),
    OpInfo(
        "mean",
        reduce_samples(),
        axis(np.mean),
        "fc",
        kind="reduce",
        out_dtype="same",
        tolerances=HALF,
        errors=lambda t: [error(RuntimeError, "could not infer output dtype", t(2).long())],
    ),
    OpInfo(
        "nanmean",
        _nan_samples,
        axis(np.nanmean),
        "f",
        kind="reduce",
        out_dtype="same",
        tolerances=HALF,
    ),
    OpInfo(
        "prod",
        reduce_samples(dims=False),
        axis(np.prod),
        "fibc",
        kind="reduce",
        bounds=(0.8, 1.3),
        out_dtype="acc",
        tolerances=HALF,
    ),
    *[
        OpInfo(
            name,
            reduce_samples(),
            axis(function),
            "fib",
            kind="reduce",
            out_dtype="same",
            supports_out=True,
            errors=lambda t: [error(IndexError, "Expected reduction dim", t(0, 3), 0)],
        )
        for name, function in (("amax", np.max), ("amin", np.min))
    ],
    OpInfo(
        "aminmax",
        lambda t: [
            call(t(2, 3)),
            call(t(2, 3), dim=1),
            call(t(), dim=0),
            call(t(2, 3, 4), dim=-1, keepdim=True),
        ],
        _aminmax,
        "fib",
        out_dtype="same",
        supports_out=True,
        errors=lambda t: [
            error(IndexError, "Dimension out of range", t(2, 3), dim=2),
            error(RuntimeError, "", t(0)),
        ],
    ),
    *[
        OpInfo(
            name,
            _extreme_samples,
            _extreme(function, name),
            "fib",
            out_dtype="same",
            errors=lambda t: [
                error(IndexError, "Dimension out of range", t(2, 3), 2),
                error(RuntimeError, "must match", t(2), t(3)),
                error(RuntimeError, "numel\\(\\) == 0|non-empty|no identity|dim", t(0)),
            ],
        )
        for name, function in (("max", np.max), ("min", np.min))
    ],
    *[
        OpInfo(
            name,
            reduce_samples(dims=False),
            _arg(function),
            "fi",
            kind="reduce",
            out_dtype="int64",
            grad_codes="",
            supports_out=True,
        )
        for name, function in (("argmax", np.argmax), ("argmin", np.argmin))
    ],
    *[
        OpInfo(
            name,
            reduce_samples(),
            axis(function),
            "fibc",
            kind="reduce",
            grad_codes="",
            out_dtype=lambda d: torch.uint8 if d is torch.uint8 else torch.bool,
            supports_out=True,
            covers=(f"_is_{name}_true",),
        )
        for name, function in (("all", np.all), ("any", np.any))
    ],
    *[
        OpInfo(
            name,
            _variance_samples,
            reference,
            "fc",
            kind="reduce",
            out_dtype="real",
            tolerances=HALF,
        )
        for name, reference in (
            ("std", _variance(np.std)),
            ("var", _variance(np.var)),
            ("std_mean", _variance(np.std, True)),
            ("var_mean", _variance(np.var, True)),
        )
    ],
    OpInfo(
        "logsumexp",
        _logsumexp_samples,
        _logsumexp,
        "fibc",
        kind="reduce",
        out_dtype="float",
        supports_out=True,
        tolerances=HALF,
        aliases=("special.logsumexp",),
        covers=("special_logsumexp",),
    ),
    OpInfo(
        "norm",
        _norm_samples,
        _norm,
        "fc",
        out_dtype="real",
        tolerances=HALF,
        covers=("linalg_vector_norm", "frobenius_norm"),
        errors=lambda t: [
            error(IndexError, "Dimension out of range", t(2, 3), 2, 2),
            error(RuntimeError, "loating point or complex|not implemented", t(2).long()),
        ],
    ),
    OpInfo(
        "linalg.vector_norm",
        lambda t: (
            [call(t(2, 3), p, 1) for p in (1, 2, 3.5, float("inf"), 0)]
            + [call(t(2, 3)), call(t(2, 3, 4), 2, (0, 2), True), call(t(67), 1)]
        ),
        _vector_norm,
        "fc",
        out_dtype="real",
        tolerances=HALF,
        supports_out=True,
        errors=lambda t: [
            error(IndexError, "Dimension out of range", t(2, 3), 2, 2),
            error(RuntimeError, "must be one of|loating point", t(2).long()),
        ],
    ),
    OpInfo(
        "dist",
        lambda t: [call(t(2, 3), t(2, 3)), call(t(2, 3), t(3), 1), call(t(), t(), 3)],
        _dist,
        "fc",
        out_dtype="real",
        tolerances=HALF,
        errors=lambda t: [error(RuntimeError, "must match the size", t(2), t(3))],
    ),
    OpInfo(
        "count_nonzero",
        lambda t: [
            call(t(2, 3)),
            call(t(2, 3), 1),
            call(t(2, 3, 4), (0, 2)),
            call(t(0)),
            call(t()),
        ],
        lambda x, dim=None: np.asarray(np.count_nonzero(x, axis=dim)),
        "fibc",
        out_dtype="int64",
        grad_codes="",
        errors=lambda t: [error(IndexError, "Dimension out of range", t(2, 3), 2)],
    ),
    OpInfo(
        "equal",
        _PAIRS,
        lambda a, b: np.array_equal(a, b),
        "fibc",
        grad_codes="",
        skips={"meta": "its result is a Python bool, which needs values"},
        errors=lambda t: [error(TypeError, "missing", t(2))],
    ),
    OpInfo(
        "allclose",
        lambda t: [call(t(2, 3), t(2, 3)), call(t(2), t(2), 10.0, 10.0), call(t(0), t(0))],
        lambda a, b, rtol=1e-5, atol=1e-8: np.allclose(a, b, rtol, atol),
        "fibc",
        grad_codes="",
        skips={"meta": "its result is a Python bool, which needs values"},
        errors=lambda t: [
            error(RuntimeError, "rtol must be", t(2), t(2), -1.0),
            error(RuntimeError, "must match the size", t(2), t(3)),
        ],
    ),
    OpInfo(
        "trace",
        lambda t: [call(t(3, 3)), call(t(2, 5)), call(t(0, 3))],
        np.trace,
        "fic",
        out_dtype="acc",
        errors=_trace_error,
    ),
    OpInfo(
        "sum_to_size",
        lambda t: [call(t(2, 3), 1, t.n(3)), call(t(2, 3, 4), t.n(2), 1, 1)],
        _sum_to_size,
        "fic",
        inplace=None,
        errors=lambda t: [error(RuntimeError, "not expandable", t(2, 3), 4, 3)],
    ),
    OpInfo(
        "segment_reduce",
        _segment_samples,
        _segment,
        "f",
        op=torch.segment_reduce,
        tolerances=HALF,
        big=_big_segments,
        covers=("_segment_reduce_backward",),
        errors=lambda t: [
            error(RuntimeError, "lengths|offsets", t(3), "sum"),
            error(
                RuntimeError, "unsupported|reduc|Reduc", t(3), "median", lengths=torch.tensor([3])
            ),
        ],
    ),
    OpInfo(
        "norm_except_dim",
        lambda t: [call(t(2, 3, 4), 2, 1), call(t(2, 3), 2, 0)],
        lambda v, p, dim: _norm(v, p, tuple(i for i in range(v.ndim) if i != dim), True),
        "f",
        tolerances=HALF,
    ),
    OpInfo(
        "hash_tensor",
        lambda t: [call(t(2, 3)), call(t(2, 3), 1), call(t(67))],
        None,
        "fi",
        grad_codes="",
        out_dtype=torch.uint64,
        check=lambda s, r: _check_hash(s, r),
        errors=lambda t: [error(IndexError, "Dimension out of range", t(2, 3), 2)],
    ),
]


def _check_hash(sample, result) -> None:
    """The hash depends on the values only, and changes with one of them."""
    x = sample.input
    assert torch.equal(torch.hash_tensor(x.clone(), *sample.args), result)
    other = x.clone()
    other.view(-1)[0] += 1
    assert not torch.equal(torch.hash_tensor(other, *sample.args), result)


# Kept here beside the variance: renorm scales slices down to a largest norm.
def _renorm(x, p, dim, maxnorm) -> np.ndarray:
    axes = tuple(i for i in range(x.ndim) if i != dim)
    size = _norm(x, p, axes, True)
    return np.where(size > maxnorm, x * (maxnorm / (size + 1e-7)), x)


RECORDS.append(
    OpInfo(
        "renorm",
        lambda t: [call(t(2, 3), 2, 0, 1.0), call(t(2, 3, 4), 1, 1, 2.0), call(t(2, 3), 2, 1, 9.0)],
        _renorm,
        "fc",
        out_dtype="same",
        supports_out=True,
        tolerances=HALF,
        errors=lambda t: [
            error(RuntimeError, "non-positive|positive", t(2, 3), -1, 0, 1.0),
            error(RuntimeError, "at least 2|needs at least", t(2), 2, 0, 1.0),
            error(IndexError, "Dimension out of range", t(2, 3), 2, 5, 1.0),
        ],
    )
)
