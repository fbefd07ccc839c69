"""Linear algebra on CUDA by properties that define each result, and against NumPy where it is
unique: single matrices, batches small and large, tall and wide, real and complex."""

import numpy as np
import pytest
import scipy.linalg
from cuda_support import EMULATED, cuda

import torch

# The values are cuSOLVER's, which runs on GPUs only: there is no second implementation to test.
needs_cusolver = pytest.mark.skipif(EMULATED, reason="the emulator has no cuSOLVER")
DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-10}
BATCHES = [(), (3,), (2, 3), (0,)]


def tolerance(dtype):
    return TOLERANCE[torch.zeros((), dtype=dtype).real.dtype]


def close(got, want, slack=1.0):
    """Both as NumPy arrays or tensors, relative to the largest element of `want`."""
    limit = slack * tolerance(got.dtype)
    got, want = got.detach().cpu().numpy(), np.asarray(want)
    assert got.shape == want.shape
    if got.size:
        assert np.abs(got - want).max() <= limit * max(np.abs(want).max(), 1.0)


def matrices(dtype, batch, rows, cols):
    torch.manual_seed(rows * 100 + cols)
    return torch.randn(*batch, rows, cols, dtype=dtype)


def positive(dtype, batch, n):
    a = matrices(dtype, batch, n, n)
    return a @ a.mH + n * torch.eye(n, dtype=dtype)


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


@needs_cusolver
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", [1, 5, 33])
def test_solve_inverse_and_determinant(n, batch, dtype):
    a = matrices(dtype, batch, n, n) / n + torch.eye(n, dtype=dtype)
    b = matrices(dtype, batch, n, 4)
    want = np.linalg.solve(a.numpy(), b.numpy())
    close(torch.linalg.solve(a.to(cuda), b.to(cuda)), want)
    right = torch.linalg.solve(a.to(cuda), b.mT.to(cuda), left=False)
    close(right, np.swapaxes(np.linalg.solve(np.swapaxes(a.numpy(), -1, -2), b.numpy()), -1, -2))
    close(torch.linalg.inv(a.to(cuda)), np.linalg.inv(a.numpy()))
    close(torch.linalg.det(a.to(cuda)), np.linalg.det(a.numpy()), 10)
    sign, log = torch.linalg.slogdet(a.to(cuda))
    want_sign, want_log = np.linalg.slogdet(a.numpy())
    close(sign, want_sign, 10)
    close(log, want_log, 10)


@needs_cusolver
@pytest.mark.parametrize("batch", [(), (4,)])
def test_solve_of_larger_matrices_and_of_vectors(batch):
    n = 700
    a = matrices(torch.float64, batch, n, n) + n * torch.eye(n, dtype=torch.float64)
    b = matrices(torch.float64, batch, n, 1)
    want = np.linalg.solve(a.numpy(), b.numpy())
    close(torch.linalg.solve(a.to(cuda), b.to(cuda)), want)
    close(torch.linalg.solve(a.to(cuda), b[..., 0].to(cuda)), want[..., 0])


@needs_cusolver
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("shape", [(6, 6), (7, 4), (4, 7)])
def test_lu_restores_the_matrix(shape, batch, dtype):
    a = matrices(dtype, batch, *shape)
    p, lower, upper = torch.linalg.lu(a.to(cuda))
    close(p @ lower @ upper, a)
    assert torch.equal(lower, lower.tril()) and torch.equal(upper, upper.triu())
    packed, pivots = torch.linalg.lu_factor(a.to(cuda))
    assert pivots.dtype == torch.int32 and pivots.shape == (*batch, min(shape))
    parts = torch.lu_unpack(packed, pivots)
    for got, want in zip(parts, (p, lower, upper), strict=True):
        close(got, want.cpu())


@needs_cusolver
def test_lu_without_exchanges():
    a = positive(torch.float64, (3,), 8)
    packed, pivots = torch.linalg.lu_factor(a.to(cuda), pivot=False)
    assert torch.equal(pivots.cpu(), torch.arange(1, 9, dtype=torch.int32).expand(3, 8))
    lower = packed.tril(-1) + torch.eye(8, dtype=torch.float64, device=cuda)
    close(lower @ packed.triu(), a)


