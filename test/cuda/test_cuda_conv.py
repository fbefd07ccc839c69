"""Convolutions and poolings on CUDA against their definition in float64."""

import itertools

import numpy as np
import pytest
from cuda_support import cuda

import torch
import torch.nn.functional as F

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
TOLERANCE = {
    torch.complex128: 1e-10,
    torch.float64: 1e-10,
    torch.float32: 2e-3,  # cuDNN may round products to TF32
    torch.float16: 2e-2,
    torch.bfloat16: 1e-1,
}
LAYOUTS = {4: torch.channels_last, 5: torch.channels_last_3d}


def close(got, want, dtype):
    assert got.device.type == "cuda" and got.dtype == dtype and tuple(got.shape) == want.shape
    tolerance = TOLERANCE[dtype]
    got = got.detach().cpu()
    got = got.to(torch.complex128) if got.is_complex() else got.double()
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


def taps(x, kernel, stride, padding, dilation, out):
    """For each tap of the kernel, the input under it at every output position."""
    padded = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])
    for tap in itertools.product(*map(range, kernel)):
        cut = [
            slice(t * d, t * d + s * (o - 1) + 1, s)
            for t, d, s, o in zip(tap, dilation, stride, out, strict=True)
        ]
        yield tap, padded[(slice(None), slice(None), *cut)]


def reference(x, w, stride, padding, dilation, groups):
    """The convolution, and a function from the result's gradient to those of x and w."""
    kernel = w.shape[2:]
    out = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(x.shape[2:], padding, dilation, kernel, stride, strict=True)
    ]
    y = np.zeros((x.shape[0], w.shape[0], *out), w.dtype)
    c, o = x.shape[1] // groups, w.shape[0] // groups
    for tap, under in taps(x, kernel, stride, padding, dilation, out):
        for g in range(groups):
            part = w[(slice(g * o, (g + 1) * o), slice(None), *tap)]
            y[:, g * o : (g + 1) * o] += np.einsum(
                "nc...,oc->no...", under[:, g * c : (g + 1) * c], part
            )

    def backward(gy):
        gx, gw = np.zeros_like(x), np.zeros_like(w)
        padded = np.pad(gx, [(0, 0), (0, 0)] + [(p, p) for p in padding])
        places = np.arange(padded.size).reshape(padded.shape)
        inner = tuple(slice(p, p + n) for p, n in zip(padding, x.shape[2:], strict=True))
        where = np.zeros(x.shape, np.int64)
        where[...] = places[(slice(None), slice(None), *inner)]
        for (tap, under), (_, target) in zip(
            taps(x, kernel, stride, padding, dilation, out),
            taps_of_padded(places, kernel, stride, dilation, out),
            strict=True,
        ):
            for g in range(groups):
                at = (slice(g * o, (g + 1) * o), slice(None), *tap)
                mine = gy[:, g * o : (g + 1) * o]
                mine_flat = mine.reshape(*mine.shape[:2], -1)
                flat = under[:, g * c : (g + 1) * c].conj().reshape(x.shape[0], c, -1)
                gw[at] += np.einsum("ncp,nop->oc", flat, mine_flat)
                share = np.einsum("no...,oc->nc...", mine, w[at].conj())
                np.add.at(padded.reshape(-1), target[:, g * c : (g + 1) * c], share)
        return padded.reshape(-1)[where], gw

    return y, backward


def taps_of_padded(places, kernel, stride, dilation, out):
    return taps(places, kernel, stride, [0] * len(kernel), dilation, out)


