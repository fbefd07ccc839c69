"""The dtypes in which an operator over elements computes and returns, from its arguments."""

from __future__ import annotations

import enum

import torch

__all__ = ["ELEMENTWISE_TYPE_PROMOTION_KIND", "elementwise_dtypes"]


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


def _common_dtype(
    args: tuple[torch.Tensor | bool | int | float | complex | None, ...],
) -> torch.dtype:
    """The dtype of the sum of all arguments. A tensor with dimensions decides over one without, and
    that over a number, unless the lesser one is of a higher kind."""
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    ranked = [
        *(t for t in tensors if t.dim() > 0),
        *(t for t in tensors if t.dim() == 0),
        *(a for a in args if a is not None and not isinstance(a, torch.Tensor)),
    ]
    if not ranked:
        raise ValueError("elementwise_dtypes: expected a tensor or a number")
    if not tensors:
        found = torch.tensor(ranked[0]).dtype
        for number in ranked[1:]:
            found = torch.promote_types(found, torch.tensor(number).dtype)
        return found
    shape = (1,) if ranked[0].dim() > 0 else ()
    found = ranked[0].dtype
    for other in ranked[1:]:
        found = torch.result_type(torch.empty(shape, dtype=found), other)
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
