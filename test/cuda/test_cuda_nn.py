"""Layers, losses and indexing on CUDA against float64 formulas and the CPU's kernels."""

import numpy as np
import pytest
from cuda_support import cuda

import torch
import torch.nn.functional as F

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def close(got, want, dtype, scale=1.0):
    assert got.device.type == "cuda" and got.dtype == dtype
    tolerance = TOLERANCE[dtype] * scale
    want = want.double().numpy() if isinstance(want, torch.Tensor) else want
    np.testing.assert_allclose(got.cpu().double().numpy(), want, rtol=tolerance, atol=tolerance)


def same(got, want):
    """Equal in every respect but the device."""
    assert got.device.type == "cuda"
    assert got.dtype == want.dtype and got.shape == want.shape
    assert torch.equal(got.cpu(), want)


def softmax_reference(x, axis, log):
    shifted = x - x.max(axis=axis, keepdims=True)
    total = np.exp(shifted).sum(axis=axis, keepdims=True)
    return shifted - np.log(total) if log else np.exp(shifted) / total


# ---- softmax
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape, dim",
    [((5, 7), -1), ((9, 128), 1), ((3, 1000), 1), ((6, 1024), 1), ((2, 5003), 1), ((2, 4, 3), 1)],
)
def test_softmax_and_its_gradient_match_the_formula(shape, dim, dtype, log):
    torch.manual_seed(1)
    x = (torch.randn(shape) * 4).to(dtype)
    g = torch.randn(shape).to(dtype)
    want = softmax_reference(x.double().numpy(), dim, log)
    on_gpu = x.to(cuda).requires_grad_()
    y = (F.log_softmax if log else F.softmax)(on_gpu, dim)
    close(y.detach(), want, dtype)
    y.backward(g.to(cuda))
    g64 = g.double().numpy()
    saved = y.detach().cpu().double().numpy()
    if log:
        want = g64 - np.exp(saved) * g64.sum(axis=dim, keepdims=True)
    else:
        want = saved * (g64 - (g64 * saved).sum(axis=dim, keepdims=True))
    close(on_gpu.grad, want, dtype, scale=8)


def test_softmax_of_half_to_float_converts_inside():
    x = torch.randn(4, 33).to(torch.bfloat16)
    y = torch.softmax(x.to(cuda), 1, dtype=torch.float32)
    close(y, softmax_reference(x.double().numpy(), 1, False), torch.float32)
    wide = torch.randn(2, 3000).half()
    y = torch.log_softmax(wide.to(cuda), 1, dtype=torch.float32)
    close(y, softmax_reference(wide.double().numpy(), 1, True), torch.float32, scale=2)


