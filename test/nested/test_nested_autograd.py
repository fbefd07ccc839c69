"""Gradients through nested tensors, and the layers of a network on them: against finite differences
and against the same layer on every component."""

import functools

import nested_support
import pytest
from nested_support import assert_components, jagged
from tensor_support import Double

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

components = functools.partial(nested_support.components, lengths=(2, 4, 1))

# ---- autograd ------------------------------------------------------------------------------------

FUNCTIONS = {
    "mul": lambda x: x * x,
    "exp": torch.exp,
    "gelu": F.gelu,
    "sum ragged": lambda x: x.sum(1),
    "mean ragged": lambda x: x.mean(1),
    "amax ragged": lambda x: x.amax(1),
    "max ragged": lambda x: x.max(1).values,
    "var last": lambda x: x.var(2),
    "sum all": lambda x: x.sum(),
    "softmax ragged": lambda x: x.softmax(1),
    "log_softmax": lambda x: F.log_softmax(x, 1),
    "cumsum ragged": lambda x: x.cumsum(1),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "layer_norm ragged": lambda x: F.layer_norm(x, x.shape[1:]),
    "rms_norm": lambda x: F.rms_norm(x, (4,)),
    "transpose": lambda x: x.unflatten(-1, (2, 2)).transpose(1, 2),
    "padded": lambda x: x.to_padded_tensor(1.0),
    "unbind": lambda x: torch.cat([c.sum(0) for c in x.unbind()]),
    "component": lambda x: x[1],
    "cat": lambda x: torch.cat([x, x * 2], -1),
    "pick": lambda x: x[1:],
    "product": lambda x: x.transpose(1, 2) @ x,
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "values": lambda x: x.values() * 3,
    "to": lambda x: x.to(torch.complex128),
    "norm": lambda x: F.normalize(x, dim=-1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_reach_the_components(name):
    def run(*parts):
        found = FUNCTIONS[name](torch.nested.as_nested_tensor(list(parts), layout=torch.jagged))
        return found.values() if found.is_nested else found

    parts = [p.requires_grad_() for p in components(4)]
    assert torch.autograd.gradcheck(run, parts, check_forward_ad=name != "attention")
    if name != "attention":
        assert torch.autograd.gradgradcheck(run, parts)


def test_leaf_collects_a_nested_gradient():
    nt = jagged(components(4), requires_grad=True)
    assert nt.requires_grad and nt.is_leaf and nt.grad is None and nt.grad_fn is None
    (nt * nt).sum().backward()
    assert nt.grad.is_nested and nt.grad.shape == nt.shape
    torch.testing.assert_close(nt.grad.values(), 2 * nt.detach().values())
    (nt * 1).values().sum().backward()
    torch.testing.assert_close(nt.grad.values(), 2 * nt.detach().values() + 1)
    nt.grad = None
    assert nt.grad is None
    assert not nt.values().is_leaf and not nt.detach().requires_grad and not nt.data.requires_grad


def test_backward_from_a_nested_tensor():
    nt = jagged(components(4), requires_grad=True)
    out = nt * 3
    out.backward(torch.ones_like(out), retain_graph=True)
    assert nt.grad.values().eq(3).all()
    torch.autograd.backward([out], [torch.ones_like(out)], inputs=[nt])
    assert nt.grad.values().eq(6).all()
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        (nt * 3).backward()
    with pytest.raises(RuntimeError, match="must be nested like"):
        (nt * 3).backward(torch.ones(7, 4))


def test_grad_as_a_function():
    nt = jagged(components(4), requires_grad=True)
    middle = nt * 2
    outer = (middle**3).sum()
    (by_middle,) = torch.autograd.grad(outer, middle, retain_graph=True)
    torch.testing.assert_close(by_middle.values(), 3 * middle.detach().values() ** 2)
    (first,) = torch.autograd.grad(outer, nt, create_graph=True)
    assert first.is_nested and first.requires_grad
    (second,) = torch.autograd.grad(first.sum(), nt)
    torch.testing.assert_close(second.values(), 48 * nt.detach().values())
    (weighted,) = torch.autograd.grad(nt * 2, nt, grad_outputs=torch.full_like(nt, 5.0))
    assert weighted.values().eq(10).all()
    with pytest.raises(RuntimeError, match="must be nested like"):
        torch.autograd.grad(nt * 2, nt, grad_outputs=torch.ones(7, 4))


def test_hooks_see_nested_gradients():
    nt = jagged(components(4), requires_grad=True)
    seen = []
    handle = nt.register_hook(lambda g: seen.append(g) or g * 2)
    nt.sum().backward()
    assert seen[0].is_nested and nt.grad.values().eq(2).all()
    handle.remove()
    out = nt * 2
    out.retain_grad()
    out.sum().backward()
    assert out.grad.values().eq(1).all() and len(seen) == 1
    called = []
    nt.register_post_accumulate_grad_hook(called.append)
    nt.sum().backward()
    assert called == [nt]
    with pytest.raises(RuntimeError, match="doesn't require grad"):
        nt.detach().register_hook(print)


def test_modes():
    nt = jagged(components(4), requires_grad=True)
    with torch.no_grad():
        assert not (nt * 2).requires_grad
    with torch.inference_mode():
        inside = nt * 2
        inside.sum(1)
    assert inside.is_inference()
    # What the structure keeps is not touched by the mode it was first asked for in.
    nt.sum(1).sum().backward()
    assert nt.grad.values().eq(1).all()
    nt.requires_grad_(False)
    assert not nt.requires_grad
    nt.requires_grad = True
    assert nt.requires_grad
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert F.linear(nt.float(), torch.ones(2, 4)).dtype is torch.bfloat16


def test_checkpoint_recomputes_nested_parts():
    layer = nn.Linear(4, 4, dtype=torch.float64)
    nt = jagged(components(4), requires_grad=True)
    checkpoint(lambda x: F.gelu(layer(x)), nt, use_reentrant=False).sum().backward()
    found, weight = nt.grad.values(), layer.weight.grad.clone()
    layer.zero_grad()
    nt.grad = None
    F.gelu(layer(nt)).sum().backward()
    torch.testing.assert_close(found, nt.grad.values())
    torch.testing.assert_close(weight, layer.weight.grad)


def test_what_does_not_see_the_values_refuses():
    nt = jagged(components(4), requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"Function\.apply is not implemented for nested"):
        Double.apply(nt)
    assert torch.equal(Double.apply(nt.values()), nt.detach().values() * 2)
    for transform in (torch.func.grad, torch.vmap):
        with pytest.raises(NotImplementedError, match="not implemented for nested"):
            transform(lambda x: x.sum())(nt.detach())


# ---- layers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "layer",
    [
        nn.Linear(4, 6),
        nn.LayerNorm(4),
        nn.RMSNorm(4),
        nn.GELU(),
        nn.Softmax(-1),
        nn.Dropout(0.5).eval(),
        nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)),
    ],
    ids=lambda m: type(m).__name__,
)
def test_layers(layer):
    layer = layer.double()
    parts = components(4)
    nt = jagged(parts, requires_grad=True)
    out = layer(nt)
    assert_components(out, [layer(p) for p in parts])
    out.sum().backward()
    found = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    plain = [p.requires_grad_() for p in parts]
    sum(layer(p).sum() for p in plain).backward()
    assert_components(nt.grad, [p.grad for p in plain])
    for grad, parameter in zip(found, layer.parameters(), strict=True):
        torch.testing.assert_close(grad, parameter.grad)


