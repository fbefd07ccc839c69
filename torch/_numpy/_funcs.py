"""All functions of the namespace: those of the other files, products, tests of values, the rest."""

from __future__ import annotations

import builtins
import math

import torch
from torch._numpy import _dtypes, _ufuncs
from torch._numpy._creation import *  # noqa: F403
from torch._numpy._ndarray import ndarray
from torch._numpy._reductions import *  # noqa: F403
from torch._numpy._shapes import *  # noqa: F403
from torch._numpy._util import (
    cast,
    cast_int_to_float,
    normalize_axis_index,
    normalize_axis_tuple,
    on_tensors,
    promoted,
    to_tensor,
)


# ---- products ------------------------------------------------------------------------------------
@on_tensors("a", "b")
def dot(a, b, out=None) -> torch.Tensor:
    a, b = promoted([a, b])
    if a.dim() == 0 or b.dim() == 0:
        return a * b
    if a.dim() == 1 or b.dim() == 1:
        return _ufuncs._product(a, b)
    return _contracted(a, b, ([a.dim() - 1], [b.dim() - 2]))


def _contracted(a: torch.Tensor, b: torch.Tensor, dims: tuple) -> torch.Tensor:
    if a.dtype == torch.bool:
        return torch.tensordot(a.to(torch.uint8), b.to(torch.uint8), dims).to(torch.bool)
    return torch.tensordot(a, b, dims)


@on_tensors("a", "b")
def inner(a, b) -> torch.Tensor:
    a, b = promoted([a, b])
    if a.dim() == 0 or b.dim() == 0:
        return a * b
    return _contracted(a, b, ([a.dim() - 1], [b.dim() - 1]))


@on_tensors("a", "b")
def outer(a, b, out=None) -> torch.Tensor:
    a, b = promoted([a, b])
    return torch.outer(a.reshape(-1), b.reshape(-1))


@on_tensors("a", "b")
def vdot(a, b) -> torch.Tensor:
    a, b = (t.reshape(-1) for t in promoted([a, b]))
    if a.dtype == torch.bool:
        return (a & b).any()
    return (torch.conj(a) * b).sum(dtype=a.dtype) if a.dtype != torch.float16 else torch.vdot(a, b)


@on_tensors("a", "b")
def tensordot(a, b, axes=2) -> torch.Tensor:
    a, b = promoted([a, b])
    if not isinstance(axes, int):
        axes = tuple([d] if isinstance(d, int) else list(d) for d in axes)
    return _contracted(a, b, axes)


@on_tensors("a", "b")
def kron(a, b) -> torch.Tensor:
    return torch.kron(*promoted([a, b]))


