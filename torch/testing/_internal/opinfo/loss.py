"""Records of the loss family."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from . import refs
from .core import OpInfo, SampleInput, call, error

TOL = {torch.float16: (2e-2, 2e-2), torch.bfloat16: (1e-1, 1e-1), torch.float32: (1e-4, 1e-5)}
REDUCTIONS = ("mean", "sum", "none")


def _op(name, samples, ref, **options) -> OpInfo:
    options.setdefault("tolerances", TOL)
    return OpInfo(f"nn.functional.{name}", samples, ref, options.pop("codes", "f"), **options)


def _pairs(**second) -> Callable[..., object]:
    """Input and target of one shape, with each reduction."""

    def samples(t) -> list[SampleInput]:
        target = lambda *s: t(*s, grad=False, **second)
        return [
            *[call(t(2, 3), target(2, 3), reduction=r) for r in REDUCTIONS],
            call(t(2, 3, 4), target(2, 3, 4)),
            call(t(), target()),
        ]

    return samples


def _elementwise(function) -> Callable[..., object]:
    return lambda x, y, reduction="mean", **k: refs.reduce_loss(function(x, y, **k), reduction)


def _smooth(x, y, beta=1.0) -> np.ndarray:
    d = np.abs(x - y)
    return np.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta) if beta else d


def _huber(x, y, delta=1.0) -> np.ndarray:
    d = np.abs(x - y)
    return np.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta))


def _bce(x, y, weight=None) -> np.ndarray | np.generic:
    value = -(y * np.log(x) + (1 - y) * np.log(1 - x))
    return value if weight is None else value * weight


def _bce_logits(x, y, weight=None, pos_weight=None) -> np.ndarray | np.generic:
    p = 1 / (1 + np.exp(-x))
    value = -((1 if pos_weight is None else pos_weight) * y * np.log(p) + (1 - y) * np.log(1 - p))
    return value if weight is None else value * weight


def _kl(x, y, log_target=False) -> np.ndarray:
    return np.exp(y) * (y - x) if log_target else refs.xlogy(y, y) - y * x


def _kl_div(x, y, reduction="mean", log_target=False) -> np.ndarray | np.generic:
    values = _kl(x, y, log_target)
    return (
        values.sum() / x.shape[0]
        if reduction == "batchmean"
        else refs.reduce_loss(values, reduction)
    )


def _poisson(x, y, log_input=True, full=False, eps=1e-8) -> np.ndarray:
    value = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
    if full:
        stirling = (
            y * np.log(np.maximum(y, 1e-30)) - y + 0.5 * np.log(2 * np.pi * np.maximum(y, 1e-30))
        )
        value = value + np.where(y > 1, stirling, 0)
    return value


def _gaussian(x, y, var, full=False, eps=1e-6, reduction="mean") -> np.generic:
    var = np.maximum(var, eps)
    value = 0.5 * (np.log(var) + (x - y) ** 2 / var) + (0.5 * np.log(2 * np.pi) if full else 0)
    return refs.reduce_loss(value, reduction)


def _nll(x, target, weight=None, ignore_index=-100, reduction="mean") -> np.ndarray | np.generic:
    one = x.ndim == 1
    x, target = (x[None], np.reshape(target, 1)) if one else (x, target)
    w = np.ones(x.shape[1]) if weight is None else weight
    safe = np.where(target == ignore_index, 0, target)
    picked = -np.take_along_axis(x, safe[:, None], 1)[:, 0]
    scale = np.where(target == ignore_index, 0.0, w[safe])
    values = picked * scale
    if reduction == "none":
        return values[0] if one else values
    return values.sum() / scale.sum() if reduction == "mean" else values.sum()


def _cross_entropy(
    x, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    dim = 1 if x.ndim > 1 else 0
    logs = refs.softmax(x, dim, True)
    if target.dtype.kind == "f":
        w = np.ones(x.shape[dim]) if weight is None else weight
        t = target * (1 - label_smoothing) + label_smoothing / x.shape[dim]
        w = w.reshape([-1 if d == dim else 1 for d in range(x.ndim)])
        values = -(t * logs * w).sum(axis=dim)
        return (
            values.sum() / (values.size)
            if reduction == "mean"
            else refs.reduce_loss(values, reduction)
        )
    main = _nll(logs, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return main
    kept = target != ignore_index
    w = np.ones(x.shape[dim]) if weight is None else weight
    spread = np.where(kept, -(logs * w.reshape(-1, *[1] * (x.ndim - 2))).sum(axis=1), 0)
    if reduction == "mean":
        smooth = spread.sum() / w[target[kept]].sum()
    else:
        smooth = spread.sum() if reduction == "sum" else spread
    return (1 - label_smoothing) * main + label_smoothing / x.shape[dim] * smooth


def _classes(t) -> list[SampleInput]:
    target = t.index(4, high=3)
    holes = target.clone()
    holes[0] = -100
    return [
        *[call(t(4, 3), target, reduction=r) for r in REDUCTIONS],
        call(t(4, 3), holes, t(3, low=0.5, high=1.5, grad=False)),
        call(t(2, 3, 4), t.index(2, 4, high=3), reduction="none"),
        call(t(2, 3, 2, 2), t.index(2, 2, 2, high=3)),
        call(t(3), t.index(high=3)),
    ]


def _entropies(t) -> list[SampleInput]:
    target = t.index(4, high=3)
    soft = t(4, 3, low=0.1, high=1.0, grad=False)
    return [
        *_classes(t),
        call(t(4, 3), target, label_smoothing=0.2),
        call(
            t(4, 3),
            target,
            t(3, low=0.5, high=1.5, grad=False),
            label_smoothing=0.2,
            reduction="sum",
        ),
        call(t(4, 3), soft / soft.sum(1, keepdim=True)),
        call(t(4, 3), soft / soft.sum(1, keepdim=True), label_smoothing=0.1, reduction="none"),
    ]


def _multi_margin(x, y, p=1, margin=1.0, weight=None, reduction="mean") -> np.ndarray | np.generic:
    one = x.ndim == 1
    x, y = (x[None], np.reshape(y, 1)) if one else (x, y)
    values = np.zeros(len(x))
    for i, row in enumerate(x):
        z = np.maximum(0, margin - row[y[i]] + row) ** p * (1 if weight is None else weight[y[i]])
        values[i] = (z.sum() - z[y[i]]) / len(row)
    return refs.reduce_loss(values[0] if one else values, reduction)


def _multilabel_margin(x, y, reduction="mean") -> np.ndarray | np.generic:
    one = x.ndim == 1
    x, y = (x[None], y[None]) if one else (x, y)
    values = np.zeros(len(x))
    for i, row in enumerate(x):
        end = np.flatnonzero(y[i] < 0)
        targets = y[i][: end[0] if len(end) else None]
        rest = [j for j in range(len(row)) if j not in targets]
        values[i] = sum(max(0, 1 - (row[a] - row[b])) for a in targets for b in rest) / len(row)
    return refs.reduce_loss(values[0] if one else values, reduction)


def _multilabels(t) -> list[SampleInput]:
    y = torch.tensor([[1, 0, -1, 2], [3, -1, 0, 1]], device=t.device)
    return [*[call(t(2, 4), y, reduction=r) for r in REDUCTIONS], call(t(4), y[0])]


def _soft_multilabel(x, y, weight=None, reduction="mean") -> np.ndarray | np.generic:
    p = 1 / (1 + np.exp(-x))
    value = -(y * np.log(p) + (1 - y) * np.log(1 - p)) * (1 if weight is None else weight)
    return refs.reduce_loss(value.mean(axis=-1), reduction)


def _cosine(a, b) -> np.ndarray | np.generic:
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def _cosine_embedding(a, b, y, margin=0.0, reduction="mean") -> np.ndarray | np.generic:
    c = _cosine(a, b)
    return refs.reduce_loss(np.where(y == 1, 1 - c, np.maximum(0, c - margin)), reduction)


def _signs(t, *shape) -> torch.Tensor:
    return t.mask(*shape).to(t.dtype) * 2 - 1


def _distance(a, b, p, eps) -> np.ndarray:
    return (np.abs(a - b + eps) ** p).sum(-1) ** (1 / p)


def _triplet(
    a, b, c, margin=1.0, p=2, eps=1e-6, swap=False, reduction="mean"
) -> np.ndarray | np.generic:
    near, far = _distance(a, b, p, eps), _distance(a, c, p, eps)
    far = np.minimum(far, _distance(b, c, p, eps)) if swap else far
    return refs.reduce_loss(np.maximum(0, margin + near - far), reduction)


def _triplet_distance(
    a, b, c, *, margin=1.0, swap=False, reduction="mean"
) -> np.ndarray | np.generic:
    return _triplet(a, b, c, margin, 2, 1e-6, swap, reduction)


def _ctc(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank=0,
    reduction="mean",
    zero_infinity=False,
) -> np.ndarray | np.generic:
    """The sum over alignments by the forward recursion, one sequence at a time."""
    values = []
    for b, (steps, length) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        labels = [blank]
        for k in targets[b][:length]:
            labels += [k, blank]
        alpha = np.full(len(labels), -np.inf)
        alpha[0] = log_probs[0, b, blank]
        if len(labels) > 1:
            alpha[1] = log_probs[0, b, labels[1]]
        for s in range(1, steps):
            before, alpha = alpha, np.full(len(labels), -np.inf)
            for i, k in enumerate(labels):
                options = [before[i], *([before[i - 1]] if i else [])]
                if i > 1 and k != blank and k != labels[i - 2]:
                    options.append(before[i - 2])
                alpha[i] = np.logaddexp.reduce(options) + log_probs[s, b, k]
        values.append(-np.logaddexp.reduce(alpha[-2:]) if len(labels) > 1 else -alpha[0])
    values = np.array(values)
    if reduction == "mean":
        return (values / np.maximum(target_lengths, 1)).mean()
    return refs.reduce_loss(values, reduction)


def _ctc_samples(t) -> list[SampleInput]:
    targets = torch.tensor([[1, 2, 2], [3, 1, 0]], device=t.device)
    lengths = torch.tensor([5, 4]), torch.tensor([3, 2])
    probs = lambda: t(5, 2, 4).log_softmax(-1)
    return [call(probs(), targets, *lengths, reduction=r) for r in REDUCTIONS]


def _linear_cross_entropy_samples(t) -> list[SampleInput]:
    return [
        call(t(4, 3), t(5, 3), t.index(4, high=5)),
        call(t(4, 3), t(5, 3), t.index(4, high=5), reduction="sum"),
    ]


_BAD = lambda t: [
    error((RuntimeError, ValueError), "must match|size", t(2, 3), t(2, 4)),
    error((RuntimeError, ValueError), "not a valid value for reduction", t(2), t(2), reduction="x"),
]
_BAD_CLASS = lambda t: [
    error((IndexError, RuntimeError), "out of bounds", t(2, 3), torch.tensor([0, 3])),
    error((RuntimeError, ValueError), "batch_size|batch size", t(2, 3), torch.tensor([0])),
    error(
        (RuntimeError, ValueError),
        "not a valid value for reduction",
        t(2, 3),
        torch.tensor([0, 1]),
        reduction="x",
    ),
]


def _many_labels(t) -> SampleInput:
    """A batch of targets: three classes each, then the end mark."""
    t.scale = 1
    targets = torch.full((300, 500), -1, dtype=torch.int64, device=t.device)
    targets[:, :3] = t.index(300, 3, high=500)
    return call(t(300, 500), targets)


def _long_sequences(t) -> SampleInput:
    t.scale = 1
    lengths = torch.full((64,), 50, device=t.device)
    words = torch.full((64,), 12, device=t.device)
    return call(t(50, 64, 30).log_softmax(-1), t.index(64, 12, low=1, high=30), lengths, words)


RECORDS = [
    _op(
        "mse_loss",
        _pairs(),
        _elementwise(lambda x, y: (x - y) ** 2),
        out_dtype="same",
        errors=_BAD,
        covers=("mse_loss_backward",),
    ),
    _op(
        "l1_loss", _pairs(), _elementwise(lambda x, y: np.abs(x - y)), out_dtype="same", errors=_BAD
    ),
    _op(
        "smooth_l1_loss",
        lambda t: [*_pairs()(t), call(t(2, 3), t(2, 3), beta=0.5)],
        _elementwise(_smooth),
        out_dtype="same",
        covers=("smooth_l1_loss_backward",),
        errors=lambda t: [
            *_BAD(t),
            error(RuntimeError, "negative values for beta", t(2), t(2), beta=-1.0),
        ],
    ),
    _op(
        "huber_loss",
        lambda t: [*_pairs()(t), call(t(2, 3), t(2, 3), delta=0.5)],
        _elementwise(_huber),
        out_dtype="same",
        covers=("huber_loss_backward",),
        errors=lambda t: [
            *_BAD(t),
            error(RuntimeError, "non-positive values for delta", t(2), t(2), delta=-1.0),
        ],
    ),
    _op(
        "soft_margin_loss",
        _pairs(),
        _elementwise(lambda x, y: np.log1p(np.exp(-y * x))),
        out_dtype="same",
        covers=("soft_margin_loss_backward",),
        errors=_BAD,
    ),
    _op(
        "binary_cross_entropy",
        _pairs(low=0.1, high=0.9),
        _elementwise(_bce),
        bounds=(0.1, 0.9),
        out_dtype="same",
        covers=("binary_cross_entropy_backward",),
        errors=lambda t: [
            error(
                (RuntimeError, ValueError), "different to the input size|target size", t(2), t(3)
            ),
            error(RuntimeError, "between 0 and 1", t(2) + 2, t(2)),
        ],
    ),
    _op(
        "binary_cross_entropy_with_logits",
        lambda t: [
            *_pairs(low=0.1, high=0.9)(t),
            call(
                t(2, 3),
                t(2, 3, low=0, high=1.0),
                weight=t(3, low=0.5, grad=False),
                pos_weight=t(3, low=0.5, grad=False),
            ),
        ],
        _elementwise(_bce_logits),
        out_dtype="same",
        errors=lambda t: [error((RuntimeError, ValueError), "must be the same", t(2), t(3))],
    ),
    _op(
        "kl_div",
        lambda t: [
            *[
                call(t(2, 3), t(2, 3, low=0.1, high=0.9), reduction=r)
                for r in (*REDUCTIONS, "batchmean")
            ],
            call(t(2, 3), t(2, 3), reduction="sum", log_target=True),
        ],
        _kl_div,
        out_dtype="same",
        errors=_BAD,
    ),
    _op(
        "poisson_nll_loss",
        lambda t: [
            call(t(2, 3), t(2, 3, low=0.2)),
            call(t(2, 3), t(2, 3, low=0.2, high=4.0), full=True, reduction="none"),
            call(t(2, 3, low=0.3), t(2, 3, low=0.2), log_input=False, reduction="sum"),
        ],
        _elementwise(_poisson),
        out_dtype="same",
        errors=lambda t: [
            error(
                (RuntimeError, ValueError),
                "valid value for reduction|valid",
                t(2),
                t(2),
                reduction="x",
            )
        ],
    ),
    _op(
        "gaussian_nll_loss",
        lambda t: [
            call(t(2, 3), t(2, 3), t(2, 3, low=0.5)),
            call(t(2, 3), t(2, 3), t(2, 1, low=0.5), full=True, reduction="sum"),
        ],
        _gaussian,
        out_dtype="same",
        errors=lambda t: [
            error(ValueError, "negative", t(2), t(2), -t(2).abs() - 1),
            error(ValueError, "size", t(2), t(2), t(3).abs()),
        ],
        skips={"meta": "it looks at the values of var"},
    ),
    _op(
        "nll_loss",
        _classes,
        _nll,
        out_dtype="same",
        errors=_BAD_CLASS,
        covers=(
            "nll_loss2d",
            "nll_loss_nd",
            "nll_loss_forward",
            "nll_loss_backward",
            "nll_loss2d_forward",
            "nll_loss2d_backward",
        ),
    ),
    _op(
        "cross_entropy",
        _entropies,
        _cross_entropy,
        out_dtype="same",
        errors=_BAD_CLASS,
        aten_name="cross_entropy_loss",
    ),
    _op(
        "linear_cross_entropy",
        _linear_cross_entropy_samples,
        lambda x, w, y, **k: _cross_entropy(x @ w.T, y, **k),
        codes="d",
    )
    if hasattr(torch.nn.functional, "linear_cross_entropy")
    else None,
    _op(
        "multi_margin_loss",
        lambda t: [
            *[call(t(4, 3), t.index(4, high=3), reduction=r) for r in REDUCTIONS],
            call(t(4, 3), t.index(4, high=3), 2, 0.5, t(3, low=0.5, grad=False)),
            call(t(3), t.index(high=3)),
        ],
        _multi_margin,
        out_dtype="same",
        covers=("multi_margin_loss_backward",),
        errors=lambda t: [
            error(
                (RuntimeError, ValueError), "p == 1|only p|p must", t(2, 3), torch.tensor([0, 1]), 3
            ),
            error((RuntimeError, ValueError, IndexError), "", t(2, 3), torch.tensor([0, 3])),
        ],
    ),
    _op(
        "multilabel_margin_loss",
        _multilabels,
        _multilabel_margin,
        out_dtype="same",
        big=_many_labels,
        covers=("multilabel_margin_loss_backward", "multilabel_margin_loss_forward"),
        errors=lambda t: [
            error((RuntimeError, ValueError), "", t(2, 3), torch.tensor([[0, 1, 3]])),
            error((RuntimeError, ValueError, IndexError), "", t(1, 3), torch.tensor([[0, 1, 3]])),
        ],
    ),
    _op(
        "multilabel_soft_margin_loss",
        lambda t: [call(t(2, 3), t(2, 3, low=0, high=1.0), reduction=r) for r in REDUCTIONS],
        _soft_multilabel,
        out_dtype="same",
        errors=lambda t: [error((RuntimeError, ValueError), "", t(2, 3), t(2, 4))],
    ),
    _op(
        "hinge_embedding_loss",
        lambda t: (
            [call(t(2, 3), _signs(t, 2, 3), reduction=r) for r in REDUCTIONS]
            + [call(t(2, 3), _signs(t, 2, 3), 0.5)]
        ),
        lambda x, y, margin=1.0, reduction="mean": refs.reduce_loss(
            np.where(y == 1, x, np.maximum(0, margin - x)), reduction
        ),
        out_dtype="same",
        errors=lambda t: [error(RuntimeError, "must match", t(2), t(3))],
    ),
    _op(
        "margin_ranking_loss",
        lambda t: (
            [call(t(4), t(4), _signs(t, 4), reduction=r) for r in REDUCTIONS]
            + [call(t(4), t(4), _signs(t, 4), 0.5)]
        ),
        lambda a, b, y, margin=0.0, reduction="mean": refs.reduce_loss(
            np.maximum(0, -y * (a - b) + margin), reduction
        ),
        out_dtype="same",
        errors=lambda t: [error(RuntimeError, "same sizes|sizes|dimension", t(2), t(2, 2), t(2))],
    ),
    _op(
        "cosine_embedding_loss",
        lambda t: (
            [call(t(4, 3), t(4, 3), _signs(t, 4), reduction=r) for r in REDUCTIONS]
            + [call(t(3), t(3), _signs(t), 0.2)]
        ),
        _cosine_embedding,
        out_dtype="same",
        errors=lambda t: [
            error(RuntimeError, "1D target", t(2, 3), t(2, 3), t(2, 3)),
            error(RuntimeError, "must match|size", t(2, 3), t(2, 2), t(2)),
        ],
    ),
    _op(
        "triplet_margin_loss",
        lambda t: (
            [call(t(4, 3), t(4, 3), t(4, 3), reduction=r) for r in REDUCTIONS]
            + [call(t(4, 3), t(4, 3), t(4, 3), 0.5, 1, swap=True)]
        ),
        _triplet,
        out_dtype="same",
        errors=lambda t: [
            error(
                (RuntimeError, ValueError),
                "same dimensions|dimension|expected to have",
                t(2, 3),
                t(2, 3),
                t(3),
            )
        ],
    ),
    _op(
        "triplet_margin_with_distance_loss",
        lambda t: [
            call(t(4, 3), t(4, 3), t(4, 3)),
            call(t(4, 3), t(4, 3), t(4, 3), swap=True, reduction="none"),
        ],
        _triplet_distance,
        out_dtype="same",
        errors=lambda t: [error((RuntimeError, ValueError), "", t(2, 3), t(2, 3), t(3))],
    ),
    # Its gradient is that of logarithms of probabilities, which sum to one.
    _op(
        "ctc_loss",
        _ctc_samples,
        _ctc,
        codes="d",
        grad_op=lambda x, *a, **k: torch.nn.functional.ctc_loss(x.log_softmax(-1), *a, **k),
        covers=("_ctc_loss", "_ctc_loss_backward"),
        big=_long_sequences,
        skips={"meta": "it reads the lengths, which are tensors here"},
        errors=lambda t: [
            error(
                (RuntimeError, ValueError),
                "",
                t(5, 2, 4),
                torch.tensor([[1, 2], [1, 2]]),
                torch.tensor([6, 5]),
                torch.tensor([2, 2]),
            ),
            error(
                (RuntimeError, ValueError),
                "",
                t(5, 2, 4),
                torch.tensor([[1, 2], [1, 2]]),
                torch.tensor([5]),
                torch.tensor([2, 2]),
            ),
        ],
    ),
]
RECORDS = [record for record in RECORDS if record is not None]
