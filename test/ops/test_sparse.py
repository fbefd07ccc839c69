"""Sparse tensors: construction and its checks, conversion among layouts, arithmetic, products and
gradients, each against the same computation on strided tensors or SciPy's; and that operators
without a sparse kernel raise instead of touching memory that is not there."""

import copy
import io
import pickle

import numpy as np
import pytest

import torch
from torch.testing import assert_close

scipy_sparse = pytest.importorskip("scipy.sparse")

COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def random_dense(*size, seed=0, dtype=torch.float64, density=0.4):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(*size, generator=generator, dtype=torch.float64)
    keep = torch.rand(*size, generator=generator) < density
    return (values * keep).to(dtype)


def uncoalesced():
    indices = torch.tensor([[0, 1, 1, 0], [2, 0, 2, 2]])
    return torch.sparse_coo_tensor(indices, torch.tensor([3.0, 4.0, 5.0, 1.0]), (2, 3))


def in_layout(dense, layout):
    blocks = (2, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    return dense.to_sparse(layout=layout, blocksize=blocks)


# ---- construction


def test_coo_parts():
    s = uncoalesced()
    assert s.is_sparse and s.layout is torch.sparse_coo and not s.is_coalesced()
    assert (s._nnz(), s.sparse_dim(), s.dense_dim(), s.shape) == (4, 2, 0, (2, 3))
    assert s.dtype is torch.float32 and s.device.type == "cpu" and s.numel() == 6
    c = s.coalesce()
    assert c.is_coalesced() and c._nnz() == 3
    assert c.indices().tolist() == [[0, 1, 1], [2, 0, 2]] and c.values().tolist() == [4, 4, 5]
    assert c.coalesce() is c
    with pytest.raises(RuntimeError, match="Cannot get indices on an uncoalesced tensor"):
        s.indices()
    with pytest.raises(RuntimeError, match="values expected sparse tensor layout but got Strided"):
        torch.ones(2).values()


def test_coo_from_lists_and_sizes():
    s = torch.sparse_coo_tensor([[0, 2]], [[1, 2], [3, 4]])
    assert s.shape == (3, 2) and s.dtype is torch.int64 and s.dense_dim() == 1
    assert s.to_dense().tolist() == [[1, 2], [0, 0], [3, 4]]
    empty = torch.sparse_coo_tensor((2, 3), dtype=torch.float64)
    assert empty._nnz() == 0 and empty.to_dense().equal(torch.zeros(2, 3, dtype=torch.float64))
    assert torch.zeros(2, 3, layout=torch.sparse_coo)._nnz() == 0
    zero_dim = torch.sparse_coo_tensor(torch.zeros(0, 1, dtype=torch.long), [2.0], ())
    assert zero_dim.to_dense().item() == 2.0
    assert torch.sparse.FloatTensor(torch.tensor([[1]]), torch.tensor([2.0])).shape == (2,)
    assert isinstance(uncoalesced(), torch.sparse.FloatTensor)


@pytest.mark.parametrize(
    ("indices", "values", "size", "text"),
    [
        ([[0, 5]], [1.0, 2.0], (3,), "size is 3 but found index 5"),
        ([[0, -1]], [1.0, 2.0], (3,), "found negative index -1 for dim 0"),
        ([[0, -1]], [1.0, 2.0], None, "found negative index -1 for dim 0"),
        ([[0, 1]], [1.0, 2.0, 3.0], None, "must have same nnz"),
        ([0, 1], [1.0, 2.0], None, "indices must be sparse_dim x nnz"),
        ([[0, 1]], [1.0, 2.0], (2, 2), r"len\(size\) == sparse_dim \+ dense_dim"),
        ([[0, 1]], [[1.0], [2.0]], (2, 3), "values has incorrect size"),
        ([[0, 1]], [1.0, 2.0], (-1,), "negative dimension"),
        ([[2**62, 0], [2**62, 1]], [1.0, 2.0], None, "overflow|too large|invalid"),
    ],
)
def test_coo_errors(indices, values, size, text):
    with pytest.raises(RuntimeError, match=text):
        torch.sparse_coo_tensor(indices, values, size)


def test_is_coalesced_is_checked_on_request():
    given = ([[1, 0]], [1.0, 2.0], (2,))
    with pytest.raises(RuntimeError, match="cannot set is_coalesced to true"):
        torch.sparse_coo_tensor(*given, is_coalesced=True, check_invariants=True)
    with (
        torch.sparse.check_sparse_tensor_invariants(),
        pytest.raises(RuntimeError, match="cannot set is_coalesced to true"),
    ):
        torch.sparse_coo_tensor(*given, is_coalesced=True)
    assert torch.sparse_coo_tensor(*given)._coalesced_(True).is_coalesced()


def test_indices_changed_afterwards_are_noticed():
    s = uncoalesced()
    s._indices().fill_(1000)
    for use in (s.to_dense, s.coalesce, lambda: s @ torch.ones(3, 2), lambda: s + s):
        with pytest.raises((IndexError, RuntimeError)):
            use()
    t = uncoalesced()
    t._values().resize_(0)
    assert t.to_dense().sum() == 13


@pytest.mark.parametrize("layout", COMPRESSED)
def test_compressed_parts_and_dense(layout):
    dense = random_dense(4, 6)
    s = in_layout(dense, layout)
    assert s.layout is layout and not s.is_sparse and s.shape == (4, 6)
    assert_close(s.to_dense(), dense)
    rows = layout in (torch.sparse_csr, torch.sparse_bsr)
    first = s.crow_indices() if rows else s.ccol_indices()
    second = s.col_indices() if rows else s.row_indices()
    block = 2 if layout in (torch.sparse_bsr, torch.sparse_bsc) else 1
    assert first.numel() == (4 if rows else 6) // block + 1
    assert second.numel() == s._nnz() == s.values().shape[0]
    with pytest.raises(RuntimeError, match=r"expected sparse (row|column) compressed"):
        s.ccol_indices() if rows else s.crow_indices()
    again = torch.sparse_compressed_tensor(first, second, s.values(), (4, 6), layout=layout)
    assert_close(again.to_dense(), dense)
    for other in COMPRESSED:
        converted = s.to_sparse_coo() if other is layout else in_layout(s, other)
        assert_close(converted.to_dense(), dense)


@pytest.mark.parametrize("name", ["csr", "csc"])
def test_compressed_like_scipy(name):
    dense = random_dense(5, 7, seed=3)
    ours = getattr(dense, f"to_sparse_{name}")()
    theirs = getattr(scipy_sparse, f"{name}_array")(dense.numpy())
    first, second = ("crow", "col") if name == "csr" else ("ccol", "row")
    assert getattr(ours, f"{first}_indices")().tolist() == theirs.indptr.tolist()
    assert getattr(ours, f"{second}_indices")().tolist() == theirs.indices.tolist()
    np.testing.assert_array_equal(ours.values().numpy(), theirs.data)


@pytest.mark.parametrize(
    ("crow", "col", "text"),
    [
        ([0, 1, 3], [0, 1], "crow_indices.*-1. == nnz"),
        ([1, 1, 2], [0, 1], "crow_indices.*0. == 0"),
        ([0, 2, 2], [1, 0], "sorted and distinct"),
        ([0, 1, 2], [0, 2], "col_indices < ncols"),
        ([0, 1, 2], [0, -1], "0 <= col_indices"),
        ([0, 2], [0, 1], "must be equal to the number of rows"),
    ],
)
def test_csr_errors(crow, col, text):
    with pytest.raises(RuntimeError, match=text):
        torch.sparse_csr_tensor(crow, col, [1.0, 2.0], (2, 2), check_invariants=True)
    with pytest.raises(RuntimeError, match=text):
        given = (torch.tensor(crow), torch.tensor(col), torch.ones(2))
        torch._validate_sparse_csr_tensor_args(*given, (2, 2))


def test_batches_of_compressed_matrices():
    a = torch.tensor([[[1.0, 0.0], [0.0, 2.0]], [[0.0, 3.0], [4.0, 0.0]]])
    s = torch.sparse_csr_tensor([[0, 1, 2], [0, 1, 2]], [[0, 1], [1, 0]], [[1.0, 2], [3, 4]])
    assert s.shape == (2, 2, 2) and s._nnz() == 2
    assert_close(s.to_dense(), a)
    assert_close((s * 2).to_dense(), a * 2)
    assert_close(s.to_sparse_coo().to_dense(), a)


def test_products_of_many_rows():
    a, b = random_dense(300, 40, density=0.1), random_dense(40, 50, seed=1, density=0.2)
    ours = torch.sparse.mm(a.to_sparse_csr(), b.to_sparse_csr())
    theirs = scipy_sparse.csr_array(a.numpy()) @ scipy_sparse.csr_array(b.numpy())
    np.testing.assert_allclose(ours.to_dense().numpy(), theirs.toarray(), rtol=1e-12, atol=1e-14)


def test_to_sparse_keeps_dense_dims():
    dense = random_dense(3, 4, 2)
    s = dense.to_sparse(1)
    assert s.sparse_dim() == 1 and s.dense_dim() == 2
    assert_close(s.to_dense(), dense)
    assert_close(dense.to_sparse(2).to_dense(), dense)


# ---- printing, copying, saving


def test_repr():
    assert repr(uncoalesced()) == (
        "tensor(indices=tensor([[0, 1, 1, 0],\n                       [2, 0, 2, 2]]),\n"
        "       values=tensor([3., 4., 5., 1.]),\n"
        "       size=(2, 3), nnz=4, layout=torch.sparse_coo)"
    )
    assert repr(torch.eye(2).to_sparse_csr()) == (
        "tensor(crow_indices=tensor([0, 1, 2]),\n       col_indices=tensor([0, 1]),\n"
        "       values=tensor([1., 1.]), size=(2, 2), nnz=2, layout=torch.sparse_csr)"
    )


@pytest.mark.parametrize("layout", [torch.sparse_coo, *COMPRESSED])
def test_copies(layout):
    dense = random_dense(4, 6)
    s = in_layout(dense, layout)
    buffer = io.BytesIO()
    torch.save(s, buffer)
    buffer.seek(0)
    copies = [
        s.clone(), copy.deepcopy(s), s.detach(), pickle.loads(pickle.dumps(s)), torch.load(buffer),
        s.to(torch.float64), s.to(torch.float32).double(),
    ]  # fmt: skip
    for other in copies:
        assert other.layout is layout
        assert_close(other.to_dense(), dense, rtol=1e-6, atol=1e-6)
    separate = s.clone()
    separate.values().zero_()
    assert_close(s.to_dense(), dense)
    assert_close(torch.zeros_like(s).to_dense(), torch.zeros_like(dense))


def test_copy_and_zero_in_place():
    s, t = random_dense(3, 3).to_sparse(), random_dense(3, 3, seed=1).to_sparse()
    version = s._version
    s.copy_(t)
    assert s._version > version
    assert_close(s.to_dense(), t.to_dense())
    assert s.zero_()._nnz() == 0
    with pytest.raises(RuntimeError, match="between dense and sparse"):
        s.copy_(torch.ones(3, 3, dtype=torch.float64))


# ---- arithmetic

UNARY = """abs neg sin sinh tan tanh asin asinh atan sqrt ceil floor round trunc frac sign sgn relu
expm1 erf deg2rad rad2deg isnan square log1p""".split()


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_unary(name, layout):
    dense = random_dense(3, 4).clamp(-0.9, 0.9)
    expected = getattr(torch, name)(dense)
    s = in_layout(dense, layout)
    assert_close(getattr(torch, name)(s).to_dense(), expected, equal_nan=True)
    if name not in ("isnan",):
        getattr(s, name + "_")()
        assert_close(s.to_dense(), expected, equal_nan=True)


def test_unary_adds_equal_indices_first():
    s = uncoalesced()
    assert_close(s.square().to_dense(), s.to_dense().square())
    with pytest.raises(RuntimeError, match="sin_ requires coalesced input"):
        s.sin_()


def test_binary():
    a, b = random_dense(3, 4), random_dense(3, 4, seed=1)
    x, y = a.to_sparse(), b.to_sparse()
    assert_close((x + y).to_dense(), a + b)
    assert_close((x - y).to_dense(), a - b)
    assert (x + y).is_coalesced()
    assert_close(torch.add(x, y, alpha=3).to_dense(), a + 3 * b)
    assert_close((x * y).to_dense(), a * b)
    assert_close((x * b).to_dense(), a * b)
    assert_close((b * x).to_dense(), a * b)
    assert_close((x * b[0]).to_dense(), a * b[0])
    assert_close((x * 2.5).to_dense(), a * 2.5)
    assert_close((x / 2).to_dense(), a / 2)
    assert_close((x**2).to_dense(), a**2)
    assert_close((-x).to_dense(), -a)
    assert_close(b + x, a + b)
    assert_close(b.clone().add_(x, alpha=-2), b - 2 * a)
    assert_close(b.t().clone().t().add_(x), b + a)
    assert_close(x.clone().add_(y).to_dense(), a + b)
    assert_close(x.clone().mul_(3).div_(2).to_dense(), a * 1.5)
    u = uncoalesced()
    assert_close((u + u).to_dense(), 2 * u.to_dense())
    assert_close((u * u).to_dense(), u.to_dense() ** 2)
    for csr in (x.to_sparse_csr(), x.to_sparse_csc()):
        assert_close((csr + y.to_sparse_csr()).to_dense(), a + b)
        assert_close((csr * 2).to_dense(), a * 2)
        assert_close((csr + b), a + b)


def test_binary_errors():
    x = random_dense(3, 4).to_sparse()
    with pytest.raises(RuntimeError, match=r"Use add.dense, sparse. instead"):
        x + torch.ones(3, 4)
    with pytest.raises(RuntimeError, match="expected sizes of 'self' and 'other' to match"):
        x + random_dense(4, 3).to_sparse()
    with pytest.raises(RuntimeError, match="Sparse division requires a scalar"):
        x / x


def test_products():
    a, b = random_dense(4, 5), random_dense(5, 3, seed=1)
    theirs = scipy_sparse.coo_array(a.numpy()) @ b.numpy()
    for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        x = in_layout(a, layout)
        for product in (x @ b, torch.mm(x, b), torch.sparse.mm(x, b), x.matmul(b)):
            np.testing.assert_allclose(product.numpy(), theirs, rtol=1e-12)
        assert_close(torch.mv(x, b[:, 0]), a @ b[:, 0])
        assert_close(x @ b[:, 0], a @ b[:, 0])
        assert_close(b.t() @ x.t(), (a @ b).t())
        base = random_dense(4, 3, seed=2)
        expected = torch.addmm(base, a, b, beta=2, alpha=3)
        assert_close(torch.addmm(base, x, b, beta=2, alpha=3), expected)
        assert_close(torch.sparse.addmm(base, x, b, beta=2, alpha=3), expected)
        both = x @ in_layout(b, layout)
        # Compressed matrices have a product in compressed rows.
        assert both.layout is (layout if layout is torch.sparse_coo else torch.sparse_csr)
        assert_close(both.to_dense(), a @ b)
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            x @ a
    assert_close(uncoalesced() @ torch.ones(3, 2), uncoalesced().to_dense() @ torch.ones(3, 2))
    half = a.half().to_sparse() @ b.half()
    assert_close(half, (a.half().double() @ b.half().double()).half(), rtol=2e-3, atol=2e-3)


def test_out_variants():
    a, b = random_dense(3, 4), random_dense(4, 2, density=1)
    x = a.to_sparse()
    out = torch.zeros_like(x)
    assert torch.add(x, x, out=out) is out
    assert_close(out.to_dense(), 2 * a)
    assert_close(torch.sin(x, out=out).to_dense(), a.sin())
    dense = torch.empty(0, dtype=torch.float64)
    assert_close(torch.mm(x, b, out=dense), a @ b)
    assert_close(torch.smm(x, b).to_dense(), a @ b)
    with pytest.raises(RuntimeError):
        torch.add(x, x, out=torch.empty(3, 4, dtype=torch.float64))


def test_mm_reduce():
    a, b = random_dense(4, 5), random_dense(5, 3, seed=1)
    a[1] = 0
    counts = (a != 0).sum(1, keepdim=True).clamp(min=1)
    for x in (a.to_sparse(), a.to_sparse_csr()):
        assert_close(torch.sparse.mm(x, b, "sum"), a @ b)
        assert_close(torch.sparse.mm(x, b, "mean"), a @ b / counts)
    with pytest.raises(NotImplementedError, match="amax"):
        torch.sparse.mm(a.to_sparse(), b, "amax")


def test_reductions():
    a = random_dense(3, 4, 2)
    for s in (a.to_sparse(), a.to_sparse(2), a.to_sparse(1)):
        assert_close(s.sum(), a.sum())
        assert_close(torch.sparse.sum(s), a.sum())
        for dims in (0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2), -1):
            out = torch.sparse.sum(s, dims)
            assert_close(out.to_dense(), a.sum(dims))
        assert_close(s.sum(0, keepdim=True).to_dense(), a.sum(0, keepdim=True))
        assert_close(s.norm(), a.norm())
        assert s.any().item()
    assert uncoalesced().norm().item() == pytest.approx(uncoalesced().to_dense().norm().item())
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.sparse.sum(a.to_sparse(), 3)