@on_tensors("a", "b")
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None) -> torch.Tensor:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promoted([a, b])
    a = a.movedim(normalize_axis_index(axisa, a.dim(), "axisa"), -1)
    b = b.movedim(normalize_axis_index(axisb, b.dim(), "axisb"), -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    flat = a.shape[-1] == 2 and b.shape[-1] == 2
    a, b = (t if t.shape[-1] == 3 else torch.nn.functional.pad(t, (0, 1)) for t in (a, b))
    a, b = torch.broadcast_tensors(a, b)
    found = torch.linalg.cross(a, b, dim=-1)
    if flat:
        return found[..., 2]
    return found.movedim(-1, normalize_axis_index(axisc, found.dim(), "axisc"))


@on_tensors(many=())
def einsum(*operands, out=None, dtype=None, order="K", casting="safe", optimize=False) -> object:
    if isinstance(operands[0], str):
        text, tensors = operands[0], [to_tensor(t) for t in operands[1:]]
        parts = _in_one_dtype(tensors, dtype, casting)
        found = torch.einsum(text, *parts)
    else:
        # Operands and lists of numbered letters in turn.
        pairs = list(operands)
        tail = [pairs.pop()] if len(pairs) % 2 else []
        parts = _in_one_dtype([to_tensor(t) for t in pairs[0::2]], dtype, casting)
        lists = [_letters(v) for v in pairs[1::2]]
        arguments = [v for pair in zip(parts, lists, strict=True) for v in pair]
        found = torch.einsum(*arguments, *[_letters(v) for v in tail])
    arrays = (
        operands[1:] if isinstance(operands[0], str) else operands[0 : len(operands) // 2 * 2 : 2]
    )
    wanted = _dtypes.common([to_tensor(t).dtype for t in arrays])
    return cast(found, wanted if dtype is None else None)


def _letters(value: object) -> list:
    return [v if v is Ellipsis else int(v) for v in value]  # type: ignore[attr-defined]


def _in_one_dtype(tensors: list, dtype: torch.dtype | None, casting: str) -> list:
    kind = _dtypes.common([t.dtype for t in tensors]) if dtype is None else dtype
    if dtype is not None:
        for t in tensors:
            if not _dtypes.may_cast(t.dtype, kind, casting):
                raise TypeError(f"Cannot cast from {t.dtype} to {kind} by the rule '{casting}'")
    if kind == torch.bool:
        kind = torch.uint8
    return [cast(t, kind) for t in tensors]


@on_tensors("a")
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None) -> torch.Tensor:
    line = torch.diagonal(a, offset, axis1, axis2)
    kind = dtype
    if kind is None:
        kind = _dtypes.defaults.int if _dtypes.category(a.dtype) < 2 else a.dtype
    return torch.sum(line, -1, dtype=kind)


def _swept(a: torch.Tensor, v: torch.Tensor, mode: str) -> torch.Tensor:
    """The sums of products of `a` with `v` at each place it can have."""
    pad = {"full": v.shape[0] - 1, "valid": 0}.get(mode)
    if mode == "same":
        full = _swept(a, v, "full")
        start = (v.shape[0] - 1) // 2
        return full[start : start + a.shape[0]]
    if pad is None:
        raise ValueError(f"mode must be 'valid', 'same' or 'full', not {mode!r}")
    kind = a.dtype
    if _dtypes.category(kind) < 2:
        windows = torch.nn.functional.pad(a, (pad, pad)).unfold(0, v.shape[0], 1)
        return (windows * v).sum(-1, dtype=kind)
    found = torch.nn.functional.conv1d(a[None, None], v[None, None], padding=pad)
    return found[0, 0]


def _two_lines(a: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a, v = (torch.atleast_1d(t) for t in promoted([a, v]))
    if a.dim() > 1 or v.dim() > 1:
        raise ValueError("object too deep for desired array")
    if a.numel() == 0 or v.numel() == 0:
        raise ValueError("an array cannot be empty")
    return a, v


@on_tensors("a", "v")
def convolve(a, v, mode="full") -> torch.Tensor:
    a, v = _two_lines(a, v)
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    return _swept(a, torch.flip(v, (0,)), mode)


@on_tensors("a", "v")
def correlate(a, v, mode="valid") -> torch.Tensor:
    a, v = _two_lines(a, v)
    v = torch.conj_physical(v)
    if v.shape[0] > a.shape[0]:
        return torch.flip(_swept(v, a, mode), (0,))
    return _swept(a, v, mode)


# ---- rounding and limits -------------------------------------------------------------------------
@on_tensors("a")
def around(a, decimals=0, out=None) -> torch.Tensor:
    if a.is_complex():
        parts = [torch.round(p, decimals=decimals) for p in (a.real, a.imag)]
        return torch.complex(*parts)
    if a.is_floating_point():
        return torch.round(a, decimals=decimals)
    if decimals >= 0:
        return a.clone()
    return torch.round(a.to(torch.float64), decimals=decimals).to(a.dtype)


round = round_ = around


@on_tensors("a", "a_min", "a_max")
def clip(a, a_min=None, a_max=None, out=None) -> torch.Tensor:
    if a_min is None and a_max is None:
        raise ValueError("One of max or min must be given")
    return torch.clamp(a, a_min, a_max)


@on_tensors("x")
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None) -> torch.Tensor:
    if x.is_complex():
        parts = [torch.nan_to_num(p, nan, posinf, neginf) for p in (x.real, x.imag)]
        found = torch.complex(*parts)
    else:
        found = torch.nan_to_num(x, nan, posinf, neginf)
    return found if copy else x.copy_(found)


# ---- complex numbers -----------------------------------------------------------------------------
@on_tensors("val")
def real(val) -> torch.Tensor:
    return torch.real(val)


@on_tensors("val")
def imag(val) -> torch.Tensor:
    return val.imag if val.is_complex() else torch.zeros_like(val)


@on_tensors("z")
def angle(z, deg=False) -> torch.Tensor:
    found = torch.angle(cast_int_to_float(z))
    return torch.rad2deg(found) if deg else found


@on_tensors("x")
def iscomplex(x) -> torch.Tensor:
    return x.imag != 0 if x.is_complex() else torch.zeros_like(x, dtype=torch.bool)


@on_tensors("x")
def isreal(x) -> torch.Tensor:
    return x.imag == 0 if x.is_complex() else torch.ones_like(x, dtype=torch.bool)


@on_tensors("x")
def iscomplexobj(x) -> bool:
    return x.is_complex()


@on_tensors("x")
def isrealobj(x) -> bool:
    return not x.is_complex()


@on_tensors("a")
def real_if_close(a, tol=100) -> torch.Tensor:
    if not a.is_complex():
        return a
    if tol > 1:
        tol = tol * torch.finfo(a.dtype).eps
    return a.real if bool((a.imag.abs() < tol).all()) else a


# ---- tests of values -----------------------------------------------------------------------------
@on_tensors("x")
def isneginf(x, out=None) -> torch.Tensor:
    return torch.isneginf(x)


@on_tensors("x")
def isposinf(x, out=None) -> torch.Tensor:
    return torch.isposinf(x)


@on_tensors("x")
def i0(x) -> torch.Tensor:
    return torch.special.i0(cast_int_to_float(x))


@on_tensors("x")
def sinc(x) -> torch.Tensor:
    return torch.sinc(cast_int_to_float(x))


@on_tensors("a", "b")
def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False) -> torch.Tensor:
    a, b = promoted([a, b])
    if a.dtype == torch.bool:
        a, b = a.to(torch.uint8), b.to(torch.uint8)
    return torch.isclose(a, b, float(rtol), float(atol), equal_nan)


