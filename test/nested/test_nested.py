"""Nested tensors with the jagged layout against the same computation on each component, in double
precision."""

import copy
import io
import pickle

import pytest
from nested_support import LENGTHS, assert_components, components, jagged

import torch
import torch.nn.functional as F

# ---- making --------------------------------------------------------------------------------------


def test_parts_of_a_nested_tensor():
    nt = jagged(components(3))
    assert nt.is_nested and nt.layout is torch.jagged and isinstance(nt, torch.Tensor)
    assert nt.offsets().tolist() == [0, 2, 7, 8, 11] and nt.lengths() is None
    assert nt.values().shape == (11, 3) and nt.dim() == nt.ndim == 3 and len(nt) == 4
    assert nt.size(0) == 4 and nt.size(2) == nt.size(-1) == 3 and nt.numel() == 33
    assert nt.is_contiguous() and nt.stride()[1:] == (3, 1) and nt.dtype is torch.float64
    assert_components(nt, components(3))


def test_ragged_size_is_a_symbol():
    nt, other = jagged(components(3)), jagged(components(3))
    symbol = nt.size(1)
    assert isinstance(symbol, torch.SymInt) and isinstance(nt.shape, torch.Size)
    assert symbol == nt.shape[1] == (nt * 2).size(1) and hash(symbol) == hash(nt.shape[1])
    assert symbol != other.size(1) and symbol != 5 and symbol > 1 and bool(symbol)
    assert nt.shape == (nt + 1).shape and nt.shape != other.shape
    assert str(symbol).startswith("j") and str(2 * symbol) == f"2*{symbol}" == str(symbol * 2)
    assert repr(nt.shape) == f"torch.Size([4, {symbol}, 3])"
    with pytest.raises(ValueError, match="indeterminate"):
        symbol > 5  # noqa: B015
    for wrong in (lambda: int(symbol), lambda: symbol + 1, lambda: torch.zeros(nt.shape)):
        with pytest.raises((NotImplementedError, TypeError), match="stands for several lengths"):
            wrong()


def test_printing():
    nt = jagged([torch.ones(2), torch.ones(1)], requires_grad=True)
    symbol = nt.size(1)
    head = f"NestedTensor(size=(2, {symbol}), offsets=tensor([0, 2, 3])"
    assert repr(nt) == str(nt) == head + ", requires_grad=True, contiguous=True)"
    assert repr(nt.detach()) == head + ", contiguous=True)"
    assert "grad_fn=<MulBackward0" in repr(nt * 2)


def test_ragged_dimension_may_be_another_one():
    parts = [torch.randn(3, n) for n in (2, 4)]
    nt = jagged(parts)
    assert nt.shape[:2] == (2, 3) and nt.values().shape == (3, 6)
    assert_components(nt, parts)
    assert nt.to_padded_tensor(0).shape == (2, 3, 4)


def test_from_lists_and_plain_tensors():
    assert jagged([[1, 2], [3]]).values().tolist() == [1, 2, 3]
    assert jagged([[1, 2], [3]], dtype=torch.float32).dtype is torch.float32
    dense = torch.randn(2, 3, 4, requires_grad=True)
    nt = torch.nested.as_nested_tensor(dense, layout=torch.jagged)
    assert nt.offsets().tolist() == [0, 3, 6]
    nt.sum().backward()
    assert dense.grad.eq(1).all()
    assert torch.nested.as_nested_tensor(nt, layout=torch.jagged) is nt


def test_construction_copies_and_as_does_not_cut_the_graph():
    part = torch.ones(2, requires_grad=True)
    made = jagged([part, torch.ones(1)])
    assert not made.requires_grad and made.is_leaf
    through = torch.nested.as_nested_tensor([part, torch.ones(1)], layout=torch.jagged)
    assert through.requires_grad and not through.is_leaf
    (through * torch.tensor(3.0)).sum().backward()
    assert part.grad.tolist() == [3.0, 3.0]
    single = torch.ones(2)
    jagged([single]).values().zero_()
    assert single.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("parts", "phrase"),
    [
        ([], "empty tensor list"),
        ([torch.tensor(1.0)], "zero-dim tensors"),
        ([torch.ones(2, 3), torch.ones(3, 4)], "single ragged dimension"),
        ([torch.ones(2, 3), torch.ones(3)], "must have the same dim"),
        ([torch.ones(2), torch.ones(2).double()], "must have the same dtype"),
    ],
)
def test_construction_refuses(parts, phrase):
    with pytest.raises(RuntimeError, match=phrase):
        jagged(parts)