@needs_cusolver
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint_of", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_lu_solve_from_both_sides(dtype, adjoint_of, left):
    a = matrices(dtype, (3,), 6, 6) + 6 * torch.eye(6, dtype=dtype)
    b = matrices(dtype, (3,), 6, 2) if left else matrices(dtype, (3,), 2, 6)
    x = torch.linalg.lu_solve(
        *torch.linalg.lu_factor(a.to(cuda)), b.to(cuda), left=left, adjoint=adjoint_of
    ).cpu()
    op = a.mH if adjoint_of else a
    close(op @ x if left else x @ op, b)


@needs_cusolver
def test_singular_matrices_raise_and_the_device_lives_on():
    a = torch.zeros(3, 3, device=cuda)
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.inv(a)
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.solve(a, torch.ones(3, device=cuda))
    with pytest.raises(torch.linalg.LinAlgError, match="positive-definite"):
        torch.linalg.cholesky(-torch.eye(3, device=cuda).expand(2, 3, 3))
    with pytest.raises(RuntimeError, match="ivots"):
        torch.linalg.lu_solve(torch.eye(2, device=cuda), torch.tensor([9, 1]).int().to(cuda), a[:2])
    assert torch.linalg.inv(2 * torch.eye(3, device=cuda)).sum().item() == 1.5


@needs_cusolver
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_and_what_rests_on_it(upper, batch, dtype):
    a = positive(dtype, batch, 9)
    factor = torch.linalg.cholesky(a.to(cuda), upper=upper)
    want = np.linalg.cholesky(a.numpy())
    close(factor, adjoint(want) if upper else want)
    b = matrices(dtype, batch, 9, 3)
    solution = torch.cholesky_solve(b.to(cuda), factor, upper=upper)
    close(solution, np.linalg.solve(a.numpy(), b.numpy()))
    close(torch.cholesky_inverse(factor, upper=upper), np.linalg.inv(a.numpy()))


@needs_cusolver
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems(unit, left, upper, batch, dtype):
    a = matrices(dtype, batch, 7, 7) * 0.1 + 2 * torch.eye(7, dtype=dtype)
    used = a.triu() if upper else a.tril()
    if unit:
        used = used - torch.diag_embed(used.diagonal(dim1=-2, dim2=-1)) + torch.eye(7, dtype=dtype)
    b = matrices(dtype, batch, 7, 3) if left else matrices(dtype, batch, 3, 7)
    x = torch.linalg.solve_triangular(
        a.to(cuda), b.to(cuda), upper=upper, left=left, unitriangular=unit
    ).cpu()
    close(used @ x if left else x @ used, b)


def check_qr(shape, mode, batch, dtype):
    a = matrices(dtype, batch, *shape)
    q, r = torch.linalg.qr(a.to(cuda), mode=mode)
    assert torch.equal(r, r.triu())
    if mode == "r":
        close(r.mH @ r, (a.mH @ a).numpy(), 10)
        return
    close(q @ r, a)
    eye = np.broadcast_to(np.eye(q.shape[-1]), (*batch, q.shape[-1], q.shape[-1]))
    close(q.mH @ q, eye)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", [(6, 6), (8, 5), (5, 8), (1, 1)])
def test_qr_of_small_matrices_restores_them(shape, mode, batch, dtype):
    check_qr(shape, mode, batch, dtype)


@needs_cusolver
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
@pytest.mark.parametrize("shape", [(150, 150), (400, 90), (90, 400)])
def test_qr_of_larger_matrices_restores_them(shape, dtype):
    check_qr(shape, "reduced", (2,), dtype)


def test_qr_of_numbers_near_the_ends_of_the_range_and_of_zeros():
    for scale in (1e-300, 1e200, 0.0):
        a = matrices(torch.float64, (2,), 5, 4) * scale
        q, r = torch.linalg.qr(a.to(cuda))
        np.testing.assert_allclose((q @ (r / (scale or 1))).cpu(), a / (scale or 1), atol=1e-12)
    holes = torch.eye(3, device=cuda)
    holes[2, 0] = float("nan")
    assert torch.isnan(torch.linalg.qr(holes)[1][0, 0])


