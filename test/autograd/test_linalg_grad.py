"""Gradients of linear algebra: first and second order and forward mode against finite differences,
with losses that do not depend on the signs and phases factorisations leave open."""

import pytest

import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck

L = torch.linalg


def sample(*shape, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    if dtype.is_complex:
        x = torch.complex(x, torch.randn(shape, generator=generator, dtype=torch.float64))
    return x


def hermitian(a):
    return (a + a.mH) / 2


def positive(a):
    return a @ a.mH + a.shape[-1] * torch.eye(a.shape[-1], dtype=a.dtype)


def projected(q, r):
    """Of a QR factorisation, what the phases of the columns of Q do not change."""
    return q @ r, q @ q.mH[..., :1]


def svd_invariants(a, full=False):
    u, s, vh = L.svd(a, full_matrices=full)
    k = s.shape[-1]
    u, vh = u[..., :k], vh[..., :k, :]
    return u[..., :2] @ vh[..., :2, :], s, (u * s.pow(3).unsqueeze(-2)) @ vh


def eig_invariants(a):
    values, vectors = L.eig(a)
    return values, vectors.abs().pow(2)


def eigh_invariants(a):
    values, vectors = L.eigh(hermitian(a))
    return values, vectors.abs().pow(2), vectors[..., :1] @ vectors[..., :1].mH


def packed(a):
    lu, _ = L.lu_factor(a)
    return lu


def solved_by_factors(a, b, **kwargs):
    lu, pivots = L.lu_factor(a)
    return L.lu_solve(lu, pivots, b, **kwargs)


SQUARE = {
    "inv": L.inv,
    "inv_ex": lambda a: L.inv_ex(a)[0],
    "det": L.det,
    "slogdet": lambda a: L.slogdet(a)[1],
    "lu": lambda a: L.lu(a)[1:],
    "lu_factor": packed,
    "lu_unpack": lambda a: torch.lu_unpack(a, torch.tensor([1, 2, 3], dtype=torch.int32))[1:],
    "cholesky": lambda a: L.cholesky(positive(a)),
    "cholesky upper": lambda a: torch.cholesky(positive(a), True),
    "cholesky_inverse": lambda a: torch.cholesky_inverse(L.cholesky(positive(a))),
    "cholesky_inverse upper": lambda a: torch.cholesky_inverse(
        L.cholesky(positive(a), upper=True), True
    ),
    "qr": lambda a: projected(*L.qr(a)),
    "eigh": eigh_invariants,
    "eigvalsh": lambda a: L.eigvalsh(hermitian(a)),
    "eig": eig_invariants,
    "eigvals": L.eigvals,
    "svd": svd_invariants,
    "svdvals": L.svdvals,
    "pinv": L.pinv,
    "matrix_exp": torch.matrix_exp,
    "matrix_power": lambda a: L.matrix_power(a, 3),
    "matrix_power inverse": lambda a: L.matrix_power(a, -2),
    "matrix_norm": lambda a: (L.matrix_norm(a), L.matrix_norm(a, 2), L.matrix_norm(a, "nuc")),
    "cond": lambda a: (L.cond(a), L.cond(a, 1)),
    "tensorinv": lambda a: L.tensorinv(a, 1),
}
TWO = {
    "solve": (L.solve, (3, 3), (3, 2)),
    "solve vector": (L.solve, (2, 3, 3), (2, 3)),
    "solve right": (lambda a, b: L.solve(a, b, left=False), (3, 3), (2, 3)),
    "solve broadcast": (L.solve, (2, 3, 3), (3, 2)),
    "lu_solve": (solved_by_factors, (3, 3), (3, 2)),
    "lu_solve adjoint": (lambda a, b: solved_by_factors(a, b, adjoint=True), (3, 3), (3, 2)),
    "lu_solve right": (lambda a, b: solved_by_factors(a, b, left=False), (3, 3), (2, 3)),
    "lu_solve right adjoint": (
        lambda a, b: solved_by_factors(a, b, left=False, adjoint=True),
        (3, 3),
        (2, 3),
    ),
    "solve_triangular": (lambda a, b: L.solve_triangular(a, b, upper=True), (3, 3), (3, 2)),
    "solve_triangular right": (
        lambda a, b: L.solve_triangular(a, b, upper=False, left=False),
        (3, 3),
        (2, 3),
    ),
    "solve_triangular unit": (
        lambda a, b: L.solve_triangular(a, b, upper=False, unitriangular=True),
        (3, 3),
        (3, 2),
    ),
    "triangular_solve": (lambda a, b: torch.triangular_solve(b, a), (3, 3), (3, 2)),
    "triangular_solve transposed": (
        lambda a, b: torch.triangular_solve(b, a, upper=False, transpose=True),
        (3, 3),
        (3, 2),
    ),
    "cholesky_solve": (lambda a, b: torch.cholesky_solve(b, a.tril()), (3, 3), (3, 2)),
    "cholesky_solve upper": (lambda a, b: torch.cholesky_solve(b, a.triu(), True), (3, 3), (3, 2)),
    "lstsq": (lambda a, b: L.lstsq(a, b)[0], (4, 2), (4, 2)),
    "lstsq wide": (lambda a, b: L.lstsq(a, b)[0], (2, 4), (2, 2)),
    "lstsq residuals": (lambda a, b: L.lstsq(a, b, driver="gelsd")[:2], (4, 2), (4, 2)),
    "householder_product": (L.householder_product, (4, 3), (3,)),
    "multi_dot": (lambda a, b: L.multi_dot([a, b, a, b]), (2, 4), (4, 2)),
}
SHAPED = {
    "qr tall": (lambda a: projected(*L.qr(a)), (4, 3)),
    "qr wide": (lambda a: projected(*L.qr(a)), (2, 4)),
    "lu tall": (lambda a: L.lu(a)[1:], (4, 2)),
    "lu wide": (lambda a: L.lu(a)[1:], (2, 4)),
    "lu_factor tall": (packed, (4, 2)),
    "lu_factor wide": (packed, (2, 4)),
    "svd tall": (svd_invariants, (4, 3)),
    "svd wide": (svd_invariants, (2, 3, 4)),
    "svd full": (lambda a: svd_invariants(a, True), (4, 3)),
    "pinv tall": (L.pinv, (4, 2)),
    "pinv wide": (L.pinv, (2, 4)),
}
# Second derivatives of these are checked by their parts, or are badly conditioned here.
FIRST_ONLY = {"cond"}


def check(f, inputs, name):
    assert gradcheck(f, inputs, atol=1e-5, rtol=1e-4)
    if name not in FIRST_ONLY:
        assert gradgradcheck(f, inputs, atol=1e-4, rtol=1e-3)
    check_tangents(f, inputs)


def check_tangents(f, inputs):
    """J t by forward mode against differences."""
    tangents = [sample(*x.shape, dtype=x.dtype, seed=17) for x in inputs]
    plain = [x.detach() for x in inputs]
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, t) for x, t in zip(plain, tangents, strict=True)]
        results = f(*duals)
        results = results if isinstance(results, (tuple, list)) else [results]
        got = [forward_ad.unpack_dual(r).tangent for r in results]
    step = 1e-6
    ends = []
    for sign in (1, -1):
        r = f(*[x + sign * step * t for x, t in zip(plain, tangents, strict=True)])
        ends.append(r if isinstance(r, (tuple, list)) else [r])
    for g, high, low in zip(got, *ends, strict=True):
        want = (high - low) / (2 * step)
        torch.testing.assert_close(g, want, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", SQUARE)
def test_square(name, dtype):
    check(SQUARE[name], [sample(3, 3, dtype=dtype).requires_grad_(True)], name)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", SHAPED)
def test_shapes(name, dtype):
    f, shape = SHAPED[name]
    check(f, [sample(*shape, dtype=dtype).requires_grad_(True)], name)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", TWO)
def test_two_operands(name, dtype):
    f, first, second = TWO[name]
    a = sample(*first, dtype=dtype)
    if "triangular" in name or "cholesky" in name:
        a = a / 3 + 2 * torch.eye(3)
    inputs = [a.requires_grad_(True), sample(*second, dtype=dtype, seed=5).requires_grad_(True)]
    check(f, inputs, name)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_ormqr(left, transpose, dtype):
    shape = (4, 2) if left else (2, 4)
    inputs = [sample(4, 3, dtype=dtype), sample(3, dtype=dtype), sample(*shape, dtype=dtype)]
    inputs = [x.requires_grad_(True) for x in inputs]
    assert gradcheck(lambda a, t, c: torch.ormqr(a, t, c, left, transpose), inputs)


def test_det_of_singular_matrices():
    a = sample(4, 4)
    a[3] = a[0] + a[1]
    a.requires_grad_(True)
    assert gradcheck(L.det, [a], atol=1e-6)
    zero = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.equal(torch.autograd.grad(L.det(zero), zero)[0], torch.zeros(2, 2).double())


def test_losses_that_depend_on_phases_are_refused():
    a = sample(3, 3, dtype=torch.complex128).requires_grad_(True)
    with pytest.raises(RuntimeError, match="ill-defined"):
        L.svd(a)[0].real.sum().backward()
    with pytest.raises(RuntimeError, match="ill-defined"):
        L.eigh(hermitian(a))[1].real.sum().backward()


def test_what_has_no_gradient_says_so():
    a = sample(4, 3).requires_grad_(True)
    with pytest.raises(RuntimeError, match="depends on Q, which is not computed"):
        L.qr(a, "r").R.sum().backward()
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete'"):
        L.qr(a, "complete").R.sum().backward()
    with pytest.raises(NotImplementedError, match="geqrf"):
        torch.geqrf(a)[0].sum().backward()


def test_lobpcg():
    a = sample(9, 9)
    a = (a @ a.T).requires_grad_(True)

    def f(a):
        torch.manual_seed(0)
        values, vectors = torch.lobpcg((a + a.mT) / 2, k=2, tol=1e-12, niter=200)
        return values, vectors.pow(2)

    assert gradcheck(f, [a], atol=1e-4, rtol=1e-3)


def test_names_of_nodes():
    a = sample(3, 3).requires_grad_(True)
    assert L.inv(a).grad_fn.name() == "LinalgInvExBackward0"
    assert L.svdvals(a).grad_fn.name() == "LinalgSvdBackward0"
    assert L.solve(a, a).grad_fn.name() == "LinalgSolveExBackward0"