@pytest.mark.parametrize("sparse_dim", [2, 1])
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax(sparse_dim, dim):
    a = random_dense(4, 5)
    s = a.to_sparse(sparse_dim)
    ones = torch.sparse_coo_tensor(s.indices(), torch.ones_like(s.values()), s.shape)
    stored = ones.to_dense().bool()
    hidden = torch.where(stored, a, -torch.inf)
    expected = torch.where(stored, hidden.softmax(dim), 0.0)
    assert_close(torch.sparse.softmax(s, dim).to_dense(), expected)
    logs = torch.where(stored, hidden.log_softmax(dim), 0.0)
    assert_close(torch.sparse.log_softmax(s, dim).to_dense(), logs)


def test_shapes():
    a = random_dense(3, 4, 2)
    s = a.to_sparse()
    assert_close(s.transpose(0, 2).to_dense(), a.transpose(0, 2))
    assert_close(s.permute(2, 0, 1).to_dense(), a.permute(2, 0, 1))
    for dim in range(3):
        for i in (0, -1):
            assert_close(s.select(dim, i).to_dense(), a.select(dim, i))
        assert_close(s.narrow(dim, 1, 1).to_dense(), a.narrow(dim, 1, 1))
        index = torch.tensor([1, 0, 1])
        assert_close(s.index_select(dim, index).to_dense(), a.index_select(dim, index))
        assert_close(torch.cat([s, s], dim).to_dense(), torch.cat([a, a], dim))
        assert_close(torch.stack([s, s], dim).to_dense(), torch.stack([a, a], dim))
        assert_close(s.unsqueeze(dim).to_dense(), a.unsqueeze(dim))
        hybrid = a.to_sparse(2)
        assert_close(hybrid.select(dim, 1).to_dense(), a.select(dim, 1))
        assert_close(torch.cat([hybrid, hybrid], dim).to_dense(), torch.cat([a, a], dim))
    assert_close(s[1, 2].to_dense(), a[1, 2])
    assert_close(s[0:2, ::3].to_dense(), a[0:2, ::3])
    m = random_dense(3, 4).to_sparse()
    assert_close(m.t().to_dense(), m.to_dense().t())
    for layout in COMPRESSED:
        square = random_dense(4, 6)
        assert_close(in_layout(square, layout).t().to_dense(), square.t())
    assert [row.to_dense().tolist() for row in m] == m.to_dense().tolist()
    with pytest.raises(IndexError):
        m.select(0, 3)
    with pytest.raises(IndexError):
        m.index_select(0, torch.tensor([7]))
    with pytest.raises(RuntimeError, match="reshape is not implemented for sparse"):
        m.reshape(12)


