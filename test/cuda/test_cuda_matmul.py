"""Matrix products on CUDA against NumPy in float64: dtypes, layouts, bias, scales, batches."""

import numpy as np
import pytest
from cuda_support import cuda

import torch
import torch.nn.functional as F

TOLERANCE = {
    torch.float64: 1e-11, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 8e-2,
    torch.complex64: 1e-4, torch.complex128: 1e-11,
}  # fmt: skip


def close(got, want, dtype):
    assert got.device.type == "cuda" and got.dtype == dtype
    wide = torch.complex128 if dtype.is_complex else torch.float64
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(got.cpu().to(wide).numpy(), want, rtol=tolerance, atol=tolerance)


def pair(shape, dtype):
    x = torch.randn(shape, dtype=torch.complex128 if dtype.is_complex else torch.float64).to(dtype)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    return x.to(cuda), x.to(wide).numpy()


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (5, 7, 3), (16, 32, 8), (33, 1, 17), (1, 20, 1)])
def test_mm_of_all_layouts_matches_numpy(m, k, n, dtype):
    torch.manual_seed(0)
    a, ra = pair((m, k), dtype)
    b, rb = pair((k, n), dtype)
    want = ra @ rb
    close(a @ b, want, dtype)
    close(a.t().contiguous().t() @ b, want, dtype)
    close(a @ b.t().contiguous().t(), want, dtype)
    wide = torch.zeros(m, 2 * k, dtype=dtype, device=cuda)
    wide[:, ::2] = a
    close(wide[:, ::2] @ b, want, dtype)  # neither stride is one
    out = torch.empty(n, m, dtype=dtype, device=cuda).t()
    torch.mm(a, b, out=out)
    close(out, want, dtype)


