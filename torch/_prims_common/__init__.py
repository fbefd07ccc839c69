"""What code about operators asks of tensors and dtypes: kinds of dtypes, and whether two tensors
agree in everything but their values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import torch
from torch._prims_common.promotion import (
    ELEMENTWISE_TYPE_PROMOTION_KIND,
    elementwise_dtypes,
    get_computation_dtype,
)
from torch._prims_common.rng import CUDARngStateHelper

__all__ = [
    "CUDARngStateHelper",
    "ELEMENTWISE_TYPE_PROMOTION_KIND",
    "canonicalize_dim",
    "canonicalize_dims",
    "check",
    "check_all_strides",
    "check_float_or_complex",
    "check_significant_strides",
    "compare_tensor_meta",
    "corresponding_complex_dtype",
    "corresponding_real_dtype",
    "dtype_to_type",
    "elementwise_dtypes",
    "get_computation_dtype",
    "is_boolean_dtype",
    "is_complex_dtype",
    "is_float_dtype",
    "is_integer_dtype",
    "make_contiguous_strides_for",
    "reduced_dims",
    "reduction_dims",
    "suggest_memory_format",
    "type_to_dtype",
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


def type_to_dtype(typ: type[bool | int | float | complex]) -> torch.dtype:
    """The dtype that a tensor of Python's numbers of a type gets."""
    default = torch.get_default_dtype()
    found = {bool: torch.bool, int: torch.int64, float: default, complex: default.to_complex()}
    if typ not in found:
        raise ValueError(f"expected bool, int, float or complex, got {typ}")
    return found[typ]


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """A dimension counted from 0. A tensor without dimensions is taken as having one."""
    if rank == 0 and not wrap_scalar:
        raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
    span = max(rank, 1)
    if not -span <= idx < span:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-span}, {span - 1}], "
            f"but got {idx})"
        )
    return idx % span


def canonicalize_dims(
    rank: int, indices: int | Sequence[int], wrap_scalar: bool = True
) -> int | tuple[int, ...]:
    """The same for one dimension or several."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, index, wrap_scalar) for index in indices)


def reduction_dims(shape: Sequence[int], dims: Sequence[int] | None) -> tuple[int, ...]:
    """The dimensions that a reduction of a shape goes over; all of them for None."""
    return tuple(range(len(shape))) if dims is None else reduced_dims(len(shape), tuple(dims))


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """Strides of a dense tensor; with row_major=False the last two dimensions are swapped."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step = step * max(length, 1)
    strides.reverse()
    if not row_major and len(shape) >= 2:
        strides[-1], strides[-2] = max(shape[-2], 1), 1
    return tuple(strides)


def suggest_memory_format(x: torch.Tensor) -> torch.memory_format:
    """The memory format that a result of the same rank should have."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if x.layout == torch.strided and x.dim() in formats:
        found, strides = formats[x.dim()], x.stride()
        # Where sizes of 1 leave both formats open, the strides written down decide.
        nearest = strides[1] <= min(strides[2:]) and strides[1] != strides[0]
        if nearest and x.is_contiguous(memory_format=found):
            return found
    return torch.contiguous_format


def check_float_or_complex(name: str, *tensors: torch.Tensor) -> None:
    """Raises RuntimeError for a tensor of integers or bools."""
    for value in tensors:
        if is_integer_dtype(value.dtype):
            raise RuntimeError(
                f"{name}: Expected a floating point or complex tensor as input. Got {value.dtype}"
            )


def check(b: bool, s: Callable[[], str], exc_type: type[Exception] = RuntimeError) -> None:
    """torch._check under its former name."""
    warnings.warn(
        "'torch._prims_common.check' will be removed in the future. Please use 'torch._check*' "
        "functions instead",
        FutureWarning,
        stacklevel=2,
    )
    torch._check_with(exc_type, b, s)
