"""Matrix products against NumPy in float64."""

import numpy as np
import pytest

import torch

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.int64]
TOLERANCE = {
    torch.float16: 1e-2,
    torch.bfloat16: 6e-2,
    torch.float32: 2e-5,
    torch.float64: 1e-12,
    torch.complex64: 2e-5,
    torch.int64: 0,
}


def sample(shape, dtype, seed):
    values = np.random.default_rng(seed).normal(0, 1, shape)
    if dtype.is_complex:
        values = values + 1j * np.random.default_rng(seed + 99).normal(0, 1, shape)
    if dtype == torch.int64:
        values = np.round(values * 5)
    return torch.from_numpy(values).to(dtype)


def wide(t):
    return t.to(torch.complex128 if t.is_complex() else torch.float64).numpy()


def assert_product(got, want, dtype):
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(wide(got), want, rtol=tolerance, atol=tolerance * 8)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "a, b",
    [
        ((4, 5), (5, 6)),
        ((1, 70), (70, 3)),
        ((33, 17), (17, 65)),
        ((5,), (5,)),
        ((4, 5), (5,)),
        ((5,), (5, 3)),
        ((2, 3, 4, 5), (5, 6)),
        ((7, 4, 5), (7, 5, 3)),
        ((2, 1, 4, 5), (3, 5, 2)),
        ((0, 4), (4, 3)),
        ((3, 0), (0, 2)),
    ],
)
def test_matmul_matches_numpy(a, b, dtype):
    x, y = sample(a, dtype, 1), sample(b, dtype, 2)
    assert_product(torch.matmul(x, y), np.matmul(wide(x), wide(y)), dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_transposed_and_strided_operands_are_used_in_place(dtype):
    x, y = sample((9, 8), dtype, 3), sample((6, 16), dtype, 4)
    got = x.t() @ sample((9, 4), dtype, 5)
    assert_product(got, wide(x).T @ wide(sample((9, 4), dtype, 5)), dtype)
    assert_product(x @ y[:, ::2].t(), wide(x) @ wide(y)[:, ::2].T, dtype)


def test_addmm_beta_zero_ignores_nan():
    bad = torch.full((2, 2), float("nan"))
    a, b = torch.ones(2, 3), torch.ones(3, 2)
    assert torch.addmm(bad, a, b, beta=0).tolist() == [[3, 3], [3, 3]]
    assert torch.addmm(torch.ones(2), a, b, beta=2, alpha=0.5).tolist() == [[3.5, 3.5]] * 2


@pytest.mark.parametrize("bias", [False, True])
def test_linear_equals_product_with_transpose(bias):
    x, w = sample((3, 5, 7), torch.float64, 1), sample((4, 7), torch.float64, 2)
    b = sample((4,), torch.float64, 3) if bias else None
    want = wide(x) @ wide(w).T + (wide(b) if bias else 0)
    assert_product(torch.nn.functional.linear(x, w, b), want, torch.float64)


@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("ii->i", [(4, 4)]),
        ("ii", [(4, 4)]),
        ("ij->ji", [(3, 4)]),
        ("...ij,...jk", [(2, 1, 3, 4), (5, 4, 2)]),
        ("i,j->ij", [(3,), (4,)]),
        ("bn,anm,bm->ba", [(2, 5), (3, 5, 4), (2, 4)]),
        ("abc,cd,ef->bdf", [(2, 3, 4), (4, 5), (2, 3)]),
    ],
)
def test_einsum_matches_numpy(equation, shapes):
    operands = [sample(shape, torch.float64, i) for i, shape in enumerate(shapes)]
    want = np.einsum(equation, *[wide(t) for t in operands])
    assert_product(torch.einsum(equation, *operands), want, torch.float64)


def test_other_products_match_numpy():
    a, b = sample((3, 4, 5), torch.float64, 1), sample((4, 5, 2), torch.float64, 2)
    assert_product(torch.tensordot(a, b), np.tensordot(wide(a), wide(b)), torch.float64)
    v, w = sample((4,), torch.float64, 3), sample((6,), torch.float64, 4)
    assert_product(torch.outer(v, w), np.outer(wide(v), wide(w)), torch.float64)
    assert_product(torch.kron(a[0], b[0]), np.kron(wide(a[0]), wide(b[0])), torch.float64)
    assert_product(torch.inner(a, b[0].t()), np.inner(wide(a), wide(b[0]).T), torch.float64)
    z = sample((5,), torch.complex128, 5)
    np.testing.assert_allclose(torch.vdot(z, z).item(), np.vdot(z.numpy(), z.numpy()), rtol=1e-12)


def test_bad_shapes_and_dtypes_name_what_was_wrong():
    with pytest.raises(
        RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)"
    ):
        torch.ones(2, 3) @ torch.ones(4, 5)
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.mm(torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="at least 1D"):
        torch.matmul(torch.tensor(1.0), torch.ones(2))
    with pytest.raises(RuntimeError, match=r"more operands were provided|fewer operands"):
        torch.einsum("ij", torch.ones(2, 2), torch.ones(2, 2))


def test_meta_gives_the_shape_of_the_real_product():
    a, b = torch.ones(2, 3), torch.ones(3, 4)
    real, meta = a @ b, a.to("meta") @ b.to("meta")
    assert (real.shape, real.dtype, real.stride()) == (meta.shape, meta.dtype, meta.stride())


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int8], ids=str)
@pytest.mark.parametrize("shape", [(1, 67, 1), (5, 67, 3), (40, 67, 40)], ids=str)
def test_right_side_of_equal_rows_is_read_with_its_stride_of_zero(dtype, shape):
    m, k, n = shape
    a = torch.arange(m * k).reshape(m, k).remainder(3).to(dtype)
    b = torch.arange(n).remainder(2).to(dtype).expand(k, n)
    assert torch.equal(torch.mm(a, b), torch.mm(a, b.contiguous()))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize(("rows", "n"), [(1, 3), (5, 8), (40, 33), (3, 0)])
def test_complex_matrix_times_vector_equals_numpy(dtype, rows, n):
    torch.manual_seed(0)
    mat, vec = torch.randn(rows, n, dtype=dtype), torch.randn(n, dtype=dtype)
    add = torch.randn(rows, dtype=dtype)
    product = mat.numpy().astype(np.complex128) @ vec.numpy().astype(np.complex128)
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.complex64 else {"rtol": 1e-12}
    np.testing.assert_allclose(torch.mv(mat, vec).numpy(), product, **tolerance)
    got = torch.addmv(add, mat, vec, beta=0.5 - 1j, alpha=2j)
    np.testing.assert_allclose(got.numpy(), (0.5 - 1j) * add.numpy() + 2j * product, **tolerance)
    wide = torch.zeros(rows, 2, dtype=dtype)
    torch.mv(mat.conj(), vec, out=wide[:, 0])
    again = mat.numpy().conj().astype(np.complex128) @ vec.numpy().astype(np.complex128)
    np.testing.assert_allclose(wide[:, 0].numpy(), again, **tolerance)