def test_embedding():
    table = nn.Embedding(10, 4)
    numbers = [torch.tensor([1, 2]), torch.tensor([3]), torch.tensor([9, 0, 1])]
    out = table(jagged(numbers))
    assert_components(out, [table(n) for n in numbers])
    out.sum().backward()
    assert table.weight.grad.sum() == 24


def test_dropout_scales_what_it_keeps():
    nt = jagged([torch.ones(50, 4), torch.ones(30, 4)])
    torch.manual_seed(0)
    values = F.dropout(nt, 0.5).values()
    assert set(values.unique().tolist()) == {0.0, 2.0}


def test_losses_are_over_all_elements():
    parts, others = components(4), components(4, seed=1)
    x = jagged(parts)
    y = torch.nested.nested_tensor_from_jagged(torch.cat(others), x.offsets())
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.binary_cross_entropy_with_logits):
        torch.testing.assert_close(loss(x, y), loss(torch.cat(parts), torch.cat(others)))
    assert_components(
        F.mse_loss(x, y, reduction="none"),
        [(p - o) ** 2 for p, o in zip(parts, others, strict=True)],
    )
    with pytest.raises(RuntimeError, match="same nested shape"):
        F.mse_loss(x, jagged(others))


def test_products():
    parts = components(4)
    nt = jagged(parts)
    matrix = torch.randn(4, 5, dtype=torch.float64)
    batch = torch.randn(3, 4, 5, dtype=torch.float64)
    assert_components(nt @ matrix, [p @ matrix for p in parts])
    assert_components(torch.matmul(nt, batch), [p @ b for p, b in zip(parts, batch, strict=True)])
    assert_components(torch.bmm(nt, batch), [p @ b for p, b in zip(parts, batch, strict=True)])
    assert_components(
        batch.mT @ nt.transpose(1, 2), [b.T @ p.T for p, b in zip(parts, batch, strict=True)]
    )
    gram = nt.transpose(1, 2) @ nt
    torch.testing.assert_close(gram, torch.stack([p.T @ p for p in parts]))
    assert_components(torch.einsum("bij,jk->bki", nt, matrix), [(p @ matrix).T for p in parts])
    heads = nt.unflatten(-1, (2, 2))
    assert_components(heads @ heads.mT, [h @ h.mT for h in heads.unbind()])
    for call in (
        lambda: nt @ nt.transpose(1, 2),
        lambda: nt @ torch.ones(4, dtype=torch.float64),
        lambda: torch.ones(2, 4, dtype=torch.float64) @ nt,
    ):
        with pytest.raises(RuntimeError, match="not supported between inputs of shapes"):
            call()
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        nt @ batch[:2]


