"""Records of the pool family: windows over one, two and three dimensions, and their inverses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from . import refs
from .core import Maker, OpInfo, SampleInput, call, error

TOL = {torch.float16: (1e-2, 1e-2), torch.bfloat16: (6e-2, 6e-2), torch.float32: (1e-5, 1e-5)}
SIZES = {1: (2, 3, 8), 2: (1, 2, 6, 7), 3: (1, 2, 4, 5, 4)}
_SMALL = {1: (5,), 2: (3, 4), 3: (2, 3, 3)}
BIG = {1: (40, 30, 300), 2: (4, 8, 100, 90), 3: (2, 6, 20, 30, 40)}


def _tuple(value, n) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,) * n


def _max_pool(n) -> Callable[..., object]:
    def ref(
        x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        kernel = _tuple(kernel_size, n)
        stride = kernel if stride is None else _tuple(stride, n)
        parts = refs.windows(
            x, kernel, stride, _tuple(padding, n), _tuple(dilation, n), -np.inf, ceil_mode
        )
        values, places = parts
        best = values.argmax(-1)
        if not return_indices:
            return values.max(-1)
        where = np.broadcast_to(places, values.shape)
        return values.max(-1), np.take_along_axis(where, best[..., None], -1)[..., 0]

    return ref


def _avg_pool(n) -> Callable[..., object]:
    def ref(
        x,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ) -> np.ndarray:
        kernel, pad = _tuple(kernel_size, n), _tuple(padding, n)
        stride = kernel if stride is None else _tuple(stride, n)
        ones = (1,) * n
        values, places = refs.windows(x, kernel, stride, pad, ones, 0.0, ceil_mode)
        spatial = x.shape[x.ndim - n :]
        frame = np.ones([s + 2 * p for s, p in zip(spatial, pad, strict=True)])
        inside = refs.windows(frame, kernel, stride, (0,) * n, ones, 0.0, ceil_mode)[0]
        inside = inside[tuple(slice(s) for s in places.shape[:-1])].sum(-1)
        count = inside if count_include_pad else (places >= 0).sum(-1)
        return values.sum(-1) / (divisor_override or count)

    return ref


def _adaptive(n, function) -> Callable[..., object]:
    def ref(x, size, return_indices=False) -> np.ndarray:
        spatial = x.shape[x.ndim - n :]
        size = [s if s is not None else spatial[i] for i, s in enumerate(_tuple(size, n))]
        out = np.empty((*x.shape[: x.ndim - n], *size))
        for cell in np.ndindex(*size):
            cut = tuple(
                slice(a * spatial[i] // size[i], -(-(a + 1) * spatial[i] // size[i]))
                for i, a in enumerate(cell)
            )
            out[(..., *cell)] = function(x[(..., *cut)], tuple(range(-n, 0)))
        return out

    return ref


def _max_samples(n) -> Callable[..., object]:
    def samples(t) -> list[SampleInput]:
        shape = SIZES[n]
        return [
            call(t(*shape), 2),
            call(t(*shape), 3, 2, 1),
            call(t(*shape), 2, 1, 0, 2),
            call(t(*shape), 3, 2, 0, 1, True),
            call(t(*shape[1:]), 2, return_indices=True),
            call(t(1, *_SMALL[n]), 2),
        ]

    return samples


def _avg_samples(n) -> Callable[..., object]:
    def samples(t) -> list[SampleInput]:
        shape = SIZES[n]
        return [
            call(t(*shape), 2),
            call(t(*shape), 3, 2, 1),
            call(t(*shape), 3, 2, 1, True, False),
            call(t(*shape[1:]), 2, 1),
            call(t(1, *_SMALL[n]), 2),
        ]

    return samples


def _adaptive_samples(n) -> Callable[..., object]:
    small = {1: (1, 5), 2: (1, 3, 4), 3: (1, 3, 2, 3)}[n]
    return lambda t: [call(t(*SIZES[n]), 3), call(t(*SIZES[n][1:]), (2,) * n), call(t(*small), 2)]


def _pool_errors(n) -> Callable[..., object]:
    shape = SIZES[n]
    return lambda t: [
        error(RuntimeError, "pad should be at most half|padding|pad", t(*shape), 2, 2, 2),
        error(RuntimeError, "stride|must be greater", t(*shape), 2, 0),
        error((RuntimeError, ValueError), "too small|must be|smaller than|Invalid", t(*shape), 20),
    ]


def _max(n) -> OpInfo:
    return OpInfo(
        f"nn.functional.max_pool{n}d",
        _max_samples(n),
        _max_pool(n),
        "f",
        out_dtype="same",
        tolerances=TOL,
        errors=_pool_errors(n),
        big=lambda t: call(_plain(t)(*BIG[n]), 3, 2, 1),
        covers=(f"max_pool{n}d_with_indices", f"max_pool{n}d_with_indices_backward"),
    )


def _avg(n) -> OpInfo:
    return OpInfo(
        f"nn.functional.avg_pool{n}d",
        _avg_samples(n),
        _avg_pool(n),
        "f",
        out_dtype="same",
        tolerances=TOL,
        errors=_pool_errors(n),
        big=lambda t: call(_plain(t)(*BIG[n]), 3, 2, 1),
        covers=(f"avg_pool{n}d_backward",),
    )


def _adaptive_pair(n):
    errors = lambda t: [
        error(RuntimeError, "", t(*SIZES[n]), (-1,) * n),
        error((RuntimeError, ValueError), "", t(2), (2,) * n),
    ]
    for name, function in (("avg", np.mean), ("max", np.max)):
        yield OpInfo(
            f"nn.functional.adaptive_{name}_pool{n}d",
            _adaptive_samples(n),
            _adaptive(n, function),
            "f",
            out_dtype="same",
            tolerances=TOL,
            errors=errors,
            big=lambda t: call(_plain(t)(*BIG[n]), (7,) * n),
            covers=(
                f"_adaptive_{name}_pool{n}d",
                f"_adaptive_{name}_pool{n}d_backward",
                f"adaptive_{name}_pool{n}d_backward",
            ),
        )


def _unpool_samples(n, shapes=None) -> Callable[..., object]:
    shapes = shapes or {1: (2, 3, 4), 2: (1, 2, 2, 3), 3: (1, 2, 2, 2, 2)}

    def samples(t) -> list[SampleInput]:
        shape = shapes[n]
        pooled = t(*shape)
        base = torch.arange(pooled[0, 0].numel(), device=t.device).reshape(shape[2:])
        return [call(pooled, (2**n * base).expand(shape).contiguous(), 2)]

    return samples


def _unpool(n) -> Callable[..., object]:
    def ref(x, index, kernel_size) -> np.ndarray:
        out = np.zeros((*x.shape[:2], *[s * kernel_size for s in x.shape[2:]]))
        flat = out.reshape(*x.shape[:2], -1)
        np.put_along_axis(flat, index.reshape(*x.shape[:2], -1), x.reshape(*x.shape[:2], -1), -1)
        return out

    return ref


def _max_unpool(n) -> OpInfo:
    return OpInfo(
        f"nn.functional.max_unpool{n}d",
        _unpool_samples(n),
        _unpool(n),
        "f",
        out_dtype="same",
        tolerances=TOL,
        aten_name=f"max_unpool{n}d" if n > 1 else "max_unpool2d",
        skips={"expanded": "expanded indices repeat"},
        big=lambda t: _unpool_samples(
            n, {1: (8, 16, 512), 2: (4, 8, 64, 64), 3: (2, 4, 16, 16, 16)}
        )(_plain(t))[0],
        errors=lambda t: [
            error(
                (RuntimeError, ValueError),
                "",
                t(*SIZES[n]),
                torch.zeros(1, 1, dtype=torch.int64),
                2,
            )
        ],
    )


def _fractional_samples(n, shape=None, size=None) -> Callable[..., object]:
    shape = shape or {2: (1, 2, 6, 6), 3: (1, 1, 4, 4, 4)}[n]
    size = size or {2: 3, 3: 2}[n]

    def samples(t) -> list[SampleInput]:
        points = torch.full((*shape[:2], n), 0.4, dtype=t.dtype, device=t.device)
        return [call(t(*shape), 2, (size,) * n, _random_samples=points)]

    return samples


def _fractional(n) -> Callable[..., object]:
    """The generated windows: starts grow by (size - kernel) / (out - 1), shifted by the sample."""

    def ref(x, kernel, size, _random_samples) -> np.ndarray:
        spatial = x.shape[2:]
        starts = []
        for i in range(n):
            alpha = (spatial[i] - kernel) / (size[i] - 1)
            u = _random_samples[0, 0, n - 1 - i]
            line = [int((k + u) * alpha) - int(u * alpha) for k in range(size[i] - 1)]
            starts.append([*line, spatial[i] - kernel])
        out = np.empty((*x.shape[:2], *size))
        for cell in np.ndindex(*size):
            cut = tuple(slice(starts[i][a], starts[i][a] + kernel) for i, a in enumerate(cell))
            out[(..., *cell)] = x[(..., *cut)].max(axis=tuple(range(-n, 0)))
        return out

    return ref


def _plain(t) -> Maker:
    t.scale = 1
    return t


def _lp(n) -> Callable[..., object]:
    def ref(x, p, kernel_size, stride=None) -> np.ndarray:
        values = refs.windows(
            x, _tuple(kernel_size, n), _tuple(stride or kernel_size, n), (0,) * n, (1,) * n, 0.0
        )[0]
        return (values**p).sum(-1) ** (1 / p)

    return ref


RECORDS = [
    *[_max(n) for n in (1, 2, 3)],
    *[_avg(n) for n in (1, 2, 3)],
    *[record for n in (1, 2, 3) for record in _adaptive_pair(n)],
    *[_max_unpool(n) for n in (1, 2, 3)],
    *[
        OpInfo(
            f"nn.functional.fractional_max_pool{n}d",
            _fractional_samples(n),
            _fractional(n),
            "f",
            out_dtype="same",
            tolerances=TOL,
            big=lambda t, n=n: _fractional_samples(n, BIG[n], 7)(_plain(t))[0],
            errors=lambda t, n=n: [error((RuntimeError, ValueError), "", t(*SIZES[n]), 2)],
        )
        for n in (2, 3)
        if hasattr(torch.ops.aten, f"fractional_max_pool{n}d")
    ],
    *[
        OpInfo(
            f"nn.functional.lp_pool{n}d",
            lambda t, n=n: [
                call(t(*SIZES[n], low=0.2), 2, 2),
                call(t(*SIZES[n], low=0.2), 3, 2, 1),
            ],
            _lp(n),
            "f",
            out_dtype="same",
            tolerances=TOL,
            big=lambda t, n=n: call(_plain(t)(*BIG[n], low=0.2), 2, 2),
        )
        for n in (1, 2)
    ],
]
