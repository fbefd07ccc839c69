"""Sparse tensors on CUDA, against dense arithmetic of NumPy."""

import numpy as np
import pytest
from cuda_support import cuda

import torch

SIZE = (5, 7)


def dense_and_coo(seed=0, dtype=torch.float32, size=SIZE):
    """A NumPy array, and a COO tensor on the GPU that stands for it, with places named twice."""
    random = np.random.default_rng(seed)
    count = 14
    places = np.stack([random.integers(0, extent, count) for extent in size])
    values = random.integers(-4, 5, count).astype(np.float64)
    dense = np.zeros(size)
    np.add.at(dense, tuple(places), values)
    coo = torch.sparse_coo_tensor(
        torch.tensor(places), torch.tensor(values, dtype=dtype), size, device=cuda
    )
    return dense, coo


def same(result, expected):
    result = result.to_dense() if result.layout != torch.strided else result
    assert result.device.type == "cuda"
    np.testing.assert_allclose(result.cpu().double().numpy(), expected, rtol=1e-5, atol=1e-5)


def test_a_coo_tensor_is_made_where_its_device_says_and_is_dense_again():
    dense, coo = dense_and_coo()
    assert coo.is_cuda and coo.is_sparse and coo._indices().is_cuda and coo._values().is_cuda
    same(coo, dense)
    one_each = coo.coalesce()
    assert one_each.is_coalesced() and one_each._nnz() == len(
        {tuple(p) for p in coo._indices().cpu().t().tolist()}
    )
    same(one_each, dense)


def test_a_sparse_tensor_moves_between_devices():
    dense, coo = dense_and_coo()
    there = coo.cpu()
    assert there.device.type == "cpu"
    np.testing.assert_array_equal(there.to_dense().numpy(), dense)
    same(there.to(cuda), dense)
    same(there.to_sparse_csr().to(cuda), dense)


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "bsc"])
def test_layouts_keep_the_elements(layout):
    dense, coo = dense_and_coo(size=(6, 8))
    blocks = ((2, 4),) if layout.startswith("b") else ()
    made = getattr(coo, f"to_sparse_{layout}")(*blocks)
    same(made, dense)
    same(made.to_sparse(), dense)
    same(getattr(torch.tensor(dense, device=cuda), f"to_sparse_{layout}")(*blocks), dense)


def test_a_csr_tensor_is_made_of_lists_that_are_checked():
    starts, columns = torch.tensor([0, 2, 3]).to(cuda), torch.tensor([0, 2, 1]).to(cuda)
    values = torch.tensor([1.0, 2.0, 3.0]).to(cuda)
    made = torch.sparse_csr_tensor(starts, columns, values, (2, 3))
    same(made, np.array([[1.0, 0, 2], [0, 3, 0]]))
    with pytest.raises(RuntimeError, match="col_indices"):
        torch.sparse_csr_tensor(starts, columns + 1, values, (2, 3))
    with pytest.raises(RuntimeError, match="crow_indices"):
        torch.sparse_csr_tensor(starts.flip(0), columns, values, (2, 3))


def test_indices_out_of_range_are_named():
    with pytest.raises(RuntimeError, match="found index 9"):
        torch.sparse_coo_tensor([[0, 9]], [1.0, 2.0], (3,), device=cuda)
    with pytest.raises(RuntimeError, match="negative index -1"):
        torch.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,), device=cuda)


def test_sums_and_products_by_element():
    a, x = dense_and_coo(1)
    b, y = dense_and_coo(2)
    same(x + y, a + b)
    same(x - 2 * y, a - 2 * b)
    same(x * y, a * b)
    same(x * 3, a * 3)
    same(x / 2, a / 2)
    same(torch.tensor(b, dtype=torch.float32).to(cuda) + x, a + b)
    same(x * torch.tensor(b, dtype=torch.float32).to(cuda), a * b)
    same(x.to_sparse_csr() + y.to_sparse_csr(), a + b)
    same(x.clone().add_(y), a + b)
    same(x.neg(), -a)
    same(x.coalesce().abs(), abs(a))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [1, 3, 40, 130])
def test_matrix_products_with_dense_matrices(dtype, width):
    dense, coo = dense_and_coo(dtype=dtype)
    right = np.random.default_rng(3).integers(-3, 4, (SIZE[1], width)).astype(np.float64)
    other = torch.tensor(right, dtype=dtype).to(cuda)
    for matrix in (coo, coo.to_sparse_csr(), coo.to_sparse_csc()):
        same(matrix @ other, dense @ right)
    same(torch.sparse.mm(coo, other), dense @ right)
    same(torch.mv(coo.to_sparse_csr(), other[:, 0]), dense @ right[:, 0])


def test_matrix_products_of_types_without_a_kernel():
    dense, coo = dense_and_coo()
    right = np.random.default_rng(3).integers(-3, 4, (SIZE[1], 4))
    same(coo.to(torch.int64) @ torch.tensor(right).to(cuda), dense @ right)
    result = coo.to(torch.complex64) @ torch.tensor(right * 1j).to(torch.complex64).to(cuda)
    np.testing.assert_allclose(result.cpu().numpy(), dense @ (right * 1j), rtol=1e-5)


