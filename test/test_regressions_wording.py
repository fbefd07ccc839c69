"""What PyTorch's users read: the names of graph nodes, the texts of refused calls and the printed
forms, where a wide comparison with recorded answers found ours different. The expected texts are
PyTorch 2.13's."""

import warnings

import pytest

import torch
import torch.nn.functional as F
from torch import nn


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


class TestRefusedArguments:
    @pytest.mark.parametrize(
        ("call", "text"),
        [
            (lambda x: x.exp(1), "TensorBase.exp() takes no arguments (1 given)"),
            (lambda x: x.exp(foo=1), "TensorBase.exp() takes no keyword arguments"),
            (
                lambda x: x.flatten(1, 2, 3),
                "flatten() takes from 0 to 2 positional arguments but 3 were given",
            ),
            (
                lambda x: torch.transpose(x),
                'transpose() missing 2 required positional argument: "dim0", "dim1"',
            ),
            (
                lambda x: torch.zeros([[2]]),
                "zeros(): argument 'size' (position 1) must be tuple of ints, but found element of "
                "type list at pos 0",
            ),
            (
                lambda x: x.sum(dim=0.5),
                "sum() received an invalid combination of arguments - got (dim=float, ), but "
                "expected one of:",
            ),
            (lambda x: x.apply_(1), "'int' object is not callable"),
            (
                lambda x: torch.is_complex(1),
                "is_complex(): argument 'input' (position 1) must be Tensor, not int",
            ),
            (lambda x: x.numpy(1), "numpy() takes 0 positional arguments but 1 was given"),
            (
                lambda x: nn.Conv2d(3, 4),
                "Conv2d.__init__() missing 1 required positional argument: 'kernel_size'",
            ),
            (
                lambda x: nn.Conv2d(3, 4, 3)(),
                "Conv2d.forward() missing 1 required positional argument: 'input'",
            ),
            (
                lambda x: nn.BatchNorm2d(),
                "_BatchNorm.__init__() missing 1 required positional argument: 'num_features'",
            ),
            (
                lambda x: nn.ReLU()(),
                "ReLU.forward() missing 1 required positional argument: 'input'",
            ),
            (
                lambda x: nn.ReLU(1, 2),
                "ReLU.__init__() takes from 1 to 2 positional arguments but 3 were given",
            ),
            (
                lambda x: nn.Threshold(1),
                "Threshold.__init__() missing 1 required positional argument: 'value'",
            ),
            (
                lambda x: nn.GRU(2, 3)(),
                "GRU.forward() missing 1 required positional argument: 'input'",
            ),
        ],
    )
    def test_type_errors(self, call, text):
        with pytest.raises(TypeError) as caught:
            call(torch.ones(2, 3))
        assert str(caught.value).splitlines()[0] == text

    @pytest.mark.parametrize(
        ("call", "text"),
        [
            (lambda x: torch.zeros(-1), "zeros: Dimension size must be non-negative."),
            (lambda x: x.to("float32"), "Invalid device string: 'float32'"),
            (lambda x: torch.device("cpu_1"), "Invalid device string: 'cpu_1'"),
            (
                lambda x: x.expand(2),
                "expand(torch.FloatTensor{[2, 3]}, size=[2]): the number of sizes provided (1) "
                "must be greater or equal to the number of dimensions in the tensor (2)",
            ),
            (
                lambda x: F.embedding(torch.ones(1, dtype=torch.bool), x),
                "Expected tensor for argument #1 'indices' to have one of the following scalar "
                "types: Long, Int; but got CPUBoolType instead (while checking arguments for "
                "embedding)",
            ),
            (
                lambda x: F.linear(x[0], torch.ones(2, 3), torch.ones(5)),
                "The expanded size of the tensor (2) must match the existing size (5) at "
                "non-singleton dimension 1.  Target sizes: [1, 2].  Tensor sizes: [5]",
            ),
            (
                lambda x: nn.Linear(2, 3)(torch.tensor(1.0)),
                "both arguments to linear need to be at least 1D, but they are 0D and 2D",
            ),
            (
                lambda x: F.dropout(torch.arange(3), 0.5),
                "result type Float can't be cast to the desired output type Long",
            ),
            (
                lambda x: F.conv_transpose2d(
                    torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2), output_padding=2
                ),
                "output padding must be smaller than either stride or dilation, but got "
                "output_padding_height: 2 output_padding_width: 2 stride_height: 1 "
                "stride_width: 1 dilation_height: 1 dilation_width: 1",
            ),
            (
                lambda x: F.max_pool2d(x[None], 2, dilation=0),
                "dilation should be greater than zero, but got dilationH: 0 dilationW: 0",
            ),
            (
                lambda x: F.interpolate(x[None, None], size=0),
                "Input and output sizes should be greater than 0, but got input (H: 2, W: 3) "
                "output (H: 0, W: 0)",
            ),
            (
                lambda x: F.softshrink(x, -1),
                "lambda must be in range [0, 3.40282e+38] for input dtype Float, but found -1",
            ),
            (
                lambda x: nn.Parameter(torch.arange(3)),
                "Only Tensors of floating point and complex dtype can require gradients",
            ),
            (
                lambda x: x.repeat(-1, 2),
                "Trying to create tensor with negative dimension -2: [-2, 6]",
            ),
            (lambda x: x.nanquantile(1.5), "quantile() q must be in the range [0, 1] but got 1.5"),
            (
                lambda x: x.masked_scatter(x > 0, torch.ones(6, dtype=torch.int64)),
                "masked_scatter: expected self and source to have same dtypes but gotFloat and "
                "Long",
            ),
            (lambda x: x[0].norm("x"), "linalg.matrix_norm: Order x not supported."),
            (lambda x: x.cfloat().sort(), " Sort does not support complex dtypes on CPU"),
            (lambda x: torch.poisson(-x), "invalid Poisson rate, expected rate to be non-negative"),
            (
                lambda x: torch.linspace(x[0], 1, 3),
                "linspace only supports 0-dimensional start and end tensors, but got start with 1 "
                "dimension(s).",
            ),
            (
                lambda x: x.exponential_().to(torch.complex64).exponential_(),
                "Exponential distribution is a continuous probability distribution. dtype must be "
                "a floating point but you specified ComplexFloat",
            ),
            (
                lambda x: torch.autograd.grad(x.sum(), []),
                "`inputs` argument to `grad()` cannot be empty.",
            ),
        ],
    )
    def test_runtime_errors(self, call, text):
        with pytest.raises(RuntimeError) as caught:
            call(torch.ones(2, 3))
        assert str(caught.value).splitlines()[0] == text

    def test_other_types(self):
        with pytest.raises(AssertionError, match=r"max_val \(0\) must be greater than min_val"):
            nn.Hardtanh(1, 0)
        with pytest.raises(ValueError, match=r"LSTM: .* got 1D instead"):
            nn.LSTM(3, 4)(torch.ones(3))
        with pytest.raises(ValueError, match=r"RNN: .* got 1D tensor instead"):
            nn.RNN(3, 4)(torch.ones(3))
        with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 2"):
            torch.ones(2, 3)[None, None, 5]

    def test_gradient_of_another_dtype(self):
        x = torch.ones(3)
        with pytest.raises(RuntimeError, match="dtype 'double' to a tensor with grad_dtype 'Float"):
            x.grad = torch.ones(3, dtype=torch.float64)

    def test_subclasses_keep_their_own_constructor(self):
        class Wide(nn.Conv2d):
            def __init__(self, channels):
                super().__init__(channels, 2 * channels, 3)

        assert Wide(2)(torch.ones(1, 2, 4, 4)).shape == (1, 4, 2, 2)
        assert nn.Conv2d.__init__.__qualname__ == "Conv2d.__init__"