@pytest.mark.parametrize("n", [5, 700, 3000])
def test_softmax_of_infinities_and_nan_is_the_cpus(n):
    x = torch.randn(4, n)
    x[0] = float("-inf")
    x[1, n // 2] = float("inf")
    x[2, n - 1] = float("nan")
    x[3, : n // 2] = float("-inf")
    got = torch.softmax(x.to(cuda), 1).cpu()
    want = torch.softmax(x, 1)
    torch.testing.assert_close(got, want, equal_nan=True)


def test_softmax_of_views_empty_and_zero_dim():
    x = torch.randn(6, 10)
    close(
        torch.softmax(x.to(cuda).t(), 1),
        softmax_reference(x.t().double().numpy(), 1, False),
        torch.float32,
    )
    close(
        torch.softmax(x.to(cuda)[:, 1:], 1),
        softmax_reference(x[:, 1:].double().numpy(), 1, False),
        torch.float32,
    )
    assert torch.softmax(torch.empty(0, 3, device=cuda), 1).shape == (0, 3)
    assert torch.softmax(torch.tensor(3.0, device=cuda), 0).item() == 1.0
    with pytest.raises(NotImplementedError, match="softmax"):
        torch._softmax(torch.ones(3, dtype=torch.int64, device=cuda), 0, False)


# ---- norms
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [1, 8, 33, 768, 1024, 1500, 4100])
@pytest.mark.parametrize("affine", [False, True])
def test_layer_norm_and_its_gradients_match_the_formula(n, dtype, affine):
    torch.manual_seed(2)
    rows = 37 if n < 100 else 7
    x = (torch.randn(rows, n) * 3 + 1).to(dtype)
    g = torch.randn(rows, n).to(dtype)
    w, b = torch.randn(n).to(dtype), torch.randn(n).to(dtype)
    dx, dw, db = (t.to(cuda).requires_grad_() for t in (x, w, b))
    y = F.layer_norm(dx, (n,), dw if affine else None, db if affine else None)
    x64, g64, w64 = (t.double().numpy() for t in (x, g, w if affine else torch.ones(n)))
    mean = x64.mean(1, keepdims=True)
    rstd = 1 / np.sqrt(x64.var(1, keepdims=True) + 1e-5)
    h = (x64 - mean) * rstd
    close(y.detach(), h * w64 + (b.double().numpy() if affine else 0), dtype, scale=2)
    y.backward(g.to(cuda))
    u = g64 * w64
    want = rstd * (u - u.mean(1, keepdims=True) - h * (u * h).mean(1, keepdims=True))
    close(dx.grad, want, dtype, scale=max(4, float(np.abs(rstd).max())))
    if affine:
        close(dw.grad, (g64 * h).sum(0), dtype, scale=8)
        close(db.grad, g64.sum(0), dtype, scale=8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("n", [64, 77, 2050])
def test_rms_norm_and_its_gradients_match_the_formula(n, dtype):
    x, g, w = torch.randn(9, n).to(dtype), torch.randn(9, n).to(dtype), torch.randn(n).to(dtype)
    dx, dw = x.to(cuda).requires_grad_(), w.to(cuda).requires_grad_()
    y = F.rms_norm(dx, (n,), dw, 1e-5)
    x64, g64, w64 = (t.double().numpy() for t in (x, g, w))
    rstd = 1 / np.sqrt((x64**2).mean(1, keepdims=True) + 1e-5)
    h = x64 * rstd
    close(y.detach(), h * w64, dtype, scale=2)
    y.backward(g.to(cuda))
    u = g64 * w64
    close(dx.grad, rstd * (u - h * (u * h).mean(1, keepdims=True)), dtype, scale=4)
    close(dw.grad, (g64 * h).sum(0), dtype, scale=4)


def test_layer_norm_keeps_statistics_in_float_and_mixes_types():
    x = torch.randn(5, 16, device=cuda, dtype=torch.bfloat16)
    w = torch.ones(16, device=cuda)
    y, mean, rstd = torch.native_layer_norm(x, (16,), w, w, 1e-5)
    assert (y.dtype, mean.dtype, rstd.dtype) == (torch.bfloat16, torch.float32, torch.float32)
    assert mean.shape == (5, 1)
    with pytest.raises(RuntimeError, match="same device"):
        F.layer_norm(x.float(), (16,), torch.ones(16))
    with pytest.raises(RuntimeError, match="normalized_shape"):
        F.layer_norm(x, (15,))


# ---- losses
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_and_its_gradient_match_the_cpu(dtype, reduction, weighted):
    torch.manual_seed(3)
    x = torch.randn(50, 11)
    target = torch.randint(11, (50,))
    target[7] = -100
    w = torch.rand(11) if weighted else None
    a = x.double().requires_grad_()
    b = x.to(dtype).to(cuda).requires_grad_()
    want = F.cross_entropy(a, target, w.double() if weighted else None, reduction=reduction)
    got = F.cross_entropy(
        b, target.to(cuda), w.to(dtype).to(cuda) if weighted else None, reduction=reduction
    )
    close(got.detach(), want.detach(), dtype, scale=20 if reduction == "sum" else 2)
    want.sum().backward()
    got.sum().backward()
    close(b.grad, a.grad, dtype, scale=2)


@pytest.mark.parametrize("n", [3, 1000, 5003])
def test_cross_entropy_of_long_rows_ignored_rows_and_infinities(n):
    x = torch.randn(6, n) * 3
    x[1, : n - 1] = float("-inf")
    target = torch.tensor([0, n - 1, -100, 2, n // 2, 1])
    a, b = x.double().requires_grad_(), x.to(cuda).requires_grad_()
    want = F.cross_entropy(a, target)
    got = F.cross_entropy(b, target.to(cuda))
    close(got.detach(), want.detach(), torch.float32)
    want.backward()
    got.backward()
    close(b.grad, a.grad, torch.float32)
    assert bool((b.grad[2] == 0).all())
    x[0, 1] = float("nan")
    assert F.cross_entropy(x.to(cuda), target.to(cuda)).isnan().item()


def test_cross_entropy_under_autocast_reads_half_and_gives_float():
    x, target = torch.randn(6, 40).to(torch.bfloat16), torch.randint(40, (6,))
    a, b = x.double().requires_grad_(), x.to(cuda).requires_grad_()
    want = F.cross_entropy(a, target)
    with torch.autocast("cuda", torch.bfloat16):
        got = F.cross_entropy(b, target.to(cuda))
        smooth = F.cross_entropy(b, target.to(cuda), label_smoothing=0.1)
    close(got.detach(), want.detach(), torch.float32)
    assert smooth.dtype == torch.float32
    want.backward()
    got.backward()
    close(b.grad, a.grad, torch.bfloat16)


def test_cross_entropy_can_be_differentiated_twice():
    x, target = torch.randn(4, 5, dtype=torch.float64), torch.tensor([1, 0, 4, 2])
    results = []
    for device in ("cpu", cuda):
        v = x.to(device).requires_grad_()
        loss = F.cross_entropy(v, target.to(device))
        (first,) = torch.autograd.grad(loss, v, create_graph=True)
        (second,) = torch.autograd.grad((first**2).sum(), v)
        results.append(second.cpu())
    torch.testing.assert_close(*results)


def test_nll_loss_over_images_and_single_samples():
    x = torch.randn(2, 5, 3, 4).log_softmax(1)
    target = torch.randint(5, (2, 3, 4))
    same_shape = F.nll_loss(x.to(cuda), target.to(cuda), reduction="none")
    same(same_shape, F.nll_loss(x, target, reduction="none"))
    got = F.nll_loss(x.to(cuda), target.to(cuda))
    close(got, F.nll_loss(x, target), torch.float32)
    got = F.nll_loss(x[0, :, 0, 0].to(cuda), target[0, 0, 0].to(cuda))
    close(got, F.nll_loss(x[0, :, 0, 0], target[0, 0, 0]), torch.float32)


def test_bad_target_raises_index_error_at_synchronisation_and_the_process_goes_on():
    x = torch.randn(4, 3, device=cuda)
    loss = F.cross_entropy(x, torch.tensor([0, 1, 5, 2], device=cuda))
    with pytest.raises(IndexError, match="5"):
        loss.item()
    assert F.cross_entropy(x, torch.tensor([0, 1, 2, 2], device=cuda)).item() > 0


# ---- embedding and indexing
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("width", [3, 16, 64])
def test_embedding_and_its_gradient_match_the_cpu(dtype, width):
    torch.manual_seed(4)
    weight = torch.randn(20, width).to(dtype)
    index = torch.randint(20, (6, 9))
    a, b = weight.clone().requires_grad_(), weight.to(cuda).requires_grad_()
    want = F.embedding(index, a, padding_idx=3)
    got = F.embedding(index.to(cuda), b, padding_idx=3)
    same(got.detach(), want.detach())
    g = torch.randn(want.shape).to(dtype)
    want.backward(g)
    got.backward(g.to(cuda))
    reference = np.zeros((20, width))
    np.add.at(reference, index.numpy().ravel(), g.double().numpy().reshape(-1, width))
    reference[3] = 0
    close(b.grad, reference, dtype, scale=4)


def test_embedding_gradient_of_many_lookups_and_by_frequency():
    index = torch.randint(50, (5000,))
    g = torch.randn(5000, 8)
    got = torch.ops.aten.embedding_dense_backward(g.to(cuda), index.to(cuda), 50, -1, False)
    want = np.zeros((50, 8))
    np.add.at(want, index.numpy(), g.double().numpy())
    close(got, want, torch.float32, scale=20)
    again = torch.ops.aten.embedding_dense_backward(g.to(cuda), index.to(cuda), 50, -1, False)
    assert torch.equal(got.cpu(), again.cpu())
    got = torch.ops.aten.embedding_dense_backward(g.to(cuda), index.to(cuda), 50, -1, True)
    close(got, want / np.bincount(index.numpy(), minlength=50)[:, None], torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.complex128])
def test_index_reads_and_writes_match_the_cpu(dtype):
    torch.manual_seed(5)
    x = (torch.randn(6, 5, 4) * 9).to(dtype)
    i, j = torch.tensor([4, -1, 0]), torch.tensor([[1], [3]])
    mask = torch.rand(6, 5) > 0.5
    c = x.to(cuda)
    same(c[i.to(cuda)], x[i])
    same(c[:, j.to(cuda), 2], x[:, j, 2])
    same(c[i.to(cuda), :, j.to(cuda)], x[i, :, j])
    same(c[mask.to(cuda)], x[mask])
    same(c[i], x[i])  # CPU indices may accompany a CUDA tensor
    same(
        c.index_select(1, torch.tensor([3, 0, 3], device=cuda)),
        x.index_select(1, torch.tensor([3, 0, 3])),
    )
    same(
        c.take(torch.tensor([[0, 119], [-1, 7]], device=cuda)),
        x.take(torch.tensor([[0, 119], [-1, 7]])),
    )
    values = (torch.randn(3, 5, 4) * 9).to(dtype)
    a, b = x.clone(), c.clone()
    a[i] = values
    b[i.to(cuda)] = values.to(cuda)
    same(b, a)
    a[mask], b[mask.to(cuda)] = 1, 1
    same(b, a)
    a[:, 1:3] = a[:, :2].clone()
    b[:, 1:3] = b[:, :2].clone()
    same(b, a)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.bfloat16])
def test_scatter_and_gather_match_the_cpu(dtype):
    torch.manual_seed(6)
    x = (torch.randn(7, 9) * 5).to(dtype)
    index = torch.randint(7, (4, 6))
    src = (torch.randn(5, 6) * 5).to(dtype)
    c, ci, cs = x.to(cuda), index.to(cuda), src.to(cuda)
    same(c.gather(0, ci), x.gather(0, index))
    same(c.t().gather(1, ci.t()), x.t().gather(1, index.t()))
    unique = torch.stack([torch.randperm(7)[:4] for _ in range(6)], 1)
    same(c.scatter(0, unique.to(cuda), cs), x.scatter(0, unique, src))
    same(c.scatter(0, unique.to(cuda), 3), x.scatter(0, unique, 3))
    for got, want in [
        (c.scatter_add(0, ci, cs), x.scatter_add(0, index, src)),
        (c.scatter_reduce(0, ci, cs, "amax"), x.scatter_reduce(0, index, src, "amax")),
        (
            c.scatter_reduce(0, ci, cs, "amin", include_self=False),
            x.scatter_reduce(0, index, src, "amin", include_self=False),
        ),
        (c.scatter_reduce(0, ci, cs, "mean"), x.scatter_reduce(0, index, src, "mean")),
        (
            c.index_add(0, ci[0], cs[:1].expand(6, 6)[:, :1].expand(6, 9), alpha=2),
            x.index_add(0, index[0], src[:1].expand(6, 6)[:, :1].expand(6, 9), alpha=2),
        ),
    ]:
        if dtype == torch.int32:
            same(got, want)
        else:
            close(got, want, dtype, scale=4)


def test_accumulating_index_put_is_exact_and_repeatable():
    x = torch.zeros(10, 3)
    i = torch.randint(10, (4000,))
    v = torch.randn(4000, 3)
    got = torch.zeros(10, 3, device=cuda).index_put((i.to(cuda),), v.to(cuda), accumulate=True)
    want = np.zeros((10, 3))
    np.add.at(want, i.numpy(), v.double().numpy())
    close(got, want, torch.float32, scale=30)
    again = x.to(cuda).index_put((i.to(cuda),), v.to(cuda), accumulate=True)
    assert torch.equal(got, again)


def test_combining_of_bool_and_complex_matches_the_cpu():
    index = torch.tensor([0, 2, 0, 0, 2])
    for dtype in (torch.bool, torch.complex128):
        x, v = torch.zeros(3, 2, dtype=dtype), torch.randn(5, 2).to(dtype)
        got = x.to(cuda).index_add(0, index.to(cuda), v.to(cuda)).cpu()
        torch.testing.assert_close(got, x.index_add(0, index, v))
    with pytest.raises(NotImplementedError, match="Complex"):
        z = torch.ones(2, dtype=torch.complex64, device=cuda)
        z.scatter_reduce(0, torch.tensor([0], device=cuda), z[:1], "amax")
    same(
        torch.nonzero_static(torch.tensor([0, 1, 1, 0], device=cuda), size=3),
        torch.nonzero_static(torch.tensor([0, 1, 1, 0]), size=3),
    )
    same(F.one_hot(torch.tensor([2, 0], device=cuda)), F.one_hot(torch.tensor([2, 0])))


def test_nonzero_and_masks_match_the_cpu():
    x = torch.randn(13, 700)
    x[x.abs() < 0.8] = 0
    c = x.to(cuda)
    same(torch.nonzero(c), torch.nonzero(x))
    same(torch.masked_select(c, c > 1), torch.masked_select(x, x > 1))
    same(torch.nonzero(torch.zeros(3, device=cuda)), torch.nonzero(torch.zeros(3)))
    assert torch.nonzero(torch.tensor(1.0, device=cuda)).shape == (1, 0)
    source = torch.arange(9100.0)
    same(c.masked_scatter(c > 0, source.to(cuda)), x.masked_scatter(x > 0, source))


def test_bad_indices_name_operator_value_and_bound():
    x = torch.randn(4, 3, device=cuda)
    for call, word in [
        (lambda: x[torch.tensor([1, 9], device=cuda)], "9"),
        (lambda: x.index_select(0, torch.tensor([-1], device=cuda)), "-1"),
        (lambda: x.gather(1, torch.tensor([[3]], device=cuda)), "3"),
        (lambda: F.embedding(torch.tensor([77], device=cuda), x), "77"),
    ]:
        result = call()
        with pytest.raises(IndexError, match=word):
            result.cpu()
    assert x.cpu().shape == (4, 3)


# ---- cat, sort
def test_cat_and_stack_match_the_cpu():
    parts = [torch.randn(3, n, 4) for n in (1, 5, 0, 2)]
    on_gpu = [p.to(cuda) for p in parts]
    same(torch.cat(on_gpu, 1), torch.cat(parts, 1))
    same(
        torch.cat([on_gpu[1].transpose(0, 2), on_gpu[1].transpose(0, 2)]),
        torch.cat([parts[1].transpose(0, 2)] * 2),
    )
    same(torch.cat([on_gpu[0], on_gpu[1].double()], 1), torch.cat([parts[0], parts[1].double()], 1))
    same(torch.stack([on_gpu[1]] * 3, 1), torch.stack([parts[1]] * 3, 1))
    many = [torch.full((2,), float(i)) for i in range(200)]
    same(torch.cat([m.to(cuda) for m in many]), torch.cat(many))
    same(
        torch.cat([torch.ones(3, dtype=torch.uint8, device=cuda)[1:]] * 2),
        torch.cat([torch.ones(3, dtype=torch.uint8)[1:]] * 2),
    )


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int8, torch.uint8]
)
@pytest.mark.parametrize("n", [1, 7, 300, 5000])
def test_sort_is_stable_and_matches_the_cpu(dtype, n):
    torch.manual_seed(7)
    x = (torch.randn(3, n) * 50).to(dtype)
    if dtype.is_floating_point and n > 5:
        x[0, 3] = float("nan")
        x[1, 2], x[1, 4] = 0.0, -0.0
    for descending in (False, True):
        got = torch.sort(x.to(cuda), 1, descending=descending)
        want = torch.sort(x, dim=1, descending=descending, stable=True)
        assert torch.equal(got.indices.cpu(), want.indices)
        torch.testing.assert_close(got.values.cpu(), want.values, rtol=0, atol=0, equal_nan=True)


