"""Products with a wider result dtype."""

import pytest

import torch


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_keep_a_wider_result(dtype):
    a, b = torch.randn(3, 4).to(dtype), torch.randn(4, 5).to(dtype)
    c = torch.randn(3, 5).to(dtype)
    wide = a.float() @ b.float()
    assert torch.equal(torch.mm(a, b, out_dtype=torch.float32), wide)
    assert torch.equal(torch.mm(a, b, torch.float32), wide)
    assert torch.equal(torch.bmm(a[None], b[None], out_dtype=torch.float32), wide[None])
    summed = torch.addmm(c.float(), a.float(), b.float(), beta=2, alpha=0.5)
    got = torch.addmm(c, a, b, out_dtype=torch.float32, beta=2, alpha=0.5)
    assert torch.equal(got, summed)
    got = torch.baddbmm(c[None].float(), a[None], b[None], torch.float32)
    torch.testing.assert_close(got[0], c.float() + wide)
    assert torch.mm(a, b, out_dtype=dtype).dtype == dtype


def test_products_refuse_other_result_dtypes():
    a = torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="out_dtype must be the same as input dtype or fp32"):
        torch.mm(a, a, out_dtype=torch.float64)
    with pytest.raises(RuntimeError, match="input dtypes must be the same"):
        torch.mm(a, a.half(), out_dtype=torch.float32)
    with pytest.raises(RuntimeError, match="self dtype must match"):
        torch.addmm(a.double(), a.half(), a.half(), out_dtype=torch.float32)


def test_products_with_a_wider_result_have_gradients():
    a = torch.randn(2, 3).half().requires_grad_()
    torch.mm(a, torch.ones(3, 2).half(), out_dtype=torch.float32).sum().backward()
    assert torch.equal(a.grad, torch.full((2, 3), 2.0).half())
