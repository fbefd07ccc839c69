"""One line that is longer than a chunk of work: kernels that take rows or planes as the unit of
work cut a very long one too. The results are those of NumPy on the same numbers, and do not depend
on the number of threads."""

import numpy as np
import pytest

import torch
import torch.nn.functional as F

LONG = (1 << 20) + 12345  # above every threshold from which a line is cut


def rand(*size, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*size, dtype=torch.float64, generator=generator).to(dtype)


CUT = {
    "sort": lambda x: torch.sort(x),
    "unique": lambda x: torch.unique(x.round(decimals=3), return_inverse=True, return_counts=True),
    "softmax": lambda x: x.softmax(0),
    "log_softmax_columns": lambda x: x[: LONG // 3 * 3].view(-1, 3).log_softmax(0),
    "pad": lambda x: F.pad(x.view(1, 1, -1), (7, 100_000), mode="reflect"),
    "adaptive_max_pool": lambda x: F.adaptive_max_pool1d(x.view(1, 1, -1), 400_000),
    "max_pool": lambda x: F.max_pool1d(x.view(1, 1, -1), 5, 2, 2),
    "interpolate": lambda x: F.interpolate(x.view(1, 1, -1), 2_500_001, mode="linear"),
    "fft": lambda x: torch.fft.fft(x[: 1 << 18]),
    "fft_prime": lambda x: torch.fft.fft(x[:262_147]),
    "layer_norm": lambda x: F.layer_norm(x, x.shape, x, x),
    "rms_norm": lambda x: F.rms_norm(x, x.shape),
    "group_norm": lambda x: F.group_norm(x[: 1 << 20].view(1, 2, -1), 1, torch.ones(2)),
    "batch_norm": lambda x: F.batch_norm(x.view(1, 1, -1), None, None, training=True),
    "cdist": lambda x: torch.cdist(x.view(1, -1), x.flip(0).view(1, -1), p=1.5),
    "histogram": lambda x: torch.histogram(x, 100, density=True).hist,
}


@pytest.mark.parametrize("name", CUT)
def test_bits_do_not_depend_on_the_number_of_threads(name):
    x = rand(LONG)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = CUT[name](x)
        torch.set_num_threads(3)
        several = CUT[name](x)
    finally:
        torch.set_num_threads(before)
    for a, b in zip(*((t if isinstance(t, tuple) else (t,)) for t in (one, several)), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int8])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(dtype, descending):
    x = (rand(LONG) * 100).to(dtype) if not dtype.is_floating_point else rand(LONG, dtype=dtype)
    values, indices = torch.sort(x, stable=True, descending=descending)
    keys = -x.double().numpy() if descending else x.double().numpy()
    expected = np.argsort(keys, kind="stable")
    assert np.array_equal(indices.numpy(), expected)
    assert torch.equal(values, x[indices])


def test_sort_of_a_strided_row_and_out_of_order_keys():
    x = rand(LONG, 2)[:, 1]
    assert np.array_equal(torch.sort(x, 0)[0].numpy(), np.sort(x.numpy()))


