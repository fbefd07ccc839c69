"""References of matrix factorizations and of what is computed from their factors, in NumPy, matrix
by matrix: reflectors are multiplied out, pivots are applied one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def batched(function, results) -> Callable[..., object]:
    """function of one matrix, applied to all of a batch."""

    def ref(x, *rest, **keywords) -> tuple[np.ndarray, ...]:
        if x.ndim == 2:
            return function(x, *rest, **keywords)
        flat = x.reshape(-1, *x.shape[-2:])
        parts = [function(m, *rest, **keywords) for m in flat]
        stacked = [np.stack([p[i] for p in parts]) for i in range(results)]
        return tuple(s.reshape(*x.shape[:-2], *s.shape[1:]) for s in stacked)

    return ref


def lu_factor(x) -> tuple[np.ndarray, np.ndarray]:
    """Packed factors and pivots counted from one."""
    import scipy.linalg

    packed, pivots = scipy.linalg.lu_factor(x)
    return packed, pivots + 1


def lu_factor_with_info(x) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (*lu_factor(x), np.zeros(()))


def lu(x) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    import scipy.linalg

    return tuple(scipy.linalg.lu(x))


def permutation(pivots, rows) -> np.ndarray:
    order = list(range(rows))
    for i, p in enumerate(pivots):
        order[i], order[int(p) - 1] = order[int(p) - 1], order[i]
    out = np.zeros((rows, rows))
    out[order, range(rows)] = 1
    return out


def lu_unpack(packed, pivots) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    k = min(packed.shape)
    lower = np.tril(packed[:, :k], -1) + np.eye(packed.shape[0], k)
    return permutation(pivots, packed.shape[0]), lower, np.triu(packed[:k])


def lu_solve(packed, pivots, b) -> np.ndarray:
    p, lower, upper = lu_unpack(packed, pivots)
    return np.linalg.solve(p @ lower @ upper, b)


def qr(x):
    return tuple(np.linalg.qr(x))


def reflectors(x, tau) -> np.ndarray:
    """The product of all reflectors 1 - tau v v^H, a square matrix."""
    q = np.eye(x.shape[0], dtype=x.dtype)
    for i, t in enumerate(tau):
        v = np.where(np.arange(x.shape[0]) > i, x[:, i], 0)
        v[i] = 1
        q = q @ (np.eye(len(v)) - t * np.outer(v, v.conj()))
    return q


def householder_product(x, tau) -> np.ndarray:
    return reflectors(x, tau)[:, : x.shape[1]]


def ormqr(x, tau, other, left=True, transpose=False) -> np.ndarray:
    q = reflectors(x, tau)
    q = q.conj().T if transpose else q
    return q @ other if left else other @ q
