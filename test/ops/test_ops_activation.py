"""Activations against plain float64 formulas, and their gradient operators against differences."""

import math

import numpy as np
import pytest
from tensor_support import numeric_gradient

import torch
import torch.nn.functional as F

aten = torch.ops.aten

erf = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


REFERENCE = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "gelu": lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2))),
    "silu": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "softplus": softplus,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "tanhshrink": lambda x: x - np.tanh(x),
    "logsigmoid": lambda x: -softplus(-x),
    "hardshrink": lambda x: np.where(np.abs(x) <= 0.5, 0, x),
    "softshrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
}
TOLERANCE = {
    torch.float64: 1e-12,
    torch.float32: 2e-6,
    torch.float16: 2e-3,
    torch.bfloat16: 2e-2,
}


def points(dtype=torch.float64):
    return torch.linspace(-7, 7, 283, dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("name", sorted(REFERENCE))
@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_activation_matches_formula(name, dtype):
    x = points(dtype)
    got = getattr(F, name)(x)
    want = REFERENCE[name](x.double().numpy())
    assert got.dtype == dtype and got.shape == x.shape
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(got.double().numpy(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_activation_of_views_empty_and_scalars(name):
    function = getattr(F, name)
    x = torch.randn(6, 5)
    assert torch.equal(function(x.t()), function(x.t().contiguous()))
    assert torch.equal(function(x[::2, 1:4]), function(x[::2, 1:4].contiguous()))
    assert function(torch.empty(0, 3)).shape == (0, 3)
    assert function(torch.tensor(0.25)).shape == ()
    assert torch.isnan(function(torch.tensor([math.nan] * 20))).all()
    meta = function(torch.empty(3, 4, device="meta"))
    assert meta.device.type == "meta" and meta.shape == (3, 4)


@pytest.mark.parametrize(
    "name", "relu relu6 silu mish hardswish hardsigmoid hardtanh elu celu selu leaky_relu".split()
)
def test_activation_in_place_equals_functional(name):
    function = getattr(F, name)
    x = torch.randn(40)
    want = function(x)
    before = x._version
    got = function(x, inplace=True)
    assert got is x and torch.equal(x, want) and x._version > before


def test_gelu_tanh_and_tails():
    x = points()
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    want = 0.5 * x * (1 + torch.tanh(inner))
    assert torch.allclose(F.gelu(x, approximate="tanh"), want, rtol=1e-12, atol=1e-12)
    far = torch.tensor([-1e30, -100.0, -6.0, 6.0, 100.0, 1e30] * 4)
    got = F.gelu(far)
    assert torch.allclose(got[:3].abs(), torch.zeros(3), atol=1e-7)
    assert torch.equal(got[3:6], far[3:6])
    with pytest.raises(RuntimeError, match="approximate argument must be either none or tanh"):
        F.gelu(x, approximate="cubic")


GRADIENTS = {
    "threshold": (
        lambda x: F.threshold(x, 0.1, 0.0),
        lambda g, x: aten.threshold_backward(g, x, 0.1),
    ),
    "gelu": (F.gelu, aten.gelu_backward),
    "gelu_tanh": (
        lambda x: F.gelu(x, approximate="tanh"),
        lambda g, x: aten.gelu_backward(g, x, approximate="tanh"),
    ),
    "silu": (F.silu, aten.silu_backward),
    "mish": (F.mish, aten.mish_backward),
    "hardswish": (F.hardswish, aten.hardswish_backward),
    "hardsigmoid": (F.hardsigmoid, aten.hardsigmoid_backward),
    "sigmoid": (torch.sigmoid, lambda g, x: aten.sigmoid_backward(g, torch.sigmoid(x))),
    "tanh": (torch.tanh, lambda g, x: aten.tanh_backward(g, torch.tanh(x))),
    "elu": (lambda x: F.elu(x, 0.7), lambda g, x: aten.elu_backward(g, 0.7, 1, 1, False, x)),
    "elu_result": (
        lambda x: F.elu(x, 0.7),
        lambda g, x: aten.elu_backward(g, 0.7, 1, 1, True, F.elu(x, 0.7)),
    ),
    "leaky_relu": (
        lambda x: F.leaky_relu(x, 0.2),
        lambda g, x: aten.leaky_relu_backward(g, x, 0.2, False),
    ),
    "hardtanh": (F.hardtanh, lambda g, x: aten.hardtanh_backward(g, x, -1, 1)),
    "softplus": (lambda x: F.softplus(x, 2), lambda g, x: aten.softplus_backward(g, x, 2, 20)),
    "hardshrink": (F.hardshrink, lambda g, x: aten.hardshrink_backward(g, x, 0.5)),
    "softshrink": (F.softshrink, lambda g, x: aten.softshrink_backward(g, x, 0.5)),
    "logsigmoid": (F.logsigmoid, lambda g, x: aten.log_sigmoid_backward(g, x, torch.empty(0))),
    "glu": (F.glu, lambda g, x: aten.glu_backward(g, x, -1)),
    "softmax": (
        lambda x: F.softmax(x, -1),
        lambda g, x: aten._softmax_backward_data(g, F.softmax(x, -1), -1, x.dtype),
    ),
    "log_softmax": (
        lambda x: F.log_softmax(x, -1),
        lambda g, x: aten._log_softmax_backward_data(g, F.log_softmax(x, -1), -1, x.dtype),
    ),
}


@pytest.mark.parametrize("name", sorted(GRADIENTS))
def test_gradient_operator_matches_differences(name):
    forward, backward = GRADIENTS[name]
    torch.manual_seed(3)
    x = torch.randn(3, 6, dtype=torch.float64) * 2
    g = torch.randn(forward(x).shape, dtype=torch.float64)
    got = backward(g, x)
    assert torch.allclose(got, numeric_gradient(forward, x, g), rtol=1e-6, atol=1e-7)


def test_gradient_operators_write_into_grad_input():
    g, x = torch.randn(3, 4), torch.randn(3, 4)
    out = torch.empty(3, 4)
    result = aten.silu_backward.grad_input(g, x, grad_input=out)
    assert result is out and torch.equal(out, aten.silu_backward(g, x))


def test_glu_halves_and_its_errors():
    x = torch.randn(2, 6)
    assert torch.allclose(F.glu(x), x[:, :3] * torch.sigmoid(x[:, 3:]))
    assert torch.allclose(F.glu(x, 0), x[:1] * torch.sigmoid(x[1:]))
    with pytest.raises(
        RuntimeError, match="Halving dimension must be even, but dimension 1 is size 3"
    ):
        F.glu(torch.ones(2, 3))


def test_prelu_weights_per_channel_and_errors():
    x = torch.randn(2, 3, 4)
    w = torch.tensor([0.1, 0.2, 0.3])
    want = torch.where(x > 0, x, x * w.view(1, 3, 1))
    assert torch.equal(F.prelu(x, w), want)
    assert torch.equal(F.prelu(x, w[:1]), torch.where(x > 0, x, x * 0.1))
    gx, gw = aten._prelu_kernel_backward(torch.ones_like(x), x, w.view(1, 3, 1))
    assert torch.equal(gx, torch.where(x > 0, torch.ones_like(x), w.view(1, 3, 1).expand(2, 3, 4)))
    assert torch.equal(gw, torch.where(x > 0, torch.zeros_like(x), x))
    with pytest.raises(RuntimeError, match="Found parameter numbers = 2 and channel size = 3"):
        F.prelu(x, w[:2])
    with pytest.raises(RuntimeError, match="Type promoting not supported"):
        F.prelu(x, w.double())


def test_safe_softmax_gives_zero_for_masked_rows():
    x = torch.tensor([[0.0, 1.0], [-math.inf, -math.inf]])
    got = aten._safe_softmax(x, -1)
    assert got[1].tolist() == [0, 0] and torch.allclose(got[0], F.softmax(x[0], -1))


@pytest.mark.parametrize(
    "call, error, phrase",
    [
        (
            lambda: F.relu(torch.tensor([True])),
            RuntimeError,
            "Boolean inputs not supported for relu",
        ),
        (lambda: F.gelu(torch.tensor([1])), NotImplementedError, "not implemented for 'Long'"),
        (lambda: F.elu(torch.tensor([1])), NotImplementedError, '"elu_cpu" not implemented for'),
        (lambda: F.celu(torch.ones(2), 0), RuntimeError, "alpha cannot be 0 for CELU"),
        (lambda: F.softshrink(torch.ones(2), -1), RuntimeError, "lambda must be in range"),
        (
            lambda: F.hardtanh(torch.tensor([1], dtype=torch.uint8)),
            RuntimeError,
            "cannot do hardtanh on an unsigned type with negative limits",
        ),
        (
            lambda: aten.leaky_relu_backward(torch.ones(2), torch.ones(2), -1.0, True),
            RuntimeError,
            "In-place leakyReLu backward calculation is triggered with a negative slope",
        ),
    ],
)
def test_activation_errors(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call()


def test_results_do_not_depend_on_the_number_of_threads():
    x = torch.randn(300, 1000)
    results = []
    threads = torch.get_num_threads()
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            results.append((F.gelu(x), F.softmax(x, 0), F.log_softmax(x, 1)))
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_gelu_gradient_in_float_keeps_up_with_double():
    x = torch.linspace(-12, 12, 4001)
    g = torch.ones_like(x)
    got = aten.gelu_backward(g, x).double()
    assert torch.allclose(got, aten.gelu_backward(g.double(), x.double()), rtol=0, atol=5e-7)
    far = aten.gelu_backward(torch.ones(32), torch.tensor([-math.inf, -1e30, 1e30, math.inf] * 8))
    assert torch.allclose(far, torch.tensor([0.0, 0.0, 1.0, 1.0] * 8), atol=1e-7)
