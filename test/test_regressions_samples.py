"""Faults found by comparing thousands of varied calls with PyTorch's answers: wrong gradients of
broadcast losses, dtypes and orders of results, calls that were refused or let pass. Each test
failed before its fault was mended; numbers come from formulas, finite differences or PyTorch."""

import math

import numpy as np
import pytest

import torch
import torch.nn.functional as F
from torch.testing import assert_close


def numbers(*shape, seed=0, low=-2.0, high=2.0, dtype=torch.float64):
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return torch.from_numpy(np.asarray(values)).to(dtype)


# ---- gradients


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


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "dropout2d", "feature_alpha_dropout"])
def test_dropout_in_place_that_drops_nothing_may_meet_a_leaf(name):
    leaf = torch.ones(2, 3, 4, 4, requires_grad=True)
    function = getattr(F, name)
    assert function(leaf, 0.5, False, inplace=True) is leaf
    assert function(leaf, 0.0, True, inplace=True) is leaf
    with pytest.raises(RuntimeError, match="leaf Variable"):
        function(leaf, 0.5, True, inplace=True)


def test_histogram_needs_no_gradient():
    assert not torch.histc(numbers(4).requires_grad_(), min=0, max=1).requires_grad


def test_cosine_similarity_of_short_vectors():
    # The length is lifted to eps in the value; its gradient stays that of the length.
    a, b = numbers(3) * 0.1, numbers(3, seed=1) * 0.1
    x = a.clone().requires_grad_()
    (got,) = torch.autograd.grad(F.cosine_similarity(x, b, dim=0, eps=1.0), x)
    assert_close(got, b - (a @ b) * a / a.norm())
    assert_close(F.cosine_similarity(a, b, dim=0, eps=1.0), a @ b)


def test_product_with_a_conjugated_sparse_matrix():
    dense = torch.complex(numbers(2, 2), numbers(2, 2, seed=1))
    right = torch.complex(numbers(2, 2, seed=2), numbers(2, 2, seed=3))
    for sparse in (dense.to_sparse(), dense.to_sparse_csr()):
        assert not sparse.conj().is_conj()
        assert_close(sparse.conj() @ right, dense.conj() @ right)
    one = dense[:1, :1]
    x = right[:1, :1].clone().requires_grad_()
    (got,) = torch.autograd.grad(torch.sparse.mm(one.to_sparse(), x).real.sum(), x)
    assert_close(got, one.conj())


# ---- results


def test_none_stands_for_an_empty_list():
    x = numbers(2, 3)
    assert_close(torch.amax(x, dim=None), x.max())
    assert_close(torch.amin(x, None), x.min())
    assert_close(torch.roll(x, 1, None), torch.roll(x, 1))
    assert_close(torch.avg_pool1d(x[None], 2, None), torch.avg_pool1d(x[None], 2))
    with pytest.raises(TypeError, match="must be tuple of ints, not NoneType"):
        torch.permute(x, None)


def test_ldexp_keeps_a_short_mantissa():
    x, n = torch.tensor([1e-4], dtype=torch.float16), torch.tensor([20])
    assert_close(torch.ldexp(x, n), (x.float() * 2**20).half())
    assert torch.ldexp(x.bfloat16(), n).dtype is torch.bfloat16
    assert torch.ldexp(torch.tensor([3]), n).dtype is torch.float32


def test_masked_variance_keeps_the_dtype():
    x = numbers(2, 5, dtype=torch.float16)
    assert torch.masked.var(x, 1, correction=1.3).dtype is torch.float16
    assert torch.masked.std(x, 1, correction=1.3, mask=x > -1).dtype is torch.float16


def test_sorting_one_element_repeated():
    values, places = torch.sort(numbers(3, 1).expand(3, 40), 1)
    assert places.equal(torch.arange(40).expand(3, 40)) and values.equal(
        values[:, :1].expand(3, 40)
    )


def test_covariance_of_too_few_observations():
    with pytest.warns(UserWarning, match="degrees of freedom"):
        c = torch.cov(
            torch.tensor([[1, 2], [3, 5]]), correction=2, aweights=torch.tensor([0.5, 0.3])
        )
    assert c.isinf().all() and (c > 0).all()


