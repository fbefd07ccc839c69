"""Reductions, scans, order and statistics."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable

import torch
from torch._numpy import _dtypes
from torch._numpy._util import (
    cast,
    cast_int_to_float,
    normalize_axis_index,
    normalize_axis_tuple,
    on_tensors,
    promoted,
    to_tensor,
)


def _axes(a: torch.Tensor, axis: object) -> tuple[int, ...]:
    return tuple(builtins.range(a.dim())) if axis is None else normalize_axis_tuple(axis, a.dim())


def _reduced(operation: Callable, a: torch.Tensor, axis: object, keepdims: bool) -> torch.Tensor:
    """`operation(tensor, dim)` over one dimension that holds the elements of all axes."""
    axes = _axes(a, axis)
    if len(axes) == 1:
        found = operation(a, axes[0])
        return found.unsqueeze(axes[0]) if keepdims else found
    rest = [d for d in builtins.range(a.dim()) if d not in axes]
    shape = [1 if d in axes else s for d, s in enumerate(a.shape)]
    count = 1
    for d in axes:
        count *= a.shape[d]
    flat = a.permute((*rest, *axes)).reshape([a.shape[d] for d in rest] + [count])
    found = operation(flat, -1)
    return found.reshape(shape) if keepdims else found


def _sum_dtype(a: torch.Tensor, dtype: torch.dtype | None) -> torch.dtype:
    if dtype is not None:
        return dtype
    if _dtypes.category(a.dtype) < 2:
        return _dtypes.defaults.int
    return a.dtype


@on_tensors("a")
def sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None) -> object:
    kind = _sum_dtype(a, dtype)
    return _reduced(lambda t, d: torch.sum(t, d, dtype=kind), a, axis, keepdims)


@on_tensors("a")
def prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None) -> object:
    kind = _sum_dtype(a, dtype)
    return _reduced(lambda t, d: torch.prod(t, d, dtype=kind), a, axis, keepdims)


product = prod


@on_tensors("a")
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None) -> object:
    kind = cast_int_to_float(a).dtype if dtype is None else dtype
    # Halves are added up in single precision.
    wide = torch.float32 if kind == torch.float16 else kind
    if _dtypes.category(kind) < 2:
        wide = _dtypes.defaults.float
    found = _reduced(lambda t, d: torch.mean(cast(t, wide), d), a, axis, keepdims)
    return cast(found, kind)


def _variance(a: torch.Tensor, axis: object, dtype: object, ddof: float, keepdims: bool) -> object:
    kind = cast_int_to_float(a).dtype if dtype is None else dtype
    wide = _dtypes.defaults.float if _dtypes.category(kind) < 2 else kind  # type: ignore[arg-type]
    found = _reduced(lambda t, d: torch.var(cast(t, wide), d, correction=ddof), a, axis, keepdims)
    # The variance of complex numbers is real, unless a dtype says otherwise.
    return cast(found, None if dtype is None and wide.is_complex else kind)


@on_tensors("a")
def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None) -> object:
    return _variance(a, axis, dtype, ddof, keepdims)


@on_tensors("a")
def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None) -> object:
    spread = _variance(a, axis, None if dtype is None else dtype, ddof, keepdims)
    return cast(torch.sqrt(cast_int_to_float(spread)), spread.dtype)


@on_tensors("a")
def all(a, axis=None, out=None, keepdims=False, *, where=None) -> object:
    return _reduced(torch.all, a.to(torch.bool), axis, keepdims)


@on_tensors("a")
def any(a, axis=None, out=None, keepdims=False, *, where=None) -> object:
    return _reduced(torch.any, a.to(torch.bool), axis, keepdims)


alltrue, sometrue = all, any


def _extremum(operation: Callable, a: torch.Tensor, axis: object, keepdims: bool) -> torch.Tensor:
    if a.is_complex():
        raise NotImplementedError("complex numbers have no order")
    axes = _axes(a, axis)
    if a.numel() == 0 and not [
        d for d in builtins.range(a.dim()) if d not in axes and a.shape[d] == 0
    ]:
        raise ValueError(
            f"zero-size array to reduction operation {operation.__name__} which has no identity"
        )
    return _reduced(operation, a, axis, keepdims)


@on_tensors("a")
def amax(a, axis=None, out=None, keepdims=False, initial=None, where=None) -> object:
    return _extremum(torch.amax, a, axis, keepdims)


@on_tensors("a")
def amin(a, axis=None, out=None, keepdims=False, initial=None, where=None) -> object:
    return _extremum(torch.amin, a, axis, keepdims)


max, min = amax, amin


@on_tensors("a")
def ptp(a, axis=None, out=None, keepdims=False) -> object:
    return _extremum(torch.amax, a, axis, keepdims) - _extremum(torch.amin, a, axis, keepdims)


def _place(operation: Callable, a: torch.Tensor, axis: object, keepdims: bool) -> torch.Tensor:
    if a.is_complex():
        raise NotImplementedError("complex numbers have no order")
    if axis is not None and not isinstance(axis, int):
        axis = operator.index(axis)  # type: ignore[arg-type]
    if a.dtype == torch.bool:
        a = a.to(torch.uint8)
    if a.numel() == 0 and (axis is None or a.shape[normalize_axis_index(axis, a.dim())] == 0):
        raise ValueError(f"attempt to get {operation.__name__} of an empty sequence")
    return _reduced(operation, a, axis, keepdims)


@on_tensors("a")
def argmax(a, axis=None, out=None, *, keepdims=False) -> object:
    return _place(torch.argmax, a, axis, keepdims)


@on_tensors("a")
def argmin(a, axis=None, out=None, *, keepdims=False) -> object:
    return _place(torch.argmin, a, axis, keepdims)


@on_tensors("a")
def count_nonzero(a, axis=None, *, keepdims=False) -> object:
    return _reduced(lambda t, d: torch.count_nonzero(t, d), a, axis, keepdims)


# ---- scans ---------------------------------------------------------------------------------------
def _scan(operation: Callable, a: torch.Tensor, axis: object, dtype: object) -> torch.Tensor:
    if axis is None:
        a, axis = a.reshape(-1), 0
    if a.dim() == 0:
        a = a.reshape(1)
    kind = _sum_dtype(a, dtype)  # type: ignore[arg-type]
    return operation(a, normalize_axis_index(axis, a.dim()), dtype=kind)  # type: ignore[arg-type]


@on_tensors("a")
def cumsum(a, axis=None, dtype=None, out=None) -> torch.Tensor:
    return _scan(torch.cumsum, a, axis, dtype)


@on_tensors("a")
def cumprod(a, axis=None, dtype=None, out=None) -> torch.Tensor:
    return _scan(torch.cumprod, a, axis, dtype)


cumproduct = cumprod


@on_tensors("a", "prepend", "append")
def diff(a, n=1, axis=-1, prepend=None, append=None) -> torch.Tensor:
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return a
    if a.dim() == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = normalize_axis_index(axis, a.dim())

    def edge(value: torch.Tensor | None) -> torch.Tensor | None:
        if value is None or value.dim() > 0:
            return value
        return value.expand([1 if d == axis else s for d, s in enumerate(a.shape)])

    parts = [t for t in (edge(prepend), a, edge(append)) if t is not None]
    joined = torch.cat(promoted(parts), axis)
    return torch.diff(joined, n=n, dim=axis)


# ---- order ---------------------------------------------------------------------------------------
def _line(a: torch.Tensor, axis: object) -> tuple[torch.Tensor, int]:
    if a.is_complex():
        raise NotImplementedError("complex numbers have no order")
    if axis is None:
        return a.reshape(-1), 0
    if a.dim() == 0:
        a = a.reshape(1)
    return a, normalize_axis_index(axis, a.dim())  # type: ignore[arg-type]


@on_tensors("a")
def sort(a, axis=-1, kind=None, order=None) -> torch.Tensor:
    line, dim = _line(a, axis)
    return torch.sort(line, dim=dim, stable=str(kind)[:1] in "sm")[0].reshape(
        line.shape if axis is None else a.shape
    )


@on_tensors("a")
def argsort(a, axis=-1, kind=None, order=None) -> torch.Tensor:
    line, dim = _line(a, axis)
    return torch.sort(line, dim=dim, stable=str(kind)[:1] in "sm")[1]


@on_tensors("a", "v")
def searchsorted(a, v, side="left", sorter=None) -> torch.Tensor:
    a, v = promoted([a, v])
    if a.is_complex():
        raise NotImplementedError("complex numbers have no order")
    if a.dtype == torch.bool:
        a, v = a.to(torch.uint8), v.to(torch.uint8)
    return torch.searchsorted(a, v.contiguous(), side=side)


@on_tensors("ar")
def unique(
    ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True
) -> object:
    if return_index:
        raise NotImplementedError("'return_index' parameter is not supported.")
    if equal_nan is not True:
        raise NotImplementedError("'equal_nan' parameter is not supported.")
    if axis is None:
        ar, axis = ar.reshape(-1), 0
    found = torch.unique(
        ar,
        return_inverse=return_inverse,
        return_counts=return_counts,
        dim=normalize_axis_index(axis, ar.dim()),
    )
    return found


# ---- statistics ----------------------------------------------------------------------------------
_METHODS = {
    "linear": "linear",
    "lower": "lower",
    "higher": "higher",
    "midpoint": "midpoint",
    "nearest": "nearest",
}


def _quantile(
    a: torch.Tensor, q: torch.Tensor, axis: object, method: str, keepdims: bool
) -> torch.Tensor:
    if method not in _METHODS:
        raise ValueError(f"quantile: method {method!r} is not supported")
    a = cast_int_to_float(a)
    kind = a.dtype
    wide = torch.float32 if kind == torch.float16 else kind
    lead = q.reshape(-1)
    found = _reduced(
        lambda t, d: torch.quantile(
            cast(t, wide), cast(lead, wide), d, interpolation=_METHODS[method]
        ).movedim(0, -1),
        a,
        axis,
        False,
    )
    found = cast(found, kind).movedim(-1, 0)
    if keepdims:
        axes = _axes(a, axis)
        found = found.reshape([-1] + [1 if d in axes else s for d, s in enumerate(a.shape)])
    return found.reshape(q.shape + found.shape[1:])


def _probabilities(q: torch.Tensor, scale: float, name: str) -> torch.Tensor:
    q = q.to(torch.float64) / scale
    if q.numel() and (bool((q < 0).any()) or bool((q > 1).any())):
        top = int(scale)
        raise ValueError(f"{name} must be in the range [0, {top}]")
    return q


@on_tensors("a", "q")
def quantile(
    a,
    q,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    interpolation=None,
) -> object:
    if overwrite_input:
        raise NotImplementedError("'overwrite_input' parameter is not supported.")
    q = _probabilities(q, 1, "Quantiles")
    return _quantile(a, q, axis, interpolation or method, keepdims)


@on_tensors("a", "q")
def percentile(
    a,
    q,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    interpolation=None,
) -> object:
    if overwrite_input:
        raise NotImplementedError("'overwrite_input' parameter is not supported.")
    q = _probabilities(q, 100, "Percentiles")
    return _quantile(a, q, axis, interpolation or method, keepdims)


@on_tensors("a")
def median(a, axis=None, out=None, overwrite_input=False, keepdims=False) -> object:
    if overwrite_input:
        raise NotImplementedError("'overwrite_input' parameter is not supported.")
    return _quantile(a, torch.tensor(0.5, dtype=torch.float64), axis, "linear", keepdims)


@on_tensors("a", "weights")
def average(a, axis=None, weights=None, returned=False, *, keepdims=False) -> object:
    if weights is None:
        found = mean(a, axis=axis, keepdims=keepdims).tensor
        total = torch.full_like(found, a.numel() / (found.numel() or 1))
        return (found, total) if returned else found
    kind = _dtypes.common([a.dtype, weights.dtype])
    kind = kind if _dtypes.category(kind) > 1 else _dtypes.defaults.float
    a, weights = cast(a, kind), cast(weights, kind)
    if weights.shape != a.shape:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        if weights.dim() != 1:
            raise TypeError("1D weights expected when shapes of a and weights differ.")
        if weights.shape[0] != a.shape[axis]:
            raise ValueError("Length of weights not compatible with specified axis.")
        shape = [1] * a.dim()
        shape[axis] = -1
        weights = weights.reshape(shape).expand(a.shape)
    total = _reduced(torch.sum, weights, axis, keepdims)
    if bool((total == 0).any()):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    found = _reduced(torch.sum, a * weights, axis, keepdims) / total
    return (found, total) if returned else found


def _observations(m: torch.Tensor, y: torch.Tensor | None, rowvar: bool) -> torch.Tensor:
    """Variables in rows, those of `y` below those of `m`."""
    if m.dim() > 2 or (y is not None and y.dim() > 2):
        raise ValueError("m has more than 2 dimensions")
    rows = torch.atleast_2d(m)
    if not rowvar and rows.shape[0] != 1:
        rows = rows.T
    if y is None:
        return rows
    more = torch.atleast_2d(y)
    if not rowvar and more.shape[0] != 1:
        more = more.T
    return torch.cat(promoted([rows, more]), 0)


@on_tensors("m", "y", "fweights", "aweights")
def cov(
    m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None
) -> torch.Tensor:
    rows = _observations(m, y, rowvar)
    kind = cast_int_to_float(rows).dtype if dtype is None else dtype
    wide = torch.float32 if kind == torch.float16 else kind
    correction = ddof if ddof is not None else (0 if bias else 1)
    found = torch.cov(cast(rows, wide), correction=correction, fweights=fweights, aweights=aweights)
    return cast(found, kind)


@on_tensors("x", "y")
def corrcoef(x, y=None, rowvar=True, bias=None, ddof=None, *, dtype=None) -> torch.Tensor:
    if bias is not None or ddof is not None:
        raise NotImplementedError("'bias' and 'ddof' parameters are not supported.")
    rows = _observations(x, y, rowvar)
    kind = cast_int_to_float(rows).dtype if dtype is None else dtype
    wide = torch.float32 if kind == torch.float16 else kind
    return cast(torch.corrcoef(cast(rows, wide)), kind)


@on_tensors("x", "weights")
def bincount(x, weights=None, minlength=0) -> torch.Tensor:
    if x.numel() == 0:
        x = x.to(torch.int64)
    if _dtypes.category(x.dtype) > 1:
        raise TypeError("bincount counts integers")
    return torch.bincount(x, weights, int(minlength))


def _edges(values: torch.Tensor, bins: object, limits: object) -> torch.Tensor:
    if not isinstance(bins, int):
        found = to_tensor(bins)
        if found.dim() != 1:
            raise ValueError("`bins` must be 1d, when an array")
        if bool((found[1:] < found[:-1]).any()):
            raise ValueError("`bins` must increase monotonically, when an array")
        return found
    if bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    if limits is None:
        low, high = (values.min().item(), values.max().item()) if values.numel() else (0.0, 1.0)
    else:
        low, high = (float(v) for v in limits)  # type: ignore[attr-defined]
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"supplied range of [{low}, {high}] is not finite")
        if high < low:
            raise ValueError("max must be larger than min in range parameter.")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return torch.linspace(low, high, bins + 1, dtype=torch.float64)


@on_tensors("a", "weights")
def histogram(a, bins=10, range=None, normed=None, weights=None, density=None) -> tuple:
    if normed is not None:
        raise ValueError("normed argument is deprecated, use density=True")
    if a.is_complex():
        raise NotImplementedError("histogram of complex numbers")
    plain = weights is None or _dtypes.category(weights.dtype) < 2
    values = a.reshape(-1).to(torch.float64)
    edges = _edges(values, bins, range)
    lines = edges.to(torch.float64)
    load = None if weights is None else weights.reshape(-1).to(torch.float64)
    counts = torch.histogram(values, lines, weight=load, density=bool(density))[0]
    if not density and plain:
        counts = counts.to(torch.int64)
    return counts, edges


def histogramdd(
    sample: object,
    bins: object = 10,
    range: object = None,
    normed: object = None,
    weights: object = None,
    density: object = None,
) -> object:
    # Several arrays are the coordinates of points, one each.
    if isinstance(sample, (list, tuple)) and not isinstance(sample[0], (int, float)):
        sample = torch.stack([to_tensor(s).reshape(-1) for s in sample], 1)
    return _histogramdd(sample, bins, range, normed, weights, density)


@on_tensors("sample", "weights")
def _histogramdd(sample, bins=10, range=None, normed=None, weights=None, density=None) -> tuple:
    if normed is not None:
        raise ValueError("normed argument is deprecated, use density=True")
    points = sample if sample.dim() == 2 else torch.atleast_2d(sample).T
    points = points.to(torch.float64)
    columns = points.shape[1]
    kinds = [bins] * columns if isinstance(bins, int) else list(bins)
    if len(kinds) != columns:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    limits = [None] * columns if range is None else list(range)
    edges = [_edges(points[:, d], kinds[d], limits[d]) for d in builtins.range(columns)]
    lines = tuple(e.to(torch.float64) for e in edges)
    load = None if weights is None else weights.to(torch.float64)
    counts = torch.histogramdd(points, lines, weight=load, density=bool(density))[0]
    return counts, tuple(edges)


@on_tensors("x", "y", "weights")
def histogram2d(x, y, bins=10, range=None, normed=None, weights=None, density=None) -> tuple:
    if len(x) != len(y):
        raise ValueError("x and y must have the same length.")
    if not isinstance(bins, int) and len(bins) not in (1, 2):
        bins = [bins, bins]
    found = histogramdd(torch.stack([x, y], 1), bins, range, normed, weights, density)
    counts, edges = found
    return counts.tensor, edges[0].tensor, edges[1].tensor