CASES = [
    # sizes of x and w, stride, padding, dilation, groups
    ((2, 3, 7, 6), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 4, 9, 8), (6, 2, 3, 2), (2, 1), (0, 1), (1, 2), 2),
    ((1, 6, 8, 8), (6, 1, 3, 3), (1, 1), (1, 1), (1, 1), 6),
    ((3, 8, 5, 5), (16, 8, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 3, 11), (5, 3, 4), (2,), (2,), (1,), 1),
    ((1, 2, 5, 6, 4), (3, 2, 2, 3, 2), (1, 2, 1), (1, 1, 0), (2, 1, 1), 1),
]


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATS, torch.complex128])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolution_and_its_gradients_match_the_definition(case, dtype, channels_last):
    x_size, w_size, stride, padding, dilation, groups = case
    if channels_last and len(x_size) not in LAYOUTS:
        pytest.skip("channels last is a layout of four or five dimensions")
    torch.manual_seed(3)
    x, w = torch.randn(x_size).to(dtype), (torch.randn(w_size) / 3).to(dtype)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    want, backward = reference(
        x.to(wide).numpy(), w.to(wide).numpy(), stride, padding, dilation, groups
    )
    layout = LAYOUTS[len(x_size)] if channels_last else torch.contiguous_format
    on_gpu = x.to(cuda, memory_format=layout).requires_grad_()
    weight = w.to(cuda).requires_grad_()
    y = torch.convolution(
        on_gpu, weight, None, stride, padding, dilation, False, (0,) * len(stride), groups
    )
    close(y, want, dtype)
    assert y.is_contiguous(memory_format=layout)
    gy = torch.randn(want.shape).to(dtype)
    y.backward(gy.to(cuda))
    gx, gw = backward(gy.to(wide).numpy())
    close(on_gpu.grad, gx, dtype)
    close(weight.grad, gw, dtype)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_transposed_convolution_is_the_gradient_of_the_plain_one(case):
    x_size, w_size, stride, padding, dilation, groups = case
    torch.manual_seed(4)
    x, w = torch.randn(x_size).double(), torch.randn(w_size).double()
    y, backward = reference(x.numpy(), w.numpy(), stride, padding, dilation, groups)
    gy = torch.randn(y.shape).double()
    gx, _ = backward(gy.numpy())
    fit = [
        n - ((o - 1) * s - 2 * p + d * (k - 1) + 1)
        for n, o, s, p, d, k in zip(
            x_size[2:], y.shape[2:], stride, padding, dilation, w_size[2:], strict=True
        )
    ]
    got = torch.convolution(
        gy.to(cuda), w.to(cuda), None, stride, padding, dilation, True, fit, groups
    )
    close(got, gx, torch.float64)


def test_bias_is_added_and_its_gradient_is_the_sum():
    x, w, b = torch.randn(2, 3, 5, 5), torch.randn(4, 3, 3, 3), torch.randn(4)
    bias = b.to(cuda).requires_grad_()
    y = F.conv2d(x.to(cuda), w.to(cuda), bias)
    plain = F.conv2d(x.to(cuda), w.to(cuda))
    assert torch.equal(y, plain + bias.view(4, 1, 1))
    y.sum().backward()
    assert bias.grad.tolist() == [18.0] * 4


def test_convolution_of_an_empty_batch_is_empty_with_zero_gradients():
    w = torch.randn(4, 3, 3, 3, device=cuda, requires_grad=True)
    y = F.conv2d(torch.empty(0, 3, 5, 5, device=cuda), w)
    assert y.shape == (0, 4, 3, 3)
    y.sum().backward()
    assert not w.grad.any()


def test_convolution_of_mixed_dtypes_names_both():
    with pytest.raises(RuntimeError, match=r"Input type .*weight type .*should be the same"):
        F.conv2d(torch.ones(1, 1, 3, 3, device=cuda), torch.ones(1, 1, 3, 3, device=cuda).half())


# ---- pooling
def windows_of(n, out, kernel, stride, padding, dilation):
    """Positions of the input in each window of one dimension, and their count with padding."""
    for o in range(out):
        if kernel is None:
            lo, hi = o * n // out, -(-(o + 1) * n // out)
            yield list(range(lo, hi)), hi - lo
            continue
        start = o * stride - padding
        places = [start + i * dilation for i in range(kernel)]
        end = min(start + (kernel - 1) * dilation + 1, n + padding)
        yield [p for p in places if 0 <= p < n], end - start


def pool_reference(x, out, kernel, stride, padding, dilation, mean, count_padding=True):
    """The pooled values, the places of maxima, and the map from gradient to gradient."""
    dims = len(out)
    lists = [
        list(windows_of(n, o, *args))
        for n, o, *args in zip(x.shape[-dims:], out, kernel, stride, padding, dilation, strict=True)
    ]
    y = np.zeros((*x.shape[:-dims], *out))
    places = np.zeros(y.shape, np.int64)
    sizes = x.shape[-dims:]
    shares = []
    for position in itertools.product(*map(range, out)):
        chosen = [lists[d][p] for d, p in enumerate(position)]
        at = np.ix_(*[np.array(c[0]) for c in chosen])
        block = x[(..., *at)].reshape(*x.shape[:-dims], -1)
        flat = np.ravel_multi_index(np.meshgrid(*[c[0] for c in chosen], indexing="ij"), sizes)
        count = np.prod([c[1] if count_padding else len(c[0]) for c in chosen])
        if mean:
            y[(..., *position)] = block.sum(-1) / count
        else:
            y[(..., *position)] = block.max(-1)
            places[(..., *position)] = flat.reshape(-1)[block.argmax(-1)]
        shares.append((position, flat.reshape(-1), count))

    def backward(gy):
        gx = np.zeros((*x.shape[:-dims], int(np.prod(sizes))))
        for position, flat, count in shares:
            g = gy[(..., *position)]
            if mean:
                gx[..., flat] += (g / count)[..., None]
            else:
                for index in np.ndindex(g.shape):
                    gx[(*index, places[(*index, *position)])] += g[index]
        return gx.reshape(x.shape)

    return y, places, backward


