"""Records of the embedding family."""

from __future__ import annotations

import numpy as np

import torch

from .core import OpInfo, SampleInput, call, error

TOL = {torch.float16: (1e-2, 1e-2), torch.bfloat16: (6e-2, 6e-2), torch.float32: (1e-5, 1e-5)}


def _embedding(index, weight, padding_idx=None) -> np.ndarray:
    return weight[index]


def _bag(
    index, weight, offsets=None, mode="mean", per_sample_weights=None, include_last_offset=False
) -> np.ndarray:
    if index.ndim == 2:
        bags = list(index)
        scales = list(per_sample_weights) if per_sample_weights is not None else [None] * len(bags)
    else:
        ends = [*offsets[1:], *([] if include_last_offset else [len(index)])]
        starts = offsets[:-1] if include_last_offset else offsets
        cuts = [slice(a, b) for a, b in zip(starts, ends, strict=True)]
        bags = [index[c] for c in cuts]
        scales = [per_sample_weights[c] if per_sample_weights is not None else None for c in cuts]
    rows = []
    for bag, scale in zip(bags, scales, strict=True):
        picked = weight[bag] if scale is None else weight[bag] * scale[:, None]
        empty = np.zeros(weight.shape[1])
        rows.append(getattr(picked, mode)(axis=0) if len(bag) else empty)
    return np.stack(rows)


def _bags(t) -> list[SampleInput]:
    offsets = torch.tensor([0, 2, 2, 5], device=t.device)
    index = torch.tensor([1, 2, 4, 3, 0, 2, 1], device=t.device)
    table = torch.tensor([[0, 3], [2, 1], [4, 4]], device=t.device)
    return [
        *[call(index, t(5, 3), offsets, mode=m) for m in ("sum", "mean", "max")],
        call(table, t(5, 3), mode="sum"),
        call(index, t(5, 3), offsets, mode="sum", per_sample_weights=t(7)),
        call(index, t(5, 3), torch.tensor([0, 2, 7]), mode="mean", include_last_offset=True),
    ]


def _big_bags(t) -> SampleInput:
    t.scale = 1
    return call(t.index(4000, high=300), t(300, 60), torch.arange(0, 4000, 8), mode="sum")


RECORDS = [
    OpInfo(
        "nn.functional.embedding",
        lambda t: [
            call(t.index(2, 3, high=4), t(4, 2)),
            call(t.index(5, high=4), t(4, 3), 1),
            call(t.index(high=4), t(4, 2)),
        ],
        _embedding,
        "fc",
        big=lambda t: call(t.index(3000, high=500), t(500, 100)),
        out_dtype=None,
        grad_samples=lambda t: [call(t.index(2, 3, high=4), t(4, 2))],
        covers=("embedding_backward", "embedding_dense_backward"),
        tolerances=TOL,
        errors=lambda t: [
            error(IndexError, "out of range", torch.tensor([4]), t(4, 2)),
            error((RuntimeError, AssertionError), "", torch.tensor([0]), t(4)),
            error(RuntimeError, "scalar type|Long|indices", t(2), t(4, 2)),
        ],
    ),
    OpInfo(
        "nn.functional.embedding_bag",
        _bags,
        _bag,
        "f",
        tolerances=TOL,
        big=_big_bags,
        covers=(
            "_embedding_bag",
            "_embedding_bag_forward_only",
            "_embedding_bag_backward",
            "_embedding_bag_dense_backward",
            "_embedding_bag_per_sample_weights_backward",
        ),
        errors=lambda t: [
            error((RuntimeError, IndexError), "", torch.tensor([5]), t(4, 2), torch.tensor([0])),
            error((RuntimeError, ValueError), "offsets", torch.tensor([1]), t(4, 2)),
            error(
                (RuntimeError, ValueError),
                "mode",
                torch.tensor([1]),
                t(4, 2),
                torch.tensor([0]),
                mode="x",
            ),
        ],
        skips={"expanded": "expanded offsets are not increasing"},
    ),
    OpInfo(
        "nn.functional.one_hot",
        lambda t: [
            call(t.index(2, 3, high=4), 4),
            call(t.index(4, high=3), 5),
            call(t.index(high=3), 3),
        ],
        lambda x, n: np.eye(n, dtype=np.int64)[x],
        "l",
        out_dtype="int64",
        grad_codes="",
        big=lambda t: call(t.index(3000, high=100), 100),
        errors=lambda t: [
            error(RuntimeError, "smaller than num_classes", torch.tensor([4]), 3),
            error(RuntimeError, "non-negative|negative", torch.tensor([-1]), 3),
            error(RuntimeError, "int64|LongTensor", t(2).float(), 3),
        ],
    ),
]
