"""Faults found by writing training programs as users do and comparing every number and text with
PyTorch's: random streams of low rank factorisations, names of the nodes that printing a result
shows, layouts. Each test failed before its fault was mended; constants come from PyTorch."""

import pytest

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


def test_a_custom_function_belongs_to_the_module_of_functions():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

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


# ---- rounding


def test_rms_norm_of_ones_is_ones():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.ones(3, 8, dtype=dtype)
        assert torch.equal(F.rms_norm(x, (8,)), x)
