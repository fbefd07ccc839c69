"""Products and bases that code around sparse and symmetric problems asks for."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["basis", "bform", "get_floating_dtype", "is_sparse", "matmul", "qform", "symeig"]

_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def is_sparse(A: object) -> bool:
    """Whether a tensor has a sparse layout."""
    if not isinstance(A, Tensor):
        raise TypeError(f"expected Tensor but got {type(A)}")
    return A.layout is torch.sparse_coo or A.layout in _COMPRESSED


def get_floating_dtype(A: Tensor) -> torch.dtype:
    """The dtype of a tensor if it is a floating one, float32 otherwise."""
    return A.dtype if A.dtype in (torch.float16, torch.float32, torch.float64) else torch.float32


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """A B, of which A may be sparse, or the identity if it is None."""
    if A is None:
        return B
    return torch.sparse.mm(A, B) if is_sparse(A) else torch.matmul(A, B)


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """The bilinear form X^T A Y."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """The quadratic form S^T A S."""
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """An orthogonal basis of the columns of A."""
    return torch.linalg.qr(A).Q


def symeig(A: Tensor, largest: bool | None = False) -> tuple[Tensor, Tensor]:
    """Eigenvalues, the largest first if asked, and eigenvectors of a symmetric matrix."""
    values, vectors = torch.linalg.eigh(A, UPLO="U")
    if largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values, vectors