def test_sparse_mask_and_resize():
    a, pattern = random_dense(3, 4, density=1.0), random_dense(3, 4, seed=5).to_sparse()
    stored = pattern.to_dense() != 0
    for given in (a, a.to_sparse()):
        assert_close(given.sparse_mask(pattern).to_dense(), torch.where(stored, a, 0.0))
    csr = a.sparse_mask(pattern.to_sparse_csr())
    assert csr.layout is torch.sparse_csr
    assert_close(csr.to_dense(), torch.where(stored, a, 0.0))
    s = uncoalesced()
    assert s.sparse_resize_((5, 3), 2, 0).shape == (5, 3)
    with pytest.raises(RuntimeError):
        s.sparse_resize_((1, 3), 2, 0)
    assert s.sparse_resize_and_clear_((2, 2), 1, 1)._nnz() == 0


def test_spdiags_and_sampled_addmm():
    rows = torch.arange(9.0).reshape(3, 3)
    ours = torch.sparse.spdiags(rows, torch.tensor([0, -1, 2]), (3, 3))
    theirs = scipy_sparse.spdiags(rows.numpy(), [0, -1, 2], 3, 3).toarray()
    np.testing.assert_array_equal(ours.to_dense().numpy(), theirs)
    a, b = random_dense(3, 2, density=1), random_dense(2, 4, density=1)
    pattern = random_dense(3, 4, seed=9)
    out = torch.sparse.sampled_addmm(pattern.to_sparse_csr(), a, b, beta=2, alpha=3)
    assert_close(out.to_dense(), torch.where(pattern != 0, 3 * (a @ b) + 2 * pattern, 0.0))


