"""The operators of torchvision's compiled part that this library supplies: non-maximum suppression,
pooling of regions of interest and deformable convolution, against plain NumPy and by finite
differences; and how they come to stand in for a binary made for another library."""

import math

import numpy as np
import pytest

import torch
from torch.autograd import gradcheck, gradgradcheck

torch._C._register_vision_operators()
ops = torch.ops.torchvision


def regions(count, images, size, generator):
    corner = torch.rand(count, 2, generator=generator, dtype=torch.float64) * size
    extent = torch.rand(count, 2, generator=generator, dtype=torch.float64) * size * 1.2 - 1
    index = torch.randint(0, images, (count, 1), generator=generator).double()
    return torch.cat([index, corner, corner + extent], 1)


@pytest.fixture
def given():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(2, 8, 7, 9, generator=generator, dtype=torch.float64)
    return x, regions(6, 2, 14, generator)


# ---- references


def iou(a, b):
    w = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    h = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - w * h
    return w * h / union if union else math.nan


def reference_nms(boxes, scores, threshold):
    kept = []
    for i in np.argsort(-scores, kind="stable"):
        if all(not iou(boxes[i], boxes[k]) > threshold for k in kept):
            kept.append(int(i))
    return kept


def sample(plane, y, x):
    """Bilinear interpolation; up to one pixel outside counts as the border, beyond as zero."""
    h, w = plane.shape
    if y < -1 or y > h or x < -1 or x > w:
        return 0.0
    y, x = min(max(y, 0.0), h - 1.0), min(max(x, 0.0), w - 1.0)
    i, j = int(y), int(x)
    k, m = min(i + 1, h - 1), min(j + 1, w - 1)
    dy, dx = y - i, x - j
    top = plane[i, j] * (1 - dx) + plane[i, m] * dx
    return top * (1 - dy) + (plane[k, j] * (1 - dx) + plane[k, m] * dx) * dy


def reference_roi_align(x, rois, scale, ph, pw, ratio, aligned, sensitive=False):
    channels = x.shape[1] // (ph * pw) if sensitive else x.shape[1]
    out = np.zeros((len(rois), channels, ph, pw))
    for r, roi in enumerate(rois):
        x1, y1, x2, y2 = roi[1:] * scale - (0.5 if aligned else 0.0)
        width, height = x2 - x1, y2 - y1
        if not aligned:
            width, height = max(width, 1.0), max(height, 1.0)
        ny = ratio if ratio > 0 else math.ceil(height / ph)
        nx = ratio if ratio > 0 else math.ceil(width / pw)
        for c, i, j in np.ndindex(channels, ph, pw):
            plane = x[int(roi[0]), (c * ph + i) * pw + j if sensitive else c]
            total = sum(
                sample(
                    plane,
                    y1 + (i + (a + 0.5) / ny) * height / ph,
                    x1 + (j + (b + 0.5) / nx) * width / pw,
                )
                for a in range(ny)
                for b in range(nx)
            )
            out[r, c, i, j] = total / max(ny * nx, 1)
    return out


def rounded(value):
    return math.floor(abs(value) + 0.5) * (1 if value >= 0 else -1)


def windows(low, length, bins, limit):
    for b in range(bins):
        start = math.floor(b * length / bins) + low
        stop = math.ceil((b + 1) * length / bins) + low
        yield min(max(start, 0), limit), min(max(stop, 0), limit)


def reference_roi_pool(x, rois, scale, ph, pw):
    out = np.zeros((len(rois), x.shape[1], ph, pw))
    where = np.full(out.shape, -1)
    for r, roi in enumerate(rois):
        x1, y1, x2, y2 = (rounded(v * scale) for v in roi[1:])
        rows = list(windows(y1, max(y2 - y1 + 1, 1), ph, x.shape[2]))
        columns = list(windows(x1, max(x2 - x1 + 1, 1), pw, x.shape[3]))
        for c, i, j in np.ndindex(x.shape[1], ph, pw):
            part = x[int(roi[0]), c, slice(*rows[i]), slice(*columns[j])]
            if part.size:
                a, b = np.unravel_index(part.argmax(), part.shape)
                out[r, c, i, j] = part[a, b]
                where[r, c, i, j] = (rows[i][0] + a) * x.shape[3] + columns[j][0] + b
    return out, where


