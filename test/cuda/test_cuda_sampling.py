"""Grid sampling, sliding windows and unpooling on CUDA against plain loops in NumPy."""

import itertools

import numpy as np
import pytest
from cuda_support import cuda

import torch
import torch.nn.functional as F

MODES = ["bilinear", "nearest", "bicubic"]
PADDINGS = ["zeros", "border", "reflection"]


def unnormalized(x, size, corners):
    return (x + 1) / 2 * (size - 1) if corners else ((x + 1) * size - 1) / 2


def brought_inside(x, size, padding, corners):
    if padding == "reflection":
        low, high = (0, 2 * (size - 1)) if corners else (-1, 2 * size - 1)
        if low == high:
            return 0.0
        span, x = (high - low) / 2, abs(x - low / 2)
        turns, rest = divmod(x, span)
        x = (rest if turns % 2 == 0 else span - rest) + low / 2
    return min(max(x, 0), size - 1) if padding != "zeros" else x


def cubic(d):
    d = abs(d)
    if d <= 1:
        return 1.25 * d**3 - 2.25 * d**2 + 1
    return -0.75 * d**3 + 3.75 * d**2 - 6 * d + 3 if d < 2 else 0.0


def taps(x, size, mode, padding, corners):
    """(index, weight) pairs along one axis, those outside left out."""
    x = unnormalized(x, size, corners)
    if mode == "bicubic":
        whole = np.floor(x)
        pairs = [(whole + t, cubic(x - whole - t)) for t in range(-1, 3)]
        pairs = [(brought_inside(i, size, padding, corners), w) for i, w in pairs]
    else:
        x = brought_inside(x, size, padding, corners)
        whole = np.floor(x)
        pairs = [(np.rint(x), 1.0)] if mode == "nearest" else [(whole, 1 - x + whole)]
        if mode == "bilinear":
            pairs.append((whole + 1, x - whole))
    return [(int(i), w) for i, w in pairs if 0 <= i < size]


def sampled(image, grid, mode, padding, corners):
    out = np.zeros((*image.shape[:2], *grid.shape[1:-1]))
    sizes = image.shape[2:]
    for place in np.ndindex(grid.shape[:-1]):
        axes = [
            taps(grid[place][len(sizes) - 1 - d], sizes[d], mode, padding, corners)
            for d in range(len(sizes))
        ]
        for combination in itertools.product(*axes):
            index = tuple(i for i, _ in combination)
            weight = np.prod([w for _, w in combination])
            for c in range(image.shape[1]):
                out[(place[0], c, *place[1:])] += weight * image[(place[0], c, *index)]
    return out


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
def test_grid_sample_of_planes(mode, padding, corners):
    torch.manual_seed(1)
    image = torch.randn(2, 9, 4, 5, dtype=torch.float64)
    grid = torch.rand(2, 3, 4, 2, dtype=torch.float64) * 3 - 1.5
    x, points = image.to(cuda).requires_grad_(), grid.to(cuda).requires_grad_()
    out = F.grid_sample(x, points, mode=mode, padding_mode=padding, align_corners=corners)
    want = sampled(image.numpy(), grid.numpy(), mode, padding, corners)
    np.testing.assert_allclose(out.detach().cpu().numpy(), want, rtol=1e-10, atol=1e-10)
    g = torch.randn(out.shape, dtype=torch.float64)
    out.backward(g.to(cuda))
    # The output is linear in the image: its gradient by unit images would repeat the loop above, so
    # one random direction is compared. That of the grid is compared with differences.
    change = torch.randn_like(image)
    along = (sampled(change.numpy(), grid.numpy(), mode, padding, corners) * g.numpy()).sum()
    assert (x.grad.cpu() * change).sum().item() == pytest.approx(along, rel=1e-9)
    if mode == "nearest":
        assert not points.grad.any()
        return
    step, shift = 1e-6, torch.randn_like(grid)
    ahead, behind = (
        sampled(image.numpy(), (grid + s * step * shift).numpy(), mode, padding, corners)
        for s in (1, -1)
    )
    slope = ((ahead - behind) * g.numpy()).sum() / (2 * step)
    assert (points.grad.cpu() * shift).sum().item() == pytest.approx(slope, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float16, 2e-2)])
def test_grid_sample_of_volumes(dtype, tolerance, mode):
    torch.manual_seed(2)
    image = torch.randn(1, 2, 3, 4, 5).to(dtype)
    grid = (torch.rand(1, 2, 3, 2, 3) * 2.4 - 1.2).to(dtype)
    out = F.grid_sample(image.to(cuda), grid.to(cuda), mode=mode, align_corners=True)
    want = sampled(image.double().numpy(), grid.double().numpy(), mode, "zeros", True)
    assert out.dtype == dtype
    np.testing.assert_allclose(out.cpu().double().numpy(), want, atol=tolerance)