def test_construction_refuses_layouts_and_conversions():
    with pytest.raises(RuntimeError, match="layout is unsupported"):
        torch.nested.nested_tensor([torch.ones(2)], layout=torch.sparse_coo)
    with pytest.raises(RuntimeError, match="Converting between nested tensor layouts"):
        torch.nested.as_nested_tensor(jagged(components(3)), layout=torch.strided)
    with pytest.raises(TypeError, match="tensor or a list / tuple of tensors"):
        torch.nested.as_nested_tensor([[1, 2]], layout=torch.jagged)
    with pytest.raises(RuntimeError, match="dim\\(\\) > 1"):
        torch.nested.as_nested_tensor(torch.ones(2), layout=torch.jagged)
    with pytest.raises(RuntimeError, match="can require gradients"):
        jagged([[1, 2]], requires_grad=True)


def test_from_jagged_views_the_values():
    values = torch.randn(6, 3, requires_grad=True)
    offsets = torch.tensor([0, 2, 6])
    nt = torch.nested.nested_tensor_from_jagged(values, offsets)
    again = torch.nested.nested_tensor_from_jagged(values * 2, offsets)
    assert nt.shape == again.shape and not nt.is_leaf
    (nt * again).sum().backward()
    torch.testing.assert_close(values.grad, 4 * values.detach())
    by_length = torch.nested.nested_tensor_from_jagged(values, lengths=torch.tensor([2, 4]))
    assert by_length.offsets().tolist() == [0, 2, 6] and by_length.lengths() is None
    gaps = torch.nested.nested_tensor_from_jagged(values, offsets, torch.tensor([1, 3]))
    assert not gaps.is_contiguous() and gaps.lengths().tolist() == [1, 3]
    assert [p.shape[0] for p in gaps.unbind()] == [1, 3] and gaps.numel() == 12
    other = torch.nested.nested_tensor_from_jagged(values.t(), offsets, jagged_dim=2)
    assert other.shape[1] == 3 and other.unbind()[1].shape == (3, 4)


@pytest.mark.parametrize(
    ("offsets", "error", "phrase"),
    [
        (torch.tensor([0, 2, 7]), RuntimeError, "end at row 7"),
        (torch.tensor([0, 4, 2]), RuntimeError, "must ascend"),
        (torch.tensor([-1, 4]), RuntimeError, "must ascend"),
        (torch.tensor([[0, 6]]), RuntimeError, "1D"),
        (torch.tensor([0.0, 6.0]), RuntimeError, "int32 or int64"),
        (torch.empty(0, dtype=torch.int64), RuntimeError, "at least one"),
        ([0, 6], TypeError, "must be a Tensor"),
        (None, RuntimeError, "At least one of offsets or lengths"),
    ],
)
def test_from_jagged_refuses_bad_offsets(offsets, error, phrase):
    with pytest.raises(error, match=phrase):
        torch.nested.nested_tensor_from_jagged(torch.ones(6, 3), offsets)


def test_narrow_is_a_view_with_lengths():
    base = torch.arange(30.0).reshape(3, 5, 2)
    nt = torch.nested.narrow(
        base, 1, torch.tensor([0, 1, 2]), torch.tensor([2, 3, 1]), layout=torch.jagged
    )
    expected = [base[0, 0:2], base[1, 1:4], base[2, 2:3]]
    assert_components(nt, expected)
    assert not nt.is_contiguous() and nt.contiguous().is_contiguous()
    assert_components(nt.contiguous(), expected)
    assert_components(nt * 2, [2 * e for e in expected])
    assert nt.sum() == sum(e.sum() for e in expected)
    torch.testing.assert_close(nt.sum(1), torch.stack([e.sum(0) for e in expected]))
    base.zero_()
    assert nt.sum() == 0
    assert_components(
        torch.nested.narrow(base, 1, 1, 2, layout=torch.jagged), [base[b, 1:3] for b in range(3)]
    )
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        torch.nested.narrow(base, 1, 4, 2, layout=torch.jagged)
    with pytest.raises(RuntimeError, match="only supports dim=1"):
        torch.nested.narrow(base, 2, 0, 1, layout=torch.jagged)