def allclose(a: object, b: object, rtol=1e-05, atol=1e-08, equal_nan=False) -> bool:
    return bool(isclose(a, b, rtol, atol, equal_nan).tensor.all())


def _equal(a: torch.Tensor, b: torch.Tensor, equal_nan: bool) -> bool:
    same = a == b
    if equal_nan and (a.is_floating_point() or a.is_complex()):
        same = same | (torch.isnan(a) & torch.isnan(b))
    return bool(same.all())


@on_tensors("a1", "a2")
def array_equal(a1, a2, equal_nan=False) -> bool:
    return a1.shape == a2.shape and _equal(*promoted([a1, a2]), equal_nan)


@on_tensors("a1", "a2")
def array_equiv(a1, a2) -> bool:
    try:
        a1, a2 = torch.broadcast_tensors(*promoted([a1, a2]))
    except RuntimeError:
        return False
    return _equal(a1, a2, False)


def isscalar(a: object) -> bool:
    """A number, or anything that becomes an array of one element."""
    if isinstance(a, (str, bytes)):
        return False
    try:
        return to_tensor(a).numel() == 1
    except (NotImplementedError, TypeError, ValueError, RuntimeError):
        return False


# ---- gradients -----------------------------------------------------------------------------------
@on_tensors("f")
def gradient(f, *varargs, axis=None, edge_order=1) -> object:
    """Differences of second order inside and of order `edge_order` at the ends."""
    if f.dim() == 0:
        raise ValueError("gradient takes an array with dimensions")
    axes = tuple(range(f.dim())) if axis is None else normalize_axis_tuple(axis, f.dim())
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    f = cast_int_to_float(f)
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError("invalid number of arguments")
    given = list(varargs) if len(varargs) == len(axes) else list(varargs) * len(axes)
    given = given or [1.0] * len(axes)
    found = [_slope(f, d, to_tensor(s), edge_order) for d, s in zip(axes, given, strict=True)]
    return found[0] if len(found) == 1 else found