def reference_ps_roi_pool(x, rois, scale, ph, pw):
    channels = x.shape[1] // (ph * pw)
    out = np.zeros((len(rois), channels, ph, pw))
    for r, roi in enumerate(rois):
        x1, y1, x2, y2 = (rounded(v * scale) for v in roi[1:])
        rows = list(windows(y1, max(y2 - y1, 1), ph, x.shape[2] - 1))
        columns = list(windows(x1, max(x2 - x1, 1), pw, x.shape[3] - 1))
        for c, i, j in np.ndindex(channels, ph, pw):
            plane = x[int(roi[0]), (c * ph + i) * pw + j]
            part = plane[slice(*rows[i]), slice(*columns[j])]
            out[r, c, i, j] = part.mean() if part.size else 0.0
    return out


def zero_padded(plane, y, x):
    h, w = plane.shape
    i, j = math.floor(y), math.floor(x)
    total = 0.0
    for a, wy in ((i, i + 1 - y), (i + 1, y - i)):
        for b, wx in ((j, j + 1 - x), (j + 1, x - j)):
            if 0 <= a < h and 0 <= b < w:
                total += plane[a, b] * wy * wx
    return total


def reference_deform(x, weight, offset, mask, bias, stride, padding, dilation, groups, shared):
    n, c = x.shape[:2]
    o, per_group, kh, kw = weight.shape
    oh, ow = offset.shape[2:]
    out = np.zeros((n, o, oh, ow)) + bias[None, :, None, None]
    for b, f, y, z in np.ndindex(n, o, oh, ow):
        for q in range(per_group):
            channel = f // (o // groups) * per_group + q
            group = channel // (c // shared)
            for i, j in np.ndindex(kh, kw):
                tap = group * kh * kw + i * kw + j
                position = (
                    y * stride[0] - padding[0] + i * dilation[0] + offset[b, 2 * tap, y, z],
                    z * stride[1] - padding[1] + j * dilation[1] + offset[b, 2 * tap + 1, y, z],
                )
                value = zero_padded(x[b, channel], *position)
                out[b, f, y, z] += weight[f, q, i, j] * value * mask[b, tap, y, z]
    return out


# ---- values


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nms(threshold, dtype):
    generator = torch.Generator().manual_seed(1)
    boxes = regions(60, 1, 20, generator)[:, 1:].to(dtype)
    boxes[:, 2:] = torch.maximum(boxes[:, :2], boxes[:, 2:])
    scores = torch.rand(60, generator=generator).to(dtype)
    scores[::5] = 0.5
    kept = ops.nms(boxes, scores, threshold)
    assert kept.dtype == torch.int64
    assert kept.tolist() == reference_nms(
        boxes.double().numpy(), scores.double().numpy(), threshold
    )
    flipped = ops.nms(boxes.t().contiguous().t(), scores, threshold)
    assert torch.equal(kept, flipped)


def test_nms_edges():
    assert ops.nms(torch.rand(0, 4), torch.rand(0), 0.5).shape == (0,)
    assert ops.nms(torch.zeros(3, 4), torch.ones(3), 0.5).tolist() == [0, 1, 2]
    same = torch.tensor([[0.0, 0, 2, 2]] * 3)
    assert ops.nms(same, torch.tensor([0.1, math.nan, 0.3]), 0.5).tolist() == [1]
    half = ops.nms(same.half(), torch.tensor([0.1, 0.2, 0.3]).half(), 0.5)
    assert half.tolist() == [2]


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [-1, 2])
def test_roi_align(given, aligned, ratio):
    x, rois = given
    got = ops.roi_align(x, rois, 0.5, 3, 2, ratio, aligned)
    want = reference_roi_align(x.numpy(), rois.numpy(), 0.5, 3, 2, ratio, aligned)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-12)
    single = ops.roi_align(x.float(), rois.float(), 0.5, 3, 2, ratio, aligned)
    np.testing.assert_allclose(single.numpy(), want, atol=2e-5)
    swapped = x.transpose(2, 3).contiguous().transpose(2, 3)
    strided = ops.roi_align(swapped, rois, 0.5, 3, 2, ratio, aligned)
    assert torch.equal(strided, got)


