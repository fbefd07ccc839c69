"""Fused attention on CUDA (16-bit types) against float64 NumPy: the output, the saved logarithms
and all gradients, for both widths of the kernels, lengths that no tile divides, causal and not,
grouped heads, layouts, and the calls that must stay on the composed path."""

import numpy as np
import pytest
from cuda_support import cuda

import torch
import torch.nn.functional as F

BITS = {torch.float16: 11, torch.bfloat16: 8}


def reference(q, k, v, causal, scale, grad):
    """Output, logarithms of sums and gradients by the formula; q may have more heads than k."""
    group = q.shape[1] // k.shape[1]
    wide_k, wide_v = (t.repeat(group, axis=1) for t in (k, v))
    scores = q @ wide_k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    weights /= total
    out = weights @ wide_v
    to_weights = grad @ wide_v.swapaxes(-1, -2)
    to_scores = weights * (to_weights - (grad * out).sum(-1, keepdims=True)) * scale
    dk, dv = to_scores.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ grad
    dk, dv = (t.reshape(k.shape[0], k.shape[1], group, *k.shape[2:]).sum(2) for t in (dk, dv))
    return out, (top + np.log(total))[..., 0], to_scores @ wide_k, dk, dv


def close(got, want, dtype, slack=1):
    """Within a few roundings to dtype of the largest element: probabilities are rounded once."""
    want = np.asarray(want)
    error = np.abs(got.detach().cpu().double().numpy() - want).max()
    limit = slack * 2.0 ** -BITS[dtype] * max(np.abs(want).max(), 1e-2)
    assert error <= limit, f"{error} > {limit}"


def operands(dtype, batch, heads, key_heads, queries, keys, dim):
    torch.manual_seed(queries * 1000 + keys)
    q, g = (torch.randn(batch, heads, queries, dim).to(dtype) for _ in range(2))
    k, v = (torch.randn(batch, key_heads, keys, dim).to(dtype) for _ in range(2))
    return q, k, v, g


def check(q, k, v, g, causal, scale=None, **options):
    dtype, factor = q.dtype, q.shape[-1] ** -0.5 if scale is None else scale
    a, b, c = (t.to(cuda).requires_grad_() for t in (q, k, v))
    got = F.scaled_dot_product_attention(a, b, c, is_causal=causal, scale=scale, **options)
    assert "Fused" in type(got.grad_fn).__name__
    got.backward(g.to(cuda))
    out, _, dq, dk, dv = reference(
        *(t.double().numpy() for t in (q, k, v)), causal, factor, g.double().numpy()
    )
    assert got.dtype == dtype and got.shape == q.shape
    close(got, out, dtype, 2)
    for ours, want in ((a, dq), (b, dk), (c, dv)):
        assert ours.grad.shape == ours.shape
        close(ours.grad, want, dtype, 4)
    return got, a.grad, b.grad, c.grad


LENGTHS = [(1, 1), (17, 40), (64, 64), (129, 70), (70, 150), (150, 150)]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype, dim", [(torch.bfloat16, 64), (torch.float16, 128)])
@pytest.mark.parametrize("queries, keys", LENGTHS)
def test_output_and_gradients_match_the_formula(queries, keys, dtype, dim, causal):
    check(*operands(dtype, 1, 1, 1, queries, keys, dim), causal)


@pytest.mark.parametrize("dtype, dim", [(torch.float16, 64), (torch.bfloat16, 128)])
def test_several_samples_and_heads(dtype, dim):
    check(*operands(dtype, 2, 2, 2, 33, 65, dim), True)


@pytest.mark.parametrize("dim", [8, 40, 96])
def test_narrower_heads_than_the_kernels_width(dim):
    check(*operands(torch.float16, 1, 2, 2, 20, 30, dim), False)


@pytest.mark.parametrize("scale", [0.01, 1.0])
def test_scale(scale):
    check(*operands(torch.float16, 1, 1, 1, 20, 66, 64), True, scale=scale)


@pytest.mark.parametrize("causal", [False, True])
def test_heads_that_share_keys(causal):
    check(*operands(torch.bfloat16, 2, 4, 2, 40, 70, 64), causal, enable_gqa=True)


def test_logarithms_of_the_sums():
    q, k, v, g = operands(torch.bfloat16, 1, 2, 2, 50, 70, 64)
    _, lse = torch.ops.aten._fused_attention(q.to(cuda), k.to(cuda), v.to(cuda), True, 0.125)
    want = reference(*(t.double().numpy() for t in (q, k, v)), True, 0.125, g.double().numpy())[1]
    assert lse.dtype == torch.float32
    np.testing.assert_allclose(lse.cpu().numpy(), want, rtol=1e-5, atol=1e-5)


def test_heads_split_off_rows_need_no_copies():
    features = torch.randn(2, 30, 3 * 2 * 64).to(torch.bfloat16)
    x = features.to(cuda).requires_grad_()
    q, k, v = (t.view(2, 30, 2, 64).transpose(1, 2) for t in x.split(128, dim=2))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert out.transpose(1, 2).is_contiguous()
    g = torch.randn(out.shape).to(torch.bfloat16)
    out.backward(g.to(cuda))
    parts = [t.reshape(2, 30, 2, 64).transpose(1, 2) for t in features.split(128, dim=2)]
    want = reference(*(t.double().numpy() for t in parts), True, 0.125, g.double().numpy())
    close(out, want[0], torch.bfloat16, 2)
    grads = [t.reshape(2, 30, 2, 64).transpose(1, 2) for t in x.grad.cpu().split(128, dim=2)]
    for got, expected in zip(grads, want[2:], strict=True):
        close(got, expected, torch.bfloat16, 4)


