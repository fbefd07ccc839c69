"""The dtypes in which an operator over elements computes and returns, from its arguments."""

from __future__ import annotations

import enum

import torch

__all__ = ["ELEMENTWISE_TYPE_PROMOTION_KIND", "elementwise_dtypes", "get_computation_dtype"]


class ELEMENTWISE_TYPE_PROMOTION_KIND(enum.Enum):
    """How the dtype of the arguments becomes that of the result."""

    DEFAULT = 0  # the common dtype; half precision is computed in single
    NO_OPMATH = 1  # the common dtype throughout
    INT_TO_FLOAT = 2  # integers become the default floating dtype
    ALWAYS_BOOL = 3  # computed in the common dtype, a bool comes out
    COMPLEX_TO_FLOAT = 4  # complex numbers give real ones
    BOOL_TO_LONG = 5  # bools count


_WIDE = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.complex32: torch.complex64,
}


def get_computation_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which arithmetic on elements of a dtype is done: half precision in single."""
    return _WIDE.get(dtype, dtype)


def _kind(dtype: torch.dtype) -> int:
    """Bool, integer, floating, complex, in the order of promotion."""
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return 0 if dtype is torch.bool else 1


def _joined(strong: torch.dtype | None, weak: torch.dtype | None) -> torch.dtype | None:
    """The dtype of a group of arguments beside one that gives way: it counts only if its kind is
    higher, and a floating dtype that becomes complex keeps its precision."""
    if strong is None or weak is None:
        return weak if strong is None else strong
    if _kind(weak) <= _kind(strong):
        return strong
    if weak.is_complex and strong.is_floating_point:
        return strong.to_complex()
    return torch.promote_types(strong, weak)


def _number_dtype(number: bool | int | float | complex) -> torch.dtype:
    if isinstance(number, (bool, torch.SymBool)):
        return torch.bool
    if isinstance(number, (int, torch.SymInt)):
        return torch.int64
    default = torch.get_default_dtype()
    return default.to_complex() if isinstance(number, complex) else default


def _common_dtype(
    args: tuple[torch.Tensor | bool | int | float | complex | None, ...],
) -> torch.dtype:
    """The dtype of the sum of all arguments. A tensor with dimensions decides over one without, and
    that over a number, unless the lesser one is of a higher kind."""
    groups: list[torch.dtype | None] = [None, None, None]
    for value in args:
        if value is None:
            continue
        if isinstance(value, torch.Tensor):
            place, dtype = (0 if value.dim() else 1), value.dtype
        else:
            place, dtype = 2, _number_dtype(value)
        seen = groups[place]
        groups[place] = dtype if seen is None else torch.promote_types(seen, dtype)
    found = _joined(groups[0], _joined(groups[1], groups[2]))
    if found is None:
        raise ValueError("elementwise_dtypes: expected a tensor or a number")
    return found


def elementwise_dtypes(
    *args: torch.Tensor | bool | int | float | complex | None,
    type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND,
) -> tuple[torch.dtype, torch.dtype]:
    """The dtype to compute in and the dtype of the result."""
    kind = ELEMENTWISE_TYPE_PROMOTION_KIND
    result = _common_dtype(args)
    whole = not (result.is_floating_point or result.is_complex)
    if type_promotion_kind is kind.INT_TO_FLOAT and whole:
        result = torch.get_default_dtype()
    if type_promotion_kind is kind.BOOL_TO_LONG and result is torch.bool:
        return torch.int64, torch.int64
    compute = _WIDE.get(result, result)
    if type_promotion_kind is kind.NO_OPMATH:
        return result, result
    if type_promotion_kind is kind.ALWAYS_BOOL:
        return compute, torch.bool
    if type_promotion_kind is kind.COMPLEX_TO_FLOAT and result.is_complex:
        return compute, result.to_real()
    return compute, result
