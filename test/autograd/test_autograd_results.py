"""Results of differentiable operators that programs write to, index, or differentiate through:
layouts, broadcast operands, empty and repeated inputs."""

import warnings

import numpy as np
import pytest

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn import functional
from torch.testing import assert_close


def test_embedding_result_can_be_written_to():
    table = nn.Embedding(5, 4)
    out = table(torch.tensor([[0, 1], [1, 3]]))
    assert not out._is_view()
    out += 1.0
    out.sum().backward()
    assert table.weight.grad.sum() == 16


@pytest.mark.parametrize("k", [1, 2, 3])
def test_rot90_result_can_be_written_to(k):
    x = torch.randn(2, 3, requires_grad=True)
    out = torch.rot90(x, k)
    assert not out._is_view()
    out.mul_(2.0).sum().backward()
    assert (x.grad == 2).all()


def test_where_with_a_byte_condition_differentiates():
    x = torch.randn(3, requires_grad=True)
    y = torch.randn(3, requires_grad=True)
    torch.where(torch.tensor([1, 0, 1], dtype=torch.uint8), x, y).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 1.0]
    assert y.grad.tolist() == [0.0, 1.0, 0.0]


def test_numpy_without_recording():
    np = pytest.importorskip("numpy")
    parameter = nn.Parameter(torch.ones(3))
    with pytest.raises(RuntimeError, match="requires grad"):
        parameter.numpy()
    with torch.no_grad():
        assert parameter.view(-1).numpy().tolist() == [1.0, 1.0, 1.0]
        assert np.asarray(parameter).sum() == 3


def test_cross_map_lrn_has_the_gradient_programs_were_trained_with():
    x = torch.arange(1.0, 8.0, dtype=torch.float64).view(1, 7, 1, 1).requires_grad_()
    layer = nn.CrossMapLRN2d(3, alpha=0.3, beta=0.75, k=1.0)
    y = layer(x)
    scale = (x / y).pow(1 / 0.75).detach().flatten()
    # The window of the value has a channel in its middle, and the first channel.
    sums = ((scale - 1) * 3 / 0.3).round().tolist()
    assert sums == [5, 14, 30, 51, 78, 111, 86]
    (grad,) = torch.autograd.grad(y.sum(), x)
    ratio = (y.detach().flatten() / scale).tolist()
    for j in range(7):
        window = sum(ratio[max(0, j - 2) : j + 1])
        want = scale[j].item() ** -0.75 - 2 * 0.75 * 0.3 / 3 * (j + 1) * window
        assert grad.flatten()[j].item() == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: functional.relu6(x, inplace=True),
        lambda x: functional.rrelu(x, inplace=True),
        lambda x: functional.hardtanh(x, 0.0, 6.0, inplace=True),
        lambda x: x.mvlgamma_(1),
        lambda x: x.ldexp_(torch.tensor(2)),
    ],
)
def test_in_place_composites_can_be_differentiated(write):
    x = torch.linspace(0.6, 7.5, 12, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: write(t * 1.5), (x,))
    target = x.detach() * 1.5
    before = target.data_ptr()
    assert write(target) is target and target.data_ptr() == before


def test_storage_of_a_leaf_may_be_replaced_without_recording():
    leaf = torch.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in"):
        leaf.set_(torch.ones(4))
    with torch.no_grad():
        leaf.set_(torch.ones(4))
    (leaf * 2).sum().backward()
    assert leaf.requires_grad and leaf.grad.tolist() == [2.0] * 4


def numbers(*shape, seed=0, low=-2.0, high=2.0, dtype=torch.float64):
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return torch.from_numpy(np.asarray(values)).to(dtype)


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss, F.huber_loss])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_gradient_of_a_loss_whose_operands_broadcast(loss, reduction):
    for shapes in [((2, 3), ()), ((2, 3), (1, 3)), ((), (4,)), ((2, 1), (1, 3))]:
        pair = [numbers(*s, seed=i).requires_grad_() for i, s in enumerate(shapes)]
        torch.autograd.gradcheck(lambda a, b: loss(a, b, reduction=reduction), pair)