@needs_cusolver
def test_reflections_multiply_as_the_matrix_they_stand_for():
    a = matrices(torch.float64, (2,), 6, 4)
    packed, tau = torch.geqrf(a.to(cuda))
    q = torch.from_numpy(np.stack([np.linalg.qr(m, mode="complete")[0] for m in a.numpy()]))
    c = matrices(torch.float64, (2,), 6, 3)
    formed = torch.linalg.householder_product(packed, tau)
    close(torch.ormqr(packed, tau, c.to(cuda)), q @ c)
    close(torch.ormqr(packed, tau, c.to(cuda), transpose=True), q.mT @ c)
    close(torch.ormqr(packed, tau, c.mT.contiguous().to(cuda), left=False), c.mT @ q)
    close(formed, q[..., :4])


@needs_cusolver
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch, n", [((), 7), ((3,), 7), ((2, 2), 40), ((0,), 3), ((), 0)])
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigh(uplo, batch, n, dtype):
    a = matrices(dtype, batch, n, n)
    a = a + a.mH
    values, vectors = torch.linalg.eigh(a.to(cuda), UPLO=uplo)
    close(values, np.linalg.eigvalsh(a.numpy()))
    close(vectors @ torch.diag_embed(values).to(dtype) @ vectors.mH, a)
    close(torch.linalg.eigvalsh(a.to(cuda), UPLO=uplo), np.linalg.eigvalsh(a.numpy()))


@needs_cusolver
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_eig_of_general_matrices(batch, dtype):
    a = matrices(dtype, batch, 9, 9)
    values, vectors = torch.linalg.eig(a.to(cuda))
    assert values.is_complex() and vectors.is_complex()
    close(vectors @ torch.diag_embed(values), (a.to(values.dtype).to(cuda) @ vectors).cpu(), 10)
    norms = vectors.abs().square().sum(-2)
    close(norms, np.ones(norms.shape), 10)
    only = torch.linalg.eigvals(a.to(cuda)).cpu().numpy()
    want = np.linalg.eigvals(a.numpy())
    distance = np.abs(only[..., :, None] - want[..., None, :])
    assert distance.min(-1).max() < 100 * tolerance(dtype)


@needs_cusolver
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("batch", [(), (3,), (0,)])
@pytest.mark.parametrize("shape", [(6, 6), (8, 5), (5, 8), (60, 40), (40, 60)])
def test_svd_restores_the_matrix(shape, batch, full, dtype):
    a = matrices(dtype, batch, *shape)
    u, s, vh = torch.linalg.svd(a.to(cuda), full_matrices=full)
    k = min(shape)
    assert u.shape == (*batch, shape[0], shape[0] if full else k)
    assert vh.shape == (*batch, shape[1] if full else k, shape[1])
    close(u[..., :k] * s.to(dtype).unsqueeze(-2) @ vh[..., :k, :], a)
    want = np.linalg.svd(a.numpy(), compute_uv=False)
    close(s, want)
    close(torch.linalg.svdvals(a.to(cuda)), want)
    for side in (u, vh.mH):
        eye = np.broadcast_to(np.eye(side.shape[-1]), (*batch, side.shape[-1], side.shape[-1]))
        close(side.mH @ side, eye)


@needs_cusolver
@pytest.mark.parametrize("driver", ["gesvd", "gesvdj", "gesvda"])
def test_drivers_of_the_svd_agree(driver):
    a = matrices(torch.float64, (2,), 30, 50)
    close(torch.linalg.svdvals(a.to(cuda), driver=driver), np.linalg.svd(a, compute_uv=False))
    u, s, vh = torch.linalg.svd(a.to(cuda), full_matrices=False, driver=driver)
    close(u * s.unsqueeze(-2) @ vh, a)


@needs_cusolver
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("shape", [(8, 5), (5, 5), (5, 8)])
def test_least_squares(shape, batch, dtype):
    a, b = matrices(dtype, batch, *shape), matrices(dtype, batch, shape[0], 2)
    solution, residuals, rank, _ = torch.linalg.lstsq(a.to(cuda), b.to(cuda))
    want = np.linalg.pinv(a.numpy()) @ b.numpy()
    close(solution, want, 10)
    assert rank.numel() == 0
    if shape[0] > shape[1]:
        left = np.abs(a.numpy() @ want - b.numpy())
        close(residuals, (left * left).sum(-2), 10)
    with pytest.raises(RuntimeError, match="gels"):
        torch.linalg.lstsq(a.to(cuda), b.to(cuda), driver="gelsd")