def test_masked_select():
    t = torch.arange(6.0).reshape(2, 3)
    mask = torch.tensor([[True, False, True], [False, True, False]])
    assert_components(torch.nested.masked_select(t, mask), [t[0, [0, 2]], t[1, [1]]])
    row = torch.tensor([True, False, True])
    assert torch.nested.masked_select(t, row).offsets().tolist() == [0, 2, 4]
    with pytest.raises(RuntimeError, match="BoolTensor"):
        torch.nested.masked_select(t, mask.long())


def test_padded_form_and_back():
    parts = components(3)
    nt = torch.nested.as_nested_tensor([p.requires_grad_() for p in parts], layout=torch.jagged)
    padded = nt.to_padded_tensor(-1.0)
    assert padded.shape == (4, 5, 3)
    for row, part in zip(padded, parts, strict=True):
        torch.testing.assert_close(row[: len(part)], part)
        assert row[len(part) :].eq(-1).all()
    torch.testing.assert_close(torch.nested.to_padded_tensor(nt, -1.0), padded)
    assert nt.to_padded_tensor(0.0, (4, 7, 3)).shape == (4, 7, 3)
    assert nt.to_padded_tensor(0.0, (4, 2, 3)).shape == (4, 2, 3)
    assert torch.autograd.gradcheck(
        lambda *ps: torch.nested.as_nested_tensor(list(ps), layout=torch.jagged).to_padded_tensor(
            2.0
        ),
        parts,
    )
    with pytest.raises(NotImplementedError, match="expected nested"):
        torch.nested.to_padded_tensor(torch.ones(2), 0)


def test_empty_components():
    parts = components(3, lengths=(0, 2, 0))
    nt = jagged(parts)
    assert_components(nt * 2, [2 * p for p in parts])
    torch.testing.assert_close(nt.sum(1), torch.stack([p.sum(0) for p in parts]))
    assert nt.to_padded_tensor(0).shape == (3, 2, 3)
    assert_components(nt.softmax(1), [p.softmax(0) for p in parts])
    none = jagged(components(3, lengths=(0, 0)))
    assert none.sum() == 0 and none.to_padded_tensor(1.0).shape == (2, 0, 3)
    assert_components(none + 1, components(3, lengths=(0, 0)))


# ---- element-wise --------------------------------------------------------------------------------

UNARY = (
    "exp sin abs neg sigmoid tanh relu sqrt square erf sign isnan ceil frac trunc log1p "
    "digamma logical_not expm1 reciprocal"
).split()


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    parts = components(3)
    nt = jagged(parts)
    wanted = [getattr(torch, name)(p) for p in parts]
    assert_components(getattr(torch, name)(nt), wanted, equal_nan=True)
    assert_components(getattr(nt, name)(), wanted, equal_nan=True)


@pytest.mark.parametrize(
    "function",
    [F.relu, F.gelu, F.silu, F.elu, F.leaky_relu, F.softplus, F.mish, F.hardswish, F.logsigmoid],
    ids=lambda f: f.__name__,
)
def test_activations(function):
    parts = components(3)
    assert_components(function(jagged(parts)), [function(p) for p in parts])


