"""Faults found by writing training programs as users do and comparing every number and text with
PyTorch's: random streams of low rank factorisations, names of the nodes that printing a result
shows, layouts. Each test failed before its fault was mended; constants come from PyTorch."""

import numpy as np
import pytest
from tensor_support import Double

import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

# ---- randomised factorisations


def wavy():
    return torch.sin(torch.arange(48.0).view(12, 4) ** 2)


@pytest.mark.parametrize(
    ("factor", "values"),
    [
        (lambda a: torch.svd_lowrank(a, q=2, niter=0), [2.9676783, 2.2495885]),
        (lambda a: torch.svd_lowrank(a.T, q=2, niter=1), [3.0618069, 2.4356124]),
        (lambda a: torch.pca_lowrank(a, q=2, niter=1), [3.0172799, 2.0671189]),
    ],
)
def test_low_rank_factorisations_draw_vectors_as_long_as_the_smaller_side(factor, values):
    torch.manual_seed(3)
    assert_close(factor(wavy())[1], torch.tensor(values), rtol=1e-5, atol=1e-6)
    assert torch.rand(1).item() == 0.17560523748397827


def test_principal_components_of_a_sparse_matrix():
    dense = torch.arange(24.0).view(6, 4) % 5 * (torch.arange(24).view(6, 4) % 3 == 0)
    for matrix in (dense, dense.T.contiguous()):
        torch.manual_seed(0)
        expected = torch.pca_lowrank(matrix, q=2)
        torch.manual_seed(0)
        found = torch.pca_lowrank(matrix.to_sparse(), q=2)
        assert_close(found[1], expected[1])
        assert_close(found[0].abs(), expected[0].abs(), rtol=1e-4, atol=1e-5)


def test_draws_from_rows_that_are_repeated_follow_the_stream():
    third = torch.full((1, 3), 1 / 3)
    torch.manual_seed(8)
    assert torch.multinomial(third.expand(4, 3), 1).T.tolist() == [[2, 0, 1, 1]]
    torch.manual_seed(8)
    found = torch.distributions.Categorical(torch.ones(3)).expand((4,)).sample()
    assert found.tolist() == [2, 0, 1, 1]
    assert torch.rand(1).item() == 0.7892667055130005
    torch.manual_seed(8)
    without = torch.multinomial(torch.full((1, 5), 0.2).expand(4, 5), 3)
    assert without.tolist() == [[2, 3, 1], [2, 0, 3], [4, 2, 0], [1, 4, 2]]


# ---- what printing a result shows


def shown(t):
    return t.grad_fn.name()


@pytest.mark.parametrize(
    ("net", "name"),
    [
        (nn.LSTM(4, 3), "MkldnnRnnLayerBackward0"),
        (nn.LSTM(4, 3, proj_size=2), "StackBackward0"),
        (nn.LSTM(4, 3, dtype=torch.float64), "StackBackward0"),
        (nn.GRU(4, 3), "StackBackward0"),
        (nn.RNN(4, 3, num_layers=2), "StackBackward0"),
        (nn.GRU(4, 3, bidirectional=True), "CatBackward0"),
    ],
)
def test_a_recurrent_layer_is_called_as_in_pytorch(net, name):
    x = torch.ones(3, 2, 4, dtype=next(net.parameters()).dtype)
    output, state = net(x)
    assert shown(output) == name
    assert shown(state[0] if isinstance(state, tuple) else state) == "StackBackward0"
    packed = nn.utils.rnn.pack_sequence([x[:, 0], x[:2, 1]])
    assert shown(net(packed)[0].data) == "CatBackward0"


def test_nodes_that_stand_for_several_operators_are_called_as_the_last_of_them():
    x = torch.arange(20.0).view(5, 4).requires_grad_()
    assert str(nn.RMSNorm(2)(torch.ones(1, 2))) == "tensor([[1., 1.]], grad_fn=<MulBackward0>)"
    assert shown(F.rms_norm(x.bfloat16(), (4,))) == "ToCopyBackward0"
    assert shown(F.adaptive_avg_pool2d(x[None], 1)) == "MeanBackward1"
    assert shown(F.adaptive_avg_pool2d(x[None], (1, 2))) == "AdaptiveAvgPool2DBackward0"
    assert shown(F.adaptive_avg_pool3d(x[None, None], 1)) == "MeanBackward1"
    assert shown(x.T) == "PermuteBackward0"


def test_the_divergence_of_normals_is_called_as_in_pytorch():
    loc, scale = torch.tensor([0.5, -1.0]), torch.tensor([0.3, 1e-30])
    p = torch.distributions.Normal(loc.requires_grad_(), scale)
    found = torch.distributions.kl_divergence(p, torch.distributions.Normal(0.0, 1.0))
    assert_close(found.detach(), torch.tensor([0.8739728, 69.0775528]))
    assert shown(found) == "MulBackward0"


def test_a_custom_function_belongs_to_the_module_of_functions():
    node = Double.apply(torch.ones(2, requires_grad=True)).grad_fn
    assert repr(node).startswith("<torch.autograd.function.DoubleBackward object at 0x")


