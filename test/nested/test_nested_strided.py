"""Nested tensors with the strided layout: components that differ in several dimensions."""

import copy
import io
import pickle

import pytest

import torch
import torch.nn.functional as F


def parts_of(*shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]


def make(parts, **options):
    return torch.nested.nested_tensor(parts, **options)


def assert_components(nested, expected):
    for part, wanted in zip(nested.unbind(), expected, strict=True):
        torch.testing.assert_close(part, wanted)


def test_sizes_exist_where_components_agree():
    nt = make(parts_of((2, 3), (4, 3)))
    assert nt.is_nested and nt.layout is torch.strided and nt.dim() == 3 and len(nt) == 2
    assert nt.size(0) == 2 and nt.size(-1) == 3 and nt.numel() == 18
    assert nt._nested_tensor_size().tolist() == [[2, 3], [4, 3]]
    assert nt._nested_tensor_strides().tolist() == [[3, 1], [3, 1]]
    assert nt._nested_tensor_storage_offsets().tolist() == [0, 6]
    with pytest.raises(RuntimeError, match="dimension 1 is irregular"):
        nt.size(1)
    for ask in (lambda: nt.shape, nt.size, nt.stride):
        with pytest.raises(RuntimeError, match="NestedTensorImpl doesn't support"):
            ask()
    with pytest.raises(RuntimeError, match=r"same dimension\. Found dimension 1"):
        make([torch.ones(2, 2), torch.ones(2)])
    assert make([]).dim() == 1 and repr(make([])) == "nested_tensor([\n\n])"


def test_printing():
    nt = make([torch.ones(2), torch.zeros(1)], requires_grad=True)
    shown = "  tensor([1., 1.], requires_grad=True),\n  tensor([0.], requires_grad=True)"
    assert repr(nt) == f"nested_tensor([\n{shown}\n], requires_grad=True)"
    assert repr(nt * 1).endswith("], grad_fn=<MulBackward0>)")


def test_padding():
    parts = parts_of((2, 3), (4, 2))
    nt = make(parts)
    padded = nt.to_padded_tensor(7.0)
    assert padded.shape == (2, 4, 3)
    torch.testing.assert_close(padded[1, :, :2], parts[1])
    assert padded[0, 2:].eq(7).all() and padded[1, :, 2].eq(7).all()
    assert nt.to_padded_tensor(0.0, (3, 5, 4)).shape == (3, 5, 4)
    with pytest.raises(RuntimeError, match="Truncation is not supported"):
        nt.to_padded_tensor(0.0, (2, 3, 3))


def test_calls_run_for_each_component():
    parts = parts_of((2, 3), (4, 3))
    nt, weight = make(parts), torch.randn(5, 3, dtype=torch.float64)
    for f in (
        lambda x: x + 1,
        lambda x: x * x,
        torch.exp,
        lambda x: x > 0,
        lambda x: F.linear(x, weight),
        lambda x: x @ weight.T,
        lambda x: F.layer_norm(x, (3,)),
        lambda x: x.softmax(-1),
        lambda x: x.sum(-1, keepdim=True),
        lambda x: x.transpose(-1, -2),
        lambda x: x @ x.transpose(-1, -2),
        lambda x: x.unsqueeze(-1),
        lambda x: x.float(),
        lambda x: x * weight[0],
        lambda x: x.chunk(3, -1)[2],
        torch.zeros_like,
    ):
        assert_components(f(nt), [f(p) for p in parts])
    torch.testing.assert_close(nt.sum(), torch.cat(parts).sum())
    assert_components(torch.cat([nt, nt]), parts * 2)
    assert_components(nt.reshape(2, -1, 3, 1), [p[..., None] for p in parts])
    torch.testing.assert_close(nt[1], parts[1])
    assert torch.equal(nt, nt.clone()) and nt.is_same_size(nt + 1)