def _slope(f: torch.Tensor, d: int, spacing: torch.Tensor, order: int) -> torch.Tensor:
    n = f.shape[d]
    if n < order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least "
            "(edge_order + 1) elements are required."
        )
    f = f.movedim(d, -1)
    if spacing.dim() == 0:
        h = spacing.to(f.dtype).expand(n - 1)
    elif spacing.dim() == 1:
        if spacing.shape[0] != n:
            raise ValueError(
                "when 1d, distances must match the length of the corresponding dimension"
            )
        h = torch.diff(spacing.to(f.dtype))
    else:
        raise ValueError("distances must be either scalars or 1d")
    out = torch.empty_like(f)
    if n > 2:
        left, right = h[:-1], h[1:]
        total = left + right
        out[..., 1:-1] = (
            -right / (left * total) * f[..., :-2]
            + (right - left) / (left * right) * f[..., 1:-1]
            + left / (right * total) * f[..., 2:]
        )
    if order == 1:
        out[..., 0] = (f[..., 1] - f[..., 0]) / h[0]
        out[..., -1] = (f[..., -1] - f[..., -2]) / h[-1]
    else:
        a, b = h[0], h[1]
        out[..., 0] = (
            -(2 * a + b) / (a * (a + b)) * f[..., 0]
            + (a + b) / (a * b) * f[..., 1]
            - a / (b * (a + b)) * f[..., 2]
        )
        a, b = h[-2], h[-1]
        out[..., -1] = (
            b / (a * (a + b)) * f[..., -3]
            - (a + b) / (a * b) * f[..., -2]
            + (2 * b + a) / (b * (a + b)) * f[..., -1]
        )
    return out.movedim(-1, d)


# ---- dtypes --------------------------------------------------------------------------------------
def min_scalar_type(a: object, /) -> _dtypes.DType:
    """The smallest dtype that holds a number."""
    value = to_tensor(a)
    if value.numel() != 1:
        return _dtypes.dtype(value.dtype)
    kind, number = value.dtype, value.item()
    if _dtypes.category(kind) == 1:
        sizes = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
        fits = (k for k in sizes if torch.iinfo(k).min <= number <= torch.iinfo(k).max)
        return _dtypes.dtype(next(fits))
    if _dtypes.category(kind) == 0:
        return _dtypes.dtype(kind)
    sizes = (
        [torch.complex64, torch.complex128]
        if kind.is_complex
        else [
            torch.float16,
            torch.float32,
            torch.float64,
        ]
    )
    parts = (number.real, number.imag) if isinstance(number, complex) else (number,)
    for k in sizes:
        limit = torch.finfo(k).max
        if builtins.all(not math.isfinite(p) or abs(p) <= limit for p in parts):
            return _dtypes.dtype(k)
    return _dtypes.dtype(kind)


def common_type(*tensors: object) -> type:
    """The floating scalar type that holds all arrays."""
    kinds = []
    for value in tensors:
        kind = to_tensor(value).dtype
        if kind == torch.bool:
            raise ValueError("can't get common type for non-numeric array")
        kinds.append(_dtypes.defaults.float if _dtypes.category(kind) == 1 else kind)
    return _dtypes.dtype(_dtypes.common(kinds)).type


def iinfo(dtype: object) -> torch.iinfo:
    return torch.iinfo(_kind_of(dtype))


def finfo(dtype: object) -> torch.finfo:
    return torch.finfo(_kind_of(dtype))


def _kind_of(value: object) -> torch.dtype:
    if isinstance(value, (ndarray, torch.Tensor)):
        return to_tensor(value).dtype
    if isinstance(value, (int, float, complex)) and not isinstance(value, bool):
        return to_tensor(value).dtype
    return _dtypes.dtype(value).torch_dtype


class IndexExpression:
    """Indices written with brackets: s_[1:3, ..., None]."""

    def __init__(self, maketuple: bool) -> None:
        self.maketuple = maketuple

    def __getitem__(self, item: object) -> object:
        return (item,) if self.maketuple and not isinstance(item, tuple) else item


index_exp = IndexExpression(maketuple=True)
s_ = IndexExpression(maketuple=False)

conj, conjugate = _ufuncs.conj, _ufuncs.conjugate
__all__ = [
    name
    for name, value in list(globals().items())
    if not name.startswith("_")
    and getattr(value, "__module__", "").startswith("torch._numpy.")
    and name
    not in (
        "cast", "cast_int_to_float", "normalize_axis_index", "normalize_axis_tuple", "on_tensors",
        "promoted", "to_array", "to_tensor", "typecast", "ndarray",
    )
]  # fmt: skip