def test_order_statistics():
    x = torch.round(rand(LONG) * 1e5)
    n = x.numpy()
    assert x.median().item() == np.sort(n)[(LONG - 1) // 2]
    assert x.kthvalue(777).values.item() == np.sort(n)[776]
    assert np.array_equal(torch.topk(x, 50).values.numpy(), np.sort(n)[::-1][:50])
    assert np.array_equal(torch.topk(x, LONG // 3).values.numpy(), np.sort(n)[::-1][: LONG // 3])
    values, counts = np.unique(n, return_counts=True)
    assert x.mode().values.item() == values[counts.argmax()]


def test_unique():
    x = torch.round(rand(LONG) * 1000).to(torch.int32)
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    expected = np.unique(x.numpy(), return_inverse=True, return_counts=True)
    for got, want in zip((values, inverse, counts), expected, strict=True):
        assert np.array_equal(got.numpy(), want.reshape(got.shape))
    rows = x[: LONG // 8 * 8].view(-1, 8)[:5000] % 2
    got = torch.unique(rows, dim=0, return_counts=True)
    want = np.unique(rows.numpy(), axis=0, return_counts=True)
    assert np.array_equal(got[0].numpy(), want[0]) and np.array_equal(got[1].numpy(), want[1])


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("log", [False, True])
def test_softmax(dim, log):
    x = (rand(LONG, 2, dtype=torch.float64) * 8).float()
    x = x if dim == 0 else x.t().contiguous()
    x.requires_grad_()
    y = (F.log_softmax if log else F.softmax)(x, dim)
    wide = x.detach().double().numpy()
    shifted = wide - wide.max(dim, keepdims=True)
    total = np.exp(shifted).sum(dim, keepdims=True)
    expected = shifted - np.log(total) if log else np.exp(shifted) / total
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=3e-6)
    g = rand(*y.shape, seed=1)
    y.backward(g)
    g = g.double().numpy()
    if log:
        slope = g - np.exp(expected) * g.sum(dim, keepdims=True)
    else:
        slope = expected * (g - (g * expected).sum(dim, keepdims=True))
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-4, atol=1e-5 if log else 1e-12)


def test_softmax_of_a_line_with_nan_and_infinity():
    x = torch.zeros(LONG)
    x[LONG // 2] = float("nan")
    assert x.softmax(0).isnan().all() and x.log_softmax(0).isnan().all()
    x[LONG // 2] = float("-inf")
    y = x.softmax(0)
    assert y[LONG // 2] == 0 and abs(y[0].item() * (LONG - 1) - 1) < 1e-5


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("pad", [(5, 70001), (-3, 70001), (70001, -5), (70001, 9)])
def test_padding(mode, pad):
    x = rand(2, 1, 100_000)
    cut = x.numpy()[:, :, max(0, -pad[0]) : 100_000 - max(0, -pad[1])]
    widths = [(0, 0), (0, 0), (max(0, pad[0]), max(0, pad[1]))]
    x.requires_grad_()
    got = F.pad(x, pad, mode=mode)
    if mode == "replicate" or min(pad) >= 0:
        expected = np.pad(cut, widths, mode="edge" if mode == "replicate" else "reflect")
        assert np.array_equal(got.detach().numpy(), expected)
    got.sum().backward()
    assert x.grad.sum().item() == got.numel()


def test_padding_of_rows_planes_and_channels_last():
    x = rand(1, 3, 40, 50, 60)
    pad = (3, 7, 11, 2, 5, 6)
    widths = [(0, 0), (0, 0), (5, 6), (11, 2), (3, 7)]
    for mode, name in (("replicate", "edge"), ("reflect", "reflect")):
        expected = np.pad(x.numpy(), widths, mode=name)
        assert np.array_equal(F.pad(x, pad, mode=mode).numpy(), expected)
        last = x[:, :, 0].contiguous(memory_format=torch.channels_last)
        expected = np.pad(last.numpy(), widths[:2] + widths[3:], mode=name)
        assert np.array_equal(F.pad(last, pad[:4], mode=mode).numpy(), expected)


@pytest.mark.parametrize("out", [70_000, 100_003])
def test_adaptive_pooling_of_more_outputs_than_are_listed(out):
    n = 99_991
    x = rand(1, 2, n)
    lo = np.arange(out) * n // out
    hi = -(-(np.arange(1, out + 1) * n) // out)
    sums = np.concatenate([np.zeros((1, 2, 1)), x.double().numpy().cumsum(2)], 2)
    expected = (sums[:, :, hi] - sums[:, :, lo]) / (hi - lo)
    np.testing.assert_allclose(F.adaptive_avg_pool1d(x, out).numpy(), expected, rtol=1e-4)
    values, places = F.adaptive_max_pool1d(x, out, return_indices=True)
    widest = (hi - lo).max()
    windows = np.stack([x.numpy()[:, :, np.minimum(lo + k, hi - 1)] for k in range(widest)])
    assert np.array_equal(values.numpy(), windows.max(0))
    assert torch.equal(x.gather(2, places), values)


@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation"), [(3, 1, 1, 1), (5, 2, 2, 3)])
def test_max_pooling_of_a_long_row(kernel, stride, padding, dilation):
    x = rand(1, 2, 300_007)
    padded = np.pad(x.numpy(), [(0, 0), (0, 0), (padding, padding)], constant_values=-np.inf)
    count = (padded.shape[2] - dilation * (kernel - 1) - 1) // stride + 1
    taps = [padded[:, :, k * dilation :][:, :, : stride * count : stride] for k in range(kernel)]
    got, places = F.max_pool1d(x, kernel, stride, padding, dilation, return_indices=True)
    assert np.array_equal(got.numpy(), np.max(np.stack([t[:, :, :count] for t in taps]), 0))
    assert torch.equal(x.gather(2, places), got)


def test_average_pooling_gradient_of_one_large_plane():
    x = rand(1, 1, 700, 900).requires_grad_()
    F.avg_pool2d(x, 3, 2, 1).sum().backward()
    counts = np.zeros((702, 902))
    for i in range(3):
        for j in range(3):
            counts[i : i + 2 * 350 : 2, j : j + 2 * 450 : 2] += 1 / 9
    np.testing.assert_allclose(x.grad[0, 0].numpy(), counts[1:-1, 1:-1], rtol=1e-5)


def by_linear(x, out):
    """Linear interpolation along the last dimension, in float64, corners not aligned."""
    n = x.shape[-1]
    position = np.maximum((np.arange(out) + 0.5) * n / out - 0.5, 0)
    low = np.minimum(position.astype(np.int64), n - 1)
    high = np.minimum(low + 1, n - 1)
    return x[..., low] * (1 - (position - low)) + x[..., high] * (position - low)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_interpolation_of_an_axis_in_parts(dtype):
    out = 2 * (1 << 20) + 777
    x = rand(1, 2, 1000, dtype=dtype)
    expected = by_linear(x.double().numpy(), out)
    got = F.interpolate(x, out, mode="linear")
    tolerance = {torch.float64: 1e-9, torch.float32: 2e-3, torch.float16: 2e-2}[dtype]
    np.testing.assert_allclose(got.double().numpy(), expected, atol=tolerance)
    nearest = F.interpolate(x, out)
    places = np.floor(np.arange(out, dtype=np.float32) * np.float32(np.float32(1000) / out))
    assert np.array_equal(nearest.numpy(), x.numpy()[..., np.minimum(places.astype(int), 999)])


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_interpolation_of_rows_in_parts_is_that_of_whole_ones(mode):
    # The long axis is the height in one and the width in the other.
    x = rand(1, 2, 50, 2, dtype=torch.float64)
    out = (1 << 20) + 999
    tall = F.interpolate(x, (out, 3), mode=mode)
    wide = F.interpolate(x.transpose(2, 3).contiguous(), (3, out), mode=mode)
    np.testing.assert_allclose(tall.numpy(), wide.transpose(2, 3).numpy(), atol=1e-12)
    last = F.interpolate(x.contiguous(memory_format=torch.channels_last), (out, 3), mode=mode)
    np.testing.assert_allclose(tall.numpy(), last.numpy(), atol=1e-12)


def test_identity_along_a_long_axis():
    x = rand(1, 1, 2, 2 * (1 << 20) + 5)
    for mode in ("nearest", "bilinear"):
        got = F.interpolate(x, (4, x.shape[3]), mode=mode)
        assert torch.equal(got[:, :, 0], x[:, :, 0]) and torch.equal(got[:, :, 3], x[:, :, 1])


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("shape", [(70_000, 3, -2), (3, 70_000, 5), (400, 500, 7), (500, 400, -9)])
def test_triangle_indices(lower, shape):
    rows, columns, offset = shape
    got = (torch.tril_indices if lower else torch.triu_indices)(rows, columns, offset)
    want = (np.tril_indices if lower else np.triu_indices)(rows, offset, columns)
    assert np.array_equal(got.numpy(), np.stack(want))


@pytest.mark.parametrize("n", [1 << 18, 3**11, 131_101, 2 * 131_101, 262_147])
def test_fft_of_long_lines(n):
    x = rand(n, dtype=torch.float64)
    spectrum = np.fft.fft(x.numpy())
    np.testing.assert_allclose(torch.fft.fft(x).numpy(), spectrum, atol=1e-6)
    np.testing.assert_allclose(torch.fft.rfft(x).numpy(), spectrum[: n // 2 + 1], atol=1e-6)
    back = torch.fft.irfft(torch.from_numpy(spectrum[: n // 2 + 1].copy()), n)
    np.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-9)


def test_histograms():
    x = rand(LONG)
    n = x.numpy()
    assert np.array_equal(torch.histc(x, 128, 0, 1).numpy(), np.histogram(n, 128, (0, 1))[0])
    edges = torch.linspace(0, 1, 65)
    got = torch.histogram(x, edges, density=True).hist
    want = np.histogram(n, edges.numpy(), density=True)[0]
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5)
    counts = (x * 1000).long()
    assert np.array_equal(torch.bincount(counts).numpy(), np.bincount(counts.numpy()))
    weighted = torch.bincount(counts, x.double())
    np.testing.assert_allclose(weighted.numpy(), np.bincount(counts.numpy(), n), rtol=1e-9)
    n = x.clone()
    n[LONG - 1] = float("nan")
    with pytest.raises(RuntimeError, match="not finite"):
        torch.histc(n, 10)


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("stride", [1, 2])
def test_unfold_of_a_large_plane(padding, stride):
    x = rand(1, 2, 1100, 1300)
    got = F.unfold(x, (2, 3), padding=padding, stride=stride)
    padded = np.pad(x.numpy(), [(0, 0), (0, 0), (padding,) * 2, (padding,) * 2])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 3), (2, 3))
    windows = windows[:, :, ::stride, ::stride]
    expected = windows.transpose(0, 1, 4, 5, 2, 3).reshape(1, 12, -1)
    assert np.array_equal(got.numpy(), expected)


def test_depthwise_convolution_of_large_planes():
    x = rand(1, 2, 2100, 2050)
    w = rand(2, 1, 2, 2, seed=1)
    n, k = x.double().numpy(), w[:, 0].double().numpy()[None, :, :, :, None, None]
    expected = sum(
        n[:, :, i : i + 2099, j : j + 2049] * k[:, :, i, j] for i in range(2) for j in range(2)
    )
    np.testing.assert_allclose(F.conv2d(x, w, groups=2).numpy(), expected, rtol=1e-5)


def test_scans():
    x = rand(LONG, dtype=torch.float64) - 0.5
    n = x.numpy()
    np.testing.assert_allclose(x.cumsum(0).numpy(), n.cumsum(), atol=1e-8)
    values, places = x.cummax(0)
    assert np.array_equal(values.numpy(), np.maximum.accumulate(n))
    assert torch.equal(x[places], values)
    two = x[: LONG // 2 * 2].view(-1, 2)
    np.testing.assert_allclose(two.cumsum(0).numpy(), two.numpy().cumsum(0), atol=1e-8)


def test_embedding_bag_of_one_long_bag():
    table = rand(100, 3, dtype=torch.float64).requires_grad_()
    indices = (rand(LONG, seed=3) * 100).long()
    offsets = torch.tensor([0, LONG - 7])
    for mode in ("sum", "mean", "max"):
        got = F.embedding_bag(indices, table, offsets, mode=mode)
        rows = table.detach().numpy()[indices.numpy()]
        how = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
        expected = np.stack([how(rows[: LONG - 7], 0), how(rows[LONG - 7 :], 0)])
        np.testing.assert_allclose(got.detach().numpy(), expected, rtol=1e-9)
    F.embedding_bag(indices, table, offsets, mode="sum").sum().backward()
    counts = np.bincount(indices.numpy(), minlength=100)
    np.testing.assert_allclose(table.grad.numpy(), np.repeat(counts[:, None], 3, 1))


def test_sparse_conversions_of_many_elements():
    places = (rand(2, 300_000, seed=5) * 500).long()
    values = rand(300_000, dtype=torch.float64)
    x = torch.sparse_coo_tensor(places, values, (500, 500))
    dense = np.zeros((500, 500))
    np.add.at(dense, tuple(places.numpy()), values.numpy())
    np.testing.assert_allclose(x.to_dense().numpy(), dense, rtol=1e-12)
    once = x.coalesce()
    np.testing.assert_allclose(once.to_dense().numpy(), dense, rtol=1e-12)
    np.testing.assert_allclose(once.to_sparse_csr().to_dense().numpy(), dense, rtol=1e-12)
    np.testing.assert_allclose(once.to_sparse_csc().to_dense().numpy(), dense, rtol=1e-12)
    np.testing.assert_allclose((once + once).to_dense().numpy(), 2 * dense, rtol=1e-12)
    np.testing.assert_allclose((once * once).to_dense().numpy(), dense**2, rtol=1e-12)
    vector = rand(500, 4, dtype=torch.float64)
    np.testing.assert_allclose((once @ vector).numpy(), dense @ vector.numpy(), rtol=1e-9)
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        torch.sparse_coo_tensor(places, values, (500, 499))


def test_lists_of_many_elements():
    x = (rand(300_000) * 1000).to(torch.int16)
    assert x.tolist() == x.numpy().tolist()
    assert x.view(-1, 3).tolist() == x.numpy().reshape(-1, 3).tolist()
    assert torch.equal(torch.tensor(x.view(-1, 3).tolist(), dtype=torch.int16), x.view(-1, 3))
    import gc

    small = torch.ones(2, 2).tolist()
    assert gc.is_tracked(small) and gc.is_tracked(small[0])


def normalized(x, eps=1e-5):
    return (x - x.mean()) / np.sqrt(x.var() + eps)


def test_normalisation_of_long_rows():
    x = rand(LONG, seed=7) * 3 + 5
    g = rand(LONG, seed=8)
    n, ng = x.double().numpy(), g.double().numpy()
    w, b = rand(LONG, seed=9), rand(LONG, seed=10)
    y = normalized(n)
    slope = (ng - ng.mean() - y * (ng * y).mean()) / np.sqrt(n.var() + 1e-5)
    np.testing.assert_allclose(
        F.layer_norm(x, x.shape, w, b).numpy(), y * w.numpy() + b.numpy(), atol=3e-5
    )
    np.testing.assert_allclose(
        F.rms_norm(x, x.shape, w).numpy(), n / np.sqrt((n * n).mean()) * w.numpy(), rtol=1e-5
    )
    calls = {
        "batch": lambda t: F.batch_norm(t.view(1, 1, -1), None, None, training=True),
        "instance": lambda t: F.instance_norm(t.view(1, 1, -1)),
        "group": lambda t: F.group_norm(t.view(1, 1, -1), 1),
        "group_weighted": lambda t: F.group_norm(t.view(1, 1, -1), 1, torch.ones(1)),
        "layer": lambda t: F.layer_norm(t, t.shape),
    }
    for call in calls.values():
        leaf = x.clone().requires_grad_()
        got = call(leaf).reshape(-1)
        np.testing.assert_allclose(got.detach().numpy(), y, atol=3e-5)
        got.backward(g)
        np.testing.assert_allclose(leaf.grad.numpy(), slope, atol=3e-5)


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, float("inf")])
def test_distances_of_long_rows(p):
    x, y = rand(2, LONG, dtype=torch.float64), rand(1, LONG, dtype=torch.float64, seed=1)
    y[0, 0] = x[0, 0]
    leaf = x.clone().requires_grad_()
    got = torch.cdist(leaf, y, p=p)
    d = np.abs(x.numpy() - y.numpy())
    expected = (d != 0).sum(1) if p == 0 else np.linalg.norm(d, p, axis=1)
    np.testing.assert_allclose(got[:, 0].detach().numpy(), expected, rtol=1e-9)
    pairs = torch.pdist(torch.cat([x, y]), p=p)
    np.testing.assert_allclose(pairs[1:].numpy(), expected, rtol=1e-9)
    got.sum().backward()
    if p in (1.5, 2.0):
        slope = np.sign(x.numpy() - y.numpy()) * (d / expected[:, None]) ** (p - 1)
        np.testing.assert_allclose(leaf.grad.numpy(), slope, rtol=1e-6, atol=1e-12)


def test_tril_of_one_long_row_and_of_a_strided_matrix():
    x = rand(2, 3, 100_000)
    for d in (-1, 0, 50_000, 99_998):
        assert np.array_equal(x.tril(d).numpy(), np.tril(x.numpy(), d))
        assert np.array_equal(x.triu(d).numpy(), np.triu(x.numpy(), d))
        t = x.transpose(1, 2)
        assert np.array_equal(t.tril(d).numpy(), np.tril(t.numpy(), d))
        y = x.clone()
        assert torch.equal(y.triu_(d), x.triu(d))


def test_lists_of_many_tensors():
    x = torch.arange(40_000.0)
    pieces = x.split(1)
    assert len(pieces) == 40_000 and pieces[39_999].item() == 39_999
    assert torch.equal(torch.cat(torch._foreach_add(pieces, 1)), x + 1)
    assert torch.equal(torch.stack(torch._foreach_norm(pieces)), x)
    assert torch.equal(torch.stack(list(x)), x)