# ---- gradients


def sparse_gradcheck(function, *inputs):
    check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    return check(function, inputs, masked=True)


def test_gradients():
    x = random_dense(3, 4).to_sparse().requires_grad_()
    y = random_dense(3, 4, seed=1, density=1)
    b = random_dense(4, 2, seed=2, density=1).requires_grad_()
    assert sparse_gradcheck(lambda s: s.to_dense(), x)
    assert sparse_gradcheck(lambda s: (s * 2 + s).to_dense(), x)
    assert sparse_gradcheck(lambda s: (s * s).to_dense(), x)
    assert sparse_gradcheck(lambda s: (s * y).to_dense(), x)
    assert sparse_gradcheck(lambda s: s.abs().to_dense(), x)
    assert sparse_gradcheck(lambda s: torch.sparse.sum(s, 0).to_dense(), x)
    assert sparse_gradcheck(lambda s: torch.sparse.sum(s), x)
    assert sparse_gradcheck(lambda s: torch.sparse.softmax(s, 1).to_dense(), x)
    assert sparse_gradcheck(lambda s: torch.sparse.log_softmax(s, 0).to_dense(), x)
    assert sparse_gradcheck(lambda s, d: torch.sparse.mm(s, d), x, b)
    assert sparse_gradcheck(lambda s, d: s @ d, x, b)
    assert sparse_gradcheck(lambda s: torch.sparse.mm(s, s.t()).to_dense(), x)
    assert sparse_gradcheck(lambda s: s.t().to_dense(), x)
    assert sparse_gradcheck(lambda s: s.coalesce().values(), x)
    assert sparse_gradcheck(lambda s, d: s @ d, x.detach().to_sparse_csr().requires_grad_(), b)
    dense = random_dense(3, 4, seed=4, density=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda d: d.to_sparse().to_dense() ** 2, dense)
    values = torch.randn(2, dtype=torch.float64, requires_grad=True)
    make = lambda v: torch.sparse_coo_tensor([[0, 0]], v, (3,)).to_dense() ** 2
    assert torch.autograd.gradcheck(make, values)


