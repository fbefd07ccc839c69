"""Helpers shared by the distributions: bringing parameters to one shape, moving between
probabilities and log odds, packing triangles into vectors, and properties computed on first use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import is_tensor_like

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060

Number = int | float | bool
Shape = torch.Size | list[int] | tuple[int, ...]
EMPTY = torch.Size()
Owner = TypeVar("Owner")
Result = TypeVar("Result")


def broadcast_all(*values: Tensor | Number) -> tuple[Tensor, ...]:
    """Returns the values as tensors of their common shape.

    Numbers take dtype and device of the first plain tensor, or the defaults when there is none.
    """
    if all(isinstance(v, Tensor) for v in values):
        return torch.broadcast_tensors(*values)
    if any(not is_tensor_like(v) and not isinstance(v, (int, float)) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects "
            "implementing __torch_function__."
        )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = torch.get_default_dtype() if like is None else like.dtype
    device = None if like is None else like.device
    as_tensors = (
        v if is_tensor_like(v) else torch.tensor(v, dtype=dtype, device=device) for v in values
    )
    return torch.broadcast_tensors(*as_tensors)


def _standard_normal(
    shape: Sequence[int], dtype: torch.dtype | None, device: torch.device | str | int | None
) -> Tensor:
    return torch.randn(shape, dtype=dtype, device=device)


def _plain(tensor: Tensor) -> Tensor:
    """The tensor below the transforms of torch.func around the call, with their batches."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def _holds(valid: Tensor) -> bool:
    """Whether every check holds, in all batches of surrounding vmaps."""
    return bool(_plain(valid).all())


# Compiled code does not check parameters: that would read their values.
_holds._torchdynamo_rule = ("value", True)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Sums over the last ``dim`` dimensions."""
    return value.flatten(-dim).sum(-1) if dim > 0 else value


def clamp_probs(probs: Tensor) -> Tensor:
    """Moves probabilities that are zero or one inside by one machine epsilon."""
    eps = torch.finfo(probs.dtype).eps
    return torch.clamp(probs, eps, 1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds (binary), or of log weights along the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds (binary) or logarithms of probabilities, both finite at zero and one."""
    inside = clamp_probs(probs)
    return inside.log() - inside.neg().log1p() if is_binary else inside.log()


class lazy_property(Generic[Owner, Result]):
    """A property computed on first use and kept in the instance's dictionary.

    It is computed with gradients on even inside ``no_grad``: the kept value may be needed later by
    a computation that is differentiated.
    """

    def __init__(self, wrapped: Callable[[Owner], Result]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = getattr(wrapped, "__name__", "lazy_property")

    def __get__(self, instance: Owner | None, obj_type: type | None = None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with torch.enable_grad():
            return vars(instance).setdefault(self.wrapped.__name__, self.wrapped(instance))


class _lazy_property_and_property(lazy_property[Owner, Result], property):
    """What a class shows for a lazy property, so that tools for documentation see a property."""

    def __init__(self, wrapped: Callable[[Owner], Result]) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Reads the lower triangle up to diagonal ``diag`` of each n x n matrix, row after row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = torch.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def _triangle_size(n: int, diag: int) -> int:
    """How many entries an n x n matrix has up to diagonal ``diag``."""
    return sum(min(max(row + 1 + diag, 0), n) for row in range(n))


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Writes each vector into the lower triangle up to diagonal ``diag`` of a zero matrix.

    The side n follows from the length k. With d diagonals above the main one there are
    n(n+1)/2 + dn - d(d+1)/2 entries; with -d below it, m(m+1)/2 of m = n + diag.
    """
    k = vec.shape[-1]
    if diag > 0:
        n = (math.isqrt((1 + 2 * diag) ** 2 + 4 * diag * (diag + 1) + 8 * k) - 1 - 2 * diag) // 2
    else:
        n = (math.isqrt(1 + 8 * k) - 1) // 2 - diag
    if _triangle_size(n, diag) != k:
        raise ValueError(
            f"The size of last dimension is {k} which cannot be expressed as the lower triangular "
            "part of a square D x D matrix."
        )
    rows, columns = torch.tril_indices(n, n, diag, device=vec.device)
    flat = F.pad(vec, (0, 1))
    # Every entry of the matrix reads its place in the vector, or the zero padded behind it.
    place = torch.full((n, n), k, device=vec.device)
    place[rows, columns] = torch.arange(k, device=vec.device)
    return flat[..., place]
