"""Attention and the Transformer against a plain NumPy computation, head by head."""

import copy
import pickle

import numpy as np
import pytest

import torch
from torch import nn


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def plain_attention(layer, q, k, v, mask=None):
    """(L, N, E) one sample and one head at a time; mask is (N, L, S), added to the scores."""
    width, heads = layer.embed_dim, layer.num_heads
    state = {name: p.numpy() for name, p in layer.state_dict().items()}
    if "in_proj_weight" in state:
        weights = np.split(state["in_proj_weight"], 3)
    else:
        weights = [state[f"{name}_proj_weight"] for name in "qkv"]
    biases = np.split(state.get("in_proj_bias", np.zeros(3 * width)), 3)
    q, k, v = (np.asarray(x) @ w.T + b for x, w, b in zip((q, k, v), weights, biases, strict=True))
    size = width // heads
    out = np.zeros_like(q)
    attention = np.zeros((q.shape[1], heads, q.shape[0], k.shape[0]))
    for n in range(q.shape[1]):
        for h in range(heads):
            part = slice(h * size, (h + 1) * size)
            scores = q[:, n, part] @ k[:, n, part].T / np.sqrt(size)
            if mask is not None:
                scores = scores + mask[n]
            attention[n, h] = softmax(scores)
            out[:, n, part] = attention[n, h] @ v[:, n, part]
    bias = state.get("out_proj.bias", 0)
    return out @ state["out_proj.weight"].T + bias, attention


@pytest.fixture
def inputs():
    torch.manual_seed(0)
    return [torch.randn(n, 2, 6, dtype=torch.float64) for n in (3, 4, 4)]


@pytest.fixture
def layer():
    torch.manual_seed(1)
    made = nn.MultiheadAttention(6, 2, dtype=torch.float64)
    nn.init.normal_(made.in_proj_bias)
    return made


@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_without_masks(layer, inputs, need_weights):
    out, weights = layer(*inputs, need_weights=need_weights)
    expected, attention = plain_attention(layer, *inputs)
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
    if need_weights:
        np.testing.assert_allclose(weights.detach().numpy(), attention.mean(1), rtol=1e-9)
    else:
        assert weights is None


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("as_bool", [True, False])
def test_attention_joins_both_masks(layer, inputs, need_weights, as_bool):
    mask = torch.triu(torch.ones(3, 4, dtype=torch.bool), 2)
    padding = torch.tensor([[False] * 4, [False, False, False, True]])
    added = np.where(mask.numpy()[None] | padding.numpy()[:, None], -np.inf, 0.0)
    if not as_bool:
        mask, padding = (
            torch.zeros(m.shape, dtype=torch.float64).masked_fill(m, float("-inf"))
            for m in (mask, padding)
        )
    out, _ = layer(*inputs, key_padding_mask=padding, attn_mask=mask, need_weights=need_weights)
    expected, _ = plain_attention(layer, *inputs, added)
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-9, atol=1e-12)


def test_attention_takes_other_widths_batch_first_and_no_batch(inputs):
    layer = nn.MultiheadAttention(6, 3, bias=False, kdim=5, vdim=4, dtype=torch.float64)
    q, k, v = inputs[0], torch.randn(4, 2, 5).double(), torch.randn(4, 2, 4).double()
    out, weights = layer(q, k, v, average_attn_weights=False)
    expected, attention = plain_attention(layer, q, k, v)
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(weights.detach().numpy(), attention, rtol=1e-9)
    alone, _ = layer(q[:, 0], k[:, 0], v[:, 0])
    np.testing.assert_allclose(alone.detach().numpy(), expected[:, 0], rtol=1e-9, atol=1e-12)
    layer.batch_first = True
    first, _ = layer(*(x.transpose(0, 1) for x in (q, k, v)))
    np.testing.assert_allclose(
        first.transpose(0, 1).detach().numpy(), expected, rtol=1e-9, atol=1e-12
    )


def test_self_attention_projected_in_one_go_equals_three_projections(layer, inputs):
    x = inputs[0]
    together, _ = layer(x, x, x)
    apart, _ = layer(x, x.clone(), x.clone())
    np.testing.assert_allclose(
        together.detach().numpy(), apart.detach().numpy(), rtol=1e-10, atol=1e-13
    )


def test_causal_hint_equals_the_causal_mask(layer, inputs):
    x = inputs[1]
    mask = nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    hinted, _ = layer(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)
    masked, _ = layer(x, x, x, attn_mask=mask)
    np.testing.assert_allclose(
        hinted.detach().numpy(), masked.detach().numpy(), rtol=1e-9, atol=1e-12
    )


def test_extra_keys_add_positions_to_the_weights(inputs):
    layer = nn.MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True, dtype=torch.float64)
    out, weights = layer(*inputs, key_padding_mask=torch.zeros(2, 4, dtype=torch.bool))
    assert out.shape == (3, 2, 6)
    assert weights.shape == (2, 3, 6)
    np.testing.assert_allclose(weights.sum(-1).detach().numpy(), 1, rtol=1e-12)