def test_refusals():
    nt, other = make(parts_of((2, 3), (4, 3))), make(parts_of((2, 3), (4, 2)))
    with pytest.raises(RuntimeError, match="does not support broadcasting"):
        nt * other
    with pytest.raises(NotImplementedError, match=r"torch\.stack: not implemented for nested"):
        torch.stack([nt, nt])
    with pytest.raises(RuntimeError, match="different layouts"):
        nt + torch.nested.nested_tensor([torch.ones(2, 3)], layout=torch.jagged)
    with pytest.raises(IndexError, match="out of bounds"):
        nt[2]


def test_gradients_and_copies():
    nt = make(parts_of((2, 3), (4, 2)), requires_grad=True)
    (nt * nt).sum().backward()
    torch.testing.assert_close(nt.grad.values(), 2 * nt.detach().values())
    (again,) = torch.autograd.grad((nt * 3).sum(), nt)
    assert again.is_nested and again.values().eq(3).all()
    leaf = torch.ones(2, requires_grad=True)
    torch.nested.as_nested_tensor([leaf, torch.ones(3)]).sum().backward()
    assert leaf.grad.tolist() == [1.0, 1.0]
    buffer = io.BytesIO()
    torch.save(nt, buffer)
    buffer.seek(0)
    for made in (copy.deepcopy(nt), pickle.loads(pickle.dumps(nt)), torch.load(buffer)):
        assert made.requires_grad and torch.equal(made.detach(), nt.detach())


# ---- the strided layout: pieces, masks, errors ---------------------------------------------------


def _strided(*sizes):
    return torch.nested.nested_tensor([torch.randn(*size) for size in sizes])


def test_split_with_sizes_cuts_every_component():
    nt = _strided((3, 6), (2, 6))
    pieces = torch.split_with_sizes(nt, [1, 2, 3], dim=-1)
    assert [p._nested_tensor_size().tolist() for p in pieces] == [
        [[3, n], [2, n]] for n in (1, 2, 3)
    ]
    for got, part in zip(pieces[1].unbind(), nt.unbind(), strict=True):
        assert torch.equal(got, part[:, 1:3])
    with pytest.raises(RuntimeError, match="expects split_sizes to sum exactly to 6"):
        torch.split_with_sizes(nt, [1, 2], dim=-1)


def test_cat_joins_components_along_an_inner_dimension():
    first, second = _strided((2, 3), (4, 3)), _strided((2, 5), (4, 5))
    joined = torch.cat([first, second], dim=-1)
    for got, a, b in zip(joined.unbind(), first.unbind(), second.unbind(), strict=True):
        assert torch.equal(got, torch.cat([a, b], 1))
    with pytest.raises(RuntimeError, match="matching ragged structures outside"):
        torch.cat([first, _strided((2, 3), (3, 3))], dim=-1)
    with pytest.raises(RuntimeError, match="expected each tensor in given list to be nested"):
        torch.cat([first, torch.ones(2, 2, 3)], dim=-1)


def test_select_takes_a_row_of_every_component_and_ellipsis_all():
    nt = _strided((2, 5), (3, 4))
    for got, part in zip(nt.select(1, 1).unbind(), nt.unbind(), strict=True):
        assert torch.equal(got, part[1])
    assert nt[...] is nt