POOLS = [
    # input, kernel, stride, padding, dilation, ceil_mode
    ((2, 3, 8, 9), (3, 2), (2, 2), (1, 1), (1, 1), False),
    ((1, 2, 7, 7), (3, 3), (2, 3), (1, 0), (1, 1), True),
    ((2, 2, 9, 9), (2, 3), (1, 2), (1, 1), (2, 2), False),
    ((1, 2, 5, 6, 7), (2, 3, 2), (2, 1, 2), (1, 1, 1), (1, 1, 1), False),
    # whole packs of channels
    ((2, 8, 7, 9), (3, 3), (2, 2), (1, 1), (1, 1), False),
    ((1, 4, 5, 4, 6), (2, 3, 2), (1, 2, 2), (1, 1, 1), (1, 1, 1), True),
]


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", POOLS, ids=str)
def test_max_pooling_and_its_gradient_match_the_definition(case, dtype, channels_last):
    size, kernel, stride, padding, dilation, ceil_mode = case
    torch.manual_seed(5)
    values = torch.randperm(int(np.prod(size))).reshape(size)
    x = (values.double() / values.numel()).to(dtype)
    layout = LAYOUTS[len(size)] if channels_last else torch.contiguous_format
    on_gpu = x.to(cuda, memory_format=layout).requires_grad_()
    pool = F.max_pool2d if len(kernel) == 2 else F.max_pool3d
    y, places = pool(
        on_gpu, kernel, stride, padding, dilation, ceil_mode=ceil_mode, return_indices=True
    )
    want, where, backward = pool_reference(
        x.double().numpy(), y.shape[2:], kernel, stride, padding, dilation, False
    )
    close(y, want, dtype)
    if dtype in (torch.float32, torch.float64):  # no two values are equal
        np.testing.assert_array_equal(places.cpu().numpy(), where)
    gy = torch.ones(y.shape, dtype=dtype)
    y.backward(gy.to(cuda))
    if dtype in (torch.float32, torch.float64):
        close(on_gpu.grad, backward(gy.double().numpy()), dtype)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("count_padding", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", [c for c in POOLS if set(c[4]) == {1}], ids=str)
def test_mean_pooling_and_its_gradient_match_the_definition(
    case, dtype, count_padding, channels_last
):
    size, kernel, stride, padding, dilation, ceil_mode = case
    torch.manual_seed(6)
    x = torch.randn(size).to(dtype)
    layout = LAYOUTS[len(size)] if channels_last else torch.contiguous_format
    on_gpu = x.to(cuda, memory_format=layout).requires_grad_()
    pool = F.avg_pool2d if len(kernel) == 2 else F.avg_pool3d
    y = pool(on_gpu, kernel, stride, padding, ceil_mode, count_padding)
    want, _, backward = pool_reference(
        x.double().numpy(), y.shape[2:], kernel, stride, padding, dilation, True, count_padding
    )
    close(y, want, dtype)
    gy = torch.randn(y.shape).to(dtype)
    y.backward(gy.to(cuda))
    close(on_gpu.grad, backward(gy.double().numpy()), dtype)


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize(
    "size, out", [((2, 3, 7, 9), (3, 4)), ((1, 2, 4, 4), (1, 1)), ((2, 4, 5, 3), (5, 7))]
)
def test_adaptive_pooling_matches_the_definition(size, out, mean):
    torch.manual_seed(7)
    x = torch.randn(size).double()
    on_gpu = x.to(cuda).requires_grad_()
    y = (F.adaptive_avg_pool2d if mean else F.adaptive_max_pool2d)(on_gpu, out)
    nothing = [None] * 2
    want, _, backward = pool_reference(x.numpy(), out, nothing, nothing, nothing, nothing, mean)
    close(y, want, torch.float64)
    gy = torch.randn(y.shape).double()
    y.backward(gy.to(cuda))
    close(on_gpu.grad, backward(gy.numpy()), torch.float64)


def test_maximum_of_a_window_with_nan_is_nan():
    x = torch.tensor([[[[1.0, float("nan")], [3.0, 2.0]]]], device=cuda)
    assert F.max_pool2d(x, 2).isnan().item()