def test_logit_whose_bounds_cross():
    assert torch.logit(numbers(3), eps=1.0).eq(math.inf).all()


def test_writing_one_value_into_an_expanded_tensor():
    x = torch.ones(2, 1)
    x.expand(2, 3).fill_(4)
    assert x.tolist() == [[4], [4]]
    x.expand(2, 3).zero_()
    assert x.tolist() == [[0], [0]]


def test_as_strided_scatter_into_an_expanded_tensor():
    x = torch.tensor([1.0]).expand(4)
    got = torch.as_strided_scatter(x, torch.tensor([7.0, 8.0]), (2,), (2,))
    assert got.tolist() == [7, 1, 8, 1] and got.stride() == (1,)


def test_bernoulli_of_a_permuted_tensor_is_contiguous():
    assert torch.bernoulli(torch.rand(2, 3, 4).permute(2, 0, 1)).is_contiguous()


def test_hinge_embedding_loss_of_integers():
    x, y = torch.tensor([1, 2]), torch.tensor([1, -1])
    got = F.hinge_embedding_loss(x, y, margin=3.5, reduction="none")
    assert got.dtype is torch.int64 and got.tolist() == [1, 1]


def test_half_precision_gradient_of_digamma():
    x = torch.tensor(-4.828125, dtype=torch.float16, requires_grad=True)
    (got,) = torch.autograd.grad(torch.digamma(x), x)
    assert_close(got, torch.tensor(37.155, dtype=torch.float16))


# ---- errors

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


# ---- steps of half precision, complex numbers, wide integers


def test_half_precision_losses_round_after_every_step():
    x, y = numbers(40, dtype=torch.bfloat16), numbers(40, seed=1, low=0, high=1).bfloat16()
    weight = numbers(40, seed=2, low=0.5, high=2).bfloat16()
    steps = (1 - y) * x - ((weight - 1) * y + 1) * F.logsigmoid(x)
    got = F.binary_cross_entropy_with_logits(x, y, pos_weight=weight, reduction="none")
    assert_close(got, steps, rtol=0, atol=0)
    assert_close(
        F.binary_cross_entropy_with_logits(x, y, reduction="none"),
        (1 - y) * x - F.logsigmoid(x),
        rtol=0,
        atol=0,
    )
    four = torch.tensor([4.0], dtype=torch.float16)
    assert F.soft_margin_loss(four, -four).isinf().all()


def test_gradient_of_complex_logcumsumexp_does_not_overflow():
    z = torch.complex(numbers(5, low=-900, high=900), numbers(5, seed=1)).requires_grad_()
    (got,) = torch.autograd.grad(torch.logcumsumexp(z, 0).real.sum(), z)
    assert got.isfinite().all()
    small = torch.complex(numbers(2, 4), numbers(2, 4, seed=1)).requires_grad_()
    torch.autograd.gradcheck(lambda x: torch.logcumsumexp(x, 1), small)


def test_mean_of_complex_normal_numbers_is_that_of_both_parts():
    z = torch.empty(4000, dtype=torch.complex64).normal_(3.0, 0.1)
    assert abs(z.real.mean() - 3) < 0.02 and abs(z.imag.mean() - 3) < 0.02


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_wide_unsigned_integers(dtype):
    x = torch.tensor([7, 300, 65535]).to(dtype)
    assert torch.hash_tensor(x).item() == 7 ^ 300 ^ 65535
    places = torch.unravel_index(torch.tensor([5, 11]).to(dtype), (3, 4))
    assert [p.tolist() for p in places] == [[1, 2], [1, 3]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.uint8])
def test_lu_unpack_only_moves_elements(dtype):
    packed = torch.tensor([[4, 3], [2, 5]]).to(dtype)
    p, lower, upper = torch.lu_unpack(packed, torch.tensor([2, 2], dtype=torch.int32))
    assert lower.tolist() == [[1, 0], [2, 1]] and upper.tolist() == [[4, 3], [0, 5]]
    assert p.tolist() == [[0, 1], [1, 0]]
