"""Records of the conv family: convolutions and their transposes against a plain sum over the
kernel's elements, unfolding and folding."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

import torch

from .core import Maker, OpInfo, SampleInput, call, error

TOL = {torch.float16: (3e-2, 3e-2), torch.bfloat16: (2e-1, 2e-1), torch.float32: (1e-4, 1e-4)}


def _tuple(value, n) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,) * n


def _conv(n) -> Callable[..., object]:
    def ref(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1) -> np.ndarray:
        single = x.ndim == n + 1
        x = x[None] if single else x
        stride, dilation = _tuple(stride, n), _tuple(dilation, n)
        kernel = w.shape[2:]
        if padding == "same":
            sides = [
                (d * (k - 1) // 2, d * (k - 1) - d * (k - 1) // 2)
                for d, k in zip(dilation, kernel, strict=True)
            ]
        else:
            sides = [(p, p) for p in _tuple(0 if padding == "valid" else padding, n)]
        x = np.pad(x, [(0, 0), (0, 0), *sides])
        size = [
            (x.shape[2 + i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(n)
        ]
        out = np.zeros((x.shape[0], w.shape[0], *size), np.result_type(x, w))
        per_in, per_out = x.shape[1] // groups, w.shape[0] // groups
        for tap in itertools.product(*map(range, kernel)):
            cut = tuple(
                slice(a * dilation[i], a * dilation[i] + stride[i] * (size[i] - 1) + 1, stride[i])
                for i, a in enumerate(tap)
            )
            for g in range(groups):
                part = x[(slice(None), slice(g * per_in, (g + 1) * per_in), *cut)]
                taps = w[(slice(g * per_out, (g + 1) * per_out), slice(None), *tap)]
                out[:, g * per_out : (g + 1) * per_out] += np.einsum("nc...,oc->no...", part, taps)
        out = out if bias is None else out + bias.reshape(1, -1, *[1] * n)
        return out[0] if single else out

    return ref


def _transposed(n) -> Callable[..., object]:
    def ref(
        x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
    ) -> np.ndarray:
        stride, dilation = _tuple(stride, n), _tuple(dilation, n)
        padding, extra = _tuple(padding, n), _tuple(output_padding, n)
        kernel, spatial = w.shape[2:], x.shape[2:]
        full = [
            (spatial[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 + extra[i]
            for i in range(n)
        ]
        per_in, per_out = x.shape[1] // groups, w.shape[1]
        out = np.zeros((x.shape[0], per_out * groups, *full), np.result_type(x, w))
        for tap in itertools.product(*map(range, kernel)):
            cut = tuple(
                slice(
                    a * dilation[i], a * dilation[i] + stride[i] * (spatial[i] - 1) + 1, stride[i]
                )
                for i, a in enumerate(tap)
            )
            for g in range(groups):
                part = x[:, g * per_in : (g + 1) * per_in]
                taps = w[(slice(g * per_in, (g + 1) * per_in), slice(None), *tap)]
                where = (slice(None), slice(g * per_out, (g + 1) * per_out), *cut)
                out[where] += np.einsum("nc...,co->no...", part, taps)
        out = out[
            (
                slice(None),
                slice(None),
                *[slice(p, out.shape[2 + i] - p) for i, p in enumerate(padding)],
            )
        ]
        return out if bias is None else out + bias.reshape(1, -1, *[1] * n)

    return ref


def _conv_tbc(x, w, bias, pad=0) -> np.ndarray:
    return _conv(1)(x.transpose(1, 2, 0), w.transpose(2, 1, 0), bias, 1, pad).transpose(2, 0, 1)


_SPACE = {1: (8,), 2: (5, 6), 3: (4, 4, 5)}
_SMALL = {1: (4,), 2: (3, 3), 3: (2, 3, 2)}
_BIG = {1: (2000,), 2: (60, 70), 3: (16, 18, 20)}


def _conv_samples(n) -> Callable[..., object]:
    def samples(t) -> list[SampleInput]:
        size, k = _SPACE[n], (3,) * n
        two = (2,) * n
        return [
            call(t(1, 2, *size), t(3, 2, *k)),
            call(t(2, 2, *size), t(4, 1, *two), t(4), 2, 1, 1, 2),
            call(t(2, *size), t(3, 2, *two), t(3), 1, "same"),
            call(t(1, 2, *size), t(2, 2, *two), None, 1, 1, 2),
            call(t(0, 2, *size), t(3, 2, *two)),
        ]

    return samples


def _conv_grad(n) -> Callable[..., object]:
    return lambda t: [call(t(1, 2, *_SMALL[n]), t(2, 1, *(2,) * n), t(2), 1, 1, 1, 2)]


def _transposed_samples(n) -> Callable[..., object]:
    def samples(t) -> list[SampleInput]:
        size, two = _SMALL[n], (2,) * n
        return [
            call(t(1, 2, *size), t(2, 3, *two)),
            call(t(2, 2, *size), t(2, 2, *(3,) * n), t(4), 2, 1, 1, 2),
            call(t(1, 2, *size), t(2, 1, *two), None, 1, 0, 0, 1, 2),
        ]

    return samples


def _errors(n) -> Callable[..., object]:
    size = _SPACE[n]
    return lambda t: [
        error(RuntimeError, "channels", t(1, 3, *size), t(3, 2, *(2,) * n)),
        error(RuntimeError, "[Ee]xpected|dimension", t(2), t(3, 2, *(2,) * n)),
        error(RuntimeError, "bias", t(1, 2, *size), t(3, 2, *(2,) * n), t(2)),
        error(RuntimeError, "stride|positive", t(1, 2, *size), t(3, 2, *(2,) * n), None, 0),
    ]


def _transposed_errors(n) -> Callable[..., object]:
    size = _SMALL[n]
    return lambda t: [
        error(RuntimeError, "channels|[Gg]iven", t(1, 3, *size), t(2, 2, *(2,) * n)),
        error(RuntimeError, "[Ee]xpected|dimension", t(2), t(2, 2, *(2,) * n)),
        error(RuntimeError, "output padding", t(1, 2, *size), t(2, 2, *(2,) * n), None, 1, 0, 2),
    ]


def _unfold(x, kernel_size, dilation=1, padding=0, stride=1) -> np.ndarray:
    kernel, dilation = _tuple(kernel_size, 2), _tuple(dilation, 2)
    padding, stride = _tuple(padding, 2), _tuple(stride, 2)
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    size = [(x.shape[2 + i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]
    taps = []
    for a, b in itertools.product(*map(range, kernel)):
        rows = slice(a * dilation[0], a * dilation[0] + stride[0] * (size[0] - 1) + 1, stride[0])
        columns = slice(b * dilation[1], b * dilation[1] + stride[1] * (size[1] - 1) + 1, stride[1])
        taps.append(x[:, :, rows, columns])
    return np.stack(taps, 2).reshape(x.shape[0], -1, math.prod(size))


def _fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1) -> np.ndarray:
    """The transpose of _unfold, as the matrix of its action."""
    n, channels = x.shape[0], x.shape[1] // math.prod(_tuple(kernel_size, 2))
    count = channels * math.prod(output_size)
    basis = np.eye(count).reshape(count, channels, *output_size)
    columns = _unfold(basis, kernel_size, dilation, padding, stride).reshape(count, -1)
    return (x.reshape(n, -1) @ columns.T).reshape(n, channels, *output_size)


RECORDS = [
    *[
        OpInfo(
            f"nn.functional.conv{n}d",
            _conv_samples(n),
            _conv(n),
            "fc",
            out_dtype="same",
            tolerances=TOL,
            grad_samples=_conv_grad(n),
            errors=_errors(n),
            big=lambda t, n=n: call(_plain(t)(2, 4, *_BIG[n]), t(8, 4, *(3,) * n), t(8), 1, 1),
            covers=("convolution", "convolution_backward", "_convolution", "_convolution_mode"),
        )
        for n in (1, 2, 3)
    ],
    OpInfo(
        "conv_tbc",
        lambda t: [
            call(t(6, 2, 3), t(3, 3, 4), t(4)),
            call(t(5, 1, 2), t(2, 2, 3), t(3), 1),
            call(t(4, 0, 2), t(2, 2, 3), t(3)),
        ],
        _conv_tbc,
        "fc",
        out_dtype="same",
        tolerances=TOL,
        grad_samples=lambda t: [call(t(4, 2, 2), t(2, 2, 2), t(2), 1)],
        errors=lambda t: [
            error(RuntimeError, "3 dims", t(2, 3), t(3, 3, 4), t(4)),
            error(RuntimeError, "dim 1 in the weight", t(6, 2, 2), t(3, 3, 4), t(4)),
            error(RuntimeError, "Bias size", t(6, 2, 3), t(3, 3, 4), t(3)),
        ],
    ),
    *[
        OpInfo(
            f"nn.functional.conv_transpose{n}d",
            _transposed_samples(n),
            _transposed(n),
            "fc",
            out_dtype="same",
            tolerances=TOL,
            grad_samples=lambda t, n=n: [
                call(t(1, 2, *(2,) * n), t(2, 1, *(2,) * n), t(2), 2, 1, 1, 2)
            ],
            big=lambda t, n=n: call(_plain(t)(2, 4, *_BIG[n]), t(4, 6, *(3,) * n), t(6), 1, 1),
            errors=_transposed_errors(n),
        )
        for n in (1, 2, 3)
    ],
    OpInfo(
        "nn.functional.unfold",
        lambda t: [call(t(1, 2, 4, 5), 2), call(t(2, 1, 4, 4), (2, 3), 1, 1, 2)],
        _unfold,
        "fc",
        aten_name="im2col",
        out_dtype="same",
        errors=lambda t: [
            error((RuntimeError, IndexError), "", t(2), 2),
            error(RuntimeError, "", t(1, 2, 4, 4), 9),
            error(RuntimeError, "stride", t(1, 2, 4, 4), 2, 1, 0, 0),
        ],
    ),
    OpInfo(
        "nn.functional.fold",
        lambda t: [call(t(1, 8, 12), (4, 5), 2), call(t(1, 4, 4), (4, 4), 2, 1, 0, 2)],
        _fold,
        "fc",
        aten_name="col2im",
        out_dtype="same",
        big=lambda t: call(_plain(t)(4, 36, 98 * 78), (100, 80), 3),
        errors=lambda t: [
            error(RuntimeError, "", t(1, 7, 12), (4, 5), 2),
            error(RuntimeError, "", t(1, 8, 11), (4, 5), 2),
        ],
    ),
]


def _plain(t) -> Maker:
    t.scale = 1
    return t