def test_grid_sample_takes_numbers_that_are_none():
    image = torch.ones(1, 1, 3, 3, device=cuda)
    grid = torch.full((1, 1, 1, 2), float("nan"), device=cuda)
    assert F.grid_sample(image, grid, align_corners=True).item() == 0
    border = F.grid_sample(image, grid * 0 + 1e30, padding_mode="border", align_corners=True)
    assert border.numel() == 1


CASES = [
    # kernel, dilation, padding, stride
    ((2, 3), (1, 1), (0, 0), (1, 1)),
    ((3, 2), (2, 1), (1, 2), (2, 1)),
    ((1, 1), (1, 1), (0, 1), (3, 2)),
]


def windows(x, kernel, dilation, padding, stride):
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
    rows, columns = (
        (size + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1
        for i, size in enumerate((h, w))
    )
    out = np.zeros((n, c, *kernel, rows, columns), x.dtype)
    for ky, kx, y, z in np.ndindex(*kernel, rows, columns):
        out[:, :, ky, kx, y, z] = padded[
            :, :, y * stride[0] + ky * dilation[0], z * stride[1] + kx * dilation[1]
        ]
    return out.reshape(n, c * kernel[0] * kernel[1], rows * columns)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128, torch.bfloat16])
@pytest.mark.parametrize("kernel, dilation, padding, stride", CASES)
def test_unfold_and_fold(kernel, dilation, padding, stride, dtype):
    torch.manual_seed(3)
    x = torch.randn(2, 3, 7, 6).to(dtype)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    got = F.unfold(x.to(cuda), kernel, dilation, padding, stride)
    want = windows(x.to(wide).numpy(), kernel, dilation, padding, stride)
    np.testing.assert_array_equal(got.cpu().to(wide).numpy(), want)
    # Folding is the adjoint of unfolding: <fold(c), y> = <c, unfold(y)>.
    columns, y = torch.randn(got.shape).to(dtype), torch.randn(x.shape).to(dtype)
    back = F.fold(columns.to(cuda), (7, 6), kernel, dilation, padding, stride).cpu().to(wide)
    left = (back * y.to(wide)).sum()
    right = (
        columns.to(wide).numpy() * windows(y.to(wide).numpy(), kernel, dilation, padding, stride)
    ).sum()
    limit = 0.5 if dtype == torch.bfloat16 else 1e-3
    assert abs(left.item() - right) < limit


def test_fold_of_booleans_is_whether_any_window_has_one():
    columns = torch.zeros(1, 4, 4, dtype=torch.bool)
    columns[0, 0, 0] = columns[0, 3, 3] = True
    got = torch.ops.aten.col2im(columns.to(cuda), [3, 3], [2, 2], [1, 1], [0, 0], [1, 1])
    want = np.zeros((3, 3), bool)
    want[0, 0] = want[2, 2] = True
    np.testing.assert_array_equal(got[0, 0].cpu().numpy(), want)


def test_unpooling_puts_values_back():
    x = torch.arange(16.0).view(1, 1, 4, 4)
    values, places = F.max_pool2d(x.to(cuda), 2, return_indices=True)
    out = F.max_unpool2d(values, places, 2).cpu()
    want = np.where(np.isin(np.arange(16), [5, 7, 13, 15]), np.arange(16), 0).reshape(1, 1, 4, 4)
    np.testing.assert_array_equal(out.numpy(), want)
    volume = torch.randn(1, 2, 4, 4, 4)
    values, places = F.max_pool3d(volume.to(cuda), 2, return_indices=True)
    again = F.max_unpool3d(values, places, 2)
    assert torch.equal(F.max_pool3d(again.abs() + again, 2), values.abs() + values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_fractional_pooling_and_its_gradient_match_the_cpu(dtype):
    torch.manual_seed(3)
    for pool, shape, samples, size in (
        (F.fractional_max_pool2d, (2, 3, 9, 11), (2, 3, 2), (4, 5)),
        (F.fractional_max_pool2d, (3, 9, 7), (1, 3, 2), (1, 6)),
        (F.fractional_max_pool3d, (2, 2, 7, 8, 9), (2, 2, 3), (3, 4, 5)),
    ):
        x, u = torch.randn(shape).to(dtype), torch.rand(samples).to(dtype)
        results = []
        for device in ("cpu", cuda):
            t = x.to(device, copy=True).requires_grad_()
            out, places = pool(t, 2, size, return_indices=True, _random_samples=u.to(device))
            out.sum().backward()
            results.append([v.detach().cpu() for v in (out, places, t.grad)])
        for got, want in zip(*results, strict=True):
            assert torch.equal(got, want)


def test_fractional_pooling_passes_on_nan():
    x = torch.zeros(1, 1, 4, 4)
    x[0, 0, 1, 1] = float("nan")
    out = F.fractional_max_pool2d(x.to(cuda), 2, 2, _random_samples=torch.zeros(1, 1, 2).to(cuda))
    assert out.isnan().sum() >= 1