# ---- einsum


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


# ---- layouts: what may be viewed afterwards


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


# ---- rounding


def test_rms_norm_of_ones_is_ones():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.ones(3, 8, dtype=dtype)
        assert torch.equal(F.rms_norm(x, (8,)), x)


# ---- calls that were refused


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


# ---- rounding to the grid of a quantised type


def on_grid(x, scale, zero, low, high):
    level = np.rint(x * (np.float32(1) / np.float32(scale))) + zero
    within = (level >= low) & (level <= high)
    return (np.clip(level, low, high) - zero).astype(np.float32) * np.float32(scale), within


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_fake_quantisation_by_tensor(dtype):
    x = torch.linspace(-3, 4, 57).to(dtype).requires_grad_()
    exact = x.detach() if dtype == torch.float64 else x.detach().float()
    expected, within = on_grid(exact.numpy(), 0.3, 2, 0, 15)
    by_number = torch.fake_quantize_per_tensor_affine(x, 0.3, 2, 0, 15)
    zero = torch.tensor(2, dtype=torch.int32)
    by_tensor = torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.3), zero, 0, 15)
    for found in (by_number, by_tensor):
        assert torch.equal(found, torch.from_numpy(expected).to(dtype))
        (gradient,) = torch.autograd.grad(found.sum(), x)
        assert torch.equal(gradient, torch.from_numpy(within).to(dtype))
    assert shown(by_number) == "FakeQuantizePerTensorAffineCachemaskBackward0"
    assert shown(by_tensor) == "FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0"


def test_fake_quantisation_by_channel():
    x = torch.linspace(-3, 4, 24).view(2, 3, 4).requires_grad_()
    scale, zero = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2], dtype=torch.int32)
    for axis in (1, -2):
        found = torch.fake_quantize_per_channel_affine(x, scale, zero, axis, 0, 15)
        (gradient,) = torch.autograd.grad(found.sum(), x)
        for c in range(3):
            part = x.detach()[:, c].numpy()
            expected, within = on_grid(part, scale[c].item(), c, 0, 15)
            assert torch.equal(found[:, c], torch.from_numpy(expected))
            assert torch.equal(gradient[:, c], torch.from_numpy(within).float())


def test_fake_quantisation_of_what_is_no_number_and_of_nothing():
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.75, 0.25])
    found = torch.fake_quantize_per_tensor_affine(x, 0.5, 0, -8, 7)
    assert found.tolist() == [-4.0, 3.5, -4.0, 1.0, 0.0]
    assert torch.fake_quantize_per_tensor_affine(torch.empty(0, 3), 0.5, 0, -8, 7).shape == (0, 3)
    assert torch.fake_quantize_per_tensor_affine(x.to("meta"), 0.5, 0, -8, 7).shape == (5,)


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 8, 7), RuntimeError, "less"),
        (lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 9, 0, 7), RuntimeError, "between"),
        (
            lambda x: torch.fake_quantize_per_tensor_affine(x.long(), 0.1, 3, 0, 7),
            NotImplementedError,
            "not implemented for 'Long'",
        ),
        (
            lambda x: torch.fake_quantize_per_channel_affine(
                x, torch.ones(3).double(), torch.zeros(3, dtype=torch.int32), 0, 0, 7
            ),
            RuntimeError,
            "Scale must be Float or BFloat16, found Double",
        ),
        (
            lambda x: torch.fake_quantize_per_channel_affine(
                x, torch.ones(2), torch.zeros(2, dtype=torch.int32), 0, 0, 7
            ),
            RuntimeError,
            "not consistent with input tensor",
        ),
        (
            lambda x: torch.fake_quantize_per_channel_affine(
                x, torch.ones(3), torch.zeros(3, dtype=torch.int32), 5, 0, 7
            ),
            IndexError,
            "Dimension out of range",
        ),
    ],
)
def test_fake_quantisation_refuses(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call(torch.ones(3, 4))


# ---- texts


def test_keys_of_mappings_that_differ_are_listed_on_both_sides():
    with pytest.raises(AssertionError) as caught:
        assert_close({"x": 1}, {"x": 1, "y": 2})
    assert str(caught.value) == (
        "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['y']\n"
        "Additional keys in the actual mapping: []"
    )


def test_lazy_modules_do_not_warn(recwarn):
    nn.LazyLinear(3)(torch.ones(2, 4))
    assert not recwarn.list


def test_a_column_index_out_of_range():
    for index in (-1, 9):
        with pytest.raises(RuntimeError, match="`0 <= col_indices < ncols` is not satisfied"):
            torch.sparse_csr_tensor(
                torch.tensor([0, 1]),
                torch.tensor([index]),
                torch.ones(1),
                (1, 2),
                check_invariants=True,
            )


def test_gradient_of_a_mean_can_be_viewed():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    (grad,) = torch.autograd.grad(x.mean(1).sum(), x)
    assert torch.equal(grad.view(-1), torch.full((6,), 1 / 3))