class TestPrinted:
    def test_no_edge_items(self):
        torch.set_printoptions(edgeitems=0, threshold=2)
        try:
            assert repr(torch.arange(8.0)) == "tensor([...], size=(8,))"
            assert repr(torch.ones(3, 3)) == "tensor([...], size=(3, 3))"
            assert repr(torch.tensor(0.5)) == "tensor(0.5000, size=())"
        finally:
            torch.set_printoptions(profile="default")

    def test_inplace_that_is_not_said(self):
        assert repr(nn.Hardswish(True)) == "Hardswish()"
        assert repr(nn.Hardsigmoid(inplace=True)) == "Hardsigmoid()"
        assert repr(nn.ReLU(True)) == "ReLU(inplace=True)"

    def test_grad_mode(self):
        text = "torch.autograd.grad_mode.set_grad_enabled(mode=True)"
        assert repr(torch.set_grad_enabled(True)) == text


class TestWarnings:
    def test_grad_of_what_is_no_leaf(self):
        x = torch.ones(2, requires_grad=True)
        with pytest.warns(UserWarning, match="a Tensor that is not a leaf Tensor is being accesse"):
            assert (x * 2).grad is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kept = x * 2
            kept.retain_grad()
            assert x.grad is None and kept.grad is None and x.detach().grad is None

    def test_no_degrees_of_freedom(self):
        for work, name in ((torch.std, "std"), (torch.var, "var"), (torch.std_mean, "std_mean")):
            with pytest.warns(UserWarning, match=rf"^{name}\(\): degrees of freedom is <= 0"):
                work(torch.ones(1))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.ones(2, 2).std(0)
            torch.ones(1).std(correction=0)

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({}, "encoder_layer.self_attn.batch_first was not True"),
            ({"batch_first": True, "norm_first": True}, "encoder_layer.norm_first was True"),
            ({"batch_first": True, "nhead": 1}, "encoder_layer.self_attn.num_heads is odd"),
            ({"batch_first": True, "bias": False}, "encoder_layer.self_attn was passed bias=False"),
        ],
    )
    def test_encoders_that_keep_padding(self, options, reason):
        layer = nn.TransformerEncoderLayer(4, **{"nhead": 2, **options})
        with pytest.warns(UserWarning, match=f"use_nested_tensor is False because {reason}"):
            nn.TransformerEncoder(layer, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def test_dropout2d_of_three_dimensions(self):
        with pytest.warns(UserWarning, match="dropout2d: Received a 3D input to dropout2d"):
            F.dropout2d(torch.ones(2, 3, 4))