@pytest.mark.parametrize("ratio", [-1, 2])
def test_ps_roi_align(given, ratio):
    x, rois = given
    got, mapping = ops.ps_roi_align(x, rois, 0.5, 2, 2, ratio)
    want = reference_roi_align(x.numpy(), rois.numpy(), 0.5, 2, 2, ratio, True, sensitive=True)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-12)
    assert mapping.dtype == torch.int32
    assert mapping[0].flatten().tolist() == list(range(8))


def test_roi_pool(given):
    x, rois = given
    got, where = ops.roi_pool(x, rois, 0.5, 2, 3)
    want, places = reference_roi_pool(x.numpy(), rois.numpy(), 0.5, 2, 3)
    np.testing.assert_array_equal(got.numpy(), want)
    np.testing.assert_array_equal(where.numpy(), places)


def test_ps_roi_pool(given):
    x, rois = given
    got, _ = ops.ps_roi_pool(x, rois, 0.5, 2, 2)
    want = reference_ps_roi_pool(x.numpy(), rois.numpy(), 0.5, 2, 2)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-12)


CONVOLUTIONS = [
    ((1, 1), (1, 0), (1, 1), 1, 1),
    ((2, 1), (2, 1), (1, 2), 2, 2),
    ((1, 2), (0, 1), (2, 1), 1, 4),
]


def convolution(stride, padding, dilation, groups, shared, dtype=torch.float64):
    generator = torch.Generator().manual_seed(5)
    make = lambda *size: torch.randn(*size, generator=generator, dtype=torch.float64).to(dtype)
    x, weight, bias = make(2, 4, 6, 5), make(4, 4 // groups, 3, 2), make(4)
    oh = (6 + 2 * padding[0] - dilation[0] * 2 - 1) // stride[0] + 1
    ow = (5 + 2 * padding[1] - dilation[1] - 1) // stride[1] + 1
    # Offsets that keep points away from whole pixels, where the function has corners.
    offset = torch.randint(-2, 3, (2, shared * 12, oh, ow), generator=generator)
    offset = (offset + 0.25 + 0.5 * torch.rand(offset.shape, generator=generator)).to(dtype)
    return x, weight, offset, make(2, shared * 6, oh, ow).abs(), bias


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_deform_conv2d(case):
    stride, padding, dilation, groups, shared = case
    x, weight, offset, mask, bias = convolution(*case)
    numbers = (*stride, *padding, *dilation, groups, shared)
    got = ops.deform_conv2d(x, weight, offset, mask, bias, *numbers, True)
    arrays = [t.numpy() for t in (x, weight, offset, mask, bias)]
    want = reference_deform(*arrays, stride, padding, dilation, groups, shared)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-12)
    plain = ops.deform_conv2d(x, weight, offset, torch.zeros(2, 1).double(), bias, *numbers, False)
    arrays[3] = np.ones_like(arrays[3])
    want = reference_deform(*arrays, stride, padding, dilation, groups, shared)
    np.testing.assert_allclose(plain.numpy(), want, atol=1e-12)


def test_deform_conv2d_without_offsets_is_a_convolution():
    x, weight = torch.randn(2, 4, 6, 5), torch.randn(6, 2, 3, 3)
    offset, bias = torch.zeros(2, 18, 6, 5), torch.randn(6)
    got = ops.deform_conv2d(
        x, weight, offset, torch.zeros(2, 1), bias, 1, 1, 1, 1, 1, 1, 2, 1, False
    )
    want = torch.nn.functional.conv2d(x, weight, bias, padding=1, groups=2)
    torch.testing.assert_close(got, want)


def test_narrow_types_compute_in_float():
    case = CONVOLUTIONS[0]
    args = convolution(*case, dtype=torch.bfloat16)
    numbers = (*case[0], *case[1], *case[2], case[3], case[4])
    got = ops.deform_conv2d(*args, *numbers, True)
    want = ops.deform_conv2d(*(t.float() for t in args), *numbers, True)
    assert torch.equal(got, want.bfloat16())
    x, rois = torch.randn(1, 4, 8, 8).half(), torch.tensor([[0.0, 1, 1, 6, 6]]).half()
    got = ops.roi_align(x, rois, 1.0, 2, 2, 2, True)
    assert torch.equal(got, ops.roi_align(x.float(), rois.float(), 1.0, 2, 2, 2, True).half())


# ---- gradients


