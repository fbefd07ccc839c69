"""torch.masked against numpy.ma and plain selections, and the MaskedTensor."""

import numpy as np
import pytest

import torch
from torch import masked
from torch.autograd import gradcheck

X = torch.tensor([[3.0, -1.0, 2.0, 5.0], [4.0, 0.5, -2.0, 1.0], [7.0, 6.0, 9.0, 8.0]])
MASK = torch.tensor([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]], dtype=torch.bool)
ARRAY = np.ma.masked_array(X.double().numpy(), ~MASK.numpy())


@pytest.mark.parametrize("name", ["sum", "prod", "mean"])
@pytest.mark.parametrize("dim", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions_match_numpy(name, dim, keepdim):
    got = getattr(masked, name)(X, dim, keepdim=keepdim, mask=MASK)
    expected = getattr(ARRAY, name)(axis=None if dim == (0, 1) else dim)
    np.testing.assert_allclose(got.flatten(), np.asarray(expected).flatten(), rtol=1e-6)
    assert got.dim() == (2 if keepdim else 2 - len({0, 1} if dim in (None, (0, 1)) else {dim}))


@pytest.mark.parametrize(("name", "reference"), [("amax", "max"), ("amin", "min")])
def test_extrema_match_numpy(name, reference):
    for dim in (0, 1):
        got = getattr(masked, name)(X, dim, mask=MASK)
        np.testing.assert_allclose(got, getattr(ARRAY, reference)(axis=dim))
    empty = getattr(masked, name)(X, mask=torch.zeros_like(MASK))
    assert empty.item() == (-np.inf if name == "amax" else np.inf)


def test_integers_and_default_dtypes():
    x = X.to(torch.int32)
    assert masked.sum(x, mask=MASK).dtype == torch.int64
    assert masked.amax(x, mask=torch.zeros_like(MASK)).item() == torch.iinfo(torch.int32).min
    assert masked.median(x, 1, mask=MASK).tolist() == [3, -2, 7]
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        masked.mean(x)


@pytest.mark.parametrize("correction", [0, 1])
def test_variance_matches_numpy(correction):
    got = masked.var(X, 1, correction=correction, mask=MASK)
    np.testing.assert_allclose(got, ARRAY.var(axis=1, ddof=correction), rtol=1e-5)
    np.testing.assert_allclose(
        masked.std(X, 1, correction=correction, mask=MASK),
        ARRAY.std(axis=1, ddof=correction),
        rtol=1e-5,
    )


def test_softmaxes_and_scans():
    got = masked.softmax(X, 1, mask=MASK)
    for row, values, keep in zip(got, X, MASK, strict=True):
        torch.testing.assert_close(row[keep], torch.softmax(values[keep], 0))
        assert row[~keep].eq(0).all()
    torch.testing.assert_close(masked.log_softmax(X, 1, mask=MASK)[MASK], got[MASK].log())
    torch.testing.assert_close(masked.softmin(X, 1, mask=MASK), masked.softmax(-X, 1, mask=MASK))
    np.testing.assert_allclose(masked.cumsum(X, 1, mask=MASK), ARRAY.filled(0).cumsum(1))
    np.testing.assert_allclose(masked.cumprod(X, 1, mask=MASK), ARRAY.filled(1).cumprod(1))


def test_norms_and_logarithms():
    expected = np.sqrt((ARRAY**2).sum(axis=1))
    np.testing.assert_allclose(masked.norm(X, 2.0, 1, mask=MASK), expected, rtol=1e-6)
    unit = masked.normalize(X, 2.0, 1, mask=MASK)
    np.testing.assert_allclose(unit, ARRAY.filled(0) / expected.data[:, None], rtol=1e-6)
    np.testing.assert_allclose(
        masked.logsumexp(X, 1, mask=MASK), np.log(np.exp(ARRAY).sum(axis=1)), rtol=1e-6
    )
    both = masked.logaddexp(X, X, input_mask=MASK, other_mask=~MASK)
    torch.testing.assert_close(both, X)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "var", "norm", "logsumexp"])