def test_gradient_layouts():
    x = random_dense(3, 4).to_sparse().requires_grad_()
    b = random_dense(4, 2, density=1)
    torch.sparse.mm(x, b).sum().backward()
    assert x.grad.layout is torch.sparse_coo
    assert_close(x.grad._indices(), x._indices())
    x.grad = None
    (x @ b).sum().backward()
    assert x.grad.layout is torch.strided


def test_accumulation_of_sparse_and_dense():
    weight = random_dense(5, 2, density=1).requires_grad_()
    index = torch.tensor([1, 3, 1])
    sparse = lambda: torch.nn.functional.embedding(index, weight, sparse=True).sum()
    count = torch.zeros(5, 2, dtype=torch.float64)
    count[1], count[3] = 2, 1
    sparse().backward()
    assert weight.grad.is_sparse and not weight.grad.is_coalesced()
    sparse().backward()
    assert weight.grad.is_sparse
    assert_close(weight.grad.to_dense(), 2 * count)
    weight.sum().backward()
    assert not weight.grad.is_sparse
    assert_close(weight.grad, 2 * count + 1)
    sparse().backward()
    assert_close(weight.grad, 3 * count + 1)
    weight.grad = None
    (sparse() + weight.sum() + sparse()).backward()
    assert_close(weight.grad, 2 * count + 1)