def test_addmm_and_products_of_two_sparse_matrices():
    a, x = dense_and_coo(4)
    b, y = dense_and_coo(5, size=(7, 5))
    base = np.arange(25.0).reshape(5, 5)
    other = torch.tensor(b, dtype=torch.float32).to(cuda)
    bias = torch.tensor(base, dtype=torch.float32).to(cuda)
    same(torch.sparse.addmm(bias, x, other, beta=2, alpha=3), 2 * base + 3 * a @ b)
    same(torch.sparse.mm(x, y), a @ b)
    same(x.to_sparse_csr() @ y.to_sparse_csr(), a @ b)


def test_sampled_addmm_fills_the_places_of_its_input():
    pattern, x = dense_and_coo(6)
    left = np.random.default_rng(7).standard_normal((5, 33))
    right = np.random.default_rng(8).standard_normal((33, 7))
    csr = x.coalesce().to_sparse_csr()
    mask = np.zeros(SIZE)
    mask[tuple(x._indices().cpu().numpy())] = 1
    result = torch.sparse.sampled_addmm(
        csr,
        torch.tensor(left, dtype=torch.float32).to(cuda),
        torch.tensor(right, dtype=torch.float32).to(cuda),
        beta=0.5,
        alpha=2.0,
    )
    same(result, 0.5 * pattern + 2 * mask * (left @ right))


def test_parts_of_a_coo_tensor():
    dense, coo = dense_and_coo(9)
    same(coo.t(), dense.T)
    same(coo[2], dense[2])
    same(coo.index_select(0, torch.tensor([3, 0, 3]).to(cuda)), dense[[3, 0, 3]])
    same(torch.cat([coo, coo], 0), np.concatenate([dense, dense], 0))
    same(coo.narrow_copy(1, 2, 3), dense[:, 2:5])
    same(coo.unsqueeze(0), dense[None])
    with pytest.raises(IndexError, match="out of range"):
        coo.index_select(0, torch.tensor([5]).to(cuda))


def test_reductions_of_a_coo_tensor():
    dense, coo = dense_and_coo(10)
    same(torch.sparse.sum(coo), dense.sum())
    same(torch.sparse.sum(coo, 0), dense.sum(0))
    same(coo.sum(), dense.sum())
    np.testing.assert_allclose(coo.coalesce().norm().item(), np.linalg.norm(dense), rtol=1e-5)


def test_softmax_is_over_the_elements_that_are_there():
    indices = torch.tensor([[0, 0, 1, 1, 1], [0, 2, 0, 1, 2]])
    values = torch.tensor([1.0, 3.0, 0.5, -1.0, 2.0])
    coo = torch.sparse_coo_tensor(indices, values, (3, 3), device=cuda)
    expected = np.zeros((3, 3))
    for row, columns in ((0, [0, 2]), (1, [0, 1, 2])):
        given = values.numpy()[[i for i in range(5) if indices[0, i] == row]].astype(np.float64)
        expected[row, columns] = np.exp(given) / np.exp(given).sum()
    same(torch.sparse.softmax(coo, 1), expected)


def test_gradients_go_through_a_product_to_both_sides():
    dense, coo = dense_and_coo(11)
    matrix = coo.coalesce().requires_grad_()
    right = np.random.default_rng(12).standard_normal((7, 3))
    other = torch.tensor(right, dtype=torch.float32).to(cuda).requires_grad_()
    torch.sparse.mm(matrix, other).sum().backward()
    same(other.grad, dense.T @ np.ones((5, 3)))
    mask = np.zeros(SIZE)
    mask[tuple(coo._indices().cpu().numpy())] = 1
    same(matrix.grad, mask * (np.ones((5, 3)) @ right.T))


@pytest.mark.parametrize("name", ["SGD", "SparseAdam"])
def test_an_embedding_learns_from_sparse_gradients(name):
    weight = np.arange(12.0).reshape(6, 2)
    layer = torch.nn.Embedding.from_pretrained(
        torch.tensor(weight, dtype=torch.float32), freeze=False, sparse=True
    ).to(cuda)
    layer(torch.tensor([1, 4, 1]).to(cuda)).sum().backward()
    grad = layer.weight.grad
    assert grad.is_sparse and grad.is_cuda
    expected = np.zeros((6, 2))
    expected[1], expected[4] = 2, 1
    same(grad, expected)
    getattr(torch.optim, name)(layer.parameters(), lr=0.1).step()
    changed = layer.weight.detach().cpu().numpy() != weight
    assert changed[[1, 4]].all() and not changed[[0, 2, 3, 5]].any()


def test_empty_sparse_tensors_are_made_and_used():
    none = torch.zeros(3, 4, layout=torch.sparse_coo, device=cuda)
    same(none, np.zeros((3, 4)))
    same(none + none, np.zeros((3, 4)))
    same(none @ torch.ones(4, 2, device=cuda), np.zeros((3, 2)))
    same(torch.empty(3, 4, layout=torch.sparse_csr, device=cuda), np.zeros((3, 4)))
    same(torch.zeros_like(dense_and_coo()[1]), np.zeros(SIZE))


def test_operands_of_two_devices_are_refused():
    coo = dense_and_coo()[1]
    with pytest.raises(RuntimeError, match="same device"):
        torch.sparse.mm(coo, torch.ones(7, 2))
