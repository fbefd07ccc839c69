"""torch.nn.attention: which kernels may attend, causal biases, and attention with functions of the
scores, against the plain formula in float64."""

import math

import pytest

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import CausalVariant, causal_lower_right, causal_upper_left
from torch.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)
from torch.nn.attention.varlen import varlen_attn


def causal(b, h, q, k):
    return q >= k


def formula(q, k, v, allowed=None, bias=None):
    scores = q.double() @ k.double().transpose(-2, -1) / math.sqrt(q.size(-1))
    if bias is not None:
        scores = scores + bias
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    return torch.nan_to_num(scores.softmax(-1)) @ v.double()


@pytest.fixture
def qkv():
    torch.manual_seed(0)
    return tuple(torch.randn(2, 3, 40, 8) for _ in range(3))


def test_backends_restrict_attention(qkv):
    q, k, v = qkv
    expected = formula(q, k, v)
    for allowed in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, [SDPBackend.MATH]):
        with sdpa_kernel(allowed):
            out = F.scaled_dot_product_attention(q, k, v)
        torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-5)
    for refused in ([], SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        with sdpa_kernel(refused), pytest.raises(RuntimeError, match="No viable backend"):
            F.scaled_dot_product_attention(q, k, v)
    flash = sdpa_kernel(SDPBackend.FLASH_ATTENTION)
    with flash, pytest.raises(RuntimeError, match="No available kernel"):
        F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)


def test_backends_are_put_back(qkv):
    before = torch.nn.attention._cur_sdpa_kernel_backends()
    with pytest.raises(ZeroDivisionError), sdpa_kernel(SDPBackend.MATH):
        assert torch.nn.attention._cur_sdpa_kernel_backends() == [SDPBackend.MATH]
        assert not torch.backends.cuda.flash_sdp_enabled()
        raise ZeroDivisionError
    assert torch.nn.attention._cur_sdpa_kernel_backends() == before
    with pytest.raises(AssertionError, match="got int"), sdpa_kernel(3):
        pass


@pytest.mark.parametrize("queries, keys", [(5, 5), (3, 7), (7, 7)])
def test_causal_bias(queries, keys):
    torch.manual_seed(1)
    q, k, v = torch.randn(1, 2, queries, 4), *torch.randn(2, 1, 2, keys, 4)
    for make, shift in ((causal_upper_left, 0), (causal_lower_right, keys - queries)):
        bias = make(queries, keys)
        allowed = torch.ones(queries, keys, dtype=torch.bool).tril(shift)
        assert torch.equal(bias._materialize(), allowed)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        expected = formula(q, k, v, allowed)
        torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-5)
    assert causal_lower_right(2, 3).variant == CausalVariant.LOWER_RIGHT
    with pytest.raises(ValueError, match="causal=True"):
        F.scaled_dot_product_attention(q, k, v, causal_upper_left(queries, keys), is_causal=True)
    with pytest.raises(AssertionError, match="2D"):
        causal_upper_left(3)


def test_block_mask_lists_and_text():
    mask = create_block_mask(causal, 2, 3, 300, 300, device="cpu")
    assert mask.shape == (2, 3, 300, 300)
    assert mask.kv_num_blocks[0, 0].tolist() == [1, 1, 3]
    assert mask.full_kv_num_blocks[0, 0].tolist() == [0, 1, 0]
    assert mask.kv_indices[0, 0].tolist() == [[0, 1, 2], [1, 0, 2], [0, 1, 2]]
    assert mask.q_num_blocks[0, 0].tolist() == [2, 2, 1]
    assert mask.to_dense()[0, 0].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert mask.sparsity() == pytest.approx(-9.226666666666672)
    assert repr(mask).startswith("BlockMask(\n    kv_num_blocks=torch.Size([2, 3, 3]),\n")
    assert "(0, 0)\n██    \n████  \n██████\n" in str(mask)
    assert "set BlockMask.to_string(limit=N)" in str(mask)
    assert mask[0].shape == (1, 3, 300, 300)
    assert mask[0:1, 1].shape == (1, 1, 300, 300)
    assert len(mask.as_tuple()) == 17
    with pytest.raises(RuntimeError, match="sliced BlockMask"):
        mask[0].mask_mod(0, 0, 0, 0)


def test_block_mask_from_lists():
    mask = create_block_mask(causal, 1, 1, 256, 256, device="cpu")
    again = BlockMask.from_kv_blocks(mask.kv_num_blocks, mask.kv_indices)
    assert again.seq_lengths == (256, 256) and again.mask_mod is noop_mask
    assert torch.equal(again.q_num_blocks, mask.q_num_blocks)
    assert mask._adjust(128, 128).shape == (1, 1, 128, 128)


def test_masks_combine():
    def near(b, h, q, k):
        return (q - k).abs() <= 2

    both = create_mask(and_masks(causal, near), 1, 1, 9, 9, device="cpu")[0, 0]
    either = create_mask(or_masks(causal, near), 1, 1, 9, 9, device="cpu")[0, 0]
    place = torch.arange(9)
    lower = place[:, None] >= place
    band = (place[:, None] - place).abs() <= 2
    assert torch.equal(both, lower & band) and torch.equal(either, lower | band)
    with pytest.raises(RuntimeError, match="callable mask_mods"):
        and_masks(causal, 3)


