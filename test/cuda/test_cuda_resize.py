"""Resizing on CUDA against sums over taps written out in float64."""

import numpy as np
import pytest
from cuda_support import cuda

import torch
import torch.nn.functional as F

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def cubic(x, a):
    x = abs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def axis_matrix(n, out, mode, align_corners, antialias):
    """The matrix that resizes one axis from n to out elements."""
    m = np.zeros((out, n))
    for o in range(out):
        if mode.startswith("nearest"):
            shift = 0.5 if mode == "nearest-exact" else 0
            m[o, min(int((o + shift) * n / out), n - 1)] = 1
            continue
        if align_corners:
            place = o * (n - 1) / (out - 1) if out > 1 else 0.0
        else:
            place = (o + 0.5) * n / out - 0.5
        if antialias:
            wide = max(n / out, 1.0)
            kernel = (
                (lambda x: max(0, 1 - abs(x))) if "linear" in mode else lambda x: cubic(x, -0.5)
            )
            weights = np.array([kernel((i - place) / wide) for i in range(n)])
            m[o] = weights / weights.sum()
        elif "linear" in mode:
            place = min(max(place, 0), n - 1)
            low = int(place)
            m[o, low] += 1 - (place - low)
            m[o, min(low + 1, n - 1)] += place - low
        else:
            low = int(np.floor(place))
            for t in range(-1, 3):
                m[o, min(max(low + t, 0), n - 1)] += cubic(place - low - t, -0.75)
    return m


def resized(x, matrices):
    for d, m in enumerate(matrices):
        x = np.moveaxis(np.tensordot(m, x, (1, 2 + d)), 0, 2 + d)
    return x


CASES = [
    ((2, 3, 7), (12,), "nearest", False, False),
    ((2, 3, 7), (5,), "linear", True, False),
    ((2, 3, 5, 8), (9, 4), "nearest", False, False),
    ((2, 3, 5, 8), (9, 4), "nearest-exact", False, False),
    ((2, 3, 5, 8), (9, 4), "bilinear", False, False),
    ((2, 3, 5, 8), (9, 16), "bilinear", True, False),
    ((1, 2, 6, 5), (11, 7), "bicubic", False, False),
    ((1, 2, 9, 8), (4, 3), "bilinear", False, True),
    ((1, 2, 9, 8), (4, 3), "bicubic", False, True),
    ((1, 2, 3, 4, 5), (4, 7, 3), "trilinear", False, False),
    ((1, 2, 3, 4, 5), (4, 7, 3), "nearest", False, False),
]


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("size, out, mode, align_corners, antialias", CASES)
def test_interpolation_and_its_gradient_match_the_taps(
    size, out, mode, align_corners, antialias, dtype, channels_last
):
    if channels_last and len(size) != 4:
        pytest.skip("one layout of four dimensions is enough")
    torch.manual_seed(2)
    x = torch.randn(size).to(dtype)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    on_gpu = x.to(cuda, memory_format=layout).requires_grad_()
    corners = None if mode.startswith("nearest") else align_corners
    y = F.interpolate(on_gpu, out, mode=mode, align_corners=corners, antialias=antialias)
    pairs = zip(size[2:], out, strict=True)
    matrices = [axis_matrix(n, o, mode, align_corners, antialias) for n, o in pairs]
    tolerance = TOLERANCE[dtype]
    assert y.dtype == dtype and y.device.type == "cuda"
    np.testing.assert_allclose(
        y.detach().cpu().double().numpy(),
        resized(x.double().numpy(), matrices),
        rtol=tolerance,
        atol=tolerance,
    )
    gy = torch.randn(y.shape).to(dtype)
    y.backward(gy.to(cuda))
    np.testing.assert_allclose(
        on_gpu.grad.cpu().double().numpy(),
        resized(gy.double().numpy(), [m.T for m in matrices]),
        rtol=tolerance * 4,
        atol=tolerance * 4,
    )


def test_nearest_moves_bytes_and_the_sign_of_zero():
    x = torch.tensor([[[1, 255, 7]]], dtype=torch.uint8)
    assert F.interpolate(x.to(cuda), 6).tolist() == [[[1, 1, 255, 255, 7, 7]]]
    zero = F.interpolate(torch.full((1, 1, 2), -0.0, device=cuda), 4)
    assert torch.signbit(zero).all()


def test_linear_resizing_of_bytes_names_the_dtype():
    with pytest.raises(NotImplementedError, match="Byte"):
        F.interpolate(torch.ones(1, 1, 2, 2, dtype=torch.uint8, device=cuda), 4, mode="bilinear")


def test_a_factor_given_by_the_caller_is_used_for_the_taps():
    x = torch.arange(5.0).reshape(1, 1, 5)
    y = F.interpolate(x.to(cuda), scale_factor=1.7, mode="linear")
    places = np.clip((np.arange(8) + 0.5) / 1.7 - 0.5, 0, 4)
    np.testing.assert_allclose(y.cpu().numpy()[0, 0], places, rtol=1e-6)