def test_mm_of_expanded_and_overlapping_rows():
    row = torch.randn(6, device=cuda)
    b = torch.randn(6, 4, device=cuda)
    want = np.broadcast_to(row.cpu().double().numpy(), (5, 6)) @ b.cpu().double().numpy()
    close(row.expand(5, 6) @ b, want, torch.float32)
    windows = torch.arange(10.0).to(cuda).as_strided((5, 6), (1, 1))
    close(windows @ b, windows.cpu().double().numpy() @ b.cpu().double().numpy(), torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_addmm_with_every_shape_of_self_and_scales(dtype):
    a, ra = pair((4, 6), dtype)
    b, rb = pair((6, 5), dtype)
    for shape in [(5,), (4, 5), (1, 5), (4, 1), ()]:
        s, rs = pair(shape, dtype)
        close(torch.addmm(s, a, b), rs + ra @ rb, dtype)
        close(torch.addmm(s, a, b, beta=0.5, alpha=2), 0.5 * rs + 2 * (ra @ rb), dtype)
    nan = torch.full((4, 5), float("nan"), device=cuda, dtype=dtype)
    close(torch.addmm(nan, a, b, beta=0), ra @ rb, dtype)
    c, rc = pair((4, 5), dtype)
    c.addmm_(a, b, beta=2)
    close(c, 2 * rc + ra @ rb, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_batched_products_match_numpy(dtype):
    a, ra = pair((3, 4, 6), dtype)
    b, rb = pair((3, 6, 5), dtype)
    s, rs = pair((3, 4, 5), dtype)
    close(torch.bmm(a, b), ra @ rb, dtype)
    close(torch.bmm(a.transpose(0, 1).contiguous().transpose(0, 1), b), ra @ rb, dtype)
    close(torch.baddbmm(s, a, b, beta=0.5), 0.5 * rs + ra @ rb, dtype)
    close(torch.addbmm(s[0], a, b), rs[0] + (ra @ rb).sum(0), dtype)
    close(torch.bmm(a[:1].expand(3, 4, 6), b), ra[:1] @ rb, dtype)
    x, rx = pair((2, 1, 4, 6), dtype)
    y, ry = pair((3, 6, 2), dtype)
    close(torch.matmul(x, y), rx @ ry, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(6,), (4, 6), (2, 3, 6)])
def test_linear_and_its_gradients_match_numpy(shape, dtype):
    x, rx = pair(shape, dtype)
    w, rw = pair((8, 6), dtype)
    b, rb = pair((8,), dtype)
    for t in (x, w, b):
        t.requires_grad_()
    y = F.linear(x, w, b)
    close(y.detach(), rx @ rw.T + rb, dtype)
    close(F.linear(x, w).detach(), rx @ rw.T, dtype)
    g, rg = pair(y.shape, dtype)
    y.backward(g)
    close(x.grad, rg @ rw, dtype)
    flat_x, flat_g = rx.reshape(-1, 6), rg.reshape(-1, 8)
    close(w.grad, flat_g.T @ flat_x, dtype)
    close(b.grad, flat_g.sum(0), dtype)


def test_vectors_and_empty_sums():
    a, ra = pair((4, 6), torch.float32)
    v, rv = pair((6,), torch.float32)
    close(a @ v, ra @ rv, torch.float32)
    close(torch.dot(v, v), rv @ rv, torch.float32)
    z, rz = pair((5,), torch.complex64)
    close(torch.vdot(z, z), np.vdot(rz, rz), torch.complex64)
    s, rs = pair((4,), torch.float32)
    close(torch.addmv(s, a, v), rs + ra @ rv, torch.float32)
    none = torch.empty(3, 0, device=cuda) @ torch.empty(0, 2, device=cuda)
    assert none.shape == (3, 2) and none.abs().sum().item() == 0
    assert (torch.empty(0, 3, device=cuda) @ torch.empty(3, 2, device=cuda)).shape == (0, 2)


def test_einsum_and_conjugates():
    a, ra = pair((3, 4), torch.complex64)
    b, rb = pair((3, 4), torch.complex64)
    close(a.conj() @ b.t(), ra.conj() @ rb.T, torch.complex64)
    close(torch.einsum("ij,kj->ik", a, b.conj()), ra @ rb.conj().T, torch.complex64)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_products_of_integers_match_the_cpu(dtype):
    torch.manual_seed(1)
    a, b = torch.randint(0, 100, (20, 33)).to(dtype), torch.randint(0, 100, (33, 18)).to(dtype)
    s = torch.randint(0, 100, (18,)).to(dtype)
    x, y, z = a.to(cuda), b.to(cuda), s.to(cuda)
    assert torch.equal((x @ y).cpu(), a @ b)
    assert torch.equal((y.t() @ x.t()).cpu(), b.t() @ a.t())
    assert torch.equal(
        torch.addmm(z, x, y, beta=2, alpha=3).cpu(), torch.addmm(s, a, b, beta=2, alpha=3)
    )
    assert torch.equal(torch.bmm(x.expand(2, 20, 33), y.expand(2, 33, 18)).cpu()[1], a @ b)
    c = torch.addmm(z, x, y)
    assert torch.equal(c.addmm_(x, y).cpu(), torch.addmm(s, a, b).addmm_(a, b))


def test_errors_name_dtype_device_and_shapes():
    with pytest.raises(NotImplementedError, match=r"addmm_cuda.*Bool"):
        torch.ones(2, 2, dtype=torch.bool, device=cuda) @ torch.ones(
            2, 2, dtype=torch.bool, device=cuda
        )
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2, 2, device=cuda) @ torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch.ones(2, 3, device=cuda) @ torch.ones(2, 3, device=cuda)