def test_flex_attention_with_mask_and_scores(qkv):
    q, k, v = qkv
    place = torch.arange(40)
    allowed = place[:, None] >= place
    mask = create_block_mask(causal, None, None, 40, 40, device="cpu", BLOCK_SIZE=16)
    out = flex_attention(q, k, v, block_mask=mask)
    torch.testing.assert_close(out.double(), formula(q, k, v, allowed), rtol=1e-5, atol=1e-5)
    slopes = torch.tensor([0.5, 0.25, 0.125])

    def alibi(score, b, h, i, j):
        return score - slopes[h] * (i - j).abs()

    bias = -slopes[:, None, None].double() * (place[:, None] - place).abs()
    out = flex_attention(q, k, v, score_mod=alibi)
    torch.testing.assert_close(out.double(), formula(q, k, v, bias=bias), rtol=1e-5, atol=1e-5)


def test_flex_attention_mask_may_look_at_heads(qkv):
    q, k, v = qkv
    mask = create_block_mask(lambda b, h, i, j: (i + h + b) >= j, 2, 3, 40, 40, "cpu", 16)
    place = torch.arange(40)
    shift = torch.arange(2)[:, None, None, None] + torch.arange(3)[:, None, None]
    allowed = place[:, None] + shift >= place
    out = flex_attention(q, k, v, block_mask=mask)
    torch.testing.assert_close(out.double(), formula(q, k, v, allowed), rtol=1e-5, atol=1e-5)


def test_flex_attention_extras(qkv):
    q, k, v = qkv
    out, aux = flex_attention(q, k, v, return_aux=AuxRequest(lse=True, max_scores=True))
    scores = q.double() @ k.double().transpose(-2, -1) / math.sqrt(8)
    torch.testing.assert_close(aux.lse.double(), scores.logsumexp(-1), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(aux.max_scores.double(), scores.amax(-1), rtol=1e-5, atol=1e-5)
    grouped = flex_attention(q, k[:, :1], v[:, :1], enable_gqa=True)
    expected = formula(q, k[:, :1].expand(-1, 3, -1, -1), v[:, :1].expand(-1, 3, -1, -1))
    torch.testing.assert_close(grouped.double(), expected, rtol=1e-5, atol=1e-5)
    few = create_block_mask(lambda b, h, i, j: (i < 10) & (j < 20), 1, 1, 40, 40, device="cpu")
    with pytest.warns(FutureWarning):
        out, lse = flex_attention(q, k, v, block_mask=few, return_lse=True)
    assert torch.equal(out[:, :, 20], torch.zeros(2, 3, 8)) and lse[0, 0, 20] == -math.inf


def test_flex_attention_gradients():
    torch.manual_seed(2)
    tensors = [torch.randn(1, 2, 6, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    mask = create_block_mask(causal, 1, 1, 6, 6, device="cpu")
    bias = torch.randn(2, dtype=torch.float64)

    def attend(q, k, v):
        return flex_attention(q, k, v, lambda s, b, h, i, j: s * (1 + i) + bias[h], mask)

    assert torch.autograd.gradcheck(attend, tensors)


def test_flex_attention_errors(qkv):
    q, k, v = qkv
    with pytest.raises(NotImplementedError, match="4D"):
        flex_attention(q[0], k, v)
    with pytest.raises(ValueError, match="enable_gqa=True"):
        flex_attention(q, k[:, :1], v[:, :1])
    with pytest.raises(ValueError, match="multiple of kv heads"):
        flex_attention(q[:, :2], k, v, enable_gqa=True)
    with pytest.raises(ValueError, match="batch size"):
        flex_attention(q[:1], k, v)
    large = create_block_mask(causal, 1, 1, 128, 128, device="cpu")
    with pytest.raises(ValueError, match="larger length"):
        flex_attention(q, k, v, block_mask=large)
    with pytest.raises(AssertionError, match="requires a mask_mod"):
        create_block_mask(lambda s, b, h, i, j: s, 1, 1, 4, 4, device="cpu")
    with pytest.raises(AssertionError, match="got 2"):
        create_mask(lambda b, h: b, 1, 1, 4, 4, device="cpu")


def test_varlen_attention():
    torch.manual_seed(3)
    lengths = [3, 0, 5]
    starts = torch.tensor([0, 3, 3, 8])
    q, k, v = torch.randn(3, 8, 2, 4)
    for window in ((-1, -1), (-1, 0), (1, 1)):
        out = varlen_attn(q, k, v, starts, starts, 5, 5, window_size=window)
        begin = 0
        for length in lengths:
            part = slice(begin, begin + length)
            place = torch.arange(length)
            distance = place - place[:, None]
            allowed = torch.ones(length, length, dtype=torch.bool)
            if window[0] >= 0:
                allowed &= distance >= -window[0]
            if window[1] >= 0:
                allowed &= distance <= window[1]
            expected = formula(*(t[part].transpose(0, 1) for t in (q, k, v)), allowed)
            torch.testing.assert_close(
                out[part].transpose(0, 1).double(), expected, rtol=1e-5, atol=1e-5
            )
            begin += length


@pytest.mark.parametrize(
    ("queries", "keys", "heads", "shared"),
    [(200, 200, 4, 4), (130, 90, 4, 2), (65, 300, 2, 2), (64, 64, 3, 3), (1, 5, 2, 2)],
)
def test_causal_blocks_agree_with_the_formula_forward_and_backward(queries, keys, heads, shared):
    torch.manual_seed(0)
    q = torch.randn(2, heads, queries, 16, dtype=torch.float64, requires_grad=True)
    k, v = (
        torch.randn(2, shared, keys, 16, dtype=torch.float64, requires_grad=True) for _ in range(2)
    )
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != shared)
    spread = [t.repeat_interleave(heads // shared, 1) for t in (k, v)]
    expected = formula(q, *spread, torch.ones(queries, keys, dtype=torch.bool).tril())
    torch.testing.assert_close(out, expected)
    g = torch.randn_like(out)
    for found, wanted in zip(
        torch.autograd.grad(out, (q, k, v), g),
        torch.autograd.grad(expected, (q, k, v), g),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted)
