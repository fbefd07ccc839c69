"""Records of the attention family."""

from __future__ import annotations

import numpy as np

import torch

from . import refs
from .core import OpInfo, SampleInput, call, error

TOL = {torch.float16: (2e-2, 1e-2), torch.bfloat16: (1e-1, 5e-2), torch.float32: (1e-4, 1e-5)}


def _attention(
    q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False
) -> np.ndarray:
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (scale if scale is not None else q.shape[-1] ** -0.5)
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if attn_mask is not None:
        scores = (
            np.where(attn_mask, scores, -np.inf) if attn_mask.dtype == bool else scores + attn_mask
        )
    return refs.softmax(scores, -1) @ v


def _samples(t) -> list[SampleInput]:
    mask = torch.tensor([[True, False, True], [True, True, False]], device=t.device)
    return [
        call(t(1, 2, 2, 3), t(1, 2, 3, 3), t(1, 2, 3, 3)),
        call(t(1, 1, 3, 2), t(1, 1, 3, 2), t(1, 1, 3, 2), is_causal=True),
        call(t(1, 1, 2, 3), t(1, 1, 3, 3), t(1, 1, 3, 3), attn_mask=mask),
        call(t(1, 1, 2, 2), t(1, 1, 3, 2), t(1, 1, 3, 2), attn_mask=t(2, 3, grad=False), scale=0.3),
        call(t(1, 4, 2, 2), t(1, 2, 2, 2), t(1, 2, 2, 2), enable_gqa=True),
        call(t(2, 2, 3), t(2, 3, 3), t(2, 3, 3)),
    ]


def _big(t) -> SampleInput:
    t.scale = 1
    return call(t(2, 4, 130, 32), t(2, 4, 150, 32), t(2, 4, 150, 32))


RECORDS = [
    OpInfo(
        "nn.functional.scaled_dot_product_attention",
        _samples,
        _attention,
        "f",
        out_dtype="same",
        tolerances=TOL,
        big=_big,
        covers=(
            "_scaled_dot_product_attention_math",
            "_scaled_dot_product_flash_attention_for_cpu",
            "_scaled_dot_product_flash_attention_for_cpu_backward",
        ),
        errors=lambda t: [
            error(RuntimeError, "", t(1, 2, 2, 3), t(1, 2, 2, 4), t(1, 2, 2, 4)),
            error(RuntimeError, "dtype", t(1, 2, 2, 3), t(1, 2, 2, 3).double(), t(1, 2, 2, 3)),
            error(
                RuntimeError,
                "is_causal|attn_mask",
                t(1, 2, 2),
                t(1, 2, 2),
                t(1, 2, 2),
                attn_mask=t(2, 2),
                is_causal=True,
            ),
        ],
    ),
]