def test_a_mask_says_how_much_of_each_row_is_a_component():
    data = torch.randn(2, 3, 4)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    nt = torch._nested_tensor_from_mask(data, mask)
    assert torch.equal(nt[0], data[0, :2]) and torch.equal(nt[1], data[1, :1])
    with pytest.raises(RuntimeError, match="left-aligned"):
        torch._nested_tensor_from_mask(data, mask.flip(1))
    assert not torch._nested_tensor_from_mask_left_aligned(data, mask.flip(1))
    padded = torch.nested.to_padded_tensor(nt, 0.0)
    sizes = nt._nested_tensor_size()
    heads = padded.unflatten(2, (2, 2)).permute(0, 2, 1, 3)
    fused = torch._nested_from_padded(heads, sizes, fuse_transform_0213=True)
    for made in (torch._nested_from_padded(padded, sizes), fused):
        assert all(map(torch.equal, made.unbind(), nt.unbind()))
    with pytest.raises(RuntimeError, match="does not hold components"):
        torch._nested_from_padded(padded, sizes[:1])
    again = torch._nested_from_padded_and_nested_example(padded, nt)
    assert all(map(torch.equal, again.unbind(), nt.unbind()))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda nt: nt.size(), "NestedTensorImpl doesn't support sizes"),
        (lambda nt: nt.stride(), "NestedTensorImpl doesn't support strides"),
        (lambda nt: nt.softmax(0), "Cannot apply softmax across nested dimension 0"),
        (lambda nt: nt.sum(0), "can only be reduced across the last"),
        (lambda nt: nt.transpose(0, 1), "dimension 0 cannot be transposed"),
        (lambda nt: nt.squeeze(0), "squeezing dimension 0"),
        (lambda nt: nt.view(()), r"shape '\[\]' is invalid for a nested tensor"),
        (lambda nt: nt.fill_(torch.ones(2)), "fill_ only supports 0-dimension value tensor"),
        (lambda nt: nt.copy_(_strided((1, 3), (4, 3))), "copy_ only supports tensors that are the"),
    ],
)
def test_calls_that_mean_nothing_are_refused_in_pytorchs_words(call, error):
    with pytest.raises(RuntimeError, match=error):
        call(_strided((2, 3), (4, 3)))


def test_components_must_agree_in_rank_and_come_in_a_list():
    with pytest.raises(
        RuntimeError, match="dimension 1 for Tensor at index 2 and dimension 0 for T"
    ):
        torch.nested.nested_tensor([torch.tensor(1.0), torch.tensor(2.0), torch.tensor([])])
    with pytest.raises(TypeError, match="to be a list or tuple"):
        torch.nested.nested_tensor(torch.tensor([3.0]))
    with pytest.raises(RuntimeError, match="at least one constituent tensor"):
        torch.nested.nested_tensor([torch.ones(1, 0), torch.ones(0, 0)]).to_padded_tensor(0.0)


def test_narrow_along_the_batch_is_a_view_of_the_components():
    nt = _strided((2, 3), (4, 3), (1, 3))
    part = nt.narrow(0, 1, 2)
    assert all(map(torch.equal, part.unbind(), nt.unbind()[1:]))
    part.fill_(7)
    assert bool((nt[2] == 7).all()) and not bool((nt[0] == 7).any())
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        nt.narrow(dim=0, start=2, length=2)


def test_native_attention_equals_attention_of_each_component():
    torch.manual_seed(0)
    parts = [torch.rand(2, 8), torch.rand(3, 8)]
    weights = (torch.rand(24, 8), torch.rand(24), torch.rand(8, 8), torch.rand(8))
    nested = torch.nested.nested_tensor(parts)
    out, attention = torch._native_multi_head_attention(
        nested, nested, nested, 8, 2, *weights, need_weights=True, average_attn_weights=True
    )
    for k, part in enumerate(parts):
        alone = part.unsqueeze(0)
        expected, rows = torch._native_multi_head_attention(
            alone, alone, alone, 8, 2, *weights, need_weights=True, average_attn_weights=True
        )
        n = part.shape[0]
        assert torch.allclose(out[k], expected[0])
        assert torch.allclose(attention[k, :n, :n], rows[0])
        assert not attention[k, n:].any()
        assert not attention[k, :, n:].any()


def test_the_choice_of_a_fused_attention_is_the_plain_formula():
    q = torch.nested.nested_tensor([torch.rand(2, 3, 4), torch.rand(2, 5, 4)])
    assert torch._fused_sdp_choice(q, q, q) == torch.nn.attention.SDPBackend.MATH.value