@pytest.mark.parametrize("padding", [None, 2])
def test_embedding(padding):
    index = torch.tensor([[1, 2], [1, 4]])
    grads = []
    for sparse in (True, False):
        torch.manual_seed(0)
        table = torch.nn.Embedding(5, 3, padding_idx=padding, sparse=sparse)
        (table(index) ** 2).sum().backward()
        assert table.weight.grad.is_sparse is sparse
        grads.append(table.weight.grad.to_dense())
    assert_close(*grads)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_embedding_bag(mode):
    index, offsets = torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 3, 3])
    grads = []
    for sparse in (True, False):
        torch.manual_seed(0)
        bag = torch.nn.EmbeddingBag(7, 3, mode=mode, sparse=sparse, padding_idx=4)
        weights = torch.linspace(1, 2, 6) if mode == "sum" else None
        (bag(index, offsets, per_sample_weights=weights) ** 2).sum().backward()
        assert bag.weight.grad.is_sparse is sparse
        grads.append(bag.weight.grad.to_dense())
    assert_close(*grads)


def test_gather_sparse_grad():
    x = random_dense(3, 4, density=1).requires_grad_()
    index = torch.tensor([[0, 1], [2, 2]])
    torch.gather(x, 1, index, sparse_grad=True).sum().backward()
    expected = torch.zeros(3, 4, dtype=torch.float64)
    expected.scatter_add_(1, index, torch.ones(2, 2, dtype=torch.float64))
    assert x.grad.is_sparse
    assert_close(x.grad.to_dense(), expected)


