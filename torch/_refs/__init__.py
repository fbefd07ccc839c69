"""Operators as Python functions of simpler ones: definitions to compare with and to trace.

Reductions are here and say in a few lines what the operator of the same name computes; elementwise
operators are in `elementwise`, shapes in `shape`. Where a decomposition is the definition, the name
refers to it."""

from __future__ import annotations

import torch
from torch._decomp import decompositions as _decompositions
from torch._prims_common import reduced_dims
from torch._prims_common.wrappers import out_wrapper
from torch._refs import elementwise as _elementwise
from torch._refs import shape as _shape

__all__ = ["all", "amax", "amin", "any", "count_nonzero", "mean", "prod", "std", "sum", "var"]

for _module in (_elementwise, _shape):
    globals().update({_name: getattr(_module, _name) for _name in _module.__all__})
    __all__ += _module.__all__
for _name in (
    "addcdiv addcmul addr alias_copy as_strided_copy clamp_max clamp_min deg2rad diag_embed "
    "diagonal_copy dot expand_copy eye fill fill_ floor_divide frac heaviside index_add index_copy "
    "index_copy_ index_fill index_select isin isneginf isposinf lcm lerp linspace logaddexp "
    "logaddexp2 logspace logsumexp masked_fill nan_to_num native_group_norm native_layer_norm "
    "new_full new_ones new_zeros ones_like permute_copy rad2deg renorm roll rot90 rsub sgn "
    "sinc split_with_sizes squeeze_copy stack std_mean t t_copy trace transpose transpose_copy "
    "tril tril_indices triu triu_indices unbind "
    "unbind_copy unfold_copy unsqueeze_copy var_mean vdot "
    "view_copy xlogy zero zero_ zeros_like"
).split():
    globals()[_name] = getattr(_decompositions, _name)
    __all__.append(_name)

Dims = int | list[int] | tuple[int, ...] | None


def _gathered(a: torch.Tensor, dim: Dims) -> tuple[torch.Tensor, tuple[int, ...]]:
    """`a` with the reduced dimensions as one at the end, and the shape that keepdim leaves."""
    dims = reduced_dims(a.dim(), dim)
    kept = [d for d in range(a.dim()) if d not in dims]
    length = 1
    for d in dims:
        length *= a.shape[d]
    shape = tuple(1 if d in dims else n for d, n in enumerate(a.shape))
    return a.permute(*kept, *dims).reshape([a.shape[d] for d in kept] + [length]), shape


def _folded(a: torch.Tensor, dim: Dims, keepdim: bool, combine, empty) -> torch.Tensor:
    """`combine` applied to halves of the reduced elements until one is left."""
    rows, shape = _gathered(a, dim)
    if rows.shape[-1] == 0:
        out = rows.new_full(rows.shape[:-1], empty())
        return out.view(shape) if keepdim else out
    while rows.shape[-1] > 1:
        half = rows.shape[-1] // 2
        pairs = combine(rows[..., :half], rows[..., half : 2 * half])
        rows = torch.cat((pairs, rows[..., 2 * half :]), -1)
    return rows.reshape(shape) if keepdim else rows[..., 0]


@out_wrapper()
def sum(
    a: torch.Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """The sum; integers are added in int64."""
    if dtype is None:
        dtype = a.dtype if a.is_floating_point() or a.is_complex() else torch.int64
    return _folded(a.to(dtype), dim, keepdim, torch.add, lambda: 0)


@out_wrapper()
def prod(
    a: torch.Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """The product; integers are multiplied in int64."""
    if dtype is None:
        dtype = a.dtype if a.is_floating_point() or a.is_complex() else torch.int64
    return _folded(a.to(dtype), dim, keepdim, torch.mul, lambda: 1)


def _no_identity(name: str):
    def refuse() -> float:
        raise IndexError(f"{name}(): Expected reduction dim to have non-zero size.")

    return refuse


@out_wrapper()
def amax(a: torch.Tensor, dim: Dims = None, keepdim: bool = False) -> torch.Tensor:
    """The greatest element."""
    return _folded(a, dim, keepdim, torch.maximum, _no_identity("amax"))


@out_wrapper()
def amin(a: torch.Tensor, dim: Dims = None, keepdim: bool = False) -> torch.Tensor:
    """The least element."""
    return _folded(a, dim, keepdim, torch.minimum, _no_identity("amin"))


def _truth(a: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """What all and any return: uint8 stays, everything else becomes bool."""
    return value.to(torch.uint8) if a.dtype is torch.uint8 else value


@out_wrapper()
def any(a: torch.Tensor, dim: Dims = None, keepdim: bool = False) -> torch.Tensor:
    """Whether some element is not zero."""
    return _truth(a, _folded(a != 0, dim, keepdim, torch.logical_or, lambda: False))


@out_wrapper()
def all(a: torch.Tensor, dim: Dims = None, keepdim: bool = False) -> torch.Tensor:
    """Whether no element is zero."""
    return _truth(a, _folded(a != 0, dim, keepdim, torch.logical_and, lambda: True))


@out_wrapper()
def count_nonzero(a: torch.Tensor, dim: Dims = None) -> torch.Tensor:
    """How many elements are not zero."""
    return sum(a != 0, dim)


def _length(a: torch.Tensor, dim: Dims) -> int:
    length = 1
    for d in reduced_dims(a.dim(), dim):
        length *= a.shape[d]
    return length


@out_wrapper()
def mean(
    a: torch.Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """The sum divided by the number of elements."""
    dtype = a.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {dtype}"
        )
    return sum(a, dim, keepdim, dtype=dtype) / _length(a, dim)


@out_wrapper()
def var(
    a: torch.Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> torch.Tensor:
    """The mean square distance from the mean, divided by n - correction."""
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    distance = a - mean(a, dim, True)
    square = (distance * distance.conj()).real if a.is_complex() else distance * distance
    n = max(_length(a, dim) - correction, 0)
    total = sum(square, dim, keepdim)
    return total / n if n else total / torch.zeros_like(total)


@out_wrapper()
def std(
    a: torch.Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> torch.Tensor:
    """The square root of var."""
    return torch.sqrt(var(a, dim, unbiased, keepdim, correction=correction))