def test_topk_and_argsort_along_other_dimensions():
    x = torch.randn(40, 5)
    got, want = torch.topk(x.to(cuda), 7, 0), torch.topk(x, 7, 0)
    same(got.values, want.values)
    same(got.indices, want.indices)
    same(torch.topk(x.to(cuda), 2, 1, largest=False).values, torch.topk(x, 2, 1, False).values)
    same(torch.argsort(x.to(cuda), 0), torch.argsort(x, 0))
    for dtype in (torch.float32, torch.bfloat16, torch.int32, torch.int64):
        y = (torch.randn(3, 3000) * 100).to(dtype)
        if dtype.is_floating_point:
            y[0, 5] = float("nan")
        for largest in (True, False):
            got = torch.topk(y.to(cuda), 9, 1, largest)
            order = torch.sort(y, dim=1, descending=largest, stable=True).indices[:, :9]
            assert torch.equal(got.indices.cpu(), order)
            torch.testing.assert_close(got.values.cpu(), y.gather(1, order), equal_nan=True)


# ---- attention and a whole block
def attention_reference(q, k, v, causal):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    return softmax_reference(scores, -1, False) @ v


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("queries, keys", [(10, 10), (5, 36), (3, 1030), (300, 300), (300, 40)])
def test_attention_and_its_gradients_match_the_formula(queries, keys, causal, dtype):
    torch.manual_seed(8)
    q = torch.randn(2, queries, 3, 8).to(dtype).transpose(1, 2)
    k, v = (torch.randn(2, 3, keys, 8).to(dtype) for _ in range(2))
    a, b, c = (t.to(cuda).requires_grad_() for t in (q, k, v))
    got = F.scaled_dot_product_attention(a, b, c, is_causal=causal)
    close(
        got.detach(),
        attention_reference(*(t.double().numpy() for t in (q, k, v)), causal),
        dtype,
        scale=2,
    )
    g = torch.randn(got.shape).to(dtype)
    got.backward(g.to(cuda))
    x, y, z = (t.double().requires_grad_() for t in (q, k, v))
    F.scaled_dot_product_attention(x, y, z, is_causal=causal).backward(g.double())
    for ours, want in ((a, x), (b, y), (c, z)):
        close(ours.grad, want.grad, dtype, scale=8)


