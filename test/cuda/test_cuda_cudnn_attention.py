"""Attention by cuDNN against float64 NumPy: output and gradients of every kind of call it takes
(causal, masks of booleans and numbers, grouped heads, layouts, wide heads), and its dropout by what
must hold for any mask of ones and zeros."""

import numpy as np
import pytest
from cuda_support import EMULATED, cuda

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

# The values are cuDNN's, which runs on GPUs only; there is no second implementation to test here.
# These ask cuDNN itself for its kernels; elsewhere test_cuda_attention.py tests our own.
pytestmark = pytest.mark.skipif(
    EMULATED or not torch.backends.cudnn.is_available(), reason="needs cuDNN on a GPU"
)
BITS = {torch.float16: 11, torch.bfloat16: 8}


def reference(q, k, v, grad, bias=0.0, causal=False):
    """Output and gradients by the formula; q may have more heads than k."""
    group, scale = q.shape[1] // k.shape[1], q.shape[-1] ** -0.5
    wide_k, wide_v = (t.repeat(group, axis=1) for t in (k, v))
    scores = q @ wide_k.swapaxes(-1, -2) * scale + bias
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    out = weights @ wide_v
    to_weights = grad @ wide_v.swapaxes(-1, -2)
    to_scores = weights * (to_weights - (grad * out).sum(-1, keepdims=True)) * scale
    dk, dv = to_scores.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ grad
    dk = dk.reshape(k.shape[0], k.shape[1], group, *k.shape[2:]).sum(2)
    dv = dv.reshape(v.shape[0], v.shape[1], group, *v.shape[2:]).sum(2)
    return out, to_scores @ wide_k, dk, dv


def close(got, want, dtype, slack):
    error = np.abs(got.detach().cpu().double().numpy() - want).max()
    limit = slack * 2.0 ** -BITS[dtype] * max(np.abs(want).max(), 1e-2)
    assert error <= limit, f"{error} > {limit}"


def operands(dtype, batch, heads, key_heads, queries, keys, dim, value_dim=None):
    torch.manual_seed(queries + keys)
    q = torch.randn(batch, heads, queries, dim).to(dtype)
    k = torch.randn(batch, key_heads, keys, dim).to(dtype)
    v = torch.randn(batch, key_heads, keys, value_dim or dim).to(dtype)
    g = torch.randn(batch, heads, queries, value_dim or dim).to(dtype)
    return q, k, v, g


def attend(q, k, v, **options):
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        out = F.scaled_dot_product_attention(q, k, v, **options)
    assert "Cudnn" in type(out.grad_fn).__name__
    return out


def check(q, k, v, g, bias=0.0, **options):
    leaves = [t.to(cuda).requires_grad_() for t in (q, k, v)]
    out = attend(*leaves, **options)
    out.backward(g.to(cuda))
    wide = [t.double().numpy() for t in (q, k, v, g)]
    want = reference(*wide, bias=bias, causal=options.get("is_causal", False))
    close(out, want[0], q.dtype, 2)
    for leaf, gradient in zip(leaves, want[1:], strict=True):
        close(leaf.grad, gradient, q.dtype, 6)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype, dim", [(torch.bfloat16, 64), (torch.float16, 128)])
@pytest.mark.parametrize("queries, keys", [(256, 256), (333, 470), (512, 256)])
def test_output_and_gradients_match_the_formula(queries, keys, dtype, dim, causal):
    check(*operands(dtype, 2, 3, 3, queries, keys, dim), is_causal=causal)


@pytest.mark.parametrize("dim", [96, 256])
def test_other_widths_of_heads(dim):
    check(*operands(torch.bfloat16, 1, 4, 4, 256, 256, dim), is_causal=True)


@pytest.mark.parametrize("causal", [False, True])
def test_heads_that_share_keys(causal):
    check(*operands(torch.bfloat16, 2, 8, 2, 256, 256, 64), is_causal=causal, enable_gqa=True)


@pytest.mark.parametrize("shape", [(2, 4, 256, 300), (1, 1, 256, 300), (256, 300), (2, 1, 1, 300)])
def test_numbers_added_to_the_scores(shape):
    q, k, v, g = operands(torch.float16, 2, 4, 4, 256, 300, 64)
    bias = torch.randn(shape).half()
    check(q, k, v, g, bias.double().numpy(), attn_mask=bias.to(cuda))


def test_masks_of_booleans_hide_keys():
    q, k, v, g = operands(torch.bfloat16, 2, 4, 4, 256, 256, 64)
    mask = torch.rand(2, 1, 256, 256) < 0.7
    mask[..., 0] = True
    bias = np.where(mask.numpy(), 0.0, -np.inf)
    check(q, k, v, g, bias, attn_mask=mask.to(cuda))


def test_a_query_that_sees_no_key_gets_zero():
    q, k, v, _ = (t.to(cuda) for t in operands(torch.bfloat16, 1, 4, 4, 256, 256, 64))
    mask = torch.ones(256, 256, dtype=torch.bool, device=cuda)
    mask[5] = False
    q.requires_grad_()
    k.requires_grad_()
    out = attend(q, k, v, attn_mask=mask)
    assert not out[:, :, 5].any()
    out.sum().backward()
    assert torch.isfinite(q.grad).all() and torch.isfinite(k.grad).all()