def test_gradients_are_zero_outside_the_mask(name):
    x = X.double().requires_grad_()
    call = lambda t: getattr(masked, name)(t, dim=1, mask=MASK)
    assert gradcheck(call, (x,))
    (grad,) = torch.autograd.grad(call(x).sum(), x)
    assert grad[~MASK].eq(0).all()


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: masked.sum(X, mask=MASK[None]), IndexError, "broadcastable mask"),
        (lambda: masked.sum(X, mask=MASK[:, :2]), RuntimeError, "must match the existing size"),
        (lambda: masked.sum(X, dim=(0, 0)), RuntimeError, "appears multiple times"),
        (lambda: masked.sum(X, dim=3), IndexError, "Dimension out of range"),
        (lambda: masked.masked_tensor(X, MASK[0]), ValueError, "must equal mask.dim"),
        (lambda: masked.masked_tensor(X, X), TypeError, "dtype bool"),
        (lambda: masked.masked_tensor([1], MASK), TypeError, "must be a Tensor"),
    ],
)
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_masked_tensor_values_and_text():
    a = masked.masked_tensor(X[:2, :3], MASK[:2, :3])
    assert masked.is_masked_tensor(a) and a.shape == (2, 3) and a.dtype == torch.float32
    assert repr(a) == (
        "MaskedTensor(\n  [\n    [  3.0000,       --,   2.0000],\n"
        "    [      --,   0.5000,  -2.0000]\n  ]\n)"
    )
    assert a.to_tensor(9.0).equal(X[:2, :3].masked_fill(~MASK[:2, :3], 9.0))
    double = a * 2 + a
    assert double.get_data()[MASK[:2, :3]].equal((X * 3)[:2, :3][MASK[:2, :3]])
    assert a.t().get_mask().equal(MASK[:2, :3].t())
    assert torch.cat([a, a]).shape == (4, 3) and a[1].get_mask().equal(MASK[1, :3])
    a.neg_()
    assert X[0, 0].item() == 3, "a copy was made"


def test_masked_tensor_reductions_and_masks():
    a = masked.masked_tensor(X, MASK)
    assert a.sum().get_data().item() == masked.sum(X, mask=MASK).item()
    assert a.mean(1).get_data().equal(masked.mean(X, 1, mask=MASK))
    assert masked.masked_tensor(X, MASK & (X > 4)).amax(1).get_mask().tolist() == [
        True,
        False,
        True,
    ]
    with pytest.raises(ValueError, match="Input masks must match"):
        a + masked.masked_tensor(X, ~MASK)
    with pytest.raises(TypeError, match="MaskedTensor"):
        torch.cumsum(a, 0)


def test_masked_tensor_gradients():
    a = masked.masked_tensor(X, MASK, requires_grad=True)
    (a * a).sum().backward()
    assert a.grad.to_tensor(0.0).equal((2 * X).masked_fill(~MASK, 0))
    x = X.clone().requires_grad_()
    (masked.as_masked_tensor(x, MASK) * 3).sum().backward()
    assert x.grad.to_tensor(0.0).equal(torch.full_like(X, 3).masked_fill(~MASK, 0))


# ---- sparse layouts

LAYOUTS = [torch.sparse_coo, torch.sparse_csr]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("dim", [0, 1])
def test_reduction_of_a_sparse_input_keeps_its_layout(layout, name, dim):
    sparse = X.to_sparse(layout=layout)
    expected = getattr(masked, name)(X, dim, keepdim=True, mask=MASK)
    for mask in (MASK, MASK.to_sparse(layout=layout)):
        got = getattr(masked, name)(sparse, dim, keepdim=True, mask=mask)
        assert got.layout is layout
        np.testing.assert_allclose(got.to_dense(), expected, rtol=1e-6)


def test_reduction_of_a_sparse_input_without_mask_is_only_a_sum():
    sparse = X.to_sparse()
    np.testing.assert_allclose(masked.sum(sparse, 0).to_dense(), X.sum(0))
    with pytest.raises(ValueError, match="masked amax expects explicit mask for sparse_coo"):
        masked.amax(sparse, 0)
    with pytest.raises(RuntimeError, match="CSR tensors with keepdim=False is unsupported"):
        masked.sum(X.to_sparse_csr(), 0)


def test_sparse_mask_selects_from_a_strided_input():
    for layout in LAYOUTS:
        got = masked.softmax(X, 1, mask=MASK.to_sparse(layout=layout))
        assert torch.equal(got, masked.softmax(X, 1, mask=MASK))


