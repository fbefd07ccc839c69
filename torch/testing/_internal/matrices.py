"""Random matrices with the properties that tests of linear algebra need."""

from __future__ import annotations

import torch
from torch.testing import make_tensor


def random_matrix(rows, columns, *batch_dims, **kwargs):
    """A matrix with singular values spread over [1/2, 3/2], or below it when singular=True."""
    dtype, device = kwargs.get("dtype", torch.double), kwargs.get("device", "cpu")
    a = torch.randn(*batch_dims, rows, columns, dtype=dtype, device=device)
    if a.numel() == 0:
        return a
    u, _, vh = torch.linalg.svd(a, full_matrices=False)
    k = min(rows, columns)
    s = torch.linspace(1.5, 0.5, k, dtype=u.real.dtype, device=device)
    if kwargs.get("singular"):
        s[-1] = 0
    return (u * s.to(dtype)) @ vh


def random_symmetric_matrix(l, *batches, **kwargs) -> torch.Tensor:
    a = torch.randn(*batches, l, l, **_placed(kwargs))
    return (a + a.mT).div_(2)


def random_symmetric_psd_matrix(l, *batches, **kwargs):
    a = torch.randn(*batches, l, l, **_placed(kwargs))
    return a @ a.mT


def random_symmetric_pd_matrix(matrix_size, *batch_dims, **kwargs):
    options = _placed(kwargs)
    a = torch.randn(*batch_dims, matrix_size, matrix_size, **options)
    return a @ a.mT + torch.eye(matrix_size, **options) * 1e-5


def random_hermitian_matrix(l, *batches, **kwargs):
    a = torch.randn(*batches, l, l, **_placed(kwargs))
    return (a + a.mH).div_(2)


def random_hermitian_psd_matrix(l, *batches, **kwargs) -> torch.Tensor:
    a = torch.randn(*batches, l, l, **_placed(kwargs))
    return a @ a.mH


def random_hermitian_pd_matrix(matrix_size, *batch_dims, dtype, device) -> torch.Tensor:
    options = {"dtype": dtype, "device": device}
    semidefinite = random_hermitian_psd_matrix(matrix_size, *batch_dims, **options)
    return semidefinite + torch.eye(matrix_size, **options)


def random_well_conditioned_matrix(*shape, dtype, device, mean=1.0, sigma=0.001):
    """Singular values drawn around mean."""
    a = torch.randn(shape, dtype=dtype, device=device)
    u, _, vh = torch.linalg.svd(a, full_matrices=False)
    s = (
        (torch.randn(*shape[:-2], min(shape[-2:]), device=device) * sigma + mean)
        .sort(descending=True)
        .values
    )
    return (u * s.to(dtype).unsqueeze(-2)) @ vh


def random_lowrank_matrix(rank, rows, columns, *batch_dims, **kwargs) -> torch.Tensor:
    options = _placed(kwargs)
    a = torch.randn(*batch_dims, rows, rank, **options)
    return a @ torch.randn(*batch_dims, rank, columns, **options)


def random_square_matrix_of_rank(l, rank, dtype=torch.double, device="cpu"):
    if rank > l:
        raise AssertionError("rank cannot exceed the size")
    return random_lowrank_matrix(rank, l, l, dtype=dtype, device=device)


def make_fullrank_matrices_with_distinct_singular_values(
    *shape, device, dtype, requires_grad=False
):
    """Batches of matrices whose singular values are 2, 3, ... and hence apart."""
    a = torch.randn(shape, dtype=dtype, device=device)
    u, _, vh = torch.linalg.svd(a, full_matrices=False)
    k = min(shape[-2:])
    s = torch.arange(2, k + 2, dtype=u.real.dtype, device=device).flip(0)
    return ((u * s.to(dtype)) @ vh).detach().requires_grad_(requires_grad)


def make_symmetric_matrices(*shape, device, dtype):
    a = make_tensor(shape, device=device, dtype=dtype)
    return (a + a.mT).div_(2)


def make_symmetric_pd_matrices(*shape, device, dtype):
    a = make_tensor(shape, device=device, dtype=dtype)
    return a @ a.mT + torch.eye(shape[-1], dtype=dtype, device=device) * 1e-5


def _placed(kwargs) -> dict[str, str | torch.dtype]:
    return {"dtype": kwargs.get("dtype", torch.double), "device": kwargs.get("device", "cpu")}