def test_gradients_of_regions(given):
    x, rois = given
    x = x[:, :4].clone().requires_grad_()
    for ratio, aligned in ((-1, True), (2, False)):
        align = lambda t, a=ratio, b=aligned: ops.roi_align(t, rois, 0.5, 2, 2, a, b)
        assert gradcheck(align, (x,)) and gradgradcheck(align, (x,))
    ps_align = lambda t: ops.ps_roi_align(t, rois, 0.5, 2, 2, 2)[0]
    ps_pool = lambda t: ops.ps_roi_pool(t, rois, 0.5, 2, 2)[0]
    for function in (ps_align, ps_pool):
        assert gradcheck(function, (x,)) and gradgradcheck(function, (x,))
    assert gradcheck(lambda t: ops.roi_pool(t, rois, 0.5, 2, 2)[0], (x,))
    values, places = ops.roi_pool(x, rois, 0.5, 2, 2)
    assert values.requires_grad and not places.requires_grad
    (grad,) = torch.autograd.grad(values.sum(), x)
    assert not grad.requires_grad
    with pytest.raises(RuntimeError, match="double backwards on torchvision::_roi_pool_backward"):
        torch.autograd.grad(ops.roi_pool(x, rois, 0.5, 2, 2)[0].pow(2).sum(), x, create_graph=True)


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_gradients_of_deform_conv2d(case):
    args = [t[:1] if t.dim() == 4 and t.size(0) == 2 else t for t in convolution(*case)]
    args = [t.clone().requires_grad_() for t in args]
    numbers = (*case[0], *case[1], *case[2], case[3], case[4])
    assert gradcheck(lambda *t: ops.deform_conv2d(*t, *numbers, True), args)


def test_bits_do_not_depend_on_threads(given):
    x, rois = (t.float() for t in given)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            leaf = x.repeat(1, 4, 5, 5).requires_grad_()
            many = rois.repeat(40, 1)
            out = [
                ops.roi_align(leaf, many, 0.5, 3, 3, -1, True),
                ops.roi_pool(leaf, many, 0.5, 3, 3)[0],
                ops.ps_roi_pool(leaf, many, 0.5, 2, 2)[0],
            ]
            args = [t.float() for t in convolution(*CONVOLUTIONS[1])]
            args[0] = args[0].requires_grad_()
            out.append(ops.deform_conv2d(*args, 2, 1, 2, 1, 1, 2, 2, 2, True))
            grads = torch.autograd.grad(sum(t.pow(2).sum() for t in out), [leaf, args[0]])
            results.append([*out, *grads])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


# ---- edges, errors, other devices


def test_odd_regions_are_harmless():
    x = torch.ones(1, 4, 5, 6)
    odd = torch.tensor(
        [
            [0, 3.0, 3.0, 1.0, 1.0],
            [0, -1e30, -1e30, 1e30, 1e30],
            [0, math.nan, 0.0, 1.0, 1.0],
            [0, 0.0, 0.0, math.inf, 1.0],
            [0, 2.0, 2.0, 2.0, 2.0],
            [0, 1e18, 1e18, 1e19, 1e19],
        ]
    )
    leaf = x.clone().requires_grad_()
    aligned = ops.roi_align(leaf, odd, 1.0, 2, 2, -1, True)
    assert aligned[2].isnan().all() and aligned[3].isnan().all()
    assert not aligned[[0, 1, 4, 5]].isnan().any()
    pooled, where = ops.roi_pool(leaf, odd, 1.0, 2, 2)
    assert pooled.isfinite().all() and where.max() < 30
    means = ops.ps_roi_pool(leaf, odd, 1.0, 2, 2)[0]
    assert means.isfinite().all()
    (grad,) = torch.autograd.grad(pooled.sum() + means.sum(), leaf)
    assert grad.isfinite().all()
    assert ops.roi_align(x, torch.zeros(0, 5), 1.0, 2, 2, -1, True).shape == (0, 4, 2, 2)
    assert ops.roi_pool(x[:, :0], torch.zeros(2, 5), 1.0, 2, 2)[0].shape == (2, 0, 2, 2)
    empty = torch.zeros(2, 5)
    assert ops._ps_roi_pool_backward(
        torch.zeros(2, 0, 2, 2), empty, torch.zeros(2, 0, 2, 2).int(), 1.0, 2, 2, 1, 0, 5, 6
    ).shape == (1, 0, 5, 6)