@needs_cusolver
@pytest.mark.parametrize("batch", [(), (3,)])
def test_ldl_solves_indefinite_systems(batch):
    a = matrices(torch.float64, batch, 9, 9)
    a = a + a.mT
    b = matrices(torch.float64, batch, 9, 2)
    packed, pivots = torch.linalg.ldl_factor(a.to(cuda))
    close(torch.linalg.ldl_solve(packed, pivots, b.to(cuda)), np.linalg.solve(a, b), 10)


@needs_cusolver
def test_composites_rest_on_these():
    a = matrices(torch.float64, (2,), 6, 4).to(cuda)
    close(torch.linalg.pinv(a), np.linalg.pinv(a.cpu().numpy()))
    assert torch.linalg.matrix_rank(a).tolist() == [4, 4]
    close(torch.linalg.cond(a), np.linalg.cond(a.cpu().numpy()))
    close(torch.linalg.matrix_norm(a, "nuc"), np.linalg.norm(a.cpu().numpy(), "nuc", (-2, -1)))
    square = a[:, :4] * torch.tensor([0.1, 5.0], device=cuda).view(2, 1, 1)  # halved 0 and 3 times
    terms = np.stack([scipy.linalg.expm(m) for m in square.cpu().numpy()])
    close(torch.linalg.matrix_exp(square) / np.abs(terms).max(), terms / np.abs(terms).max())


@needs_cusolver
@pytest.mark.parametrize(
    "function, formula",
    [
        (lambda a: torch.linalg.inv(a).square().sum(), lambda a: np.square(np.linalg.inv(a)).sum()),
        (lambda a: torch.linalg.cholesky(a).sum(), lambda a: np.linalg.cholesky(a).sum()),
        (lambda a: torch.linalg.eigvalsh(a).log().sum(), lambda a: np.linalg.slogdet(a)[1].sum()),
        (lambda a: torch.linalg.svdvals(a).sum(), lambda a: np.linalg.svd(a)[1].sum()),
        (lambda a: torch.linalg.slogdet(a)[1].sum(), lambda a: np.linalg.slogdet(a)[1].sum()),
        (lambda a: torch.linalg.qr(a)[1].abs().sum(), lambda a: np.abs(np.linalg.qr(a)[1]).sum()),
    ],
)
def test_gradients_are_the_derivatives_along_symmetric_changes(function, formula):
    a, change = positive(torch.float64, (2,), 5), matrices(torch.float64, (2,), 5, 5)
    change = (change + change.mT) / 2
    leaf = a.to(cuda).requires_grad_()
    function(leaf).backward()
    step = 1e-5
    ahead, behind = (formula((a + sign * step * change).numpy()) for sign in (1, -1))
    got = (leaf.grad.cpu() * change).sum().item()
    assert got == pytest.approx((ahead - behind) / (2 * step), rel=1e-6, abs=1e-6)


# The message for a missing library is seen only where the library is missing.
@pytest.mark.skipif(not EMULATED, reason="cuSOLVER is there")
def test_factorisation_without_the_library_names_it():
    with pytest.raises(NotImplementedError, match="libcusolver"):
        torch.linalg.inv(torch.eye(2, device=cuda))
    with pytest.raises(NotImplementedError, match="libcusolver"):
        torch.linalg.svd(torch.eye(2, device=cuda))


def test_unpacking_pivots_gives_the_permutation_of_the_rows():
    # Rows 0 and 2, then 1 and 2 are exchanged.
    pivots = torch.tensor([[3, 3, 3], [1, 2, 3]], dtype=torch.int32)
    packed = torch.arange(18.0).view(2, 3, 3)
    p, lower, upper = torch.lu_unpack(packed.to(cuda), pivots.to(cuda))
    order = [[2, 0, 1], [0, 1, 2]]
    for matrix, rows in zip(p.cpu().numpy(), order, strict=True):
        want = np.zeros((3, 3))
        want[rows, range(3)] = 1
        np.testing.assert_array_equal(matrix, want)
    np.testing.assert_array_equal(lower.cpu().numpy(), np.tril(packed, -1) + np.eye(3))
    np.testing.assert_array_equal(upper.cpu().numpy(), np.triu(packed))
