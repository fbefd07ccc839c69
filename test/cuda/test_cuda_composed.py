"""Operators on CUDA that are made of others, or of one small kernel: batch and group norm, padding
modes, order statistics, search, unique, histograms, embedding bags, distances. Each is held against
the CPU or NumPy on views, empty and 0-dim tensors and NaN, with its errors."""

import numpy as np
import pytest
from cuda_support import cuda

import torch
from torch.nn import functional as F


def both(call, *tensors, **kwargs):
    """The call on the device and on the CPU."""
    here = call(*tensors, **kwargs)
    there = call(*[t.to(cuda) if isinstance(t, torch.Tensor) else t for t in tensors], **kwargs)
    return there, here


def same(there, here, **tolerance):
    if isinstance(here, torch.Tensor):
        assert there.is_cuda and there.dtype == here.dtype and there.shape == here.shape
        torch.testing.assert_close(there.cpu(), here, equal_nan=True, **tolerance)
    else:
        for a, b in zip(there, here, strict=True):
            same(a, b, **tolerance)


def gradients(call, *tensors):
    """Gradients at the tensors that require them, on the device and on the CPU."""
    found = []
    for device in ("cuda", "cpu"):
        moved = [t.detach().to(device).requires_grad_(t.requires_grad) for t in tensors]
        out = call(*moved)
        weights = torch.linspace(0.5, 1.5, out.numel(), dtype=out.dtype).reshape(out.shape)
        wanted = [t for t in moved if t.requires_grad]
        found.append(torch.autograd.grad(out, wanted, weights.to(device)))
    return found


def randn(*shape, dtype=torch.float64, grad=False):
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_(grad)


# ---- norms


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(shape, training):
    def call(x, weight, bias, mean, var):
        return F.batch_norm(x, mean.clone(), var.clone(), weight, bias, training)

    x, weight, bias = randn(*shape, grad=True), randn(3, grad=True), randn(3, grad=True)
    stats = randn(3), randn(3).abs() + 0.5
    same(*both(call, x.detach(), weight.detach(), bias.detach(), *stats))
    same(*gradients(call, x, weight, bias, *stats))


# Channels of half a warp, of a few lanes, of no power of two and of several warps.
@pytest.mark.parametrize("channels", [64, 8, 24, 160])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_batch_norm_with_the_channels_innermost(channels, dtype):
    x = randn(3, channels, 13, 17).to(dtype) * 0.1 + 5
    grad, weight = randn(3, channels, 13, 17).to(dtype), randn(channels).to(dtype)
    inputs = [
        t.to(cuda, memory_format=torch.channels_last).requires_grad_(t is x) for t in (x, grad)
    ]
    y = F.batch_norm(inputs[0], None, None, weight.to(cuda), training=True)
    (dx,) = torch.autograd.grad(y, inputs[0], inputs[1])
    wide, g = x.double(), grad.double() * weight.double().view(1, -1, 1, 1)
    dims = (0, 2, 3)
    spread = (wide.var(dims, correction=0, keepdim=True) + 1e-5).sqrt()
    unit = (wide - wide.mean(dims, keepdim=True)) / spread
    want = g - g.mean(dims, keepdim=True) - unit * (g * unit).mean(dims, keepdim=True)
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if dtype is torch.float32 else {}
    same(y.detach().double(), unit * weight.double().view(1, -1, 1, 1), **tolerance)
    same(dx.double(), want / spread, **tolerance)
    assert dx.stride() == x.to(memory_format=torch.channels_last).stride()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_batch_norm_updates_its_statistics(dtype):
    layers = [torch.nn.BatchNorm2d(3).to(d, dtype) for d in ("cuda", "cpu")]
    x = randn(4, 3, 5, 5).to(dtype)
    for layer, device in zip(layers, ("cuda", "cpu"), strict=True):
        layer(x.to(device))
    tolerance = {"rtol": 1e-2, "atol": 1e-2} if dtype is torch.bfloat16 else {}
    same(layers[0].running_mean, layers[1].running_mean, **tolerance)
    same(layers[0].running_var, layers[1].running_var, **tolerance)


@pytest.mark.parametrize("affine", [True, False])
def test_group_norm(affine):
    x, weight, bias = randn(2, 6, 3, 2, grad=True), randn(6, grad=True), randn(6, grad=True)
    if affine:
        same(*gradients(lambda x, w, b: F.group_norm(x, 3, w, b), x, weight, bias))
    same(*gradients(lambda x: F.group_norm(x, 2), x))
    same(*both(lambda x: F.group_norm(x.transpose(2, 3), 3), x.detach()))
    same(*both(lambda x: F.instance_norm(x), x.detach()))
    assert F.group_norm(torch.ones(0, 4, 3, device=cuda), 2).shape == (0, 4, 3)


def test_batch_norm_of_nothing():
    for training in (True, False):
        x, stats = torch.ones(0, 3, device=cuda), torch.ones(3, device=cuda)
        assert F.batch_norm(x, stats, stats, training=training).shape == (0, 3)