def test_binary_with_numbers_and_both_orders():
    parts = components(3)
    nt = jagged(parts)
    for f in (
        lambda x: x + 1,
        lambda x: 1 - x,
        lambda x: 2 / x,
        lambda x: x // 2,
        lambda x: x % 2,
        lambda x: abs(x) ** 2,
        lambda x: 2**x,
        lambda x: x > 0,
        lambda x: (x > 0) & (x < 1),
        lambda x: ~(x > 0),
        lambda x: x * torch.tensor(3.0, dtype=torch.float64),
        lambda x: torch.clamp(x, -1, 1),
        lambda x: torch.add(x, x, alpha=2),
        lambda x: torch.where(x > 0, x, 0.0),
        lambda x: torch.lerp(x, x * 2, 0.25),
        lambda x: x.masked_fill(x > 0, 5.0),
        lambda x: torch.addcmul(x, x, x, value=2),
        lambda x: torch.nan_to_num(x),
    ):
        assert_components(f(nt), [f(p) for p in parts])


def test_binary_of_nested_tensors_needs_one_structure():
    parts = components(3)
    nt = jagged(parts)
    assert_components(nt * (nt + 1), [p * (p + 1) for p in parts])
    assert_components(nt * nt.sum(-1, keepdim=True), [p * p.sum(-1, keepdim=True) for p in parts])
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function mul"):
        nt * jagged(parts)
    with pytest.raises(RuntimeError, match=r"\(4, j\d+, 3\) and \(4, j\d+\)"):
        nt + nt.sum(-1)


@pytest.mark.parametrize("shape", [(3,), (1,), (1, 1, 3), (4, 1, 3), (4, 1, 1), (4, 5, 3)])
def test_broadcast_of_plain_tensors(shape):
    parts = components(3)
    dense = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    nt = torch.nested.as_nested_tensor(parts, layout=torch.jagged)
    full = dense.expand(4, *shape[1:]) if len(shape) == 3 else dense.expand(4, 1, 3)
    wanted = [p * row[: len(p)] for p, row in zip(parts, full, strict=True)]
    assert_components(nt * dense, wanted)
    assert_components(dense * nt, wanted)
    assert torch.autograd.gradcheck(lambda d: (nt * d).values(), dense)


def test_broadcast_refuses_what_does_not_fit():
    nt = jagged(components(3))
    for shape in ((5, 3), (4, 4, 3), (2, 1, 3), (11, 3)):
        with pytest.raises(RuntimeError, match="cannot call binary pointwise"):
            nt + torch.ones(shape)
    with pytest.raises(RuntimeError, match="must match the size"):
        nt + torch.ones(2)
    with pytest.raises(NotImplementedError, match="more dimensions"):
        nt + torch.ones(1, 4, 1, 3)