# ---- attention -----------------------------------------------------------------------------------


def plain_attention(q, k, v, causal=False):
    scores = q @ k.mT / q.size(-1) ** 0.5
    if causal:
        keep = torch.ones(q.size(-2), k.size(-2), dtype=torch.bool).tril()
        scores = scores.masked_fill(~keep, float("-inf"))
    return scores.softmax(-1) @ v


@pytest.mark.parametrize("causal", [False, True])
def test_attention_within_components(causal):
    lengths = (3, 5, 3, 1, 5)
    q, k, v = (
        [p.requires_grad_() for p in components(2, 4, lengths=lengths, seed=s)] for s in range(3)
    )
    first = torch.nested.as_nested_tensor(q, layout=torch.jagged)
    nested = [first] + [
        torch.nested.nested_tensor_from_jagged(torch.cat(t), first.offsets()) for t in (k, v)
    ]
    out = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in nested), is_causal=causal)
    wanted = [
        plain_attention(*(t.transpose(0, 1) for t in row), causal)
        for row in zip(q, k, v, strict=True)
    ]
    assert_components(out, wanted)
    grads = torch.autograd.grad(out.values().square().sum(), [*q, *k, *v])
    expected = torch.autograd.grad(sum(w.square().sum() for w in wanted), [*q, *k, *v])
    for a, b in zip(grads, expected, strict=True):
        torch.testing.assert_close(a, b)


def test_attention_with_keys_of_other_lengths():
    q, k = components(2, 4, lengths=(2, 3)), components(2, 4, lengths=(4, 1))
    nq, nk = (jagged(t).transpose(1, 2) for t in (q, k))
    wanted = [
        plain_attention(a.transpose(0, 1), b.transpose(0, 1), b.transpose(0, 1))
        for a, b in zip(q, k, strict=True)
    ]
    assert_components(F.scaled_dot_product_attention(nq, nk, nk), wanted)
    with pytest.raises(RuntimeError, match="same lengths"):
        F.scaled_dot_product_attention(nq, nk, nq)
    with pytest.raises(ValueError, match="to be nested tensors"):
        F.scaled_dot_product_attention(nq, torch.ones(2, 2, 3, 4), torch.ones(2, 2, 3, 4))
    with pytest.raises(ValueError, match="Masks"):
        F.scaled_dot_product_attention(nq, nq, nq, attn_mask=torch.ones(3, 3))


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_transformer_layer_matches_each_component_alone(layout):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).double()
    parts = components(8)
    nt = torch.nested.nested_tensor(parts, layout=layout)
    out = layer(nt)
    assert out.layout is layout
    assert_components(out, [layer(p[None])[0] for p in parts])
    attention = layer.self_attn
    found, weights = attention(nt, nt, nt, need_weights=False)
    assert weights is None
    assert_components(found, [attention(p[None], p[None], p[None])[0][0] for p in parts])
    again, weights = attention(nt, nt, nt)
    assert_components(again, found.unbind())
    for row, part in zip(weights, parts, strict=True):
        _, wanted = attention(part[None], part[None], part[None])
        torch.testing.assert_close(row[: len(part), : len(part)], wanted[0])
        assert row.sum().isclose(wanted.sum())
    assert attention(nt, nt, nt, average_attn_weights=False)[1].shape == (3, 2, 4, 4)
    with pytest.raises(NotImplementedError, match="attn_mask"):
        attention(nt, nt, nt, attn_mask=torch.ones(4, 4))


def test_encoder_packs_padding_away_in_evaluation():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    x = torch.randn(3, 5, 8)
    lengths = torch.tensor([2, 5, 3])
    mask = torch.arange(5) >= lengths[:, None]
    with_gradients = encoder(x, src_key_padding_mask=mask)
    with torch.no_grad():
        packed = encoder(x, src_key_padding_mask=mask)
        gaps = encoder(x, src_key_padding_mask=mask.flip(1))
    assert packed.shape == x.shape and packed[mask].eq(0).all() and gaps[mask.flip(1)].ne(0).any()
    torch.testing.assert_close(packed[~mask], with_gradients[~mask])
