"""References that NumPy and SciPy do not have ready: plain, slow, in double precision, and written
from the operators' definitions."""

from __future__ import annotations

import math

import numpy as np


def sgn(x) -> np.ndarray | np.generic:
    """x / |x|, 0 at 0; the sign of real numbers."""
    if np.iscomplexobj(x):
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size))
    return np.sign(x) if x.dtype != bool else x


def logit(x, eps=None) -> np.ndarray | np.generic:
    x = np.clip(x, eps, 1 - eps) if eps is not None else x
    return np.log(x / (1 - x))


def nan_to_num(x, nan=0.0, posinf=None, neginf=None) -> np.ndarray:
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def divide(a, b, rounding_mode=None) -> np.ndarray:
    if rounding_mode is None:
        return np.true_divide(a, b)
    if rounding_mode == "floor":
        return np.floor_divide(a, b)
    exact = np.true_divide(a, b)
    whole = np.trunc(exact)
    return whole.astype(np.int64) if np.result_type(a, b).kind in "iub" else whole


def clamp(x, min=None, max=None) -> np.ndarray | np.generic:
    x = x if min is None else np.maximum(x, min)
    return x if max is None else np.minimum(x, max)


def lerp(a, b, weight) -> np.ndarray:
    return a + weight * (b - a)


def round_decimals(x, decimals=0) -> np.ndarray:
    return np.round(x, decimals)


def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False) -> np.ndarray:
    return np.isclose(a, b, rtol, atol, equal_nan)


def heaviside(a, b) -> np.ndarray:
    return np.heaviside(a.astype(float), np.asarray(b, float))


def xlogy(a, b):
    with np.errstate(all="ignore"):
        return np.where((a == 0) & ~np.isnan(b), 0.0, a * np.log(b))


def xlog1py(a, b):
    with np.errstate(all="ignore"):
        return np.where((a == 0) & ~np.isnan(b), 0.0, a * np.log1p(b))


def windows(
    x, kernel, stride, padding, dilation, fill, ceil_mode=False
) -> tuple[np.ndarray, np.ndarray]:
    """Every pooling window over the trailing len(kernel) dimensions, as an array with the window's
    elements last, and the same of the positions' flat indices (-1 outside the input)."""
    n = len(kernel)
    spatial = x.shape[x.ndim - n :]
    widths = [p + kernel[i] * dilation[i] for i, p in enumerate(padding)]
    pad = [(0, 0)] * (x.ndim - n) + [(padding[i], widths[i]) for i in range(n)]
    padded = np.pad(x, pad, constant_values=fill)
    where = np.pad(
        np.arange(math.prod(spatial)).reshape(spatial), pad[x.ndim - n :], constant_values=-1
    )
    out = [
        pool_size(spatial[i], kernel[i], stride[i], padding[i], dilation[i], ceil_mode)
        for i in range(n)
    ]
    values = np.empty((*x.shape[: x.ndim - n], *out, math.prod(kernel)), x.dtype)
    places = np.empty((*out, math.prod(kernel)), np.int64)
    for cell in np.ndindex(*out):
        cut = tuple(
            slice(
                cell[i] * stride[i],
                cell[i] * stride[i] + dilation[i] * (kernel[i] - 1) + 1,
                dilation[i],
            )
            for i in range(n)
        )
        places[cell] = where[cut].ravel()
        values[(..., *cell, slice(None))] = padded[(..., *cut)].reshape(*x.shape[: x.ndim - n], -1)
    return values, places


def pool_size(size, kernel, stride, padding, dilation, ceil_mode) -> int:
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (math.ceil(span / stride) if ceil_mode else span // stride) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def reduce_loss(values, reduction) -> np.ndarray | np.generic:
    if reduction == "none":
        return values
    return values.mean() if reduction == "mean" else values.sum()


def softmax(x, dim, log=False) -> np.ndarray:
    shifted = x - x.max(axis=dim, keepdims=True)
    total = np.exp(shifted).sum(axis=dim, keepdims=True)
    return shifted - np.log(total) if log else np.exp(shifted) / total