def test_attention_gradients_match_finite_differences(layer, inputs):
    q, k, v = (x.clone().requires_grad_() for x in inputs)
    layer(q, k, v)[0].square().sum().backward()
    for x in (q, k, v):
        step = torch.zeros_like(x)
        step[1, 1, 2] = 1e-6
        with torch.no_grad():
            moved = [
                layer(*(t + sign * step if t is x else t for t in (q, k, v)))[0].square().sum()
                for sign in (1, -1)
            ]
        assert x.grad[1, 1, 2].item() == pytest.approx(
            (moved[0] - moved[1]).item() / 2e-6, rel=1e-5
        )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m, x: m(x[0, 0], x, x), AssertionError, "unbatched 2D or batched 3D"),
        (lambda m, x: m(x, x[:2], x), AssertionError, "does not match value shape"),
        (lambda m, x: m(x[..., :5], x, x), AssertionError, "expecting embedding dimension of 6"),
        (lambda m, x: m(x, x, x, is_causal=True), RuntimeError, "Need attn_mask"),
        (
            lambda m, x: m(x, x, x, attn_mask=torch.zeros(2, 3)),
            RuntimeError,
            "shape of the 2D attn_mask",
        ),
        (
            lambda m, x: m(x, x, x, key_padding_mask=torch.zeros(3, 2)),
            AssertionError,
            r"key_padded_mask.shape\[0\] to be 2, but got 3",
        ),
    ],
)
def test_attention_refuses_shapes_that_do_not_fit(layer, inputs, call, error, message):
    with pytest.raises(error, match=message):
        call(layer, inputs[0])


# ---- transformer


def normalise(x, norm):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    scaled = (x - mean) / np.sqrt(var + norm.eps)
    return scaled * norm.weight.detach().numpy() + norm.bias.detach().numpy()


def feed_forward(x, layer):
    (w1, b1), (w2, b2) = (
        (part.weight.detach().numpy(), part.bias.detach().numpy())
        for part in (layer.linear1, layer.linear2)
    )
    return np.maximum(x @ w1.T + b1, 0) @ w2.T + b2


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layer_adds_and_normalises(norm_first):
    torch.manual_seed(2)
    layer = nn.TransformerEncoderLayer(6, 2, 8, 0.0, norm_first=norm_first, dtype=torch.float64)
    x = np.random.default_rng(0).normal(size=(3, 2, 6))
    if norm_first:
        y = normalise(x, layer.norm1)
        h = x + plain_attention(layer.self_attn, y, y, y)[0]
        expected = h + feed_forward(normalise(h, layer.norm2), layer)
    else:
        h = normalise(x + plain_attention(layer.self_attn, x, x, x)[0], layer.norm1)
        expected = normalise(h + feed_forward(h, layer), layer.norm2)
    out = layer(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(out, expected, rtol=1e-8, atol=1e-11)


def test_decoder_layer_attends_to_itself_then_to_memory():
    torch.manual_seed(3)
    layer = nn.TransformerDecoderLayer(6, 2, 8, 0.0, dtype=torch.float64)
    rng = np.random.default_rng(1)
    x, memory = rng.normal(size=(3, 2, 6)), rng.normal(size=(4, 2, 6))
    h = normalise(x + plain_attention(layer.self_attn, x, x, x)[0], layer.norm1)
    h = normalise(h + plain_attention(layer.multihead_attn, h, memory, memory)[0], layer.norm2)
    expected = normalise(h + feed_forward(h, layer), layer.norm3)
    out = layer(torch.tensor(x), torch.tensor(memory)).detach().numpy()
    np.testing.assert_allclose(out, expected, rtol=1e-8, atol=1e-11)


def test_causal_transformer_does_not_look_ahead():
    torch.manual_seed(4)
    model = nn.Transformer(8, 2, 1, 2, 16, batch_first=True).eval()
    source, target = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
    mask = model.generate_square_subsequent_mask(4)
    before = model(source, target, tgt_mask=mask)
    changed = target.clone()
    changed[:, 3] += 1
    after = model(source, changed, tgt_mask=mask)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3], after[:, 3])


def test_padding_does_not_reach_the_other_positions():
    torch.manual_seed(5)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8), enable_nested_tensor=False).eval()
    x = torch.randn(1, 5, 8)
    padding = torch.tensor([[False, False, False, True, True]])
    out = encoder(x, src_key_padding_mask=padding)[:, :3]
    np.testing.assert_allclose(
        out.detach().numpy(), encoder(x[:, :3]).detach().numpy(), rtol=1e-4, atol=1e-5
    )