# ---- padding


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("shape, padding", [((2, 3, 7), (2, 1)), ((2, 3, 5, 6), (1, 2, 0, 3))])
def test_padding_modes(mode, shape, padding):
    x = randn(*shape, grad=True)
    same(*both(lambda x: F.pad(x, padding, mode), x.detach()))
    same(*both(lambda x: F.pad(x.transpose(0, 1), padding, mode), x.detach()))
    same(*gradients(lambda x: F.pad(x, padding, mode), x))
    with pytest.raises(RuntimeError):
        F.pad(torch.ones(2, 3, device=cuda), (9, 9, 9, 9), mode)


def test_padding_crops_and_takes_integers():
    x = torch.arange(24).reshape(2, 3, 4)
    same(*both(lambda x: F.pad(x, (-1, 2), "replicate"), x))
    same(*both(lambda x: F.pad(x, (-1, -1), "reflect"), x))


def test_repeat_interleave():
    repeats = torch.tensor([2, 0, 3])
    same(*both(torch.repeat_interleave, repeats))
    same(*both(lambda x, r: torch.repeat_interleave(x, r, dim=0), randn(3, 2), repeats))
    assert torch.repeat_interleave(repeats[:0].to(cuda)).shape == (0,)
    with pytest.raises(RuntimeError, match="negative"):
        torch.repeat_interleave(torch.tensor([1, -1], device=cuda))


# ---- order statistics


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8])
def test_medians(dtype):
    x = (randn(4, 5, 6) * 20).abs().to(dtype)
    for dim in (0, 1, -1):
        same(*both(lambda x, d=dim: torch.median(x, d), x))
        same(*both(lambda x, d=dim: torch.kthvalue(x, 3, d, True).values, x))
        same(*both(lambda x, d=dim: torch.nanmedian(x, d, keepdim=True), x))
    same(*both(torch.median, x))
    same(*both(torch.median, x[:, ::2].transpose(0, 2)))


def test_medians_of_nan_nothing_and_one():
    x = torch.tensor([[1.0, float("nan"), 3.0], [float("nan")] * 3, [5.0, 2.0, 7.0]])
    for call in (torch.median, torch.nanmedian):
        same(*both(call, x))
        same(*both(lambda x, f=call: f(x, 1), x))
        same(*both(call, torch.tensor(3.0)))
        same(*both(call, torch.empty(0)))
    assert torch.median(torch.empty(0, dtype=torch.int64, device=cuda)).item() == -(2**63)
    with pytest.raises(IndexError):
        torch.median(torch.empty(0, 3, device=cuda), 0)


def test_mode_and_kthvalue():
    x = torch.tensor([[3, 1, 3, 2, 1, 1], [4, 4, 2, 2, 5, 6], [7, 7, 7, 0, 0, 0]])
    for t in (x, x.float(), x.t()):
        there, here = both(torch.mode, t)
        same(there.values, here.values)
        assert torch.equal(t.gather(-1, there.indices.cpu()[..., None])[..., 0], here.values)
    assert torch.mode(torch.tensor(4.0, device=cuda)).values.item() == 4
    there = torch.kthvalue(x.to(cuda), 2)
    assert torch.equal(there.values.cpu(), torch.from_numpy(np.sort(x.numpy(), 1)[:, 1]))
    with pytest.raises(RuntimeError, match="out of range"):
        torch.kthvalue(x.to(cuda), 9)


def test_renorm():
    x = randn(4, 3, 2)
    for p in (1, 2, float("inf")):
        same(*both(lambda x, p=p: torch.renorm(x, p, 1, 1.5), x))


# ---- search, unique, histograms


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.uint8])
def test_searchsorted(dtype):
    edges = torch.tensor([[1, 3, 5, 7], [0, 2, 2, 9]]).to(dtype)
    values = torch.tensor([[0, 3, 4], [2, 9, 1]]).to(dtype)
    for right in (False, True):
        for narrow in (False, True):
            call = {"right": right, "out_int32": narrow}
            same(*both(lambda e, v, c=call: torch.searchsorted(e, v, **c), edges, values))
            same(*both(lambda e, v, c=call: torch.bucketize(v, e[0], **c), edges, values))
    same(*both(lambda e: torch.searchsorted(e[0], 4), edges))
    same(*both(lambda e: torch.searchsorted(e[:, ::2].contiguous(), e[:, 1:3]), edges))
    order = torch.tensor([[1, 0, 3, 2], [3, 2, 1, 0]])
    same(*both(lambda e, v, o: torch.searchsorted(e, v, sorter=o), edges, values, order))


def test_searchsorted_reports_a_bad_sorter_and_knows_nan():
    edges, values = torch.arange(4.0), torch.tensor([1.0, float("nan")])
    same(*both(torch.searchsorted, edges, values))
    bad = torch.tensor([0, 9, 9, 9], device=cuda)
    torch.searchsorted(edges.to(cuda), values.to(cuda), sorter=bad)
    with pytest.raises(IndexError, match="searchsorted"):
        torch.cuda.synchronize()


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_unique(dtype):
    x = torch.tensor([[3, 1, 3], [2, 1, 1], [3, 1, 3], [0, 0, 2]]).to(dtype)
    for call in (torch.unique, torch.unique_consecutive):
        for dim in (None, 0, 1):
            keywords = {"return_inverse": True, "return_counts": True, "dim": dim}
            same(*both(lambda x, f=call, k=keywords: f(x, **k), x))
        same(*both(call, x))
        same(*both(call, x.t()))


