"""Names of graph nodes as PyTorch prints them."""

import pytest
from tensor_support import Double

import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close


def test_node_that_receives_a_gradient():
    from torch.autograd.graph import _get_grad_fn_or_grad_acc

    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert _get_grad_fn_or_grad_acc(y) == y.grad_fn
    assert "AccumulateGrad" in _get_grad_fn_or_grad_acc(x).name()
    with pytest.raises(AssertionError, match="Expected gradient function"):
        _get_grad_fn_or_grad_acc(torch.ones(1))


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


def names(node):
    return [None if edge is None else type(edge).__name__ for edge, _ in node.next_functions]


class TestNodeNames:
    @pytest.mark.parametrize(
        ("shape", "bias", "name"),
        [
            ((2, 4), True, "AddmmBackward0"),
            ((2, 4), False, "MmBackward0"),
            ((2, 3, 4), True, "ViewBackward0"),
            ((2, 3, 4), False, "UnsafeViewBackward0"),
            ((4,), True, "ViewBackward0"),
            ((4,), False, "SqueezeBackward4"),
        ],
    )
    def test_linear_is_called_after_the_product_it_is(self, shape, bias, name):
        out = nn.Linear(4, 5, bias=bias)(torch.ones(shape))
        assert type(out.grad_fn).__name__ == out.grad_fn.name() == name

    def test_linear_of_rows_that_are_not_contiguous(self):
        out = nn.Linear(4, 5)(torch.ones(2, 3, 4).transpose(0, 1))
        assert out.grad_fn.name() == "AddBackward0"

    def test_edges_of_linear_begin_with_the_bias(self):
        first = nn.Linear(3, 4)(torch.ones(2, 3))
        out = nn.Linear(4, 2)(first.relu())
        assert names(out.grad_fn) == ["AccumulateGrad", "ReluBackward0", "AccumulateGrad"]

    def test_linear_still_has_its_gradients(self):
        layer = nn.Linear(4, 5).double()
        x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
        weights = [x, layer.weight, layer.bias]
        assert torch.autograd.gradcheck(lambda x, w, b: F.linear(x, w, b), weights)

    def test_batched_products_are_no_views(self):
        a, b = torch.ones(2, 3, 4, requires_grad=True), torch.ones(2, 4, 5)
        vector = torch.ones(4)
        assert (a @ b).grad_fn.name() == "UnsafeViewBackward0"
        assert not (a @ b)._is_view()
        assert (a @ vector).grad_fn.name() == "UnsafeViewBackward0"
        assert torch.equal(a @ vector, torch.full((2, 3), 4.0))
        assert torch.equal(vector @ a.mT, torch.full((2, 3), 4.0))

    def test_name_gives_the_namespace_of_nodes_written_by_hand(self):
        x = torch.ones(2, requires_grad=True)
        y = x * 1
        y[0] = 3
        leaf = (x * 1).grad_fn.next_functions[0][0]
        assert leaf.name() == "torch::autograd::AccumulateGrad"
        assert y.grad_fn.name() == "torch::autograd::CopySlices"
        assert repr(y) == "tensor([3., 1.], grad_fn=<CopySlices>)"

    def test_a_number_has_an_edge(self):
        x = torch.ones(2, requires_grad=True)
        for out in (x + 1, x - 1, x * 2, x / 2):
            assert names(out.grad_fn) == ["AccumulateGrad", None]
        assert names((x + x).grad_fn) == ["AccumulateGrad", "AccumulateGrad"]
        assert names((x**2).grad_fn) == ["AccumulateGrad"]

    def test_hardtanh_in_place(self):
        x = torch.randn(3, 4, requires_grad=True)
        assert F.hardtanh_(x * 1).grad_fn.name() == "HardtanhBackward0"
