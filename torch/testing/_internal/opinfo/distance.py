"""Records of the distance family."""

from __future__ import annotations

import numpy as np

import torch

from .core import Maker, OpInfo, call, error

TOL = {torch.float16: (2e-2, 2e-2), torch.bfloat16: (1e-1, 1e-1), torch.float32: (1e-4, 1e-4)}


def _pnorm(d, p, axis=-1, keepdims=False):
    d = np.abs(d)
    if p == 0:
        return (d != 0).sum(axis=axis, keepdims=keepdims).astype(float)
    if p == np.inf:
        return d.max(axis=axis, keepdims=keepdims)
    return (d**p).sum(axis=axis, keepdims=keepdims) ** (1 / p)


def _cdist(a, b, p=2.0, compute_mode=None) -> np.ndarray:
    return _pnorm(a[..., :, None, :] - b[..., None, :, :], p)


def _pdist(x, p=2.0) -> np.ndarray:
    i, j = np.triu_indices(len(x), 1)
    return _pnorm(x[i] - x[j], p)


def _cosine(a, b, dim=1, eps=1e-8) -> np.ndarray:
    a, b = np.broadcast_arrays(a, b)
    size = lambda x: np.maximum(np.sqrt((x * x).sum(axis=dim)), eps)
    return (a * b).sum(axis=dim) / (size(a) * size(b))


def _pairwise(a, b, p=2.0, eps=1e-6, keepdim=False) -> np.ndarray:
    return _pnorm(a - b + eps, p, keepdims=keepdim)


def _cross(a, b, dim=None) -> np.ndarray:
    a, b = np.broadcast_arrays(a, b)
    dim = next(i for i, s in enumerate(a.shape) if s == 3) if dim is None else dim
    return np.cross(a, b, axis=dim)


def _cov(x, correction=1, fweights=None, aweights=None) -> np.ndarray:
    return np.cov(x, ddof=correction, fweights=fweights, aweights=aweights)


def _corrcoef(x) -> np.ndarray | np.generic:
    return np.corrcoef(x)


RECORDS = [
    OpInfo(
        "cdist",
        lambda t: [
            *[call(t(3, 2), t(4, 2), p) for p in (2.0, 1.0, 3.0, float("inf"))],
            call(t(2, 3, 2), t(2, 4, 2)),
        ],
        _cdist,
        "d",
        out_dtype="same",
        tolerances=TOL,
        covers=("_cdist_forward", "_cdist_backward", "_euclidean_dist"),
        errors=lambda t: [
            error(RuntimeError, "same number of columns", t(2, 3), t(2, 4)),
            error(RuntimeError, "non-negative p", t(2, 3), t(2, 3), -1.0),
            error(RuntimeError, "at least 2D|at least two", t(3), t(2, 3)),
        ],
    ),
    OpInfo(
        "nn.functional.pdist",
        lambda t: [call(t(4, 3), p) for p in (2.0, 1.0, 3.0)],
        _pdist,
        "d",
        out_dtype="same",
        tolerances=TOL,
        covers=("_pdist_forward", "_pdist_backward"),
        errors=lambda t: [
            error(RuntimeError, "2D tensor", t(3)),
            error(RuntimeError, "non-negative p", t(2, 3), -1.0),
        ],
    ),
    OpInfo(
        "nn.functional.cosine_similarity",
        lambda t: [call(t(2, 3), t(2, 3)), call(t(2, 3), t(3), 1), call(t(2, 3, 4), t(2, 3, 4), 0)],
        _cosine,
        "f",
        out_dtype="same",
        tolerances=TOL,
        errors=lambda t: [
            error(RuntimeError, "must match", t(2, 3), t(2, 4)),
            error(IndexError, "Dimension out of range", t(2, 3), t(2, 3), 2),
        ],
    ),
    OpInfo(
        "nn.functional.pairwise_distance",
        lambda t: [call(t(2, 3), t(2, 3)), call(t(2, 3), t(3), 1.0, 1e-3, True)],
        _pairwise,
        "f",
        out_dtype="same",
        tolerances=TOL,
        errors=lambda t: [error(RuntimeError, "must match", t(2, 3), t(2, 4))],
    ),
    OpInfo(
        "cross",
        lambda t: [call(t(2, 3), t(2, 3), 1), call(t(3, 4), t(3, 4), 0), call(t(2, 3), t(1, 3), 1)],
        _cross,
        "fic",
        out_dtype="same",
        supports_out=True,
        tolerances=TOL,
        big=lambda t: call(_plain(t)(100000, 3), t(100000, 3), 1),
        errors=lambda t: [error(RuntimeError, "must have length 3|length 3", t(2, 4), t(2, 4), 1)],
    ),
    OpInfo(
        "linalg.cross",
        lambda t: [call(t(2, 3), t(2, 3)), call(t(3, 4), t(3, 4), dim=0), call(t(2, 3), t(1, 3))],
        lambda a, b, dim=-1: np.cross(*np.broadcast_arrays(a, b), axis=dim),
        "fic",
        out_dtype="same",
        supports_out=True,
        tolerances=TOL,
        big=lambda t: call(_plain(t)(100000, 3), t(100000, 3)),
        errors=lambda t: [error(RuntimeError, "must have length 3|length 3", t(2, 4), t(2, 4))],
    ),
    OpInfo(
        "cov",
        lambda t: [
            call(t(3, 5)),
            call(t(5)),
            call(t(3, 5), correction=0),
            call(t(3, 4), fweights=torch.tensor([1, 2, 1, 3], device=t.device)),
            call(t(3, 4), aweights=t(4, low=0.2, high=1.0, grad=False, dtype=t.real())),
        ],
        _cov,
        "dc",
        out_dtype="same",
        tolerances=TOL,
        big=lambda t: call(_plain(t)(100, 3000)),
        errors=lambda t: [
            error(RuntimeError, "two or fewer dimensions", t(2, 2, 2)),
            error(RuntimeError, "integral dtype", t(2, 3), fweights=t(3)),
        ],
    ),
    OpInfo(
        "corrcoef",
        lambda t: [call(t(3, 5)), call(t(5))],
        _corrcoef,
        "dc",
        out_dtype="same",
        tolerances=TOL,
        big=lambda t: call(_plain(t)(100, 3000)),
        errors=lambda t: [error(RuntimeError, "two or fewer dimensions", t(2, 2, 2))],
    ),
]


def _plain(t) -> Maker:
    t.scale = 1
    return t