def test_stacks_copy_their_layer_and_pickle():
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    encoder = nn.TransformerEncoder(layer, 2)
    assert encoder.layers[0] is not encoder.layers[1]
    assert torch.equal(encoder.layers[0].linear1.weight, encoder.layers[1].linear1.weight)
    x = torch.randn(3, 1, 4)
    for again in (pickle.loads(pickle.dumps(encoder)), copy.deepcopy(encoder)):
        assert torch.equal(again(x), encoder(x))


def test_transformer_refuses_other_widths_and_activations():
    model = nn.Transformer(8, 2, 1, 1, 16)
    with pytest.raises(RuntimeError, match="batch number of src and tgt"):
        model(torch.zeros(3, 2, 8), torch.zeros(3, 1, 8))
    with pytest.raises(RuntimeError, match="equal to d_model"):
        model(torch.zeros(3, 2, 8), torch.zeros(3, 2, 7))
    with pytest.raises(RuntimeError, match="activation should be relu/gelu"):
        nn.TransformerEncoderLayer(8, 2, activation="tanh")


# ---- the operators beneath MultiheadAttention


def _numpy_attention(q, k, v, weight, bias, heads, hidden):
    """Attention of arrays [batch, length, width] after their projection, and its weights."""
    width = q.shape[-1]
    parts = []
    for i, x in enumerate((q, k, v)):
        y = x @ weight[i * width : (i + 1) * width].T + bias[i * width : (i + 1) * width]
        parts.append(y.reshape(*y.shape[:2], heads, -1).transpose(0, 2, 1, 3))
    scores = parts[0] @ parts[1].transpose(0, 1, 3, 2) / np.sqrt(width // heads)
    scores = np.where(hidden, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    joined = (weights @ parts[2]).transpose(0, 2, 1, 3).reshape(q.shape)
    return joined, weights


@pytest.mark.parametrize("need_weights", [False, True])
def test_native_attention_with_padding_equals_numpy(need_weights):
    width, heads = 8, 2
    q, k, v = (torch.rand(3, 5, width, dtype=torch.float64) for _ in range(3))
    weight, bias = torch.rand(3 * width, width).double(), torch.rand(3 * width).double()
    out_weight, out_bias = torch.rand(width, width).double(), torch.rand(width).double()
    mask = torch.zeros(3, 5, dtype=torch.bool)
    mask[0, 3:] = True
    out, weights = torch._native_multi_head_attention(
        q, k, v, width, heads, weight, bias, out_weight, out_bias, mask, need_weights, False, 1
    )
    arrays = [t.numpy() for t in (q, k, v, weight, bias)]
    joined, expected = _numpy_attention(*arrays, heads, mask.numpy()[:, None, None])
    np.testing.assert_allclose(out.numpy(), joined @ out_weight.numpy().T + out_bias.numpy())
    if need_weights:
        np.testing.assert_allclose(weights.numpy(), expected)
    else:
        assert weights is None


def test_native_attention_with_wrong_arguments_raises():
    x, weight, bias = torch.rand(2, 3, 8), torch.rand(24, 8), torch.rand(24)
    call = torch._native_multi_head_attention
    with pytest.raises(RuntimeError, match="must divide evenly by num_heads 3"):
        call(x, x, x, 8, 3, weight, bias, weight[:8], bias[:8])
    with pytest.raises(RuntimeError, match="expected `qkv_weight` of size"):
        call(x, x, x, 8, 2, weight[:8], bias, weight[:8], bias[:8])
    with pytest.raises(RuntimeError, match="Mask Type should be defined"):
        call(x, x, x, 8, 2, weight, bias, weight[:8], bias[:8], torch.zeros(2, 3).bool())


def test_projection_by_heads_adds_the_bias_and_scales_the_query():
    qkv, bias = torch.rand(2, 3, 24, dtype=torch.float64), torch.rand(24, dtype=torch.float64)
    parts = torch._transform_bias_rescale_qkv(qkv, bias, 2)
    shifted = (qkv + bias).numpy().reshape(2, 3, 3, 2, 4).transpose(2, 0, 3, 1, 4)
    shifted[0] /= 2.0
    for part, expected in zip(parts, shifted, strict=True):
        np.testing.assert_allclose(part.numpy(), expected)


def test_sdp_choice_is_flash_without_dropout_and_math_with_it():
    q = torch.rand(2, 4, 16, 8)
    backends = torch.nn.attention.SDPBackend
    assert torch._fused_sdp_choice(q, q, q) == backends.FLASH_ATTENTION.value
    assert torch._fused_sdp_choice(q, q, q, dropout_p=0.5) == backends.MATH.value


@pytest.mark.parametrize("shape", [(0, 20, 8), (20, 0, 8)])
def test_attention_over_nothing_is_empty(shape):
    layer = nn.TransformerDecoderLayer(8, 2)
    assert layer(torch.rand(shape), torch.rand(shape)).shape == shape
