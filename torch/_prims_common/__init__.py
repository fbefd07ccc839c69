"""What code about operators asks of tensors and dtypes: kinds of dtypes, and whether two tensors
agree in everything but their values."""

from __future__ import annotations

import torch
from torch._prims_common.promotion import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

__all__ = [
    "ELEMENTWISE_TYPE_PROMOTION_KIND",
    "check_all_strides",
    "check_significant_strides",
    "compare_tensor_meta",
    "corresponding_complex_dtype",
    "corresponding_real_dtype",
    "dtype_to_type",
    "elementwise_dtypes",
    "is_boolean_dtype",
    "is_complex_dtype",
    "is_float_dtype",
    "is_integer_dtype",
    "reduced_dims",
]


def is_boolean_dtype(dtype: torch.dtype) -> bool:
    """Whether the dtype is torch.bool."""
    return dtype is torch.bool


def is_float_dtype(dtype: torch.dtype) -> bool:
    """Whether the dtype is a real floating point type."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: torch.dtype) -> bool:
    """Whether the dtype is complex."""
    return dtype.is_complex


def is_integer_dtype(dtype: torch.dtype) -> bool:
    """Whether the dtype counts: an integer type or torch.bool."""
    return not (dtype.is_floating_point or dtype.is_complex)


def dtype_to_type(dtype: torch.dtype) -> type[bool | int | float | complex]:
    """The type of Python's numbers for the elements of a dtype."""
    if dtype is torch.bool:
        return bool
    return complex if dtype.is_complex else float if dtype.is_floating_point else int


def reduced_dims(rank: int, dim: int | tuple[int, ...] | list[int] | None) -> tuple[int, ...]:
    """The dimensions that `dim` names, from 0; all of them for None and for ()."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(rank))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    for d in dims:
        if not -max(rank, 1) <= d < max(rank, 1):
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-max(rank, 1)}, "
                f"{max(rank, 1) - 1}], but got {d})"
            )
    found = tuple(d % max(rank, 1) for d in dims)
    if len(set(found)) != len(found):
        raise RuntimeError(f"dim appears multiple times in the list of dims: {list(dims)}")
    return found if rank else ()


def _walked_strides(t: torch.Tensor) -> list[int]:
    """The strides along which more than one element lies."""
    return [s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1] if t.numel() else []


def compare_tensor_meta(
    a: torch.Tensor,
    b: torch.Tensor,
    check_strides: bool = False,
    *,
    allow_rhs_unbacked: bool = False,
    check_sizes: bool = True,
    check_conj: bool = True,
) -> None:
    """Raises AssertionError where shape, dtype, device (or strides, or lazy bits) differ."""
    for value in (a, b):
        if not isinstance(value, torch.Tensor):
            raise AssertionError(f"expected a Tensor, got {type(value).__name__}")

    def same(what: str, left: object, right: object) -> None:
        if left != right:
            raise AssertionError(f"{what} do not match: {left} and {right}")

    if check_sizes:
        same("Shapes", tuple(a.shape), tuple(b.shape))
    same("Dtypes", a.dtype, b.dtype)
    if {a.device.type, b.device.type} != {"cuda"}:  # cuda and cuda:0 name one device
        same("Devices", a.device, b.device)
    if check_strides:
        same("Strides", _walked_strides(a), _walked_strides(b))
        same("Storage offsets", a.storage_offset(), b.storage_offset())
    if check_conj:
        same("Conjugate bits", a.is_conj(), b.is_conj())
    same("Negative bits", a.is_neg(), b.is_neg())


def _first_difference(
    a: torch.Tensor, b: torch.Tensor, only_cuda: bool, significant: bool
) -> tuple[bool, int | None]:
    on_cuda = "cuda" in (a.device.type, b.device.type)
    if (only_cuda and not on_cuda) or a.numel() == 0:
        return True, None
    for dim, (mine, theirs) in enumerate(zip(a.stride(), b.stride(), strict=True)):
        if mine != theirs and not (significant and a.shape[dim] <= 1):
            return False, dim
    return True, None


def check_significant_strides(
    a: torch.Tensor, b: torch.Tensor, *, only_cuda: bool = True, allow_rhs_unbacked: bool = False
) -> tuple[bool, int | None]:
    """Whether the strides of dimensions longer than 1 agree, and the first that does not. By
    default only where a CUDA tensor takes part: elsewhere every result is yes."""
    return _first_difference(a, b, only_cuda, significant=True)


def check_all_strides(
    a: torch.Tensor, b: torch.Tensor, *, only_cuda: bool = True
) -> tuple[bool, int | None]:
    """The same for all dimensions."""
    return _first_difference(a, b, only_cuda, significant=False)


def corresponding_real_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the parts of a complex dtype."""
    return dtype.to_real()


def corresponding_complex_dtype(dtype: torch.dtype) -> torch.dtype:
    """The complex dtype whose parts have this dtype."""
    return dtype.to_complex()
