"""Memory order of results: attention, norms, glu, einsum."""

import pytest

import torch
import torch.nn.functional as F
from torch.testing import assert_close


def shown(t):
    return t.grad_fn.name()


@pytest.mark.parametrize(
    ("equation", "shapes", "strides", "name"),
    [
        ("ij,jk", [(2, 3), (3, 4)], (4, 1), "ViewBackward0"),
        ("ij,kj->ki", [(5, 3), (2, 3)], (5, 1), "ViewBackward0"),
        ("ab,cdb->cda", [(3, 2), (4, 4, 2)], (12, 3, 1), "ViewBackward0"),
        ("nxa,nxb->ban", [(2, 4, 3), (2, 4, 5)], (3, 1, 15), "ViewBackward0"),
        ("bij,jk->bki", [(2, 3, 4), (4, 5)], (15, 1, 5), "ViewBackward0"),
        ("nhqk,nkhd->nqhd", [(2, 3, 4, 5), (2, 5, 3, 6)], (72, 6, 24, 1), "ViewBackward0"),
        ("i,j->ji", [(5,), (3,)], (5, 1), "MulBackward0"),
        ("ij,k->kij", [(2, 2), (3,)], (4, 2, 1), "MulBackward0"),
        ("ij->i", [(2, 3)], (1,), "SumBackward1"),
        ("ij->ji", [(2, 3)], (1, 3), "PermuteBackward0"),
    ],
)
def test_einsum_stores_and_names_its_result_as_pytorch_does(equation, shapes, strides, name):
    operands = [torch.randn(s, dtype=torch.float64).requires_grad_() for s in shapes]
    result = torch.einsum(equation, *operands)
    assert result.stride() == strides
    assert shown(result) == name
    torch.autograd.gradcheck(lambda *t: torch.einsum(equation, *t), operands)


def memory_order(order, *sizes):
    """A tensor of these sizes that lies in memory with its dimensions in this order."""
    stored = torch.randn([sizes[d] for d in order])
    return stored.permute([order.index(d) for d in range(len(sizes))])


@pytest.mark.parametrize(
    ("order", "strides"),
    [
        ((0, 1, 2, 3), (60, 20, 5, 1)),
        ((0, 2, 1, 3), (60, 5, 15, 1)),
        ((2, 0, 1, 3), (15, 5, 30, 1)),
        ((0, 1, 3, 2), (60, 20, 5, 1)),
        ((0, 2, 3, 1), (60, 20, 5, 1)),
    ],
)
def test_attention_follows_the_query_only_where_its_last_dimension_is_innermost(order, strides):
    q, k = memory_order(order, 2, 3, 4, 5), torch.randn(2, 3, 4, 5)
    assert F.scaled_dot_product_attention(q, k, k).stride() == strides
    meta = [t.to("meta").as_strided(t.shape, t.stride()) for t in (q, k)]
    assert F.scaled_dot_product_attention(meta[0], meta[1], meta[1]).shape == q.shape
    one_head = torch.randn(2, 1, 4, 5).expand(2, 3, 4, 5)
    assert F.scaled_dot_product_attention(one_head, k, k).stride() == (60, 20, 5, 1)


def test_rms_norm_gives_a_contiguous_result_and_keeps_channels_last():
    x = torch.randn(3, 4, 6)
    for order in [(1, 0, 2), (0, 2, 1), (2, 1, 0)]:
        y = x.permute(order)
        found = F.rms_norm(y, y.shape[-1:])
        assert found.is_contiguous()
        assert_close(found, F.rms_norm(y.contiguous(), y.shape[-1:]))
    image = torch.randn(2, 3, 4, 6).permute(0, 3, 1, 2)
    assert F.rms_norm(image, (4,)).stride() == (72, 1, 24, 6)
    assert F.rms_norm(torch.empty(0, 4).t().t(), (4,)).shape == (0, 4)


def test_glu_keeps_the_order_of_the_dimensions_in_memory():
    y = torch.randn(3, 4, 6).permute(1, 2, 0)
    assert F.glu(y, 0).stride() == (6, 1, 12)
    assert F.glu(y, 1).stride() == (3, 1, 12)
    assert_close(F.glu(y, 1), F.glu(y.contiguous(), 1))


def test_rms_norm_of_ones_is_ones():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.ones(3, 8, dtype=dtype)
        assert torch.equal(F.rms_norm(x, (8,)), x)


@pytest.mark.parametrize("of_bools", [True, False])
def test_attention_with_a_mask_that_is_causal_besides(of_bools):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 5, 8).unbind()
    q.requires_grad_()
    visible = torch.ones(5, 5, dtype=torch.bool).tril()
    mask = torch.rand(5, 5) > 0.4 if of_bools else torch.randn(5, 5)
    if of_bools:
        mask[:, 0] = True
        both = mask & visible
    else:
        both = mask.masked_fill(~visible, -torch.inf)
    found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=both)
    assert_close(found, expected)
    assert_close(torch.autograd.grad(found.sum(), q), torch.autograd.grad(expected.sum(), q))
    with pytest.raises(RuntimeError, match="attn_mask should not be set when is_causal=True"):
        F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True, dropout_p=0.1)