def test_layouts_the_kernels_cannot_read_are_copied():
    q, k, v, _ = operands(torch.float16, 1, 2, 2, 20, 30, 64)
    want = F.scaled_dot_product_attention(q.to(cuda), k.to(cuda), v.to(cuda))
    shifted = torch.empty(k.numel() + 1, dtype=torch.float16, device=cuda)[1:].view(k.shape)
    shifted.copy_(k)
    turned = v.to(cuda).transpose(2, 3).contiguous().transpose(2, 3)
    got = F.scaled_dot_product_attention(q.to(cuda), shifted, turned)
    assert torch.equal(got, want)
    a = q.to(cuda).requires_grad_()
    F.scaled_dot_product_attention(a, shifted, turned).sum().backward()  # an expanded gradient
    ones = np.ones(q.shape)
    dq = reference(*(t.double().numpy() for t in (q, k, v)), False, 0.125, ones)[2]
    close(a.grad, dq, torch.float16, 4)


def test_no_keys_and_no_queries():
    q, k, v = (torch.ones(1, 2, n, 64, dtype=torch.float16, device=cuda) for n in (3, 0, 0))
    q, k, v = (t.requires_grad_() for t in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v)
    out.sum().backward()
    assert not out.any() and not q.grad.any() and k.grad.shape == k.shape
    q, k, v = (torch.ones(1, 2, n, 64, dtype=torch.float16, device=cuda) for n in (0, 3, 3))
    q, k, v = (t.requires_grad_() for t in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    out.sum().backward()
    assert out.shape == (1, 2, 0, 64) and not k.grad.any() and not v.grad.any()


def test_keys_no_query_sees_get_zero_gradients():
    q, k, v, g = operands(torch.float16, 1, 1, 1, 5, 200, 64)
    *_, dk, dv = check(q, k, v, g, True)
    assert not dk[:, :, 5:].any() and not dv[:, :, 5:].any()


def test_large_scores_do_not_overflow():
    q, k, v, g = operands(torch.bfloat16, 1, 1, 1, 20, 80, 64)
    q, k = q * 30, k * 30
    a, b, c = (t.to(cuda).requires_grad_() for t in (q, k, v))
    out = F.scaled_dot_product_attention(a, b, c)
    out.backward(g.to(cuda))
    want = reference(*(t.double().numpy() for t in (q, k, v)), False, 0.125, g.double().numpy())
    close(out, want[0], torch.bfloat16, 2)
    close(c.grad, want[4], torch.bfloat16, 4)
    assert torch.isfinite(a.grad).all() and torch.isfinite(b.grad).all()


def test_nan_reaches_its_row_only():
    q, k, v, _ = operands(torch.float16, 1, 1, 1, 20, 30, 64)
    q[0, 0, 7, 3] = float("nan")
    out = F.scaled_dot_product_attention(q.to(cuda), k.to(cuda), v.to(cuda)).cpu()
    assert torch.isnan(out[0, 0, 7]).all()
    assert torch.isfinite(out[0, 0, :7]).all() and torch.isfinite(out[0, 0, 8:]).all()


def test_results_repeat_to_the_last_bit():
    q, k, v, g = operands(torch.bfloat16, 1, 2, 1, 70, 70, 64)
    once, again = (check(q, k, v, g, True, enable_gqa=True) for _ in range(2))
    for x, y in zip(once, again, strict=True):
        assert torch.equal(x, y)


def test_other_calls_stay_on_the_composed_path():
    q, k, v, _ = operands(torch.float16, 1, 2, 2, 8, 8, 64)
    a, b, c = (t.to(cuda).requires_grad_() for t in (q, k, v))
    mask = torch.ones(8, 8, dtype=torch.bool, device=cuda)
    odd = [t[..., :60].requires_grad_() for t in (a, b, c)]
    for out in (
        F.scaled_dot_product_attention(a.float(), b.float(), c.float()),
        F.scaled_dot_product_attention(a, b, c, attn_mask=mask),
        F.scaled_dot_product_attention(a, b, c, dropout_p=0.5),
        F.scaled_dot_product_attention(a, b, c, scale=-1.0),
        F.scaled_dot_product_attention(*odd),
    ):
        assert "Fused" not in type(out.grad_fn).__name__


def test_mistakes_are_errors():
    q, k, v, g = (t.to(cuda) for t in operands(torch.float16, 1, 2, 2, 8, 8, 64))
    fused, backward = torch.ops.aten._fused_attention, torch.ops.aten._fused_attention_backward
    for bad in ((q.float(), k.float(), v.float()), (q, k[..., :8], v), (q[0], k[0], v[0])):
        with pytest.raises(RuntimeError, match="_fused_attention"):
            fused(*bad, False, 1.0)
    out, lse = fused(q, k, v, False, 1.0)
    with pytest.raises(RuntimeError, match="not those of this query"):
        backward(g[:, :, :4], q, k, v, out, lse, False, 1.0)