def test_heads_split_off_rows_need_no_copies():
    features = torch.randn(2, 256, 3 * 4 * 64).to(torch.bfloat16)
    x = features.to(cuda).requires_grad_()
    q, k, v = (t.view(2, 256, 4, 64).transpose(1, 2) for t in x.split(256, dim=2))
    out = attend(q, k, v, is_causal=True)
    assert out.transpose(1, 2).is_contiguous()
    g = torch.randn(out.shape).to(torch.bfloat16)
    out.backward(g.to(cuda))
    parts = [t.reshape(2, 256, 4, 64).transpose(1, 2) for t in features.split(256, dim=2)]
    wide = [t.double().numpy() for t in (*parts, g)]
    want = reference(*wide, causal=True)
    close(out, want[0], torch.bfloat16, 2)
    grads = [t.reshape(2, 256, 4, 64).transpose(1, 2) for t in x.grad.cpu().split(256, dim=2)]
    for got, expected in zip(grads, want[1:], strict=True):
        close(got, expected, torch.bfloat16, 6)


def test_dropout_keeps_the_mean_and_its_gradients_belong_to_its_mask():
    q, k, _, _ = (t.to(cuda) for t in operands(torch.float16, 2, 4, 4, 512, 512, 64))
    # With the identity as values the output is the weights themselves.
    v = torch.eye(512, 64, device=cuda).half().expand(2, 4, 512, 64).contiguous().requires_grad_()
    q.requires_grad_()
    torch.manual_seed(3)
    out = attend(q, k, v, dropout_p=0.25)
    torch.manual_seed(3)
    assert torch.equal(attend(q, k, v, dropout_p=0.25), out)
    assert not torch.equal(attend(q, k, v, dropout_p=0.25), out)
    full = attend(q, k, v)
    dropped = out == 0
    assert abs(dropped.float().mean().item() - 0.25) < 0.01
    ratio = (out.float() / full.float())[~dropped]
    assert torch.allclose(ratio, torch.full_like(ratio, 1 / 0.75), rtol=2e-2)
    # dV = P'^T G: with G ones it is the column sums of what was used.
    out.backward(torch.ones_like(out))
    want = out.double().sum(2).unsqueeze(-1).expand(-1, -1, -1, 64)
    got = v.grad[:, :, :64].double()
    assert (got - want).abs().max() <= 1e-2 * want.abs().max()


def test_deterministic_mode_takes_other_kernels():
    q, k, v, _ = (t.to(cuda) for t in operands(torch.bfloat16, 2, 4, 4, 1024, 1024, 64))
    q.requires_grad_()
    torch.use_deterministic_algorithms(True)
    try:
        out = F.scaled_dot_product_attention(q, k, v)
        assert "Cudnn" not in type(out.grad_fn).__name__
    finally:
        torch.use_deterministic_algorithms(False)


def test_long_calls_choose_it_and_short_ones_do_not():
    choice = torch._fused_sdp_choice
    long = torch.randn(4, 8, 1024, 64, device=cuda).bfloat16()
    assert choice(long, long, long) == SDPBackend.CUDNN_ATTENTION.value
    short = long[:1, :1, :64]
    assert choice(short, short, short) == SDPBackend.FLASH_ATTENTION.value
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        assert choice(long, long, long) == SDPBackend.FLASH_ATTENTION.value


def test_logarithms_of_the_sums():
    q, k, v, _ = operands(torch.bfloat16, 1, 4, 4, 256, 256, 64)
    on_gpu = (t.to(cuda) for t in (q, k, v))
    _, lse, _ = torch.ops.aten._cudnn_attention(*on_gpu, None, 0.0, False, 0.125)
    scores = q.double().numpy() @ k.double().numpy().swapaxes(-1, -2) * 0.125
    np.testing.assert_allclose(lse.cpu(), np.log(np.exp(scores).sum(-1)), rtol=1e-4, atol=1e-4)


def test_compiled_gradients_of_one_projection_are_those_of_eager_code():
    class Heads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = torch.nn.Linear(256, 768)

        def forward(self, x):
            b, t, c = x.shape
            parts = self.qkv(x).split(c, dim=2)
            q, k, v = (p.view(b, t, 4, 64).transpose(1, 2) for p in parts)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return y.transpose(1, 2).reshape(b, t, c)

    torch.manual_seed(0)
    model = Heads().to(cuda).bfloat16()
    x = torch.randn(2, 1024, 256, device=cuda, dtype=torch.bfloat16)
    found = []
    for run in (model, torch.compile(model)):
        model.zero_grad(set_to_none=True)
        leaf = x.clone().requires_grad_()
        run(leaf).square().sum().backward()
        found.append([leaf.grad, *(p.grad for p in model.parameters())])
    for compiled, eager in zip(*reversed(found), strict=True):
        assert torch.equal(compiled, eager)
