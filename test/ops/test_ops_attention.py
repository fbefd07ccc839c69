"""Attention against the formula in float64: blocked kernel, formula path and gradients."""

import math

import pytest

import torch
import torch.nn.functional as F

aten = torch.ops.aten
attend = F.scaled_dot_product_attention


def reference(q, k, v, mask=None, causal=False, scale=None):
    q, k, v = q.double(), k.double(), v.double()
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -math.inf)
    elif mask is not None:
        scores = scores + mask.double()
    weights = torch.softmax(scores, -1)
    return weights.masked_fill((scores == -math.inf).all(-1, keepdim=True), 0.0) @ v


def tensors(batch=2, heads=3, queries=5, keys=7, size=8, value_size=8, dtype=torch.float32):
    torch.manual_seed(0)
    q = torch.randn(batch, heads, queries, size).to(dtype)
    k = torch.randn(batch, heads, keys, size).to(dtype)
    return q, k, torch.randn(batch, heads, keys, value_size).to(dtype)


@pytest.mark.parametrize(
    "dtype, tolerance",
    [(torch.float64, 1e-12), (torch.float32, 2e-6), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)],
)
@pytest.mark.parametrize("queries, keys", [(1, 1), (5, 7), (150, 1100), (300, 40)])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_matches_the_formula(dtype, tolerance, queries, keys, causal):
    q, k, v = tensors(1, 2, queries, keys, 8, 12, dtype)
    got = attend(q, k, v, is_causal=causal)
    assert got.dtype == dtype
    assert torch.allclose(
        got.double(), reference(q, k, v, causal=causal), atol=tolerance, rtol=tolerance
    )
    got = attend(q, k, v, is_causal=causal, scale=0.3)
    assert torch.allclose(
        got.double(), reference(q, k, v, None, causal, 0.3), atol=tolerance, rtol=tolerance
    )


@pytest.mark.parametrize("shape", [(5, 7), (1, 7), (5, 1), (2, 1, 5, 7), (3, 5, 7), (2, 3, 5, 7)])
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_masks_broadcast(shape, kind):
    q, k, v = tensors()
    mask = torch.rand(shape) > 0.4 if kind == "bool" else torch.randn(shape)
    assert torch.allclose(attend(q, k, v, mask).double(), reference(q, k, v, mask), atol=2e-6)
    math_path = aten._scaled_dot_product_attention_math(q, k, v, mask)[0]
    assert torch.allclose(math_path.double(), reference(q, k, v, mask), atol=2e-6)


def test_masked_rows_are_zero_and_nan_stays():
    q, k, v = tensors()
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[2] = False
    assert (attend(q, k, v, mask)[:, :, 2] == 0).all()
    q[0, 0, 1, 0] = math.nan
    got = attend(q, k, v)
    assert torch.isnan(got[0, 0, 1]).all() and not torch.isnan(got[0, 0, 0]).any()


def test_grouped_heads_layouts_and_other_ranks():
    q, k, v = tensors(heads=4)
    few_k, few_v = k[:, :2], v[:, :2]
    want = reference(q, few_k.repeat_interleave(2, 1), few_v.repeat_interleave(2, 1))
    assert torch.allclose(attend(q, few_k, few_v, enable_gqa=True).double(), want, atol=2e-6)
    with pytest.raises(RuntimeError, match="Number of heads in key and value must divide"):
        attend(q, k[:, :3], v[:, :3], enable_gqa=True)
    swapped = q.transpose(1, 2).contiguous().transpose(1, 2)
    got = attend(swapped, k, v)
    assert got.stride() == swapped.stride() and torch.allclose(got, attend(q, k, v))
    for a, b, c in ((q[0], k[0], v[0]), (q[0, 0], k[0, 0], v[0, 0]), (q[None], k[None], v[None])):
        assert torch.allclose(attend(a, b, c).double(), reference(a, b, c), atol=2e-6)
    assert attend(q[:, :, :0], k, v).shape == (2, 4, 0, 8)
    assert (attend(q, k[:, :, :0], v[:, :, :0]) == 0).all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_gradients_match_differences(causal, groups):
    q, k, v = tensors(1, 2, 3, 4, 3, 3, torch.float64)
    k, v = k[:, : 2 // groups].contiguous(), v[:, : 2 // groups].contiguous()
    mask = None if causal else torch.randn(3, 4, dtype=torch.float64)
    out, lse = aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, 0.0, causal, attn_mask=mask
    )
    g = torch.randn(out.shape, dtype=torch.float64)
    got = aten._scaled_dot_product_flash_attention_for_cpu_backward(
        g, q, k, v, out, lse, 0.0, causal, attn_mask=mask
    )
    for place, gradient in enumerate(got):
        inputs = [q, k, v]
        base = inputs[place].flatten()
        for i in range(base.numel()):
            sums = []
            for step in (1e-6, -1e-6):
                moved = base.clone()
                moved[i] += step
                inputs[place] = moved.view(got[place].shape)
                value = attend(*inputs, mask, is_causal=causal, enable_gqa=groups > 1)
                sums.append(float((value * g).sum()))
            assert abs(float(gradient.flatten()[i]) - (sums[0] - sums[1]) / 2e-6) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("length", [5, 16, 130])