def steps(make, sparse, count=3):
    torch.manual_seed(0)
    table = torch.nn.Embedding(6, 2, sparse=sparse)
    optimizer = make(table.parameters())
    for i in range(count):
        optimizer.zero_grad()
        (table(torch.tensor([i, 2, i])) ** 2).sum().backward()
        optimizer.step()
    return table.weight.detach()


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.01),
    ],
)
def test_optimizers_like_dense(make):
    assert_close(steps(make, True), steps(make, False))


def test_sparse_adam_moves_named_rows_only():
    make = lambda p: torch.optim.SparseAdam(list(p), lr=0.1)
    first = steps(make, True, 0)
    after = steps(make, True, 1)
    assert (after != first).any(1).tolist() == [True, False, True, False, False, False]
    dense = steps(lambda p: torch.optim.Adam(p, lr=0.1), False, 1)
    assert_close(after, dense)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        steps(make, False, 1)
    with pytest.raises(RuntimeError, match="sparse gradients"):
        steps(lambda p: torch.optim.Adam(p), True, 1)


def test_clip_grad_norm():
    norms = []
    for sparse in (True, False):
        torch.manual_seed(0)
        table = torch.nn.Embedding(5, 2, sparse=sparse)
        (table(torch.tensor([1, 1, 3])) ** 2).sum().backward()
        norms.append(torch.nn.utils.clip_grad_norm_(table.parameters(), 0.5))
        norms.append(table.weight.grad.to_dense())
    assert_close(norms[0], norms[2])
    assert_close(norms[1], norms[3], rtol=1e-5, atol=1e-6)


