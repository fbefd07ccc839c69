"""Linear algebra against NumPy and SciPy in float64 / complex128: values by what defines them
(A = QR, AX = B), geometry of the results, errors, empty and batched inputs, out= and meta."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg

import torch

L = torch.linalg
DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
TOLERANCE = {
    torch.float32: 2e-4,
    torch.float64: 1e-10,
    torch.complex64: 2e-4,
    torch.complex128: 1e-10,
}
# Below and above the size up to which small matrices are treated without LAPACK.
ORDERS = [1, 3, 16, 33]


def sample(*shape, dtype=torch.float64, seed=0):
    rng = np.random.default_rng(seed + sum(shape))
    values = rng.normal(0, 1, shape)
    if dtype.is_complex:
        values = values + 1j * rng.normal(0, 1, shape)
    return torch.from_numpy(values).to(dtype)


def positive(*batch, n, dtype=torch.float64, seed=0):
    a = sample(*batch, n, n, dtype=dtype, seed=seed)
    return a @ a.mH + n * torch.eye(n, dtype=dtype)


def close(got, want, dtype=None):
    dtype = dtype or got.dtype
    tol = TOLERANCE[dtype]
    want = want.numpy() if isinstance(want, torch.Tensor) else np.asarray(want)
    np.testing.assert_allclose(got.resolve_conj().numpy(), want, rtol=tol, atol=tol * 20)


def columns_first(t):
    """Whether the matrices lie column after column."""
    return t.stride()[-2:] == (1, max(t.shape[-2], 1))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", ORDERS)
def test_systems_and_inverses(n, dtype):
    a, b = sample(2, n, n, dtype=dtype), sample(2, n, 3, dtype=dtype)
    x = L.solve(a, b)
    close(a @ x, b)
    assert columns_first(x)
    inverse = L.inv(a)
    close(a @ inverse, torch.eye(n, dtype=dtype).expand(2, n, n))
    assert columns_first(inverse)
    right = L.solve(a, b.mT.contiguous(), left=False)
    close(right @ a, b.mT)
    lu, pivots = L.lu_factor(a)
    for left in (True, False):
        for adjoint in (True, False):
            rhs = b if left else b.mT
            y = L.lu_solve(lu, pivots, rhs, left=left, adjoint=adjoint)
            op = a.mH if adjoint else a
            close(op @ y if left else y @ op, rhs)
    vector = L.solve(a, b[..., 0])
    close((a @ vector.unsqueeze(-1)).squeeze(-1), b[..., 0])
    shared = L.solve(a, b[0])
    close(a @ shared, b[:1].expand_as(b))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", ORDERS)
def test_determinants(n, dtype):
    a = sample(2, n, n, dtype=dtype) / n**0.5
    wide = a.to(torch.complex128 if dtype.is_complex else torch.float64).numpy()
    close(L.det(a), np.linalg.det(wide))
    sign, log = L.slogdet(a)
    want = np.linalg.slogdet(wide)
    close(sign, want[0])
    close(log, want[1], dtype)
    assert torch.det(torch.empty(0, 0)).item() == 1.0
    assert torch.logdet(-torch.eye(3)).isnan()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (2, 3, 5), (40, 40), (2, 0, 3), (2, 3, 0)])
def test_lu_and_qr(shape, dtype):
    a = sample(*shape, dtype=dtype)
    p, l, u = L.lu(a)
    close(p @ l @ u, a)
    assert torch.equal(l.triu(1), torch.zeros_like(l)) and torch.equal(u.tril(-1), u * 0)
    lu, pivots, info = L.lu_factor_ex(a)
    assert (pivots.dtype, info.dtype) == (torch.int32, torch.int32)
    for got, want in zip(torch.lu_unpack(lu, pivots), (p, l, u), strict=True):
        assert torch.equal(got, want)
    q, r = L.qr(a)
    close(q @ r, a)
    close(q.mH @ q, torch.eye(q.shape[-1], dtype=dtype).expand(*q.shape[:-2], -1, -1))
    full, tall = L.qr(a, "complete")
    close(full @ tall, a)
    assert full.shape[-1] == full.shape[-2]
    close(L.qr(a, "r").R, r)
    packed, tau = torch.geqrf(a)
    if a.shape[-2] >= a.shape[-1]:
        close(L.householder_product(packed, tau), q)
    c = sample(*shape[:-2], shape[-2], 2, dtype=dtype)
    close(torch.ormqr(packed, tau, c), full @ c)
    close(torch.ormqr(packed, tau, c, transpose=True), full.mH @ c)
    close(torch.ormqr(packed, tau, c.mT.contiguous(), left=False), c.mT @ full)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", ORDERS)
def test_cholesky_and_ldl(n, dtype):
    a = positive(2, n=n, dtype=dtype)
    b = sample(2, n, 2, dtype=dtype)
    for upper in (False, True):
        factor = L.cholesky(a, upper=upper)
        assert columns_first(factor)
        close(factor.mH @ factor if upper else factor @ factor.mH, a)
        close(torch.cholesky(a, upper), factor)
        close(a @ torch.cholesky_solve(b, factor, upper), b)
        close(a @ torch.cholesky_inverse(factor, upper), torch.eye(n, dtype=dtype).expand_as(a))
    symmetric = sample(n, n, dtype=dtype)
    for hermitian in (True, False):
        s = symmetric + (symmetric.mH if hermitian else symmetric.mT)
        ld, pivots = L.ldl_factor(s, hermitian=hermitian)
        close(s @ L.ldl_solve(ld, pivots, b[0], hermitian=hermitian), b[0])
    triangle = a.tril()
    for upper in (False, True):
        t = triangle.mT if upper else triangle
        close(t @ L.solve_triangular(t, b, upper=upper), b)
        right = b.mT
        close(L.solve_triangular(t, right, upper=upper, left=False) @ t, right)
        x, _ = torch.triangular_solve(b, t, upper=upper, transpose=True)
        close(t.mT @ x, b)
    triangle = triangle / n**2
    unit = L.solve_triangular(triangle, b, upper=False, unitriangular=True)
    ones = triangle.tril(-1) + torch.eye(n, dtype=dtype)
    close(ones @ unit, b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", ORDERS)
def test_spectra(n, dtype):
    a = sample(2, n, n, dtype=dtype)
    hermitian = a + a.mH
    for uplo in "LU":
        triangle = hermitian.tril() if uplo == "L" else hermitian.triu()
        values, vectors = L.eigh(triangle, uplo)
        close((vectors * values.unsqueeze(-2)) @ vectors.mH, hermitian)
        close(L.eigvalsh(triangle, uplo), values, dtype)
        assert columns_first(vectors)
    values, vectors = L.eig(a)
    assert values.is_complex() and vectors.is_complex()
    close(a.to(vectors.dtype) @ vectors, vectors * values.unsqueeze(-2))
    got = np.sort_complex(L.eigvals(a).numpy().round(3))
    np.testing.assert_allclose(got, np.sort_complex(values.numpy().round(3)), atol=3e-3)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (2, 3, 5), (40, 20), (2, 0, 3), (2, 3, 0)])
def test_singular_values(shape, dtype):
    a = sample(*shape, dtype=dtype)
    u, s, vh = L.svd(a, full_matrices=False)
    close((u * s.unsqueeze(-2)) @ vh, a)
    close(L.svdvals(a), s, dtype)
    full_u, _, full_vh = L.svd(a)
    close(full_u.mH @ full_u, torch.eye(shape[-2], dtype=dtype).expand_as(full_u))
    close(full_vh @ full_vh.mH, torch.eye(shape[-1], dtype=dtype).expand_as(full_vh))
    old_u, old_s, old_v = torch.svd(a)
    close((old_u * old_s.unsqueeze(-2)) @ old_v.mH, a)
    p = L.pinv(a)
    close(a @ p @ a, a)
    close(p @ a @ p, p)
    if a.numel():
        assert torch.equal(L.matrix_rank(a), torch.full(shape[:-2], min(shape[-2:])))


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_least_squares(driver, dtype):
    for m, n in ((6, 3), (3, 6), (4, 4)):
        a, b = sample(2, m, n, dtype=dtype), sample(2, m, 2, dtype=dtype)
        got = L.lstsq(a, b, driver=driver)
        close(got.solution, L.pinv(a) @ b)
        if m > n and driver != "gelsy":
            rest = (a @ got.solution - b).abs().square().sum(-2)
            close(got.residuals, rest, dtype)
        else:
            assert got.residuals.numel() == 0
    weak = sample(5, 3, dtype=dtype)
    weak[:, 2] = weak[:, 0]
    if driver != "gels":
        found = L.lstsq(weak, sample(5, 1, dtype=dtype), driver=driver)
        assert found.rank.item() == 2 and found.residuals.numel() == 0
    flat = L.lstsq(sample(5, 3, dtype=dtype), sample(5, dtype=dtype), driver=driver)
    assert flat.solution.shape == (3,)


def test_norms_and_conditions():
    a = sample(2, 4, 4)
    wide = a.numpy()
    for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        want = [np.linalg.norm(m, ord) for m in wide]
        close(L.matrix_norm(a, ord), want)
        close(L.norm(a, ord, dim=(-2, -1)), want)
        close(L.matrix_norm(a.movedim(0, 1), ord, dim=(0, 2)), want)
        assert L.matrix_norm(a, ord, keepdim=True).shape == (2, 1, 1)
        close(L.cond(a, ord), [np.linalg.cond(m, ord) for m in wide])
    close(L.norm(a), np.linalg.norm(wide.ravel()))
    close(L.norm(a[0, 0], 3), np.linalg.norm(wide[0, 0], 3))
    close(torch.norm(a[0], "nuc"), np.linalg.norm(wide[0], "nuc"))
    assert L.cond(torch.zeros(2, 2), 1).item() == np.inf
    assert L.matrix_norm(torch.empty(0, 2), 2).item() == 0
    assert L.matrix_norm(a.float(), dtype=torch.float64).dtype == torch.float64


def test_ranks_with_tolerances():
    a = torch.diag(torch.tensor([4.0, 1.0, 1e-3, 0.0], dtype=torch.float64))
    assert L.matrix_rank(a).item() == 3
    assert L.matrix_rank(a, tol=0.5).item() == 2
    assert L.matrix_rank(a, rtol=0.5).item() == 1
    assert L.matrix_rank(a, atol=torch.tensor(2.0)).item() == 1
    assert L.matrix_rank(-a, hermitian=True).item() == 3
    cut = L.pinv(a, atol=0.5)
    close(cut.diagonal(), [0.25, 1, 0, 0])
    close(L.pinv(a, rtol=torch.tensor(0.5)).diagonal(), [0.25, 0, 0, 0])
    close(L.pinv(-a, hermitian=True, atol=0.5).diagonal(), [-0.25, -1, 0, 0])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_of_matrices(dtype):
    a = sample(3, 5, 5, dtype=dtype) * torch.tensor([0.01, 1.0, 6.0]).reshape(3, 1, 1)
    wide = a.to(torch.complex128 if dtype.is_complex else torch.float64).numpy()
    want = np.stack([scipy.linalg.expm(m) for m in wide])
    got = torch.matrix_exp(a).numpy()
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(
            g, w, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * abs(w).max()
        )
    b = sample(2, 4, 4, dtype=dtype) / 2
    wide = b.to(torch.complex128 if dtype.is_complex else torch.float64).numpy()
    for n in (-3, -1, 0, 1, 2, 5):
        close(L.matrix_power(b, n), np.linalg.matrix_power(wide, n))


def test_products_in_a_chain():
    sizes = [3, 20, 2, 30, 4]
    matrices = [sample(m, n) for m, n in itertools.pairwise(sizes)]
    want = np.linalg.multi_dot([m.numpy() for m in matrices])
    close(L.multi_dot(matrices), want)
    close(torch.chain_matmul(*matrices), want)
    v = sample(3)
    assert L.multi_dot([v, *matrices]).shape == (4,)
    assert L.multi_dot([v, *matrices, sample(4)]).shape == ()
    assert torch.equal(torch.chain_matmul(matrices[0]), matrices[0])


def test_tensors_as_matrices():
    a = sample(4, 6, 8, 3)
    close(L.tensorinv(a, 2), np.linalg.tensorinv(a.numpy(), 2))
    a, b = sample(2, 3, 6), sample(2, 3)
    close(L.tensorsolve(a, b), np.linalg.tensorsolve(a.numpy(), b.numpy()))
    a, b = sample(6, 2, 3), sample(2, 3)
    close(L.tensorsolve(a, b, dims=(0,)), np.linalg.tensorsolve(a.numpy(), b.numpy(), axes=(0,)))


def test_vandermonde():
    x = torch.tensor([2, 3, 5])
    assert torch.equal(L.vander(x), torch.from_numpy(np.vander([2, 3, 5], increasing=True)))
    assert torch.equal(torch.vander(x, 4), torch.from_numpy(np.vander([2, 3, 5], 4)))
    assert L.vander(sample(2, 3), N=5).shape == (2, 3, 5)


def test_low_rank():
    torch.manual_seed(0)
    for shape in ((20, 9), (9, 20), (2, 12, 12)):
        a = sample(*shape[:-1], 4) @ sample(*shape[:-2], 4, shape[-1], seed=3)
        u, s, v = torch.svd_lowrank(a, q=6)
        close((u * s.unsqueeze(-2)) @ v.mH, a)
        assert (u.shape[-1], v.shape[-1]) == (6, 6)
    data = sample(30, 8)
    u, s, v = torch.pca_lowrank(data, q=8, niter=6)
    centred = data - data.mean(0)
    close((u * s) @ v.mT, centred)
    with pytest.raises(ValueError, match="not greater than min"):
        torch.pca_lowrank(data, q=9)


def test_lobpcg():
    torch.manual_seed(0)
    a, b = positive(n=30), positive(n=30, seed=4)
    values = scipy.linalg.eigvalsh(a.numpy())
    found, x = torch.lobpcg(a, k=3, tol=1e-9)
    np.testing.assert_allclose(found.numpy(), values[::-1][:3], rtol=1e-8)
    np.testing.assert_allclose((a @ x).numpy(), (x * found).numpy(), atol=1e-5)
    found, _ = torch.lobpcg(a, k=2, largest=False, niter=-1, tol=1e-8)
    np.testing.assert_allclose(found.numpy(), values[:2], rtol=1e-7)
    found, _ = torch.lobpcg(a, k=2, B=b, tol=1e-9)
    np.testing.assert_allclose(found.numpy(), scipy.linalg.eigvalsh(a, b)[::-1][:2], rtol=1e-7)
    with pytest.raises(ValueError, match="not applicable"):
        torch.lobpcg(a, k=11)


SINGULAR = torch.stack([torch.eye(3), torch.zeros(3, 3)])


@pytest.mark.parametrize(
    "call, error, phrase",
    [
        (lambda: L.inv(SINGULAR[1]), L.LinAlgError, "linalg.inv: The diagonal element 1 is zero"),
        (lambda: L.inv(SINGULAR), L.LinAlgError, r"linalg.inv: \(Batch element 1\): The diagonal"),
        (lambda: L.solve(SINGULAR[1], SINGULAR[0]), L.LinAlgError, "input matrix is singular"),
        (lambda: L.cholesky(-torch.eye(3)), L.LinAlgError, "leading minor of order 1 is not posi"),
        (lambda: L.svd(torch.full((3, 3), float("nan"))), L.LinAlgError, "non-finite values"),
        (lambda: L.eigh(torch.full((3, 3), float("nan"))), L.LinAlgError, "failed to converge"),
        (lambda: L.eigvals(torch.full((3, 3), float("nan"))), RuntimeError, "infs or NaNs"),
        (lambda: L.lu_factor(SINGULAR[1]), RuntimeError, r"U\[1,1\] is zero and using it on lu_s"),
        (lambda: L.det(torch.ones(2, 3)), RuntimeError, "batches of square matrices, but they are"),
        (lambda: L.inv(torch.ones(3)), RuntimeError, "must have at least 2 dimensions"),
        (lambda: L.inv(torch.ones(3, 3, dtype=torch.int64)), RuntimeError, "Expected a floating"),
        (lambda: L.cholesky(torch.eye(3).half()), NotImplementedError, '"cholesky_cpu" not impl'),
        (lambda: L.solve(torch.eye(3), torch.ones(4, 2)), RuntimeError, "Incompatible shapes of A"),
        (lambda: L.solve(torch.eye(3), torch.ones(3).double()), RuntimeError, "the same dtype"),
        (lambda: L.qr(torch.eye(3), "x"), RuntimeError, "unrecognized mode 'x'"),
        (lambda: L.eigh(torch.eye(3), "x"), RuntimeError, "UPLO argument to be 'L' or 'U'"),
        (lambda: L.lstsq(torch.eye(3), torch.eye(3), driver="x"), RuntimeError, "gelsy"),
        (lambda: L.matrix_norm(torch.eye(3), 3), RuntimeError, "Order 3 not supported"),
        (lambda: L.matrix_norm(torch.eye(3), dim=(0, 0)), RuntimeError, "dims must be different"),
        (lambda: L.norm(torch.ones(2, 2, 2), 2), RuntimeError, "the input must be 1D or 2D"),
        (lambda: L.multi_dot([torch.eye(3)]), RuntimeError, "at least 2 tensors but got 1"),
        (lambda: L.tensorinv(torch.ones(2, 3)), RuntimeError, "requirement prod"),
        (lambda: L.vander(torch.ones(1)), RuntimeError, "N must be greater than 1"),
        (lambda: L.householder_product(torch.ones(2, 3), torch.ones(2)), RuntimeError, "greater"),
        (lambda: L.lu(torch.eye(3), pivot=False), RuntimeError, "without pivoting is not impl"),
    ],
)
def test_errors(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call()


def test_errors_name_the_public_function():
    with pytest.raises(RuntimeError, match=r"in torch\.linalg\.inv\(A: float32\[3\] cpu"):
        L.inv(torch.ones(3))
    for name in ("eig", "lstsq", "matrix_rank", "solve", "symeig"):
        with pytest.raises(RuntimeError, match="is now removed"):
            getattr(torch, name)(torch.eye(2))


def test_statuses_instead_of_errors():
    inverse, info = L.inv_ex(SINGULAR)
    assert info.tolist() == [0, 1]
    assert torch.equal(inverse[0], torch.eye(3))
    assert L.solve_ex(SINGULAR, SINGULAR).info.tolist() == [0, 1]
    assert L.cholesky_ex(SINGULAR).info.tolist() == [0, 1]
    assert L.lu_factor_ex(SINGULAR).info.tolist() == [0, 1]


def test_pivots_from_outside_are_checked():
    lu, pivots = L.lu_factor(sample(20, 20))
    for wrong in (0, -5, 21, 2**31 - 1):
        bad = pivots.clone()
        bad[3] = wrong
        with pytest.raises(RuntimeError, match="properly pass the result of lu_factor"):
            L.lu_solve(lu, bad, lu)
        with pytest.raises(RuntimeError, match="between 1 and"):
            torch.lu_unpack(lu, bad)
    ld, pivots = L.ldl_factor(positive(n=4))
    for wrong in ([1, 2, 3, -4], [0, 1, 2, 3], [-9, -9, 1, 1], [1, 2, 3, 9]):
        with pytest.raises(RuntimeError, match="not those of ldl_factor"):
            L.ldl_solve(ld, torch.tensor(wrong, dtype=torch.int32), ld)


def test_strided_and_out():
    a = sample(6, 8)[::2, 1:7:2]
    want = np.linalg.inv(a.numpy())
    for x in (a, a.mT.contiguous().mT, a.expand(2, 3, 3)[1]):
        close(L.inv(x), want)
    target = torch.empty(3, 3, dtype=torch.float64)
    assert L.inv(a, out=target) is target
    close(target, want)
    own = a.clone()
    L.inv(own, out=own)
    close(own, want)
    u, s, vh = (torch.empty(0, dtype=torch.float64) for _ in range(3))
    L.svd(a, out=(u, s, vh))
    close((u * s) @ vh, a)
    conj = sample(3, 3, dtype=torch.complex128).conj()
    close(L.inv(conj), np.linalg.inv(conj.resolve_conj().numpy()))


def test_meta_agrees_with_real():
    a, b = sample(2, 4, 3), sample(2, 4, 4)
    calls = [
        (lambda x: L.qr(x), a),
        (lambda x: L.qr(x, "complete"), a),
        (lambda x: L.svd(x), a),
        (lambda x: L.lu(x), a),
        (lambda x: L.lu_factor_ex(x), a),
        (lambda x: L.lstsq(x, x, driver="gelsd"), a),
        (lambda x: L.pinv(x), a),
        (lambda x: torch.geqrf(x), a),
        (lambda x: (L.inv(x), L.det(x), L.eig(x)[1], L.eigvals(x), L.solve(x, x)), b),
        (lambda x: (*L.slogdet(x), *L.eigh(x), L.matrix_exp(x), L.matrix_power(x, 3)), b),
        (lambda x: (*L.cholesky_ex(x), *L.ldl_factor_ex(x), L.matrix_norm(x, 2), L.cond(x)), b),
    ]
    for call, x in calls:
        real, meta = call(x), call(x.to("meta"))
        real = real if isinstance(real, tuple) else (real,)
        meta = meta if isinstance(meta, tuple) else (meta,)
        for r, m in zip(real, meta, strict=True):
            assert (r.shape, r.stride(), r.dtype) == (m.shape, m.stride(), m.dtype)


def test_same_bits_for_any_number_of_threads():
    a = sample(64, 24, 24, dtype=torch.float32)
    b = positive(n=200, dtype=torch.float32)
    calls = [L.inv, L.svdvals, L.det, lambda x: L.qr(x).R, L.eigvals]
    before = torch.get_num_threads()
    try:
        seen = []
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            seen.append([f(a) for f in calls] + [L.inv(b), L.cholesky(b), L.eigvalsh(b)])
        for other in seen[1:]:
            for one, two in zip(seen[0], other, strict=True):
                assert torch.equal(one, two)
    finally:
        torch.set_num_threads(before)


def test_missing_library_says_what_to_install():
    code = "import torch; torch.linalg.svd(torch.eye(3))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"CRESSET_LAPACK": "/nowhere/lib.so", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert "pip install scipy-openblas32" in run.stderr and "/nowhere/lib.so" in run.stderr


def test_einsum_takes_the_cheap_order():
    a, b, c = sample(2, 40), sample(40, 40), sample(40)
    close(torch.einsum("ij,jk,k->i", a, b, c), a.numpy() @ b.numpy() @ c.numpy())
    close(torch.einsum("ij,ij,ij->i", b, b, b), (b**3).sum(1))
    chain = [sample(3, 4), sample(4, 5), sample(5, 6), sample(6, 2)]
    want = np.linalg.multi_dot([m.numpy() for m in chain])
    close(torch.einsum("ab,bc,cd,de->ae", *chain), want)
    paths = torch.ops.aten.einsum("ab,bc,cd,de->ae", chain, path=[2, 3, 1, 2, 0, 1])
    close(paths, want)


def test_status_of_another_dtype_is_refused():
    torch.ops.aten._linalg_check_errors(torch.zeros(2, dtype=torch.int32), "call", is_matrix=False)
    for dtype in (torch.uint8, torch.int64, torch.float32):
        with pytest.raises(RuntimeError, match="expected info to have dtype Int"):
            torch.ops.aten._linalg_check_errors(torch.zeros(3, dtype=dtype), "call", is_matrix=True)


def test_inverse_of_a_singular_tensor_is_an_error_of_linear_algebra():
    with pytest.raises(torch.linalg.LinAlgError, match="The diagonal element 1 is zero"):
        torch.linalg.tensorinv(torch.zeros(4, 2, 2), 1)
    with pytest.raises(RuntimeError, match=r"Expected self to satisfy the requirement .* 6 != 8"):
        torch.linalg.tensorsolve(torch.ones(2, 3, 6), torch.ones(2, 4))


def test_order_of_a_matrix_norm_is_not_complex():
    with pytest.raises(RuntimeError, match="Expected a non-complex scalar as the order of norm"):
        torch.linalg.matrix_norm(torch.eye(2), 1j)
