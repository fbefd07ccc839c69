"""Functions that make arrays from sizes and numbers."""

from __future__ import annotations

import torch
from torch._numpy import _dtypes
from torch._numpy._util import cast, on_tensors, to_tensor


def _shape(shape: object) -> tuple[int, ...]:
    # Plain numbers are not read through a tensor, which a trace could not do.
    if isinstance(shape, (tuple, list)) and all(type(s) in (int, torch.SymInt) for s in shape):
        return tuple(shape)
    if isinstance(shape, torch.SymInt):
        return (shape,)
    sizes = to_tensor(shape).tolist() if not isinstance(shape, int) else shape
    return (int(sizes),) if isinstance(sizes, (int, float)) else tuple(int(s) for s in sizes)


def _default(dtype: torch.dtype | None) -> torch.dtype:
    return _dtypes.defaults.float if dtype is None else dtype


@on_tensors()
def empty(shape, dtype=None, order="C", *, like=None) -> torch.Tensor:
    return torch.empty(_shape(shape), dtype=_default(dtype))


@on_tensors()
def zeros(shape, dtype=None, order="C", *, like=None) -> torch.Tensor:
    return torch.zeros(_shape(shape), dtype=_default(dtype))


@on_tensors()
def ones(shape, dtype=None, order="C", *, like=None) -> torch.Tensor:
    return torch.ones(_shape(shape), dtype=_default(dtype))


@on_tensors("fill_value")
def full(shape, fill_value, dtype=None, order="C", *, like=None) -> torch.Tensor:
    value = cast(fill_value, dtype)
    return torch.empty(_shape(shape), dtype=value.dtype).copy_(value)


def _like(a: torch.Tensor, dtype: torch.dtype | None, shape: object) -> torch.Tensor:
    sizes = tuple(a.shape) if shape is None else _shape(shape)
    return torch.empty(sizes, dtype=a.dtype if dtype is None else dtype, device=a.device)


@on_tensors("prototype")
def empty_like(prototype, dtype=None, order="K", subok=False, shape=None) -> torch.Tensor:
    return _like(prototype, dtype, shape)


@on_tensors("a")
def zeros_like(a, dtype=None, order="K", subok=False, shape=None) -> torch.Tensor:
    return _like(a, dtype, shape).zero_()


@on_tensors("a")
def ones_like(a, dtype=None, order="K", subok=False, shape=None) -> torch.Tensor:
    return _like(a, dtype, shape).fill_(1)


@on_tensors("a", "fill_value")
def full_like(a, fill_value, dtype=None, order="K", subok=False, shape=None) -> torch.Tensor:
    made = _like(a, dtype, shape)
    return made.copy_(cast(fill_value, made.dtype).broadcast_to(made.shape))


def _number(value: object) -> tuple[float, torch.dtype]:
    """A number with its dtype, of a number or of an array that holds one."""
    defaults = _dtypes.defaults
    plain = {
        bool: torch.bool,
        int: defaults.int,
        torch.SymInt: defaults.int,
        float: defaults.float,
        complex: defaults.complex,
    }
    if type(value) in plain:
        return value, plain[type(value)]
    tensor = to_tensor(value)
    return tensor.item(), tensor.dtype


@on_tensors()
def arange(start=None, stop=None, step=1, dtype=None, *, like=None) -> torch.Tensor:
    if start is None and stop is None:
        raise TypeError("arange() requires stop to be specified.")
    if stop is None:
        start, stop = 0, start
    given = [_number(0 if start is None else start), _number(stop)]
    given.append(_number(1 if step is None else step))
    if any(kind.is_complex for _, kind in given):
        raise NotImplementedError("arange of complex numbers")
    (a, b, s), kinds = zip(*given, strict=True)
    if s == 0:
        raise ZeroDivisionError("Maximum allowed size exceeded")
    kind = _dtypes.common(list(kinds))
    if kind == torch.bool:
        kind = _dtypes.defaults.int
    wanted = kind if dtype is None else dtype
    if dtype == torch.bool:
        kind = _dtypes.defaults.int
    if (s > 0 and b < a) or (s < 0 and b > a):
        return torch.empty(0, dtype=wanted)
    return torch.arange(a, b, s, dtype=kind).to(wanted)


@on_tensors("start", "stop")
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0) -> object:
    if axis != 0:
        raise NotImplementedError("'axis' parameter is not supported.")
    num = int(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    kind = _dtypes.common([start.dtype, stop.dtype, _dtypes.defaults.float])
    start, stop = cast(start, kind), cast(stop, kind)
    parts = num - 1 if endpoint else num
    step = (stop - start) / parts if parts > 0 else torch.full_like(start, float("nan"))
    place = torch.arange(num, dtype=torch.float64 if kind.itemsize >= 8 else torch.float32)
    place = place.to(kind).reshape((-1,) + (1,) * max(start.dim(), stop.dim()))
    values = start + place * (step if parts > 0 else 0)
    if endpoint and num > 1:
        values[-1] = stop
    values = cast(
        values.floor() if dtype is not None and _dtypes.category(dtype) < 2 else values, dtype
    )
    return (values, step) if retstep else values


@on_tensors("start", "stop")
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0) -> torch.Tensor:
    exponents = linspace(start, stop, num, endpoint, axis=axis).tensor
    return cast(torch.pow(to_tensor(base).to(exponents.dtype), exponents), dtype)