def test_output_mask_is_true_where_an_element_was_selected():
    mask = torch.tensor([[True, False], [False, False]])
    data = torch.ones(2, 2)
    assert masked._output_mask(masked.sum, data, 1, mask=mask).tolist() == [True, False]
    assert torch.equal(masked._output_mask(masked.softmax, data, 1, mask=mask), mask)
    with pytest.raises(ValueError, match="_input_mask requires explicit mask"):
        masked._input_mask(data)


def test_where_of_sparse_tensors_has_the_true_elements_of_the_mask():
    mask = torch.tensor([[True, False], [True, True]]).to_sparse()
    data = torch.tensor([[5.0, 6.0], [0.0, 7.0]]).to_sparse()
    got = masked._where(mask, data, torch.tensor(9.0))
    assert got._nnz() == 3 and got.to_dense().tolist() == [[5.0, 0.0], [0.0, 7.0]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse_masked_tensor_computes_on_the_elements_of_its_mask(layout):
    mask = MASK.to_sparse(layout=layout)
    made = masked.masked_tensor(X.sparse_mask(mask), mask)
    assert made.layout is layout and made.get_data()._nnz() == int(MASK.sum())
    for got, expected in ((made.exp(), X.exp()), (made + made, 2 * X), (made * 3, 3 * X)):
        assert got.layout is layout
        dense = got.get_data().to_dense()
        np.testing.assert_allclose(dense, torch.where(MASK, expected, 0.0), rtol=1e-6)
    assert made.sum().get_data().item() == X[MASK].sum().item()
    with pytest.raises(ValueError, match="with sparse data do not have is_contiguous"):
        made.is_contiguous()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_masked_tensor_changes_layout_with_its_gradient(layout):
    made = masked.masked_tensor(X, MASK, requires_grad=True)
    turned = made.to_sparse(layout=layout)
    assert turned.layout is layout
    (turned.to_dense() * 2).sum().backward()
    assert torch.equal(made.grad.get_mask(), MASK)
    assert (made.grad.get_data()[MASK] == 2).all()
    sparse = masked.masked_tensor(turned.get_data(), turned.get_mask(), requires_grad=True)
    sparse.to_dense().sum().backward()
    assert sparse.grad.layout is layout
    assert (sparse.grad.get_data().values() == 1).all()


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin"])
def test_gradient_of_a_reduction_has_the_mask_of_its_input(name):
    made = masked.masked_tensor(X, MASK, requires_grad=True)
    getattr(made, name)().backward()
    plain = X[MASK].clone().requires_grad_()
    getattr(plain, name)().backward()
    assert torch.equal(made.grad.get_mask(), MASK)
    np.testing.assert_allclose(made.grad.get_data()[MASK], plain.grad, rtol=1e-6)


def test_masked_tensor_names_what_does_not_fit():
    with pytest.raises(TypeError, match="data and mask must have the same layout"):
        masked.masked_tensor(X.to_sparse(), MASK)
    with pytest.raises(TypeError, match=r"data layout of torch.sparse_csc is not supported"):
        masked.masked_tensor(X.to_sparse_csc(), MASK.to_sparse_csc())
    swapped = torch.sparse_coo_tensor([[0, 1]], torch.tensor([True, True]), (3,))
    data = torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (3,))
    with pytest.raises(ValueError, match="do not have the same indices"):
        masked.masked_tensor(data, swapped)
    with pytest.warns(UserWarning, match="It is not recommended to create a MaskedTensor"):
        masked.masked_tensor(X.clone().requires_grad_(), MASK)
    with pytest.raises(TypeError, match=r"torch._ops.aten.max.default"):
        masked.masked_tensor(X, MASK).max()


def test_where_takes_each_element_with_its_mask():
    first = masked.masked_tensor(X, MASK, requires_grad=True)
    second = masked.masked_tensor(-X, ~MASK)
    joined = torch.where(MASK, first, second)
    assert joined.get_mask().all()
    joined.sum().backward()
    assert (first.grad.get_data()[MASK] == 1).all()


def test_identity_of_a_reduction_is_found_by_its_full_name():
    assert masked._reduction_identity("masked.amax", X).item() == float("-inf")
    assert masked._reduction_identity("mean", X) is None