def test_a_maximum_of_nan_is_nan():
    x = torch.zeros(1, 1, 4, 4)
    x[0, 0, 1, 1] = math.nan
    pooled, where = ops.roi_pool(x, torch.tensor([[0.0, 0, 0, 3, 3]]), 1.0, 2, 2)
    assert pooled.isnan().flatten().tolist() == [True, False, False, False]
    assert where[0, 0, 0, 0] == 5


X, ROIS = torch.ones(2, 8, 5, 6), torch.zeros(1, 5)
ERRORS = [
    (
        lambda: ops.nms(torch.rand(4, 5), torch.rand(4), 0.5),
        "should have 4 elements in dimension 1",
    ),
    (lambda: ops.nms(torch.rand(4), torch.rand(4), 0.5), "boxes should be a 2d tensor, got 1D"),
    (lambda: ops.nms(torch.rand(4, 4), torch.rand(4, 1), 0.5), "scores should be a 1d tensor"),
    (lambda: ops.nms(torch.rand(4, 4), torch.rand(3), 0.5), "same number of elements in dimension"),
    (lambda: ops.nms(torch.rand(4, 4), torch.rand(4).double(), 0.5), "same type as scores"),
    (lambda: ops.roi_align(X, torch.zeros(1, 4), 1.0, 2, 2, -1, True), "rois must have shape"),
    (lambda: ops.roi_align(X, ROIS.double(), 1.0, 2, 2, -1, True), "to have the same type"),
    (lambda: ops.roi_align(X[0], ROIS, 1.0, 2, 2, -1, True), "expected input of shape"),
    (lambda: ops.roi_align(X, ROIS, 1.0, 0, 2, -1, True), "must be positive"),
    (lambda: ops.roi_align(X, ROIS, 1.0, 2, 2, 1 << 40, True), "sampling_ratio must be at most"),
    (lambda: ops.roi_align(X[..., :0], ROIS, 1.0, 2, 2, -1, True), "has no pixels"),
    (lambda: ops.ps_roi_pool(X, ROIS, 1.0, 3, 3), "must be a multiple of pooling height"),
    (lambda: ops.ps_roi_align(X, ROIS, 1.0, 1 << 40, 1 << 40, 1), "must be a multiple of pooling"),
    (
        lambda: ops._roi_align_backward(
            torch.ones(1, 7, 2, 2), ROIS, 1.0, 2, 2, 2, 8, 5, 6, -1, True
        ),
        "expected grad of shape",
    ),
    (
        lambda: ops._roi_align_backward(
            torch.ones(1, 8, 2, 2), ROIS, 1.0, 2, 2, -2, 8, 5, 6, -1, True
        ),
        "must not be negative",
    ),
]


@pytest.mark.parametrize(("call", "text"), ERRORS)
def test_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


def test_an_image_that_does_not_exist():
    for index in (2.0, -1.0, math.nan, 1e30):
        rois = torch.tensor([[index, 0, 0, 1, 1]])
        with pytest.raises(IndexError, match="the batch has 2"):
            ops.roi_align(X, rois, 1.0, 2, 2, -1, True)
        with pytest.raises(IndexError, match="the batch has 2"):
            ops.roi_pool(X, rois, 1.0, 2, 2)
    grad, argmax = torch.ones(1, 8, 1, 1), torch.full((1, 8, 1, 1), 30, dtype=torch.int32)
    with pytest.raises(IndexError, match="outside a plane of 30 pixels"):
        ops._roi_pool_backward(grad, ROIS, argmax, 1.0, 1, 1, 2, 8, 5, 6)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        ops.roi_align(X.long(), ROIS.long(), 1.0, 2, 2, -1, True)