def test_in_place_changes_the_values():
    nt = jagged(components(3))
    before = nt.values().clone()
    same = nt.add_(1).mul_(nt)
    assert same is nt
    torch.testing.assert_close(nt.values(), (before + 1) ** 2)
    nt += 1
    nt.zero_()
    assert nt.sum() == 0 and nt.fill_(2.0).mean() == 2
    assert F.relu(nt, inplace=True) is nt
    leaf = jagged(components(3), requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.add_(1)
    with pytest.raises(RuntimeError, match="plain tensor cannot be changed"):
        torch.ones(3).add_(nt)
    with pytest.raises(NotImplementedError, match="out="):
        torch.add(nt, 1, out=torch.empty(0))


def test_likes_and_copies():
    nt = jagged(components(3))
    for made, value in (
        (torch.zeros_like(nt), 0),
        (torch.ones_like(nt), 1),
        (torch.full_like(nt, 7), 7),
    ):
        assert made.shape == nt.shape and made.values().eq(value).all()
    assert torch.empty_like(nt, dtype=torch.int32).dtype is torch.int32
    torch.manual_seed(0)
    noise = torch.randn_like(nt)
    torch.manual_seed(0)
    torch.testing.assert_close(noise.values(), torch.randn_like(nt.values()))
    copied = nt.clone()
    assert copied.shape == nt.shape and copied.values().data_ptr() != nt.values().data_ptr()
    nt.zero_()
    nt.copy_(copied)
    assert torch.equal(nt, copied) and torch.allclose(nt, copied)
    assert not torch.equal(nt, nt + 1)
    nt.copy_(jagged(components(3, seed=1)))
    assert torch.equal(nt, jagged(components(3, seed=1)))
    with pytest.raises(ValueError, match="expected self and src to be nested"):
        nt.copy_(torch.ones(3))
    with pytest.raises(RuntimeError, match="equal sizes"):
        nt.copy_(jagged(components(3, lengths=(1, 1, 1, 1))))


def test_conversions_keep_the_structure():
    nt = jagged(components(3))
    for made in (nt.float(), nt.to(torch.float32), nt.type(torch.float32), nt.to(nt.float())):
        assert made.dtype is torch.float32 and made.shape == nt.shape
    assert nt.to(torch.float64) is nt and nt.double() is nt and nt.cpu() is nt
    assert nt.to("meta").is_meta and nt.to("meta").shape == nt.shape
    assert nt.half().half().bool().dtype is torch.bool
    assert nt.type_as(nt.float()).dtype is torch.float32
    assert torch.result_type(nt, 1) is torch.float64


# ---- reductions ----------------------------------------------------------------------------------

REDUCTIONS = "sum mean amax amin prod logsumexp std var norm any all argmax argmin median".split()
ONE_RESULT = {"median": lambda r: r.values}


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction_along_each_dimension(name, keepdim):
    parts = components(3, 2)
    nt = jagged(parts)
    lengths = torch.tensor(LENGTHS)
    first = ONE_RESULT.get(name, lambda r: r)
    for dim in (2, -1):
        inner = dim if dim < 0 else dim - 1
        found = first(getattr(torch, name)(nt, dim=dim, keepdim=keepdim))
        wanted = [first(getattr(torch, name)(p, dim=inner, keepdim=keepdim)) for p in parts]
        assert_components(found, wanted)
        assert found.size(1) == nt.size(1)
    found = first(getattr(torch, name)(nt, dim=1, keepdim=keepdim))
    wanted = [first(getattr(torch, name)(p, dim=0, keepdim=keepdim)) for p in parts]
    several = lengths > 1 if name in ("std", "var") else lengths > 0
    torch.testing.assert_close(found[several], torch.stack(wanted)[several])


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "prod", "std", "norm", "any", "max"])
def test_full_reduction(name):
    parts = components(3)
    found = getattr(torch, name)(jagged(parts))
    torch.testing.assert_close(found, getattr(torch, name)(torch.cat(parts)))