def test_repeated_products_and_new_biases_use_the_cached_plan():
    x, rx = pair((4, 8), torch.float32)
    w, rw = pair((3, 8), torch.float32)
    for _ in range(5):
        b, rb = pair((3,), torch.float32)
        close(F.linear(x, w, b), rx @ rw.T + rb, torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_layers_on_a_few_rows(dtype):
    # Sizes around a warp's step, with a rest, with more packs than are in flight, and one that is
    # no multiple of a pack and takes the other way.
    for rows, k, n in ((1, 8, 1), (1, 256, 5), (2, 768, 9), (3, 1288, 4), (4, 2048, 3), (2, 10, 3)):
        x, w = torch.randn(rows, k).to(dtype), (torch.randn(n, k) / k**0.5).to(dtype)
        b = torch.randn(n).to(dtype)
        for bias in (b, None):
            got = torch.nn.functional.linear(
                x.to(cuda), w.to(cuda), None if bias is None else bias.to(cuda)
            )
            want = x.double() @ w.double().T + (0 if bias is None else bias.double())
            assert got.dtype == dtype and got.shape == (rows, n)
            tolerance = 1e-5 if dtype is torch.float32 else 1e-2
            torch.testing.assert_close(got.cpu().double(), want, rtol=tolerance, atol=tolerance)


def test_a_few_rows_that_are_not_dense_are_read_as_they_lie():
    x, w = torch.randn(2, 32)[:, ::2].to(cuda), torch.randn(16, 5).to(cuda).t()
    got = torch.nn.functional.linear(x, w)
    torch.testing.assert_close(got.cpu(), x.cpu() @ w.cpu().t())
    one = torch.nn.functional.linear(torch.ones(16, device=cuda), w)
    assert one.shape == (5,)
    torch.testing.assert_close(one.cpu(), w.cpu().sum(1))


# ---- 8-bit floating numbers

FLOAT8 = [
    (torch.float8_e4m3fn, torch.float8_e4m3fn),
    (torch.float8_e5m2, torch.float8_e4m3fn),
    (torch.float8_e5m2, torch.float8_e5m2),
]


@pytest.mark.parametrize("shape", [(64, 96, 32), (17, 40, 24)])
@pytest.mark.parametrize("dtypes", FLOAT8, ids=str)
@pytest.mark.parametrize("by_row", [False, True])
def test_scaled_product_equals_numpy(by_row, dtypes, shape):
    m, k, n = shape
    torch.manual_seed(k)
    a, b = torch.randn(m, k).to(dtypes[0]), torch.randn(n, k).to(dtypes[1])
    scales = (torch.rand(m, 1) + 0.5, torch.rand(1, n) + 0.5) if by_row else torch.rand(2) + 0.5
    bias = torch.randn(n)
    want = a.double().numpy() @ b.double().numpy().T
    want = want * scales[0].double().numpy() * scales[1].double().numpy()
    operands = [t.to(cuda) for t in (a, b, *scales)]
    # Sums of 8-bit products have some 14 bits on an H200.
    for out_dtype, limit in ((torch.float32, 2e-3), (torch.bfloat16, 5e-3)):
        for added in (None, bias):
            there = None if added is None else added.to(cuda, out_dtype)
            got = torch._scaled_mm(
                operands[0], operands[1].t(), *operands[2:], bias=there, out_dtype=out_dtype
            )
            full = want if added is None else want + added.to(out_dtype).double().numpy()
            error = np.abs(got.cpu().double().numpy() - full).max()
            assert got.dtype is out_dtype and error <= limit * np.abs(full).max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 3, 4, 5])
def test_products_with_a_transposed_weight_have_the_bits_of_linear(rows, dtype):
    # Graphs have a linear layer as such a product.
    x, w = torch.randn(rows, 64).to(cuda, dtype), torch.randn(24, 64).to(cuda, dtype)
    b = torch.randn(24).to(cuda, dtype)
    linear = torch.nn.functional.linear
    assert torch.equal((x @ w.t()).cpu(), linear(x, w).cpu())
    assert torch.equal(torch.addmm(b, x, w.t()).cpu(), linear(x, w, b).cpu())
    want = 2 * b.double().cpu() + 0.5 * (x.double().cpu() @ w.double().cpu().t())
    got = torch.addmm(b, x, w.t(), beta=2, alpha=0.5)
    torch.testing.assert_close(got.double().cpu(), want, rtol=2e-2, atol=2e-2)
    row = b.view(1, 24).expand(rows, 24)
    got = torch.addmm(row, x, w.t())
    torch.testing.assert_close(got.float(), linear(x, w, b).float(), rtol=2e-2, atol=2e-2)
