"""Products of matrices whose 8-bit numbers carry scales, with the scales described by a recipe."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import torch
from torch.nn._grouped import grouped_mm

__all__ = ["ScalingType", "SwizzleType", "scaled_grouped_mm", "scaled_mm"]


class ScalingType(enum.IntEnum):
    """Which numbers of a matrix share a scale: all, those of a row, or those of a block."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.IntEnum):
    """The order in which scales lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


_Scale = torch.Tensor | list[torch.Tensor]
_Recipe = ScalingType | list[ScalingType]
_Swizzle = SwizzleType | list[SwizzleType] | None


def _only(value: object, what: str) -> object:
    """The one element of a list, or what is no list."""
    if not isinstance(value, (list, tuple)):
        return value
    if len(value) != 1:
        raise NotImplementedError(f"scaled_mm with {len(value)} {what}")
    return value[0]


def _checked(
    op: str, scales: Sequence[_Scale], recipes: Sequence[_Recipe], swizzles: Sequence[_Swizzle]
) -> tuple[torch.Tensor, torch.Tensor, ScalingType]:
    """The two scales and the recipe that both follow."""
    for swizzle in swizzles:
        if _only(swizzle, "swizzles") not in (None, SwizzleType.NO_SWIZZLE):
            raise NotImplementedError(f"{op} with scales in the order {swizzle!r}")
    first, second = (_only(r, "recipes") for r in recipes)
    if first != second or first not in (ScalingType.TensorWise, ScalingType.RowWise):
        raise ValueError(
            f"Invalid scaling configuration. {op} takes TensorWise or RowWise for both matrices, "
            f"got {first!r} and {second!r}"
        )
    scale_a, scale_b = (_only(s, "scales") for s in scales)
    return scale_a, scale_b, first


def scaled_mm(
    mat_a: torch.Tensor,
    mat_b: torch.Tensor,
    scale_a: _Scale,
    scale_recipe_a: _Recipe,
    scale_b: _Scale,
    scale_recipe_b: _Recipe,
    swizzle_a: _Swizzle = None,
    swizzle_b: _Swizzle = None,
    bias: torch.Tensor | None = None,
    output_dtype: torch.dtype | None = torch.bfloat16,
    contraction_dim: list[int] | tuple[int, ...] = (),
    use_fast_accum: bool = False,
) -> torch.Tensor:
    """(scale_a * mat_a) @ (scale_b * mat_b) + bias, summed in float32."""
    if contraction_dim:
        raise NotImplementedError("scaled_mm with contraction_dim")
    first, second, _ = _checked(
        "scaled_mm", (scale_a, scale_b), (scale_recipe_a, scale_recipe_b), (swizzle_a, swizzle_b)
    )
    return torch._scaled_mm(
        mat_a, mat_b, first, second, bias, out_dtype=output_dtype, use_fast_accum=use_fast_accum
    )


def scaled_grouped_mm(
    mat_a: torch.Tensor,
    mat_b: torch.Tensor,
    scale_a: _Scale,
    scale_recipe_a: _Recipe,
    scale_b: _Scale,
    scale_recipe_b: _Recipe,
    swizzle_a: _Swizzle = None,
    swizzle_b: _Swizzle = None,
    bias: torch.Tensor | None = None,
    offs: torch.Tensor | None = None,
    output_dtype: torch.dtype | None = torch.bfloat16,
    contraction_dim: list[int] | tuple[int, ...] = (),
    use_fast_accum: bool = False,
) -> torch.Tensor:
    """grouped_mm of matrices with scales. RowWise: a scale for each row of mat_a and each column of
    mat_b; two 2D operands, whose inner dimension is cut into groups, have those of all groups in a
    row."""
    if contraction_dim or bias is not None:
        raise NotImplementedError("scaled_grouped_mm with contraction_dim or bias")
    first, second, recipe = _checked(
        "scaled_grouped_mm",
        (scale_a, scale_b),
        (scale_recipe_a, scale_recipe_b),
        (swizzle_a, swizzle_b),
    )
    wide_a, wide_b = mat_a.to(torch.float32), mat_b.to(torch.float32)
    product = grouped_mm(wide_a, wide_b, offs=offs)
    if recipe is ScalingType.TensorWise:
        return (product * first * second).to(output_dtype)
    flat_a, flat_b = mat_a.dim() == 2, mat_b.dim() == 2
    if flat_a and flat_b:
        groups = offs.numel()
        first, second = first.reshape(groups, -1, 1), second.reshape(groups, 1, -1)
    elif flat_a:
        # Each row is of one group, whose columns have scales of their own.
        sizes = torch.diff(offs, prepend=offs.new_zeros(1))
        rest = mat_a.size(0) - int(offs[-1])
        rows = torch.repeat_interleave(second.reshape(mat_b.size(0), -1), sizes, dim=0)
        second = torch.cat([rows, rows.new_zeros(rest, rows.size(1))])
        first = first.reshape(-1, 1)
    elif flat_b:
        sizes = torch.diff(offs, prepend=offs.new_zeros(1))
        rest = mat_b.size(1) - int(offs[-1])
        columns = torch.repeat_interleave(first.reshape(mat_a.size(0), -1), sizes, dim=0).t()
        first = torch.cat([columns, columns.new_zeros(columns.size(0), rest)], dim=1)
        second = second.reshape(1, -1)
    else:
        first, second = first.unsqueeze(-1), second.unsqueeze(-2)
    return (product * first * second).to(output_dtype)