def test_attention_with_a_mask_matches_the_cpu():
    q, k, v = (torch.randn(2, 3, 10, 8) for _ in range(3))
    mask = torch.rand(10, 10) > 0.3
    mask[:, 0] = True
    want = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    got = F.scaled_dot_product_attention(q.to(cuda), k.to(cuda), v.to(cuda), mask.to(cuda))
    close(got, want, torch.float32, scale=2)


def test_a_small_transformer_block_trains_like_the_cpus():
    torch.manual_seed(9)
    block = torch.nn.Sequential(
        torch.nn.Embedding(30, 16),
        torch.nn.LayerNorm(16),
        torch.nn.Linear(16, 32),
        torch.nn.GELU(),
        torch.nn.Linear(32, 30),
    )
    twin = torch.nn.Sequential(
        torch.nn.Embedding(30, 16),
        torch.nn.LayerNorm(16),
        torch.nn.Linear(16, 32),
        torch.nn.GELU(),
        torch.nn.Linear(32, 30),
    )
    twin.load_state_dict(block.state_dict())
    twin.to(cuda)
    data = torch.randint(30, (12,))
    losses = []
    for net, tokens in ((block, data), (twin, data.to(cuda))):
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
        for _ in range(4):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(tokens[:-1]), tokens[1:])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


