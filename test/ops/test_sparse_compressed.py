"""Compressed sparse tensors (CSR, CSC, BSR, BSC): batches of matrices, views, sizes, copies and the
texts of refusals. Values are compared with the dense tensors they stand for."""

import numpy as np
import pytest

import torch

LAYOUTS = [torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc]
BLOCKED = (torch.sparse_bsr, torch.sparse_bsc)
FLIPPED = dict(zip(LAYOUTS, [LAYOUTS[1], LAYOUTS[0], LAYOUTS[3], LAYOUTS[2]], strict=True))


def dense(*batch: int) -> torch.Tensor:
    """Matrices of 4 x 6 with as many elements each, on their checkerboards."""
    values = np.arange(1.0, np.prod((*batch, 4, 6)) + 1).reshape(*batch, 4, 6)
    return torch.tensor(values * (np.indices((4, 6)).sum(0) % 2))


def packed(given: torch.Tensor, layout: torch.layout) -> torch.Tensor:
    return given.to_sparse(layout=layout, blocksize=(2, 3) if layout in BLOCKED else None)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_conversion_of_a_batch_and_back_gives_the_same_values(layout, batch):
    given = dense(*batch)
    made = packed(given, layout)
    assert made.layout == layout and made.shape == given.shape
    assert torch.equal(made.to_dense(), given)
    elements = made.to_sparse()
    assert elements.sparse_dim() == given.dim()
    assert torch.equal(elements.to_dense(), given)


def test_conversion_of_a_batch_needs_equal_numbers_of_elements():
    uneven = torch.stack([torch.eye(2), torch.ones(2, 2)])
    with pytest.raises(RuntimeError, match="Expect the same number of specified elements"):
        uneven.to_sparse_csr()
    with pytest.raises(RuntimeError, match="to_sparse_csc: Expected product of batch dimensions"):
        torch.ones(0, 2, 2).to_sparse_csc()


def test_conversion_keeps_the_dtype_of_indices():
    starts = torch.tensor([0, 1, 2], dtype=torch.int32)
    given = torch.sparse_csr_tensor(starts, starts[:2], torch.ones(2), (2, 2))
    assert given.to_sparse_csc().row_indices().dtype == torch.int32
    assert given.to_sparse_bsr((1, 1)).crow_indices().dtype == torch.int32
    assert (given + given).col_indices().dtype == torch.int32


def test_conversion_between_block_layouts_keeps_the_block_size():
    given = dense().to_sparse_bsr((2, 3))
    assert given.to_sparse(layout=torch.sparse_bsc).values().shape[1:] == (2, 3)
    with pytest.raises(RuntimeError, match=r"blocksize changed from \[2, 3\] to \[2, 2\]"):
        given.to_sparse_bsr((2, 2))
    with pytest.raises(RuntimeError, match=r"sparse size \(4,6\) must be divisible by given"):
        dense().to_sparse_csr().to_sparse_bsr((3, 3))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_transpose_of_batch_or_sparse_dimensions_is_a_view(layout):
    given = packed(dense(2, 3), layout)
    for a, b, expected in ((0, 1, layout), (2, 3, FLIPPED[layout]), (1, 1, layout)):
        turned = given.transpose(a, b)
        assert turned.layout == expected
        assert turned._is_view() and turned._base is given and turned.values()._is_view()
        assert torch.equal(turned.to_dense(), dense(2, 3).transpose(a, b))