# ---- what a sparse tensor does not have


@pytest.mark.parametrize("layout", [torch.sparse_coo, *COMPRESSED])
def test_no_strided_kernel_runs(layout):
    s = in_layout(random_dense(4, 6), layout)
    dense = torch.ones(4, 6, dtype=torch.float64)
    calls = [
        lambda: s.view(24), lambda: s.as_strided((2,), (1,)), lambda: torch.exp(s),
        lambda: s + 1, lambda: torch.cos(s), lambda: s.max(), lambda: s.sort(), lambda: s.cumsum(0),
        lambda: torch.where(dense > 0, s, dense), lambda: torch.exp(dense, out=s),
        lambda: s.fill_(1), lambda: s.uniform_(), lambda: s.flatten(), lambda: s.expand(2, 4, 6),
        lambda: torch.bmm(s.unsqueeze(0), s), lambda: s.gather(0, torch.zeros(1, 6).long()),
        lambda: s.numpy(), lambda: s.tolist(), lambda: s.untyped_storage(), lambda: s.data_ptr(),
        lambda: dense.copy_(s), lambda: dense.set_(s), lambda: torch.cdist(s, s),
        lambda: torch.linalg.svd(s), lambda: torch.nn.functional.conv1d(s, s), lambda: s.view_as(s),
        lambda: setattr(dense, "data", s), lambda: setattr(s, "data", dense),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises((RuntimeError, TypeError, IndexError)):
            call()


def test_invariant_checks_flag():
    flag = torch.sparse.check_sparse_tensor_invariants
    assert not flag.is_enabled()
    with flag():
        assert flag.is_enabled()
        with flag(False):
            assert not flag.is_enabled()
    assert not flag.is_enabled()
    assert flag()(lambda: flag.is_enabled())()
    flag.enable()
    assert flag.is_enabled()
    flag.disable()
    outside = torch._sparse_coo_tensor_unsafe([[9]], [1.0], (3,))
    with pytest.raises(IndexError):
        outside.to_dense()
    with flag(), pytest.raises(RuntimeError, match="found index 9"):
        torch._sparse_coo_tensor_unsafe([[9]], [1.0], (3,))


def test_custom_operators_take_sparse_tensors():
    @torch.library.custom_op("test_sparse::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    a = random_dense(2, 3)
    assert_close(twice(a.to_sparse()).to_dense(), 2 * a)


def test_missing_names_say_so():
    assert not hasattr(torch.sparse, "spsolve")
    with pytest.raises(NotImplementedError, match="spsolve"):
        torch.sparse.spsolve(None, None)