# ---- gradients that a norm adds to the sum that came past its block


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
def test_norm_of_a_residual_block_adds_its_gradient_with_the_bits_of_an_addition(norm, dtype):
    torch.manual_seed(1)
    x, weight = torch.randn(9, 64).to(dtype), torch.randn(64).to(dtype)

    def gradients(watched):
        leaf = x.to(cuda).requires_grad_()
        stream = leaf * 2  # not a leaf: its sum is the engine's own
        inner = getattr(F, norm)(stream, (64,), weight.to(cuda))
        seen = []
        if watched:  # a hook must see the norm's gradient alone
            inner.grad_fn.register_hook(lambda to_inputs, _: seen.append(to_inputs[0].clone()))
        (stream + inner.sin()).square().sum().backward()
        return leaf.grad, seen

    together, _ = gradients(False)
    apart, seen = gradients(True)
    assert torch.equal(together, apart)
    wide = x.double().requires_grad_()
    stream = wide * 2
    inner = getattr(F, norm)(stream, (64,), weight.double())
    stream.retain_grad()
    (stream + inner.sin()).square().sum().backward()
    tolerance = {torch.float32: 1e-4, torch.float64: 1e-10, torch.bfloat16: 0.3}[dtype]
    torch.testing.assert_close(together.cpu().double(), wide.grad, rtol=tolerance, atol=tolerance)
    past = (2 * (stream + inner.sin())).detach()
    torch.testing.assert_close(
        seen[0].cpu().double(), (stream.grad - past), rtol=tolerance, atol=tolerance
    )


def test_sum_that_somebody_holds_is_not_written_to():
    x = torch.randn(4, 64, device=cuda, requires_grad=True)
    stream = x * 2
    held = []
    stream.register_hook(lambda grad: held.append(grad))
    y = F.layer_norm(stream, (64,))
    past = torch.ones(4, 64, device=cuda)
    torch.autograd.backward([y, stream], [torch.ones_like(y), past])
    assert torch.equal(past, torch.ones_like(past))
    assert torch.equal(x.grad, 2 * held[0])