@on_tensors("start", "stop")
def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0) -> torch.Tensor:
    if bool((start == 0).any()) or bool((stop == 0).any()):
        raise ValueError("Geometric sequence cannot include zero")
    kind = _dtypes.common([start.dtype, stop.dtype, _dtypes.defaults.float])
    start, stop = cast(start, kind), cast(stop, kind)
    ratio = torch.log(stop / start)
    place = linspace(0.0, 1.0, num, endpoint, axis=axis).tensor.to(kind)
    place = place.reshape((-1,) + (1,) * ratio.dim())
    values = start * torch.exp(place * ratio)
    if num > 0:
        values[0] = start
    if endpoint and num > 1:
        values[-1] = stop
    return cast(values, dtype)


@on_tensors()
def eye(N, M=None, k=0, dtype=float, order="C", *, like=None) -> torch.Tensor:
    kind = _dtypes.dtype(dtype).torch_dtype
    made = torch.zeros(N, N if M is None else M, dtype=kind)
    made.diagonal(k).fill_(1)
    return made


def identity(n: int, dtype: object = None, *, like: object = None) -> object:
    return eye(n, dtype=float if dtype is None else dtype, like=like)


@on_tensors()
def tri(N, M=None, k=0, dtype=float, *, like=None) -> torch.Tensor:
    kind = _dtypes.dtype(dtype).torch_dtype
    return torch.tril(torch.ones(N, N if M is None else M, dtype=torch.uint8), k).to(kind)


@on_tensors("m")
def tril(m, k=0) -> torch.Tensor:
    return torch.tril(m, k)


@on_tensors("m")
def triu(m, k=0) -> torch.Tensor:
    return torch.triu(m, k)


@on_tensors()
def tril_indices(n, k=0, m=None) -> tuple:
    return tuple(torch.tril_indices(n, n if m is None else m, offset=k))


@on_tensors()
def triu_indices(n, k=0, m=None) -> tuple:
    return tuple(torch.triu_indices(n, n if m is None else m, offset=k))


def _matrix(a: torch.Tensor) -> torch.Tensor:
    if a.dim() != 2:
        raise ValueError("input array must be 2-d")
    return a


@on_tensors("arr")
def tril_indices_from(arr, k=0) -> tuple:
    return tuple(torch.tril_indices(*_matrix(arr).shape, offset=k))


@on_tensors("arr")
def triu_indices_from(arr, k=0) -> tuple:
    return tuple(torch.triu_indices(*_matrix(arr).shape, offset=k))


@on_tensors()
def diag_indices(n, ndim=2) -> tuple:
    return (torch.arange(n),) * ndim


@on_tensors("arr")
def diag_indices_from(arr) -> tuple:
    if arr.dim() < 2:
        raise ValueError("input array must be at least 2-d")
    if any(s != arr.shape[0] for s in arr.shape):
        raise ValueError("All dimensions of input must be of equal length")
    return (torch.arange(arr.shape[0]),) * arr.dim()


@on_tensors("x")
def vander(x, N=None, increasing=False) -> torch.Tensor:
    return torch.vander(x, N, increasing)


@on_tensors()
def indices(dimensions, dtype=int, sparse=False) -> object:
    sizes = tuple(dimensions)
    kind = _dtypes.dtype(dtype).torch_dtype
    lines = []
    for i, size in enumerate(sizes):
        shape = [1] * len(sizes)
        shape[i] = size
        lines.append(torch.arange(size, dtype=kind).reshape(shape))
    if sparse:
        return tuple(lines)
    if not lines:
        return torch.empty(0, dtype=kind)
    return torch.stack([line.expand(sizes) for line in lines])


@on_tensors("xi", many=("xi",))
def meshgrid(*xi, copy=True, sparse=False, indexing="xy") -> list:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    count = len(xi)
    turned = indexing == "xy" and count > 1
    lines = []
    for i, line in enumerate(xi):
        shape = [1] * count
        shape[{0: 1, 1: 0}.get(i, i) if turned else i] = -1
        lines.append(line.reshape(shape))
    if not sparse:
        lines = list(torch.broadcast_tensors(*lines)) if lines else []
    return [line.clone() if copy else line for line in lines]


def _window(M: int, weights: tuple[float, ...]) -> torch.Tensor:
    """A sum of cosines with these weights over one period."""
    if M < 1:
        return torch.empty(0, dtype=torch.float64)
    if M == 1:
        return torch.ones(1, dtype=torch.float64)
    angle = 2 * torch.pi * torch.arange(M, dtype=torch.float64) / (M - 1)
    return sum(w * torch.cos(k * angle) for k, w in enumerate(weights))  # type: ignore[return-value]


@on_tensors()
def hamming(M) -> torch.Tensor:
    return _window(M, (0.54, -0.46))


@on_tensors()
def hanning(M) -> torch.Tensor:
    return _window(M, (0.5, -0.5))


@on_tensors()
def blackman(M) -> torch.Tensor:
    return _window(M, (0.42, -0.5, 0.08))


@on_tensors()
def bartlett(M) -> torch.Tensor:
    if M < 2:
        return _window(M, (1.0,))
    place = torch.arange(M, dtype=torch.float64)
    return 1 - torch.abs(2 * place / (M - 1) - 1)


@on_tensors()
def kaiser(M, beta) -> torch.Tensor:
    if M < 2:
        return _window(M, (1.0,))
    place = 2 * torch.arange(M, dtype=torch.float64) / (M - 1) - 1
    width = torch.tensor(float(beta), dtype=torch.float64)
    return torch.special.i0(width * torch.sqrt(1 - place**2)) / torch.special.i0(width)