def test_gradient_of_products_taken_in_a_real_dtype():
    z = torch.complex(numbers(3), numbers(3, seed=1)).requires_grad_()
    real = z.detach().real.clone().requires_grad_()
    for function in (
        lambda x: torch.prod(x, 0, dtype=torch.float64),
        lambda x: torch.prod(x, dtype=torch.float64),
        lambda x: torch.cumprod(x, 0, dtype=torch.float64).sum(),
    ):
        (got,) = torch.autograd.grad(function(z), z)
        (expected,) = torch.autograd.grad(function(real), real)
        assert_close(got, expected.to(torch.complex128))


def test_gradient_of_joined_empty_vectors():
    parts = [torch.zeros(0, requires_grad=True) for _ in range(2)]
    grads = torch.autograd.grad(torch.cat(parts, 1).sum(), parts)
    assert [tuple(g.shape) for g in grads] == [(0,), (0,)]


def test_gradient_of_a_linear_layer_without_outputs():
    x, w, b = numbers(2, 3), torch.zeros(0, 3).double(), torch.zeros(0).double()
    for first in (x, x[0]):
        parts = [t.clone().requires_grad_() for t in (first, w, b)]
        grads = torch.autograd.grad(F.linear(*parts).sum(), parts)
        assert [g.shape for g in grads] == [p.shape for p in parts] and not grads[0].any()


@pytest.mark.parametrize("shape", [(2, 4), (1, 4), (2, 1), (4,)])
def test_gradient_of_a_bias_that_is_a_matrix_has_its_shape(shape):
    x, w, b = (t.requires_grad_() for t in (numbers(2, 3), numbers(4, 3), numbers(*shape)))
    got = torch.autograd.grad((F.linear(x, w, b) ** 2).sum(), (x, w, b))
    wanted = torch.autograd.grad(((x @ w.t() + b) ** 2).sum(), (x, w, b))
    for a, b in zip(got, wanted, strict=True):
        assert_close(a, b)


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "dropout2d", "feature_alpha_dropout"])
def test_dropout_in_place_that_drops_nothing_may_meet_a_leaf(name):
    leaf = torch.ones(2, 3, 4, 4, requires_grad=True)
    function = getattr(F, name)
    assert function(leaf, 0.5, False, inplace=True) is leaf
    assert function(leaf, 0.0, True, inplace=True) is leaf
    with pytest.raises(RuntimeError, match="leaf Variable"):
        function(leaf, 0.5, True, inplace=True)


def test_writing_one_value_into_an_expanded_tensor():
    x = torch.ones(2, 1)
    x.expand(2, 3).fill_(4)
    assert x.tolist() == [[4], [4]]
    x.expand(2, 3).zero_()
    assert x.tolist() == [[0], [0]]


def test_half_precision_gradient_of_digamma():
    x = torch.tensor(-4.828125, dtype=torch.float16, requires_grad=True)
    (got,) = torch.autograd.grad(torch.digamma(x), x)
    assert_close(got, torch.tensor(37.155, dtype=torch.float16))


def test_gradient_of_complex_logcumsumexp_does_not_overflow():
    z = torch.complex(numbers(5, low=-900, high=900), numbers(5, seed=1)).requires_grad_()
    (got,) = torch.autograd.grad(torch.logcumsumexp(z, 0).real.sum(), z)
    assert got.isfinite().all()
    small = torch.complex(numbers(2, 4), numbers(2, 4, seed=1)).requires_grad_()
    torch.autograd.gradcheck(lambda x: torch.logcumsumexp(x, 1), small)


def test_writing_to_an_empty_expanded_tensor_does_not_warn():
    x = torch.zeros(1, 2).expand(3, 2)[:0]
    mask = torch.zeros(0, 2, dtype=torch.bool)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x[mask] = torch.zeros(0)
        x.masked_fill_(mask, 1.0)
    with pytest.warns(UserWarning, match="on expanded tensors"):
        torch.zeros(1, 2).expand(3, 2)[torch.ones(3, 2, dtype=torch.bool)] = torch.zeros(6)


def test_gradient_of_a_mean_can_be_viewed():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    (grad,) = torch.autograd.grad(x.mean(1).sum(), x)
    assert torch.equal(grad.view(-1), torch.full((6,), 1 / 3))


def test_tangent_passes_a_composite_with_a_formula_of_its_own():
    x = torch.arange(8.0).reshape(1, 4, 2).requires_grad_()
    direction = torch.randn(1, 4, 2)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, direction)
        result = torch.autograd.forward_ad.unpack_dual(torch.channel_shuffle(dual, 2))
        assert torch.equal(result.tangent, direction[:, [0, 2, 1, 3]])
