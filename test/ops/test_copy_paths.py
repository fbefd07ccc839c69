"""The copy, gather and depthwise paths that are chosen by layout, against NumPy.

Each of them has a general path beside it that gives the same result more slowly, so a wrong choice
shows only in shapes and strides like these.
"""

import itertools

import numpy as np
import pytest

import torch
import torch.nn.functional as F

DTYPES = [torch.uint8, torch.int16, torch.float32, torch.float64, torch.complex128]


def _filled(shape, dtype):
    count = int(np.prod(shape))
    return (torch.arange(count) % 251).to(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 5, 7, 64), (2, 16, 1, 33), (70, 9, 130)])
def test_rows_survive_every_permutation(dtype, shape):
    x = _filled(shape, dtype)
    for order in itertools.permutations(range(len(shape))):
        assert np.array_equal(x.permute(order).contiguous().numpy(), x.numpy().transpose(order))


def test_rows_into_strided_and_expanded_tensors():
    x = _filled((40, 96), torch.float32)
    out = torch.zeros(40, 200)
    out[:, 3:99].copy_(x)
    expected = np.zeros((40, 200), np.float32)
    expected[:, 3:99] = x.numpy()
    assert np.array_equal(out.numpy(), expected)
    assert np.array_equal(
        x[:, None].expand(40, 50, 96).contiguous().numpy(),
        np.broadcast_to(x.numpy()[:, None], (40, 50, 96)),
    )
    assert np.array_equal(x[::2, 16:].contiguous().numpy(), x.numpy()[::2, 16:])


@pytest.mark.parametrize("dtype", [*DTYPES, torch.bool, torch.bfloat16])
def test_one_element_everywhere(dtype):
    value = torch.tensor(1, dtype=dtype)
    for shape in [(), (1,), (7,), (3, 1, 5), (300, 401)]:
        spread = value.expand(shape).clone(memory_format=torch.contiguous_format)
        assert spread.is_contiguous() and bool((spread == value).all())
    holes = torch.zeros(6, 8, dtype=dtype)
    holes[::2, ::3].copy_(value.expand(3, 3))
    assert int((holes == value).sum()) == 9


@pytest.mark.parametrize("where", [0, 1, 5000, 39999])
@pytest.mark.parametrize("bad", [-1, 200, 2**62, -(2**63)])
def test_gather_refuses_each_bad_index(where, bad):
    x = torch.arange(40000.0).reshape(200, 200)
    for dim in (0, 1):
        index = torch.arange(200).repeat(200, 1)
        index.view(-1)[where] = bad
        with pytest.raises(RuntimeError, match="out of bounds"):
            x.gather(dim, index)
    expanded = torch.tensor([[bad]]).expand(200, 200)
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.gather(1, expanded)


def _reference(x, w, stride, padding, dilation):
    """Depthwise convolution by NumPy, one term per kernel position."""
    ph, pw = padding
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    multiple = w.shape[0] // x.shape[1]
    x = np.repeat(x, multiple, axis=1)
    oh = (x.shape[2] - dilation * (w.shape[2] - 1) - 1) // stride[0] + 1
    ow = (x.shape[3] - dilation * (w.shape[3] - 1) - 1) // stride[1] + 1
    out = 0.0
    for i, j in itertools.product(range(w.shape[2]), range(w.shape[3])):
        rows = slice(i * dilation, i * dilation + (oh - 1) * stride[0] + 1, stride[0])
        cols = slice(j * dilation, j * dilation + (ow - 1) * stride[1] + 1, stride[1])
        out = out + x[:, :, rows, cols] * w[None, :, 0, i, j, None, None]
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernel", [(3, 3), (1, 3), (2, 5), (7, 7)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize("padding", [(0, 0), (1, 1), (3, 4)])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("multiple", [1, 2])
def test_depthwise_and_its_gradients(dtype, kernel, stride, padding, dilation, multiple):
    torch.manual_seed(1)
    x = torch.randn(2, 3, 14, 37, dtype=dtype, requires_grad=True)
    w = torch.randn(3 * multiple, 1, *kernel, dtype=dtype, requires_grad=True)
    out = F.conv2d(x, w, None, stride, padding, dilation, 3)
    args = (stride, padding, dilation)
    xs, ws = x.detach().double().numpy(), w.detach().double().numpy()
    tolerance = 1e-4 if dtype == torch.float32 else 1e-12
    np.testing.assert_allclose(
        out.detach().double().numpy(), _reference(xs, ws, *args), rtol=tolerance, atol=tolerance
    )
    # The operator is linear in each argument: the gradient is its adjoint.
    grad = torch.randn(out.shape, dtype=dtype)
    gx, gw = torch.autograd.grad(out, (x, w), grad)
    g, rng = grad.double().numpy(), np.random.default_rng(0)
    dx, dw = rng.standard_normal(xs.shape), rng.standard_normal(ws.shape)
    slack = 1000 * tolerance
    assert (_reference(dx, ws, *args) * g).sum() == pytest.approx(
        (dx * gx.double().numpy()).sum(), rel=slack, abs=slack
    )
    assert (_reference(xs, dw, *args) * g).sum() == pytest.approx(
        (dw * gw.double().numpy()).sum(), rel=slack, abs=slack
    )


def test_depthwise_rows_do_not_leak_infinity():
    """Lanes behind the end of a row hold the next columns; they must not reach a sum."""
    x = torch.zeros(1, 2, 9, 21)
    x[..., -1] = float("inf")
    w = torch.ones(2, 1, 3, 3, requires_grad=True)
    out = F.conv2d(x, w, groups=2)
    out[..., :-1].sum().backward()
    assert torch.isfinite(out[..., :-1]).all() and torch.isinf(out[..., -1]).all()
    taps = w.grad[:, 0]
    assert torch.isfinite(taps[..., :2]).all()


def test_bytes_other_than_one_seen_as_bool_count_as_true():
    raw = torch.tensor([0, 1, 2, 192, 255] * 20, dtype=torch.uint8)
    for seen in (raw.view(torch.bool), raw.view(torch.bool)[::2]):
        assert seen.to(torch.int8).tolist() == [int(v != 0) for v in raw[:: 100 // len(seen)]]
        assert seen.to(torch.float32).max().item() == 1.0