def test_errors_of_deform_conv2d():
    x, weight, offset, mask, bias = convolution(*CONVOLUTIONS[0])
    good = {"x": x, "weight": weight, "offset": offset, "mask": mask, "bias": bias}
    numbers = [1, 1, 1, 0, 1, 1, 1, 1]

    def call(numbers=numbers, **changed):
        return ops.deform_conv2d(*{**good, **changed}.values(), *numbers, True)

    assert call().shape == (2, 4, 6, 4)
    for changed, text in (
        ({"x": x[0]}, "to have 4 dimensions"),
        ({"weight": weight.float()}, "expected scalar type"),
        ({"weight": weight[:, :3]}, "does not fit an input of 4 channels"),
        ({"offset": offset[:, :-1]}, "offset.shape.1. is not valid"),
        ({"offset": offset[..., :-1]}, "offset output dims"),
        ({"offset": offset[:1]}, "invalid batch size of offset"),
        ({"mask": mask[:, :-1]}, "mask.shape.1. is not valid"),
        ({"bias": bias[:-1]}, "a bias of 4 elements"),
        ({"numbers": [0, *numbers[1:]]}, "stride_h: 0"),
        ({"numbers": [1, 1, -1, *numbers[3:]]}, "pad_h: -1"),
        ({"numbers": [*numbers[:4], 0, *numbers[5:]]}, "dilation_h: 0"),
        ({"numbers": [*numbers[:4], 9, *numbers[5:]]}, "output size is too small"),
        ({"numbers": [*numbers[:6], 3, 1]}, "does not fit an input"),
        ({"numbers": [*numbers[:7], 3]}, "offset groups"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call(**changed)


def test_meta_gives_the_same_shapes(given):
    x, rois = given
    meta = lambda *tensors: [t.to("meta") for t in tensors]
    for real, abstract in (
        (
            ops.roi_align(x, rois, 1.0, 3, 2, -1, True),
            ops.roi_align(*meta(x, rois), 1.0, 3, 2, -1, True),
        ),
        (ops.roi_pool(x, rois, 1.0, 3, 2), ops.roi_pool(*meta(x, rois), 1.0, 3, 2)),
        (ops.ps_roi_pool(x, rois, 1.0, 2, 2), ops.ps_roi_pool(*meta(x, rois), 1.0, 2, 2)),
        (ops.ps_roi_align(x, rois, 1.0, 2, 2, 1), ops.ps_roi_align(*meta(x, rois), 1.0, 2, 2, 1)),
    ):
        pairs = zip(real, abstract, strict=True) if isinstance(real, tuple) else [(real, abstract)]
        for a, b in pairs:
            assert b.is_meta and (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride())
    args = convolution(*CONVOLUTIONS[0])
    real = ops.deform_conv2d(*args, 1, 1, 1, 0, 1, 1, 1, 1, True)
    assert ops.deform_conv2d(*meta(*args), 1, 1, 1, 0, 1, 1, 1, 1, True).shape == real.shape


def test_autocast_runs_in_float32():
    x, rois = torch.randn(1, 4, 6, 6), torch.tensor([[0.0, 1, 1, 4, 4]])
    with torch.autocast("cpu", torch.bfloat16):
        out = ops.roi_align(x.bfloat16(), rois, 1.0, 2, 2, 2, True)
        kept = ops.nms(torch.rand(4, 4).bfloat16(), torch.rand(4), 0.5)
    assert out.dtype == torch.bfloat16 and kept.dtype == torch.int64
    want = ops.roi_align(x.bfloat16().float(), rois, 1.0, 2, 2, 2, True)
    assert torch.equal(out, want.bfloat16())


# ---- standing in for a foreign binary


def test_load_library_uses_ours_for_a_foreign_binary(tmp_path):
    foreign = b"\x7fELF" + bytes(64) + b"libtorch_cpu.so\0" + bytes(64)
    for package in ("torchvision", "other"):
        (tmp_path / package).mkdir()
        for name in ("_C", "_C_stable"):
            (tmp_path / package / f"{name}.so").write_bytes(foreign)
    for name in ("_C", "_C_stable"):
        path = str(tmp_path / "torchvision" / f"{name}.so")
        torch.ops.load_library(path)
        assert path in torch.ops.loaded_libraries
    assert torch.ops.torchvision._cuda_version() == -1
    with pytest.raises(OSError, match="another implementation of torch"):
        torch.ops.load_library(str(tmp_path / "other" / "_C.so"))
    with pytest.raises(OSError, match="Could not load this library"):
        torch.ops.load_library(str(tmp_path / "missing.so"))


def test_kernels_may_be_replaced_from_python():
    library = torch.library.Library("torchvision", "IMPL")
    library.impl("nms", lambda dets, scores, threshold: dets.new_empty(7), "Meta")
    boxes = torch.rand(3, 4, device="meta")
    assert ops.nms(boxes, boxes[:, 0], 0.5).shape == (7,)
    library._destroy()
    assert ops.nms(boxes, boxes[:, 0], 0.5).shape == (3,)
