"""Products of groups of rows with a matrix each, as mixtures of experts need them."""

from __future__ import annotations

import torch

__all__ = ["grouped_mm"]


def _bounds(mat_a, mat_b, offs) -> list[tuple[int, int]] | None:
    """Where the groups begin and end."""
    if offs is None:
        return None
    if offs.dtype != torch.int32:
        raise RuntimeError("Offsets have to be int32")
    if offs.dim() != 1:
        raise RuntimeError("offs has to be 1D")
    ends = offs.tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def grouped_mm(
    mat_a, mat_b, *, offs=None, bias: torch.Tensor | None = None, out_dtype=None
) -> torch.Tensor:
    """Products by groups. Two 3D operands are multiplied matrix by matrix. Otherwise offs holds
    where each group ends along the dimension that is not there: the rows of a 2D mat_a with a 3D
    mat_b, the columns of a 2D mat_b with a 3D mat_a, or the inner dimension of two 2D operands."""
    if mat_a.dim() not in (2, 3) or mat_b.dim() not in (2, 3):
        raise RuntimeError("grouped_mm: mat_a and mat_b have to be 2D or 3D")
    flat_a, flat_b = mat_a.dim() == 2, mat_b.dim() == 2
    if (offs is not None) != (flat_a or flat_b):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if out_dtype not in (None, mat_a.dtype):
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    groups = _bounds(mat_a, mat_b, offs)
    if groups is None:
        return torch.bmm(mat_a, mat_b)
    if flat_a and flat_b:
        return torch.stack([mat_a[:, i:j] @ mat_b[i:j] for i, j in groups])
    if flat_a:
        # Rows behind the last group belong to none and are zero.
        rows = mat_a.size(0) - (groups[-1][1] if groups else 0)
        rest = mat_a.new_zeros(rows, mat_b.size(-1))
        parts = [mat_a[i:j] @ matrix for (i, j), matrix in zip(groups, mat_b, strict=True)]
        return torch.cat([*parts, rest])
    parts = [matrix @ mat_b[:, i:j] for (i, j), matrix in zip(groups, mat_a, strict=True)]
    columns = mat_b.size(1) - (groups[-1][1] if groups else 0)
    return torch.cat([*parts, mat_b.new_zeros(mat_a.size(1), columns)], dim=1)


def _grouped_mm(input, mat2, offs=None, bias=None, out_dtype=None):
    """grouped_mm under its older name."""
    return grouped_mm(input, mat2, offs=offs, bias=bias, out_dtype=out_dtype)
