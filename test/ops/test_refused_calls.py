"""Calls that must be refused, with the words that programs match on."""

import numpy as np
import pytest

import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close


def numbers(*shape, seed=0, low=-2.0, high=2.0, dtype=torch.float64):
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return torch.from_numpy(np.asarray(values)).to(dtype)


def test_none_stands_for_an_empty_list():
    x = numbers(2, 3)
    assert_close(torch.amax(x, dim=None), x.max())
    assert_close(torch.amin(x, None), x.min())
    assert_close(torch.roll(x, 1, None), torch.roll(x, 1))
    assert_close(torch.avg_pool1d(x[None], 2, None), torch.avg_pool1d(x[None], 2))
    with pytest.raises(TypeError, match="must be tuple of ints, not NoneType"):
        torch.permute(x, None)


PAIR = torch.tensor([0.5, 0.6])


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: torch.clamp(PAIR * 1j, 1), NotImplementedError, "clamp is not supported"),
        (lambda: torch.bernoulli(PAIR.long()), NotImplementedError, "bernoulli_tensor_cpu_p_"),
        (lambda: torch.bernoulli(PAIR * 1j), NotImplementedError, "bernoulli_tensor_cpu_self_"),
        (
            lambda: torch.native_batch_norm(PAIR, None, None, None, None, True, 0.1, 1e-5),
            IndexError,
            "Dimension out of range",
        ),
        (lambda: torch.slice_copy(PAIR[0]), IndexError, "cannot be applied to a 0-dim"),
        (
            lambda: F.embedding_bag(torch.tensor([[0]]), PAIR),
            ValueError,
            "weight has to be a 2D Tensor",
        ),
        (lambda: F.kl_div(PAIR, torch.tensor([1, 0])), RuntimeError, "Integral inputs"),
        (lambda: torch.nanmean(PAIR, dtype=torch.int64), RuntimeError, "could not infer output"),
        (
            lambda: F.nll_loss(PAIR[None], torch.tensor([1]), weight=PAIR.double()),
            RuntimeError,
            "expected scalar type Float but found Double",
        ),
        (
            lambda: F.binary_cross_entropy(PAIR, torch.tensor([0.5, 1.5])),
            RuntimeError,
            "elements of target should be between 0 and 1",
        ),
        (
            lambda: torch.index_add(PAIR, 0, torch.tensor([5]), PAIR[:1]),
            IndexError,
            "index out of range in self",
        ),
        (lambda: F.cosine_similarity(PAIR * 1j, PAIR, 0), RuntimeError, "to be floating point"),
    ],
)
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
def test_refused_calls(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


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