@pytest.mark.parametrize("group", [2, 4])
def test_shared_keys_have_the_gradients_of_repeated_ones(dtype, length, group):
    torch.manual_seed(0)
    q = torch.randn(2, 4, length, 8).to(dtype)
    k, v = (torch.randn(2, 4 // group, length, 8).to(dtype) for _ in range(2))
    mask = torch.ones(length, length, dtype=torch.bool).tril()

    def repeated(t):
        wide = t[:, :, None].expand(2, 4 // group, group, length, 8)
        return wide.reshape(2, 4, length, 8)

    results = []
    for call in (
        lambda q, k, v: attend(q, k, v, is_causal=True, enable_gqa=True),
        lambda q, k, v: attend(q, repeated(k), repeated(v), mask),
    ):
        leaves = [t.clone().requires_grad_() for t in (q, k, v)]
        out = call(*leaves)
        results.append((out, *torch.autograd.grad(out.float().sin().sum(), leaves)))
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_dropout_zeroes_and_rescales():
    q, k, v = tensors()
    torch.manual_seed(1)
    got = attend(q, k, v, dropout_p=0.5)
    torch.manual_seed(1)
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(8), -1)
    assert torch.allclose(got, F.dropout(weights, 0.5) @ v, atol=1e-6)
    assert (attend(q, k, v, dropout_p=1.0) == 0).all()
    with pytest.raises(
        (RuntimeError, ValueError), match="dropout probability has to be between 0 and 1"
    ):
        attend(q, k, v, dropout_p=1.5)


@pytest.mark.parametrize(
    "change, phrase",
    [
        (
            lambda q, k, v: attend(q[0], k[0], v[0], torch.ones(5, 7).bool(), is_causal=True),
            "should not be set when",
        ),
        (lambda q, k, v: attend(q[0, 0, 0], k, v), "at least 2 dimensional"),
        (lambda q, k, v: attend(q.double(), k, v), "to have the same dtype"),
        (
            lambda q, k, v: attend(q, k, v, torch.ones(5, 7).long()),
            "Expected attn_mask dtype to be bool",
        ),
    ],
)
def test_attention_errors(change, phrase):
    with pytest.raises(RuntimeError, match=phrase):
        change(*tensors())


def test_results_do_not_depend_on_the_number_of_threads():
    q, k, v = tensors(2, 2, 200, 700, 16, 16)
    threads = torch.get_num_threads()
    try:
        results = []
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            results.append(attend(q, k, v, is_causal=True))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])


def test_backward_without_data_has_the_shapes_of_the_real_one():
    q, k, v = tensors(heads=4)
    k, v = k[:, :2], v[:, :2]
    out, lse = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)
    args = (torch.ones_like(out), q, k, v, out, lse, 0.0, False)
    real = aten._scaled_dot_product_flash_attention_for_cpu_backward(*args)
    meta = aten._scaled_dot_product_flash_attention_for_cpu_backward(
        *(a.to("meta") if isinstance(a, torch.Tensor) else a for a in args)
    )
    for a, b in zip(real, meta, strict=True):
        assert (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype)


@pytest.mark.parametrize("queries, keys", [(8, 3), (64, 64), (70, 131), (131, 300), (200, 70)])
@pytest.mark.parametrize("case", ["plain", "causal", "mask", "hidden rows"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_blocks_of_queries_give_results_and_gradients_of_the_formula(queries, keys, case, dtype):
    q, k, v = (t.transpose(1, 2) for t in tensors(2, 4, queries, keys, 19, 33, dtype))
    q, k, v = (t.contiguous().transpose(1, 2).requires_grad_() for t in (q, k, v))
    mask = None
    if case in ("mask", "hidden rows"):
        mask = torch.rand(2, 1, queries, keys) > 0.3
        mask[..., 0] = True
        if case == "hidden rows":
            mask[:, :, 3::5] = False
    wide = [t.detach().double().requires_grad_() for t in (q, k, v)]
    weight = torch.randn(2, 4, queries, 33).to(dtype)
    out = attend(q, k, v, mask, is_causal=case == "causal")
    expected = reference(*wide, mask=mask, causal=case == "causal")
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(out.double(), expected, atol=tolerance, rtol=tolerance)
    out.backward(weight)
    # The formula's softmax has no gradient where a row is hidden.
    seen = expected.detach().abs().sum(-1, keepdim=True) > 0
    (expected * (weight.double() * seen)).nan_to_num().sum().backward()
    for mine, theirs in zip((q, k, v), wide, strict=True):
        torch.testing.assert_close(
            mine.grad.double(), theirs.grad.nan_to_num(), atol=4 * tolerance, rtol=4 * tolerance
        )


@pytest.mark.parametrize("causal", [False, True])
def test_blocks_of_queries_have_the_same_bits_on_any_number_of_threads(causal):
    q, k, v = (t.requires_grad_() for t in tensors(2, 4, 150, 170, 32, 32))
    k, v = (t.detach()[:, :2].requires_grad_() for t in (k, v))
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            out = attend(q, k, v, is_causal=causal, enable_gqa=True)
            results.append((out, *torch.autograd.grad(out.sin().sum(), (q, k, v))))
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))