def test_unique_of_nan_and_nothing():
    x = torch.tensor([2.0, float("nan"), 1.0, float("nan")])
    same(*both(lambda x: torch.unique(x, return_counts=True), x))
    empty = torch.empty(0, 3)
    same(*both(lambda x: torch.unique(x, return_inverse=True, return_counts=True), empty))
    same(*both(lambda x: torch.unique(x, dim=0), empty))
    with pytest.raises(RuntimeError, match="0 sized dimensions"):
        torch.unique(empty.to(cuda), dim=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_histc(dtype):
    x = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 2.0, 9.0, -1.0]).to(dtype)
    same(*both(lambda x: torch.histc(x, 4, 0, 2), x))
    same(*both(lambda x: torch.histc(x, 5), x))
    same(*both(lambda x: torch.histc(x[:1], 3), x))
    with pytest.raises(RuntimeError, match="not finite"):
        torch.histc(torch.tensor([1.0, float("nan")], device=cuda), 3)


def test_bincount():
    x = torch.tensor([3, 1, 3, 0])
    same(*both(torch.bincount, x))
    same(*both(lambda x: torch.bincount(x, minlength=7), x))
    same(*both(lambda x, w: torch.bincount(x, w), x, torch.tensor([0.5, 1.0, 2.0, 4.0])))
    assert torch.bincount(x[:0].to(cuda), minlength=2).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.bincount(torch.tensor([-1], device=cuda))


def test_isin():
    x, tests = torch.tensor([[1.0, 2.0], [float("nan"), 4.0]]), torch.tensor([4.0, 1.0])
    same(*both(torch.isin, x, tests))
    same(*both(lambda x, t: torch.isin(x, t, invert=True), x, tests))
    same(*both(lambda x: torch.isin(x, 2.0), x))
    assert not torch.isin(x.to(cuda), torch.empty(0, device=cuda)).any().item()


# ---- bags and distances


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_embedding_bag(mode, padding):
    table = randn(6, 4, grad=True)
    index, offsets = torch.tensor([1, 2, 2, 5, 0, 3, 2]), torch.tensor([0, 3, 3, 6])

    def call(table, **keywords):
        place = table.device
        return F.embedding_bag(
            index.to(place), table, offsets.to(place), mode=mode, padding_idx=padding, **keywords
        )

    same(*both(call, table.detach()))
    same(*gradients(call, table))
    if mode != "max":
        same(*gradients(lambda t: call(t, scale_grad_by_freq=True), table))
    same(*both(lambda t: call(t, include_last_offset=True), table.detach()))


def test_embedding_bag_weights_and_errors():
    table, weights = randn(6, 4, grad=True), randn(4, grad=True)
    index = torch.tensor([[1, 2], [2, 5]])

    def call(t, w):
        return F.embedding_bag(index.to(t.device), t, per_sample_weights=w.view(2, 2), mode="sum")

    same(*gradients(call, table, weights))
    F.embedding_bag(torch.tensor([[9]], device=cuda), table.detach().to(cuda))
    with pytest.raises(IndexError, match=r"(?s)index 9.*embedding_bag"):
        torch.cuda.synchronize()


def test_embedding_renormalises_the_rows_in_use():
    index = torch.tensor([[1, 4], [1, 0]])
    tables = [randn(5, 3).to(d) for d in ("cuda", "cpu")]
    for table in tables:
        F.embedding(index.to(table.device), table, max_norm=0.5)
    same(*tables)
    assert torch.equal(tables[0][2:4].cpu(), randn(5, 3)[2:4])


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, float("inf")])
def test_distances(p):
    a, b = randn(2, 4, 3, grad=True), randn(2, 5, 3, grad=True)
    same(*both(lambda a, b: torch.cdist(a, b, p), a.detach(), b.detach()))
    same(*both(lambda a: F.pdist(a[0], p), a.detach()))
    if p > 0:
        same(*gradients(lambda a, b: torch.cdist(a, b, p), a, b))
        same(*gradients(lambda a: F.pdist(a[0], p), a))
        same(*gradients(lambda a: torch.cdist(a, a, p), a))


def test_distances_of_nothing_and_many_rows():
    for shape in ((0, 3), (4, 0)):
        x = torch.ones(shape, device=cuda)
        assert torch.equal(torch.cdist(x, x).cpu(), torch.zeros(shape[0], shape[0]))
    x = randn(40, 3)
    same(*both(torch.cdist, x, x), atol=1e-6, rtol=1e-6)


def test_cross():
    a, b = randn(4, 3, grad=True), randn(4, 3, grad=True)
    same(*gradients(torch.linalg.cross, a, b))
    same(*both(lambda a, b: torch.cross(a.t(), b.t(), dim=0), a.detach(), b.detach()))
