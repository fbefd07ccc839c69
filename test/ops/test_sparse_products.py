"""Products and rows of sparse matrices as other packages call them."""

import numpy as np
import pytest

import torch
from torch.testing import assert_close


def test_first_sparse_products():
    sparse, dense = torch.eye(3).to_sparse(), torch.arange(6.0).view(3, 2)
    assert torch.equal(torch.dsmm(sparse, dense), dense)
    assert torch.equal(torch.spmm(sparse, dense), dense)
    assert torch.equal(torch.hsmm(sparse, dense).to_dense(), dense)
    added = torch.saddmm(dense.to_sparse(), sparse, dense)
    assert added.is_sparse and torch.equal(added.to_dense(), 2 * dense)


def test_new_of_a_sparse_tensor():
    a = torch.eye(3).to_sparse()
    assert a.new().is_sparse and a.new(2, 3).shape == (2, 3)
    made = a.new(a._indices(), 2 * a._values(), torch.Size([4, 4]))
    assert made.is_sparse and made.shape == (4, 4) and made.to_dense()[1, 1] == 2
    assert a.new(a._indices(), a._values().double()).dtype == torch.float64
    resized = a.new().resize_as_(a)
    assert resized.is_sparse and resized.shape == (3, 3) and resized._nnz() == 0
    with pytest.raises(TypeError, match="sizes"):
        a.new([1.0, 2.0])


def test_a_claim_to_be_coalesced_is_taken_and_checked_where_it_matters():
    indices = torch.tensor([[1, 0, 1], [0, 1, 0]])
    dense = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    for claimed in (
        torch.sparse_coo_tensor(indices, torch.ones(3), (2, 2))._coalesced_(True),
        torch.sparse_coo_tensor(indices, torch.ones(3), (2, 2), is_coalesced=True),
    ):
        assert claimed.is_coalesced() and torch.equal(claimed.indices(), indices)
        assert torch.equal(claimed.to_dense(), dense)
        assert torch.equal(claimed.to_sparse_csr().to_dense(), dense)
        assert torch.equal(claimed @ torch.eye(2), dense)
        assert torch.equal((claimed + claimed).to_dense(), dense * 2)
    with pytest.raises(RuntimeError, match="correspond to uncoalesced COO tensor"):
        torch.sparse_coo_tensor(
            indices, torch.ones(3), (2, 2), is_coalesced=True, check_invariants=True
        )


def test_rows_of_a_compressed_matrix_need_not_ascend():
    matrix = torch.sparse_csr_tensor([0, 3, 3], [1, 0, 1], [1.0, 2.0, 3.0], (2, 2))
    dense = torch.tensor([[2.0, 4.0], [0.0, 0.0]])
    assert matrix.col_indices().tolist() == [1, 0, 1]
    assert torch.equal(matrix.to_dense(), dense)
    assert torch.equal(matrix @ torch.eye(2), dense)
    assert torch.equal(matrix.to_sparse_coo().to_dense(), dense)
    assert torch.equal((matrix @ matrix).to_dense(), dense @ dense)
    for col in ([2, 0], [-1, 0]):
        with pytest.raises(RuntimeError, match="col_indices"):
            torch.sparse_csr_tensor([0, 2, 2], col, [1.0, 2.0], (2, 2))


@pytest.mark.parametrize("reduce", ["amax", "amin", "max", "min"])
def test_sparse_products_reduced_by_an_extremum(reduce):
    generator = np.random.default_rng(4)
    dense = generator.standard_normal((5, 6)) * (generator.random((5, 6)) > 0.5)
    dense[2] = 0
    other = generator.standard_normal((6, 3))
    want = np.zeros((5, 3))
    for i in range(5):
        products = [dense[i, k] * other[k] for k in np.flatnonzero(dense[i])]
        if products:
            want[i] = np.max(products, 0) if "max" in reduce else np.min(products, 0)
    matrix, right = torch.from_numpy(dense).to_sparse_csr(), torch.from_numpy(other)
    np.testing.assert_array_equal(torch.sparse.mm(matrix, right, reduce).numpy(), want)
    right.requires_grad_()
    assert torch.autograd.gradcheck(lambda t: torch.sparse.mm(matrix, t, reduce), (right,))


def numbers(*shape, seed=0, low=-2.0, high=2.0, dtype=torch.float64):
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return torch.from_numpy(np.asarray(values)).to(dtype)


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