def test_reduction_over_several_dimensions():
    parts = components(3, 2)
    nt = jagged(parts)
    torch.testing.assert_close(nt.sum((0, 1)), torch.cat(parts).sum(0))
    torch.testing.assert_close(nt.mean((0, 1), keepdim=True), torch.cat(parts).mean(0)[None, None])
    torch.testing.assert_close(nt.sum((1, 2)), torch.stack([p.sum((0, 1)) for p in parts]))
    torch.testing.assert_close(nt.mean((1, 3)), torch.stack([p.mean((0, 2)) for p in parts]))
    assert_components(nt.sum((2, 3)), [p.sum((1, 2)) for p in parts])
    torch.testing.assert_close(nt.sum(dtype=torch.float32), torch.cat(parts).sum().float())
    assert jagged([[1, 2], [3]]).sum(1).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="batch dimension but not the ragged"):
        nt.sum(0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        nt.sum(4)
    with pytest.raises(RuntimeError, match="multiple times"):
        nt.sum((1, 1))


def test_extrema_with_places():
    parts = components(3)
    nt = jagged(parts)
    for name in ("max", "min"):
        values, places = getattr(nt, name)(1)
        wanted = [getattr(p, name)(0) for p in parts]
        torch.testing.assert_close(values, torch.stack([w.values for w in wanted]))
        torch.testing.assert_close(places, torch.stack([w.indices for w in wanted]))
        values, places = getattr(nt, name)(-1)
        assert_components(places, [getattr(p, name)(-1).indices for p in parts])
    assert_components(torch.max(nt, nt * 2), [torch.max(p, p * 2) for p in parts])
    assert nt.argmax() == torch.cat(parts).argmax()


@pytest.mark.parametrize(
    "function",
    [
        torch.softmax,
        torch.log_softmax,
        torch.cumsum,
        torch.cumprod,
        torch.logcumsumexp,
        torch.argsort,
        lambda x, d: torch.sort(x, d).values,
        lambda x, d: torch.flip(x, [d]),
        lambda x, d: torch.roll(x, 1, d),
        lambda x, d: F.normalize(x, dim=d),
        lambda x, d: F.softmax(x, dim=d),
        lambda x, d: x.softmax(dim=d),
    ],
)
def test_along_a_dimension(function):
    parts = components(3)
    nt = jagged(parts)
    for dim in (1, 2):
        assert_components(function(nt, dim), [function(p, dim - 1) for p in parts])
    with pytest.raises(RuntimeError, match="batch dimension"):
        function(nt, 0)


def test_topk_needs_a_dimension_that_is_not_ragged():
    parts = components(3)
    assert_components(jagged(parts).topk(2).values, [p.topk(2).values for p in parts])
    with pytest.raises(RuntimeError, match="ragged dim"):
        jagged(parts).topk(1, 1)


# ---- copies of objects ---------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["pickle", "save", "save all", "deepcopy"])
def test_copies_of_the_object(how):
    nt = jagged(components(3), requires_grad=True)
    if how == "deepcopy":
        made = copy.deepcopy(nt)
        assert made.shape == nt.shape
    elif how == "pickle":
        made = pickle.loads(pickle.dumps(nt))
    else:
        buffer = io.BytesIO()
        torch.save({"x": nt}, buffer)
        buffer.seek(0)
        made = torch.load(buffer, weights_only=how == "save")["x"]
    assert made.requires_grad and made.is_leaf and torch.equal(made.detach(), nt.detach())
    assert made.values().data_ptr() != nt.values().data_ptr()
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(nt * 2)


def test_loading_checks_the_offsets():
    nt = jagged(components(3))
    nt.offsets()[-1] = 99
    for weights_only in (True, False):
        buffer = io.BytesIO()
        torch.save(nt, buffer)
        buffer.seek(0)
        with pytest.raises((RuntimeError, pickle.UnpicklingError), match="end at row 99"):
            torch.load(buffer, weights_only=weights_only)


# ---- the kernels behind the padded form ----------------------------------------------------------

to_padded = torch.ops.aten._jagged_to_padded_dense_forward
to_jagged = torch.ops.aten._padded_dense_to_jagged_forward


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bool, torch.complex64])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_padding_kernels_copy_rows_of_any_dtype(dtype, index):
    values = torch.randn(9, 2, 3).to(dtype)
    offsets = torch.tensor([1, 3, 3, 7], dtype=index)
    padded = to_padded(values, [offsets], [3], 1.0)
    assert padded.shape == (3, 3, 2, 3) and padded.dtype is dtype
    assert torch.equal(padded[0, :2], values[1:3]) and torch.equal(padded[2], values[3:6])
    assert padded[0, 2].eq(1).all() and padded[1].eq(1).all()
    back = to_jagged(padded, [offsets], 9)
    assert torch.equal(back[1:6], values[1:6])
    # Outside of the components, and past the width, there is nothing.
    assert not back[0].any() and not back[6:].any()
    assert to_jagged(padded, [offsets]).shape == (7, 2, 3)
    strided = to_padded(values.transpose(1, 2), [offsets], [3], 1.0)
    assert torch.equal(strided, padded.transpose(2, 3))


