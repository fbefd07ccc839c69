"""Records of the norm family: normalisation over features, groups and batches."""

from __future__ import annotations

import numpy as np

import torch

from .core import Maker, OpInfo, SampleInput, call, error

TOL = {torch.float16: (3e-2, 3e-2), torch.bfloat16: (1e-1, 1e-1), torch.float32: (1e-4, 1e-4)}


def _op(name, samples, ref, **options) -> OpInfo:
    options.setdefault("tolerances", TOL)
    options.setdefault("inplace", None)
    return OpInfo(name, samples, ref, options.pop("codes", "f"), **options)


def _standard(x, axes, eps) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean = x.mean(axis=axes, keepdims=True)
    var = ((x - mean) ** 2).mean(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(var + eps), mean, var


def _layer_norm(
    x, shape, weight=None, bias=None, eps=1e-5, moments=False
) -> np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    y, mean, var = _standard(x, axes, eps)
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    return (y, mean, 1 / np.sqrt(var + eps)) if moments else y


def _per_channel(a, x) -> np.ndarray:
    return a.reshape(1, -1, *[1] * (x.ndim - 2))


def _group_norm(x, groups, weight=None, bias=None, eps=1e-5) -> np.ndarray:
    n = x.shape[0]
    grouped = x.reshape(n, groups, -1)
    y = _standard(grouped, (2,), eps)[0].reshape(x.shape)
    y = y if weight is None else y * _per_channel(weight, x)
    return y if bias is None else y + _per_channel(bias, x)


def _native_group_norm(
    x, weight, bias, n, c, hxw, groups, eps
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    grouped = x.reshape(n, groups, -1)
    _, mean, var = _standard(grouped, (2,), eps)
    return _group_norm(x, groups, weight, bias, eps), mean[..., 0], 1 / np.sqrt(var[..., 0] + eps)


def _batch_norm(
    x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
) -> np.ndarray:
    axes = (0, *range(2, x.ndim))
    if training:
        y = _standard(x, axes, eps)[0]
    else:
        y = (x - _per_channel(running_mean, x)) / np.sqrt(_per_channel(running_var, x) + eps)
    y = y if weight is None else y * _per_channel(weight, x)
    return y if bias is None else y + _per_channel(bias, x)


def _native_batch_norm(
    x, weight, bias, running_mean, running_var, training, momentum, eps
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    axes = (0, *range(2, x.ndim))
    y = _batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return y, np.zeros(0), np.zeros(0)
    _, mean, var = _standard(x, axes, eps)
    return y, mean.reshape(-1), 1 / np.sqrt(var.reshape(-1) + eps)


def _batch_samples(t) -> list[SampleInput]:
    stats = [t(3, grad=False), t(3, low=0.5, high=2.0, grad=False)]
    return [
        call(t(4, 3), None, None, training=True),
        call(t(2, 3, 4), None, None, t(3), t(3), training=True),
        call(t(2, 3, 2, 2), *stats, t(3), t(3)),
        call(t(4, 3), *stats),
    ]


def _native_batch_samples(t) -> list[SampleInput]:
    stats = [t(3, grad=False), t(3, low=0.5, high=2.0, grad=False)]
    return [
        call(t(2, 3, 4), t(3), t(3), None, None, True, 0.1, 1e-5),
        call(t(4, 3), t(3), t(3), *stats, False, 0.1, 1e-5),
    ]


def _instance_norm(
    x,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
) -> np.ndarray:
    y = _standard(x, tuple(range(2, x.ndim)), eps)[0]
    y = y if weight is None else y * _per_channel(weight, x)
    return y if bias is None else y + _per_channel(bias, x)


def _rms_norm(x, shape, weight=None, eps=None) -> np.ndarray:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    y = x / np.sqrt((x**2).mean(axis=axes, keepdims=True) + (1e-7 if eps is None else eps))
    return y if weight is None else y * weight


def _local_response(x, size, alpha=1e-4, beta=0.75, k=1.0) -> np.ndarray:
    c = x.shape[1]
    total = np.zeros_like(x)
    for i in range(c):
        low, high = max(0, i - size // 2), min(c, i + (size - 1) // 2 + 1)
        total[:, i] = (x[:, low:high] ** 2).sum(1)
    return x / (k + alpha * total / size) ** beta


def _normalize(x, p=2.0, dim=1, eps=1e-12) -> np.ndarray:
    size = (np.abs(x) ** p).sum(axis=dim, keepdims=True) ** (1 / p)
    return x / np.maximum(size, eps)


RECORDS = [
    _op(
        "nn.functional.layer_norm",
        lambda t: [
            call(t(2, 3), (t.n(3),)),
            call(t(2, 3, 4), (t.n(3), t.n(4)), t(3, 4), t(3, 4)),
            call(t(2, 5), (t.n(5),), t(5), None, 0.1),
        ],
        _layer_norm,
        out_dtype="same",
        covers=("native_layer_norm_backward",),
        errors=lambda t: [
            error(RuntimeError, "normalized_shape|expected input", t(2, 3), (4,)),
            error(RuntimeError, "at least 1", t(2, 3), ()),
            error(RuntimeError, "weight", t(2, 3), (3,), t(2)),
        ],
    ),
    _op(
        "native_layer_norm",
        lambda t: [
            call(t(2, 3), (t.n(3),), t(3), t(3), 1e-5),
            call(t(2, 3, 4), (t.n(4),), None, None, 1e-5),
        ],
        lambda x, s, w, b, eps: _layer_norm(x, s, w, b, eps, True),
        grad_outputs=1,
        errors=lambda t: [
            error(RuntimeError, "normalized_shape|expected input", t(2, 3), (4,), None, None, 1e-5)
        ],
    ),
    _op(
        "nn.functional.group_norm",
        lambda t: [
            call(t(2, 4, 3), 2),
            call(t(2, 6, 2, 2), 3, t(6), t(6)),
            call(t(1, 4), 1, t(4), t(4), 0.1),
        ],
        _group_norm,
        out_dtype="same",
        covers=("native_group_norm_backward",),
        errors=lambda t: [
            error((RuntimeError, ValueError), "divisible", t(2, 3, 2), 2),
            error((RuntimeError, ValueError), "weight", t(2, 4, 2), 2, t(3)),
        ],
    ),
    _op(
        "native_group_norm",
        lambda t: [call(t(2, 4, 3), t(4), t(4), t.n(2), t.n(4), t.n(3), 2, 1e-5)],
        _native_group_norm,
        grad_outputs=1,
        errors=lambda t: [
            error(RuntimeError, "divisible", t(2, 3, 2), None, None, 2, 3, 2, 2, 1e-5)
        ],
    ),
    _op(
        "nn.functional.batch_norm",
        _batch_samples,
        _batch_norm,
        out_dtype="same",
        covers=(
            "native_batch_norm_backward",
            "_batch_norm_impl_index",
            "_batch_norm_impl_index_backward",
            "_native_batch_norm_legit_no_training",
            "_native_batch_norm_legit_functional",
        ),
        errors=lambda t: [
            error(
                (ValueError, RuntimeError), "more than 1 value", t(1, 3), None, None, training=True
            ),
            error(RuntimeError, "running_mean", t(2, 3), t(2), t(3)),
            error(RuntimeError, "running_mean|defined|running", t(2, 3), None, None),
        ],
    ),
    _op("native_batch_norm", _native_batch_samples, _native_batch_norm, grad_outputs=1),
    _op(
        "_native_batch_norm_legit",
        lambda t: [
            call(
                t(2, 3, 4),
                t(3),
                t(3),
                t(3, grad=False),
                t(3, low=0.5, high=2.0, grad=False),
                True,
                0.1,
                1e-5,
            )
        ],
        _native_batch_norm,
        op=torch.ops.aten._native_batch_norm_legit,
        grad_outputs=1,
        grad_samples=lambda t: [call(t(2, 3, 4), t(3), t(3), None, None, True, 0.1, 1e-5)],
        grad_op=lambda *a: torch.native_batch_norm(*a),
        generic_errors=False,
        skips={
            "expanded": "writes the running statistics: an expanded one cannot be",
        },
    ),
    _op(
        "nn.functional.instance_norm",
        lambda t: [call(t(2, 3, 4)), call(t(2, 3, 3, 2), None, None, t(3), t(3))],
        _instance_norm,
        out_dtype="same",
        errors=lambda t: [error((ValueError, RuntimeError), "more than 1|spatial", t(2, 3, 1))],
    ),
    _op(
        "nn.functional.rms_norm",
        lambda t: [call(t(2, 3), (t.n(3),), None, 1e-5), call(t(2, 3, 4), (t.n(4),), t(4), 1e-3)],
        _rms_norm,
        out_dtype="same",
        covers=("_fused_rms_norm", "_fused_rms_norm_backward"),
        errors=lambda t: [
            error(RuntimeError, "normalized_shape|expected input", t(2, 3), (4,)),
            error(RuntimeError, "weight", t(2, 3), (3,), t(2)),
        ],
    ),
    _op(
        "nn.functional.local_response_norm",
        lambda t: [call(t(2, 4, 3), 2), call(t(1, 5, 2, 2), 3, 0.1, 0.5, 2.0)],
        _local_response,
        out_dtype="same",
        big=lambda t: call(_plain(t)(4, 12, 70, 80), 3),
        errors=lambda t: [error(ValueError, "3D or higher", t(2, 3), 2)],
    ),
    _op(
        "nn.functional.normalize",
        lambda t: [call(t(2, 3)), call(t(2, 3), 1.0, 0), call(t(2, 3, 4), 3.0, -1, 0.1)],
        _normalize,
        out_dtype="same",
        codes="f",
        errors=lambda t: [error(IndexError, "Dimension out of range", t(2, 3), 2.0, 2)],
    ),
]


def _plain(t) -> Maker:
    t.scale = 1
    return t
