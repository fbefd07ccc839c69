"""Products of 8-bit integers and packed weights, conv_tbc."""

import numpy as np
import pytest

import torch


@pytest.mark.parametrize("pad", [0, 1, 2])
def test_conv_tbc(pad):
    x = torch.randn(6, 2, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 3, 4, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(4, dtype=torch.float64, requires_grad=True)
    padded = np.pad(x.detach().numpy(), ((pad, pad), (0, 0), (0, 0)))
    steps = padded.shape[0] - 2
    windows = np.stack([padded[k : k + steps] for k in range(3)])
    expected = np.einsum("ktbi,kio->tbo", windows, weight.detach().numpy()) + bias.detach().numpy()
    out = torch.conv_tbc(x, weight, bias, pad)
    assert out.is_contiguous()
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-12, atol=1e-12)
    assert torch.autograd.gradcheck(
        lambda *a: torch.nn.functional.conv_tbc(*a, pad), (x, weight, bias)
    )


def test_conv_tbc_errors():
    x, weight, bias = torch.randn(5, 2, 3), torch.randn(3, 3, 4), torch.randn(4)
    for arguments, message in [
        ((x[0], weight, bias), "Input must have 3 dims"),
        ((x, weight[0], bias), "Weight tensor must have 3 dims"),
        ((x, weight, weight), "Bias must be 1-D"),
        ((x[..., :2], weight, bias), "not == dim 1 in the weight"),
        ((x, weight, bias[:2]), "Bias size must equal dim 2"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            torch.conv_tbc(*arguments)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_int_mm(dtype):
    a = torch.arange(-68, 68).view(17, 8).to(dtype)
    b = torch.arange(-96, 96).view(8, 24).to(torch.int8)
    expected = a.numpy().astype(np.int64) @ b.numpy().astype(np.int64)
    out = torch._int_mm(a, b)
    assert out.dtype is torch.int32 and (out.numpy() == expected).all()
    assert torch._int_mm(a[:0], b).shape == (0, 24)
    assert (torch._int_mm(a.t().contiguous().t(), b) == out).all()
    with pytest.raises(RuntimeError, match="Expected mat2 dtype to be of type int8"):
        torch._int_mm(a, b.float())
    with pytest.raises(RuntimeError, match="needs to match"):
        torch._int_mm(a, b[1:])
    with pytest.raises(RuntimeError, match="dimension 2"):
        torch._int_mm(a[0], b)


@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float32, 1e-6), (torch.float16, 1e-3), (torch.bfloat16, 8e-3)]
)
def test_weight_int8pack_mm(dtype, bound):
    x = torch.randn(3, 8).to(dtype)
    weight = torch.arange(-128, 128, dtype=torch.int32)[:40].view(5, 8).to(torch.int8)
    scales = torch.rand(5).add(0.5).to(dtype)
    out = torch._weight_int8pack_mm(x, weight, scales)
    assert out.dtype is dtype
    expected = x.double().numpy() @ weight.double().numpy().T * scales.double().numpy()
    assert np.abs(out.double().numpy() - expected).max() <= bound * np.abs(expected).max()
    with pytest.raises(RuntimeError, match="expect B to be int8"):
        torch._weight_int8pack_mm(x, weight.int(), scales)
    with pytest.raises(RuntimeError, match="1d tensor with size 5"):
        torch._weight_int8pack_mm(x, weight, scales[:4])
    with pytest.raises(RuntimeError, match="32-bit or 16-bit"):
        torch._weight_int8pack_mm(x.double(), weight, scales)