def test_padding_kernels_have_gradients_and_shapes_without_data():
    offsets = torch.tensor([0, 2, 2, 5])
    values = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    padded = torch.randn(3, 4, 2, dtype=torch.float64, requires_grad=True)
    for width in (2, 4):
        torch.autograd.gradcheck(
            lambda v, w=width: to_padded(v, [offsets], [w], 2.0), values, check_forward_ad=True
        )
    torch.autograd.gradgradcheck(lambda v: to_padded(v, [offsets], [4], 2.0).square(), values)
    torch.autograd.gradcheck(lambda p: to_jagged(p, [offsets], 7), padded, check_forward_ad=True)
    assert to_padded(values.to("meta"), [offsets], [4]).shape == (3, 4, 2)
    assert to_jagged(padded.to("meta"), [offsets], 7).shape == (7, 2)
    assert to_padded(torch.ones(0, 2), [torch.tensor([0])], [3]).shape == (0, 3, 2)
    assert to_padded(torch.ones(4, 0), [torch.tensor([0, 4])], [3]).shape == (1, 3, 0)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda v, o: to_padded(v, [o, o], [4]), NotImplementedError),
        (lambda v, o: to_padded(v, [], [4]), NotImplementedError),
        (lambda v, o: to_padded(v, [o], []), RuntimeError),
        (lambda v, o: to_padded(v, [o], [-1]), RuntimeError),
        (lambda v, o: to_padded(v, [o + 100], [4]), RuntimeError),
        (lambda v, o: to_padded(v, [o - 1], [4]), RuntimeError),
        (lambda v, o: to_padded(v, [o.flip(0)], [4]), RuntimeError),
        (lambda v, o: to_padded(v, [o.float()], [4]), RuntimeError),
        (lambda v, o: to_padded(v, [o[:0]], [4]), RuntimeError),
        (lambda v, o: to_padded(v, [o], [2**62]), RuntimeError),
        (lambda v, o: to_padded(v[0, 0], [o], [4]), RuntimeError),
        (lambda v, o: to_jagged(v, [o]), RuntimeError),
        (lambda v, o: to_jagged(v[0], [o]), RuntimeError),
        (lambda v, o: to_jagged(v.reshape(2, 3, 2), [o], 1), RuntimeError),
        (lambda v, o: to_jagged(v.reshape(2, 3, 2), [o], -5), RuntimeError),
        (lambda v, o: v.to_padded_tensor(0.0), NotImplementedError),
        (lambda v, o: torch._C._nested.nested_to_padded_tensor(v, 0.0), NotImplementedError),
    ],
)
def test_padding_kernels_refuse(call, error):
    with pytest.raises(error):
        call(torch.ones(6, 2), torch.tensor([0, 2, 5]))


def test_operators_by_name_take_nested_tensors():
    nt = jagged(components(3))
    assert torch.equal(torch.ops.aten.exp(nt), nt.exp())
    assert torch.equal(torch.ops.aten.add.Tensor(nt, nt), nt + nt)
    assert torch.ops.aten.to_padded_tensor(nt, 0.0).shape == (4, 5, 3)
    assert torch._C._nested.nested_to_padded_tensor(nt, 0.0).shape == (4, 5, 3)
    with torch._C.DisableTorchFunctionSubclass():
        assert torch.equal(torch.exp(nt)._values, nt._values.exp())
    by_row = torch.vmap(
        lambda v: torch.nested.nested_tensor_from_jagged(v, nt.offsets()).sum(1).square().sum()
    )(torch.ones(2, 11, 3, dtype=torch.float64))
    assert by_row.tolist() == [117.0, 117.0]


def test_internal_names_make_the_same_tensors():
    from torch.nested._internal import nested_tensor as internal

    parts = [torch.randn(2, 3), torch.randn(4, 3)]
    nt, offsets = internal.jagged_from_list(parts, None)
    assert offsets.tolist() == [0, 2, 6]
    other, _ = internal.jagged_from_list(parts, offsets)
    assert other.size(1) == nt.size(1) == internal.get_tensor_symint(offsets)
    with pytest.raises(RuntimeError, match="do not match the given tensor list"):
        internal.jagged_from_list(parts[:1], offsets)
    view = internal.nested_view_from_values_offsets(torch.cat(parts), offsets)
    padded = torch.nested.to_padded_tensor(view, 0.0)
    again = internal.nested_from_padded(padded, offsets)
    for made in (view, again, internal.NestedTensor(torch.cat(parts), offsets=offsets)):
        assert type(made) is internal.NestedTensor
        assert all(map(torch.equal, made.unbind(), parts))
    lengths = torch.tensor([1, 2])
    holes = internal.NestedTensor(torch.cat(parts), offsets=offsets, lengths=lengths)
    assert [tuple(part.shape) for part in holes.unbind()] == [(1, 3), (2, 3)]
    assert nt._metadata_cache == {"min_seqlen": 2, "max_seqlen": 4}
