"""Randomised factorisations of matrices of low rank: svd_lowrank and pca_lowrank. A few products
with random vectors find the range of the matrix; a small exact decomposition does the rest."""

import torch
from torch._tensor import _override

__all__ = ["pca_lowrank", "svd_lowrank"]

_overridden = torch._C._has_torch_function


def _range_basis(A, q, niter, M):
    """Orthonormal columns that span the main part of the range of A - M (Halko, Martinsson and
    Tropp, 2009: subspace iteration with a QR factorisation at each step)."""

    def times(x):
        product = torch.matmul(A, x)
        return product if M is None else product - torch.matmul(M, x)

    def adjoint_times(x):
        product = torch.matmul(A.mH, x)
        return product if M is None else product - torch.matmul(M.mH, x)

    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    start = torch.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)
    Q = torch.linalg.qr(times(start)).Q
    for _ in range(niter):
        Q = torch.linalg.qr(adjoint_times(Q)).Q
        Q = torch.linalg.qr(times(Q)).Q
    return Q


def svd_lowrank(A, q=6, niter=2, M=None):
    """The singular value decomposition (U, S, V) of A, or of A - M, by its q largest singular
    values, found with niter steps of randomised subspace iteration."""
    if _overridden((A, M)):
        return _override(svd_lowrank, (A, M), A, q=q, niter=niter, M=M)
    rows, cols = A.shape[-2:]
    q = 6 if q is None else q
    niter = 2 if niter is None else niter
    if M is not None:
        M = M.broadcast_to(A.shape)
    wide = rows < cols
    # The random vectors have the length of the smaller side.
    if wide:
        B, shift = A.mH, None if M is None else M.mH
    else:
        B, shift = A, M
    Q = _range_basis(B, q, niter, shift)
    small = torch.matmul(Q.mH, B)
    if shift is not None:
        small = small - torch.matmul(Q.mH, shift)
    U, S, Vh = torch.linalg.svd(small, full_matrices=False)
    U, V = torch.matmul(Q, U), Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A, q=None, center=True, niter=2):
    """Principal components of the rows of A: svd_lowrank of A with its column means taken off."""
    if _overridden((A,)):
        return _override(pca_lowrank, (A,), A, q=q, center=center, niter=niter)
    rows, cols = A.shape[-2:]
    if q is None:
        q = min(6, rows, cols)
    elif not 0 <= q <= min(rows, cols):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(rows, cols)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not center:
        return svd_lowrank(A, q, niter=niter)
    if A.is_sparse:
        # Without its means the matrix would be dense: they are taken off each product instead.
        means = torch.sparse.sum(A, dim=-2).to_dense() / rows
        return svd_lowrank(A, q, niter=niter, M=means)
    return svd_lowrank(A - A.mean(dim=-2, keepdim=True), q, niter=niter)
