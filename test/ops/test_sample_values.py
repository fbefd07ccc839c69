"""Values where a wide comparison with PyTorch found ours different; references are formulas."""

import math

import numpy as np
import pytest

import torch
import torch.nn.functional as F
from torch.testing import assert_close


def numbers(*shape, seed=0, low=-2.0, high=2.0, dtype=torch.float64):
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return torch.from_numpy(np.asarray(values)).to(dtype)


def test_histogram_needs_no_gradient():
    assert not torch.histc(numbers(4).requires_grad_(), min=0, max=1).requires_grad


def test_cosine_similarity_of_short_vectors():
    # The length is lifted to eps in the value; its gradient stays that of the length.
    a, b = numbers(3) * 0.1, numbers(3, seed=1) * 0.1
    x = a.clone().requires_grad_()
    (got,) = torch.autograd.grad(F.cosine_similarity(x, b, dim=0, eps=1.0), x)
    assert_close(got, b - (a @ b) * a / a.norm())
    assert_close(F.cosine_similarity(a, b, dim=0, eps=1.0), a @ b)


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


def test_as_strided_scatter_into_an_expanded_tensor():
    x = torch.tensor([1.0]).expand(4)
    got = torch.as_strided_scatter(x, torch.tensor([7.0, 8.0]), (2,), (2,))
    assert got.tolist() == [7, 1, 8, 1] and got.stride() == (1,)


def test_hinge_embedding_loss_of_integers():
    x, y = torch.tensor([1, 2]), torch.tensor([1, -1])
    got = F.hinge_embedding_loss(x, y, margin=3.5, reduction="none")
    assert got.dtype is torch.int64 and got.tolist() == [1, 1]


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


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_wide_unsigned_integers(dtype):
    x = torch.tensor([7, 300, 65535]).to(dtype)
    assert torch.hash_tensor(x).item() == 7 ^ 300 ^ 65535
    places = torch.unravel_index(torch.tensor([5, 11]).to(dtype), (3, 4))
    assert [p.tolist() for p in places] == [[1, 2], [1, 3]]


def test_coordinates_of_positions_are_parts_of_one_tensor():
    rows, columns = torch.unravel_index(torch.arange(6).reshape(2, 3), (3, 4))
    assert rows.stride() == columns.stride() == (6, 2)
    assert torch.unravel_index(torch.tensor(0), ()) == ()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.uint8])
def test_lu_unpack_only_moves_elements(dtype):
    packed = torch.tensor([[4, 3], [2, 5]]).to(dtype)
    p, lower, upper = torch.lu_unpack(packed, torch.tensor([2, 2], dtype=torch.int32))
    assert lower.tolist() == [[1, 0], [2, 1]] and upper.tolist() == [[4, 3], [0, 5]]
    assert p.tolist() == [[0, 1], [1, 0]]


def test_principal_components_of_a_sparse_matrix():
    dense = torch.arange(24.0).view(6, 4) % 5 * (torch.arange(24).view(6, 4) % 3 == 0)
    for matrix in (dense, dense.T.contiguous()):
        torch.manual_seed(0)
        expected = torch.pca_lowrank(matrix, q=2)
        torch.manual_seed(0)
        found = torch.pca_lowrank(matrix.to_sparse(), q=2)
        assert_close(found[1], expected[1])
        assert_close(found[0].abs(), expected[0].abs(), rtol=1e-4, atol=1e-5)


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