def test_transpose_of_dimensions_of_two_kinds_raises():
    given = dense(2).to_sparse_csr()
    with pytest.raises(RuntimeError, match=r"of the same type .*, got 0\(Batch\) and 2\(Sparse\)"):
        given.transpose(0, 2)
    hybrid = torch.ones(2, 2, 3).to_sparse_csr(dense_dim=1)
    with pytest.raises(RuntimeError, match="hybrid sparse compressed tensors with dense"):
        hybrid.transpose(0, 1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_select_takes_a_batch_a_row_or_a_dense_part(layout):
    given = packed(dense(2, 3), layout)
    assert torch.equal(given.select(1, 2).to_dense(), dense(2, 3)[:, 2])
    matrix = given[1, 1]
    assert torch.equal(matrix.select(0, 3).to_dense(), dense(2, 3)[1, 1, 3])
    assert torch.equal(torch.select_copy(matrix, 1, 2).to_dense(), dense(2, 3)[1, 1, :, 2])
    assert given[1, 1, 0, 1].item() == dense(2, 3)[1, 1, 0, 1].item()
    with pytest.raises(RuntimeError, match="selecting sparse dimensions is not supported"):
        given.select(2, 0)
    with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
        given[0, 0, 0, 0] = 1.0


def test_empty_has_batches_and_refuses_vectors_and_blocks():
    made = torch.empty((2, 3, 4), layout=torch.sparse_csc)
    assert made.ccol_indices().shape == (2, 5) and made._nnz() == 0
    with pytest.raises(RuntimeError, match=r"Only batched sparse compressed \(non-block\) tensors"):
        torch.empty((5,), layout=torch.sparse_csr)
    with pytest.raises(RuntimeError, match=r"expected sparse compressed \(non-block\) tensor"):
        torch.empty((4, 4), layout=torch.sparse_bsr)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_like_functions_keep_the_pattern(layout):
    given = packed(dense(2), layout)
    same = torch.empty_like(given)
    assert same.layout == layout and same._nnz() == given._nnz()
    assert torch.equal(torch.full_like(given, 3.0).values(), torch.full_like(given.values(), 3.0))
    assert torch.zeros_like(given)._nnz() == 0
    with pytest.raises(RuntimeError, match="empty_like with different sparse layout is not supp"):
        torch.empty_like(given, layout=FLIPPED[layout])


def test_copy_needs_layout_elements_shape_and_blocks_alike():
    target = torch.eye(4).to_sparse_csr()
    assert torch.equal(target.clone().copy_(2 * target).to_dense(), 2 * torch.eye(4))
    with pytest.raises(RuntimeError, match="having different layouts is not supported"):
        target.copy_(torch.ones(4, 4))
    with pytest.raises(RuntimeError, match="with the same number of specified elements"):
        target.copy_(torch.ones(4, 4).to_sparse_csr())
    wide, tall = torch.ones(2, 6).to_sparse_bsr((1, 2)), torch.ones(2, 6).to_sparse_bsr((2, 1))
    with pytest.raises(RuntimeError, match="having different block sizes is not supported"):
        wide.copy_(tall)


def test_resize_keeps_elements_that_have_room():
    given = torch.ones(2, 2, 3).to_sparse_csr()
    given.resize_(2, 4, 5)
    assert given._nnz() == 6 and given.shape == (2, 4, 5)
    given.resize_(2, 1, 5)
    assert given._nnz() == 5
    given.resize_(1, 5)
    assert given.shape == (1, 5) and given.crow_indices().tolist() == [0, 5]
    with pytest.raises(RuntimeError, match="Resizing columns of sparse CSR tensors to a smaller"):
        given.resize_(1, 2)
    with pytest.raises(RuntimeError, match="Only batched sparse CSR matrices are supported"):
        given.resize_(4)


def test_resize_as_takes_the_size_and_pattern_of_the_other():
    given = torch.ones(3, 3).to_sparse_csr()
    given.resize_as_sparse_(torch.eye(5).to_sparse_csr())
    assert given.shape == (5, 5) and given._nnz() == 5
    with pytest.raises(RuntimeError, match="self and src must have the same layout"):
        given.resize_as_sparse_(torch.eye(5).to_sparse_csc())
    with pytest.raises(RuntimeError, match="src  expected sparse compressed tensor layout"):
        given.resize_as_sparse_(torch.eye(5))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sum_of_two_keeps_the_layout(layout):
    for batch in ((), (2,)):
        given = packed(dense(*batch), layout)
        added = torch.add(given, given, alpha=2)
        assert added.layout == layout
        assert torch.equal(added.to_dense(), 3 * dense(*batch))
    with pytest.raises(RuntimeError, match="Expected input tensors to have the same shape"):
        torch.eye(4).to_sparse_csr() + torch.eye(5).to_sparse_csr()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_product_with_a_number_in_place_and_not(layout):
    given = packed(dense(2), layout)
    assert torch.equal((given * 2.5).to_dense(), dense(2) * 2.5)
    assert torch.equal(given.clone().mul_(torch.tensor(3)).to_dense(), dense(2) * 3)
    whole = packed(dense(2).long(), layout)
    with pytest.raises(RuntimeError, match=r"result type .* can't be cast to the desired output"):
        whole.mul_(2.5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_addmv_with_a_sparse_matrix(layout):
    matrix, vector = packed(dense(), layout), torch.arange(6.0).double()
    base = torch.ones(4).double()
    expected = 2 * (dense() @ vector) + 3 * base
    assert torch.allclose(torch.addmv(base, matrix, vector, beta=3, alpha=2), expected)
    out = torch.empty_like(base)
    assert torch.addmv(base, matrix, vector, beta=3, alpha=2, out=out) is out
    assert torch.allclose(out, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_solve_uses_one_triangle_of_a_sparse_matrix(layout, upper, transpose, unit):
    full = np.random.default_rng(0).uniform(1, 2, (6, 6)) + 6 * np.eye(6)
    b = np.arange(12.0).reshape(6, 2)
    used = np.triu(full) if upper else np.tril(full)
    if unit:
        used = used - np.diag(np.diag(used)) + np.eye(6)
    matrix = packed(torch.tensor(full), layout)
    solution, rest = torch.triangular_solve(
        torch.tensor(b), matrix, upper=upper, transpose=transpose, unitriangular=unit
    )
    expected = np.linalg.solve(used.T if transpose else used, b)
    assert rest.numel() == 0
    np.testing.assert_allclose(solution.numpy(), expected, rtol=1e-12, atol=1e-12)


INDICES = (torch.tensor([0, 2, 4]), torch.tensor([0, 1, 0, 2]))


@pytest.mark.parametrize(
    "starts, columns, values, size, text",
    [
        (torch.tensor([0, 9, 2, 9, 4, 9])[::2], INDICES[1], 4, (2, 3), "crow_indices to be a con"),
        (INDICES[0], torch.tensor([0, 1, 0, 1, 2]), 4, (2, 3), r"equal to nnz \(=4\) as defined"),
        (INDICES[0][None], INDICES[1], 4, (2, 3), "dimensionalities must be equal but got 2 and 1"),
        (INDICES[0], INDICES[1], 4, (3, 3), r"equal to the number of rows \+ 1 \(=4\), but got 3"),
        (INDICES[0].int(), INDICES[1], 4, (2, 3), "must have the same dtype, bot got Int and"),
        (INDICES[0].short(), INDICES[1].short(), 4, (2, 3), "dtype must be Int or Long, but got S"),
    ],
)
def test_constructor_names_what_does_not_fit(starts, columns, values, size, text):
    with pytest.raises(RuntimeError, match=text):
        torch.sparse_csr_tensor(starts, columns, torch.ones(values), size)


def test_compressed_tensors_have_no_strides_or_storage():
    given = torch.eye(3).to_sparse_csr()
    with pytest.raises(RuntimeError, match="do not have is_contiguous"):
        given.is_contiguous()
    with pytest.raises(NotImplementedError, match="Cannot access storage of SparseCsrTensorImpl"):
        given.untyped_storage()


def test_product_with_a_vector_of_another_length_names_both_sizes():
    with pytest.raises(RuntimeError, match=r"size mismatch, got input \(4x4\), vec \(5\)"):
        torch.eye(4).to_sparse_csr().mv(torch.ones(5))


def test_tensor_with_dims_has_the_shapes_that_they_ask_for():
    made = torch.ops.aten._sparse_compressed_tensor_with_dims(
        3, 1, (2, 4, 6, 5), (2, 3), torch.int32, dtype=torch.float64, layout=torch.sparse_bsc
    )
    assert made.ccol_indices().shape == (2, 3) and made.ccol_indices().dtype == torch.int32
    assert made.values().shape == (2, 3, 2, 3, 5) and made._nnz() == 3
    with pytest.raises(RuntimeError, match="blocksize must have 2 elements for layout SparseBsr"):
        torch.ops.aten._sparse_compressed_tensor_with_dims(
            3, 0, (4, 6), (), torch.int64, layout=torch.sparse_bsr
        )


def test_indices_alone_can_be_validated():
    torch._validate_compressed_sparse_indices(True, INDICES[0], INDICES[1], 2, 3, 4)
    with pytest.raises(RuntimeError, match=r"crow_indices.* == nnz"):
        torch._validate_compressed_sparse_indices(True, INDICES[0] * 2, INDICES[1], 2, 3, 4)


# ---- coordinates


def test_product_of_coordinates_and_a_larger_dense_tensor_broadcasts():
    sparse, wide = torch.eye(3).to_sparse(), torch.arange(18.0).view(2, 3, 3)
    for got in (sparse * wide, wide * sparse):
        assert got.is_sparse and torch.equal(got.to_dense(), torch.eye(3) * wide)
    row = torch.tensor([[1.0, 0.0, 2.0]]).to_sparse()
    assert torch.equal(
        torch._sparse_broadcast_to(row, (4, 3)).to_dense(), row.to_dense().expand(4, 3)
    )
    number = torch.sparse_coo_tensor(torch.zeros(0, 1, dtype=torch.int64), 3.0, ())
    assert torch.equal((number * sparse).to_dense(), 3 * torch.eye(3))
    assert torch.equal(torch.ones(3, 3).mul_(sparse), torch.eye(3))


def test_product_of_two_sparse_numbers_does_not_depend_on_their_order():
    many = torch.sparse_coo_tensor(
        torch.zeros(0, 3, dtype=torch.int64), torch.tensor([1, 2, 3], dtype=torch.int16), ()
    )
    one = torch.tensor(2).to_sparse()
    for product in (many * one, one * many):
        assert product.dtype is torch.int16 and product._nnz() == 3
        assert product.to_dense().item() == 12


def test_resize_of_coordinates_grows_and_says_what_cannot_shrink():
    hybrid = torch.ones(3, 3).to_sparse(1)
    grown = hybrid.clone().sparse_resize_((4, 5), 1, 1).to_dense()
    assert grown.shape == (4, 5) and torch.equal(grown[:3, :3], torch.ones(3, 3))
    assert grown.sum() == 9
    with pytest.raises(RuntimeError, match=r"size of dense dimensions \(from \[3\] to \[2\]\)"):
        hybrid.sparse_resize_((3, 2), 1, 1)
    with pytest.raises(RuntimeError, match=r"number of sparse dimensions \(from 1 to 2\)"):
        hybrid.sparse_resize_((3, 3), 2, 0)


def test_parts_of_complex_elements_are_a_dense_dimension():
    given = torch.tensor([[1 + 2j, 0], [0, 3j]]).to_sparse()
    for sparse in (given, given.to_sparse_csr()):
        parts = torch.view_as_real(sparse)
        assert parts.dense_dim() == 1
        assert torch.equal(parts.to_dense(), torch.view_as_real(given.to_dense()))
        assert torch.equal(torch.view_as_complex(parts).to_dense(), given.to_dense())


def test_floor_division_and_narrowing_of_coordinates():
    given = torch.tensor([[5.0, 0.0, -3.0]]).to_sparse()
    assert (given // 2).to_dense().tolist() == [[2.0, 0.0, -2.0]]
    assert given.narrow_copy(1, 1, 2).to_dense().tolist() == [[0.0, -3.0]]
    with pytest.raises(RuntimeError, match="Invalid range to narrow"):
        given.narrow_copy(1, 2, 2)
    twice = torch.sparse_coo_tensor([[0, 0]], [3.0, 4.0], (2,))
    assert twice.floor_divide_(2).to_dense().tolist() == [3.0, 0.0]
    with pytest.raises(RuntimeError, match="norm_sparse currently does not support keepdim=True"):
        given.norm(keepdim=True)
    with pytest.raises(ValueError, match="dtype argument is not supported in frobenius norm"):
        given.norm(dtype=torch.float64)


def test_coordinates_may_be_the_out_of_zeros():
    out = torch.eye(3).to_sparse()
    assert torch.zeros(2, 4, out=out) is out and out.shape == (2, 4) and out._nnz() == 0
