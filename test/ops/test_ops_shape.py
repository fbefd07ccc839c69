"""Operators that change shapes: results and strides against NumPy, what is a view and what is a
copy, empty and 0-dim tensors, lazy conjugation, the meta device, and the errors users see."""

import itertools

import numpy as np
import pytest

import torch


def numbered(*shape, dtype=torch.float32):
    return torch.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def same(tensor, array):
    array = np.asarray(array)
    assert tuple(tensor.shape) == array.shape
    np.testing.assert_array_equal(tensor.numpy(), array)


def shares_memory(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def element_strides(array):
    return tuple(s // array.itemsize for s in array.strides)


# ---- views -------------------------------------------------------------------------------------

VIEWS = {
    "permute": (lambda t: t.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "transpose": (lambda t: t.transpose(0, -1), lambda a: a.swapaxes(0, -1)),
    "swapaxes": (lambda t: t.swapaxes(1, 2), lambda a: a.swapaxes(1, 2)),
    "movedim": (lambda t: t.movedim(0, 2), lambda a: np.moveaxis(a, 0, 2)),
    "movedim_list": (lambda t: t.movedim((0, 1), (2, 0)), lambda a: np.moveaxis(a, (0, 1), (2, 0))),
    "mT": (lambda t: t.mT, lambda a: a.swapaxes(-1, -2)),
    "select": (lambda t: t.select(1, -1), lambda a: a[:, -1]),
    "narrow": (lambda t: t.narrow(2, 1, 2), lambda a: a[:, :, 1:3]),
    "slice": (lambda t: t[:, 1:, ::2], lambda a: a[:, 1:, ::2]),
    "diagonal": (lambda t: t.diagonal(1, 0, 2), lambda a: a.diagonal(1, 0, 2)),
    "diagonal_below": (lambda t: t.diagonal(-1, 1, 2), lambda a: a.diagonal(-1, 1, 2)),
    "unfold": (
        lambda t: t.unfold(2, 2, 1),
        lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 2),
    ),
    "as_strided": (
        lambda t: t.as_strided((3, 2), (2, 5), 1),
        lambda a: np.lib.stride_tricks.as_strided(
            a.reshape(-1)[1:], (3, 2), (2 * a.itemsize, 5 * a.itemsize)
        ),
    ),
    "view": (lambda t: t.view(4, -1), lambda a: a.reshape(4, 6)),
    "flatten": (lambda t: t.flatten(1), lambda a: a.reshape(2, 12)),
    "unflatten": (lambda t: t.unflatten(2, (2, -1)), lambda a: a.reshape(2, 3, 2, 2)),
    "unsqueeze": (lambda t: t.unsqueeze(-2), lambda a: a[:, :, None]),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.complex64, torch.bfloat16])
def test_view_shares_memory_and_matches_numpy(name, dtype):
    view, reference = VIEWS[name]
    base = numbered(2, 3, 4).to(dtype)
    array = numbered(2, 3, 4).numpy()
    out = view(base)
    expected = reference(array)
    assert shares_memory(out, base)
    assert out._is_view()
    same(out.to(torch.complex64 if dtype.is_complex else torch.float32).real, expected)
    if name != "unsqueeze":
        assert out.stride() == element_strides(expected)


@pytest.mark.parametrize("name", VIEWS)
def test_view_on_meta_has_the_same_geometry(name):
    view, _ = VIEWS[name]
    real = view(numbered(2, 3, 4))
    meta = view(torch.empty(2, 3, 4, device="meta"))
    assert meta.is_meta
    assert (meta.shape, meta.stride(), meta.storage_offset()) == (
        real.shape,
        real.stride(),
        real.storage_offset(),
    )


def test_expand_repeats_without_memory():
    base = numbered(3, 1)
    out = base.expand(2, -1, 4)
    assert out.stride() == (0, 1, 0)
    same(out, np.broadcast_to(base.numpy(), (2, 3, 4)))
    assert numbered(3).expand(1, 3).stride() == (3, 1)
    assert torch.ones(()).expand(2, 1).stride() == (0, 0)


def test_view_keeps_strides_of_flush_runs():
    base = numbered(4, 6)[:, :4]
    assert base.view(4, 2, 2).stride() == (6, 2, 1)
    assert base.view(2, 2, 4).stride() == (12, 6, 1)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        base.view(16)
    flat = base.reshape(16)
    assert not shares_memory(flat, base)
    same(flat, base.numpy().reshape(16))


def test_reshape_of_strided_tensor_views_where_possible():
    base = numbered(2, 3, 4).transpose(0, 1)
    assert shares_memory(base.reshape(3, 2, 2, 2), base)
    assert not shares_memory(base.reshape(6, 4), base)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 3)])
def test_empty_tensors_reshape(shape):
    base = torch.empty(shape)
    assert base.reshape(0, 5).shape == (0, 5)
    assert base.flatten().shape == (0,)
    assert base.unsqueeze(0).shape == (1, *shape)
    assert base.contiguous() is base


def test_squeeze_drops_only_size_one():
    base = torch.ones(1, 3, 1, 2)
    assert base.squeeze().shape == (3, 2)
    assert base.squeeze(0).shape == (3, 1, 2)
    assert base.squeeze(1).shape == (1, 3, 1, 2)
    assert base.squeeze((0, 2)).shape == (3, 2)
    assert torch.ones(()).squeeze(0).shape == ()


def test_inplace_views_change_the_tensor_itself():
    t = numbered(2, 3)
    address = t.data_ptr()
    assert t.t_() is t
    assert (t.shape, t.stride(), t.data_ptr()) == ((3, 2), (1, 3), address)
    assert t._version == 1
    t.unsqueeze_(0).transpose_(0, 1)
    assert t.shape == (3, 1, 2)
    t.squeeze_(1)
    same(t, numbered(2, 3).numpy().T)
    t.as_strided_((2, 2), (1, 2))
    same(t, [[0, 2], [1, 3]])


def test_writes_through_views_reach_the_base():
    base = torch.zeros(3, 3)
    base.diagonal().fill_(1)
    base[0].fill_(5)
    base.t()[0, 2] = 7
    same(base, [[5, 5, 5], [0, 1, 0], [7, 0, 1]])


def test_view_dtype_reinterprets_bytes():
    base = numbered(2, 4)
    same(base.view(torch.int32), base.numpy().view(np.int32))
    same(base.view(torch.int64), base.numpy().view(np.int64))
    same(base.view(torch.uint8), base.numpy().view(np.uint8))
    assert shares_memory(base.view(torch.int16), base)


def test_detach_shares_memory_and_version():
    base = torch.empty(3)
    version = base._version
    out = base.detach()
    assert shares_memory(base, out)
    assert not out._is_view()
    out.add_(1)
    assert base._version == version + 1


# ---- pieces ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10])
def test_split_and_chunk_cover_the_dimension(size):
    base = numbered(2, 7)
    pieces = base.split(size, 1)
    assert [p.shape[1] for p in pieces] == [min(size, 7 - i) for i in range(0, 7, size)]
    same(torch.cat(list(pieces), 1), base.numpy())
    assert sum(p.shape[1] for p in base.chunk(size, 1)) == 7
    assert [p.shape[1] for p in base.tensor_split(size, 1)] == [
        len(p) for p in np.array_split(np.arange(7), size)
    ]


def test_more_views_than_the_memory_holds_are_refused():
    many = torch.empty(2**40, 0, device="meta")
    for call in (
        lambda: many.unbind(),
        lambda: many.split(1),
        lambda: many.tensor_split(2**39),
        lambda: list(many),
    ):
        with pytest.raises(torch.OutOfMemoryError, match="views were asked for"):
            call()


def test_split_with_sizes_unbind_and_numpy_names():
    base = numbered(4, 6)
    assert [tuple(p.shape) for p in base.split([1, 3, 2], 1)] == [(4, 1), (4, 3), (4, 2)]
    for ours, theirs in zip(
        base.tensor_split([1, 4], 1), np.split(base.numpy(), [1, 4], 1), strict=True
    ):
        same(ours, theirs)
    for ours, theirs in zip(base.unbind(1), base.numpy().T, strict=True):
        same(ours, theirs)
    assert [tuple(p.shape) for p in torch.hsplit(base, 2)] == [(4, 3), (4, 3)]
    assert [tuple(p.shape) for p in torch.vsplit(base, [1])] == [(1, 6), (3, 6)]
    assert [tuple(p.shape) for p in torch.zeros(0).chunk(3)] == [(0,)] * 3


# ---- joining -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.int64, torch.bool, torch.complex128]
)
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_cat_matches_numpy(dtype, dim):
    parts = [numbered(2, 3, 4).to(dtype), numbered(2, 3, 4).to(dtype), numbered(2, 3, 4).to(dtype)]
    same(torch.cat(parts, dim), np.concatenate([p.numpy() for p in parts], dim))
    same(torch.stack(parts, dim), np.stack([p.numpy() for p in parts], dim))


@pytest.mark.parametrize("sizes", list(itertools.product([0, 1, 3], repeat=3)))
def test_cat_of_different_lengths(sizes):
    parts = [numbered(2, n) for n in sizes]
    same(torch.cat(parts, 1), np.concatenate([p.numpy() for p in parts], 1))


def test_cat_of_strided_and_mixed_inputs():
    a, b = numbered(3, 4).t(), numbered(4, 3, dtype=torch.int32)
    out = torch.cat([a, b])
    assert out.dtype == torch.float32
    same(out, np.concatenate([a.numpy(), b.numpy()]))
    same(torch.cat([torch.empty(0), b.float()], 1), b.numpy())


def test_cat_large_is_exact():
    parts = [numbered(1000, 301), numbered(1000, 57), numbered(1000, 1)]
    same(torch.cat(parts, 1), np.concatenate([p.numpy() for p in parts], 1))
    same(torch.cat([p.t() for p in parts]), np.concatenate([p.numpy().T for p in parts]))
    columns = [numbered(100000, 1), numbered(100000, 1)]
    same(torch.cat(columns, 1), np.concatenate([c.numpy() for c in columns], 1))


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
def test_cat_keeps_channels_last(dim):
    parts = [numbered(2, 3, 4, 5).contiguous(memory_format=torch.channels_last) for _ in range(2)]
    out = torch.cat(parts, dim)
    assert out.is_contiguous(memory_format=torch.channels_last)
    same(out, np.concatenate([p.numpy() for p in parts], dim))


def test_cat_out_is_resized_and_must_not_be_an_input():
    a = numbered(2, 3)
    out = torch.empty(0)
    assert torch.cat([a, a], out=out) is out
    same(out, np.concatenate([a.numpy()] * 2))
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        torch.cat([a, a], out=a)
    with pytest.raises(TypeError, match="can't be cast"):
        torch.cat([a], out=torch.empty(2, 3, dtype=torch.int32))


def test_numpy_stacks():
    a, b = numbered(3), numbered(3) + 10
    for name in ("hstack", "vstack", "dstack", "column_stack"):
        same(getattr(torch, name)([a, b]), getattr(np, name)([a.numpy(), b.numpy()]))
    m = numbered(2, 2)
    same(
        torch.block_diag(m, a),
        np.block([[m.numpy(), np.zeros((2, 3))], [np.zeros((1, 2)), a.numpy()[None]]]),
    )


# ---- reordering and repeating ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float32, torch.int64,
                                   torch.complex128])  # fmt: skip
@pytest.mark.parametrize("n", [1, 7, 15, 16, 17, 63, 64, 65, 200])
def test_flip_of_rows_of_any_length_matches_numpy(n, dtype):
    x = torch.arange(3 * n).reshape(3, n).to(dtype)
    assert torch.equal(x.flip(1), torch.from_numpy(np.flip(x.numpy(), 1).copy()))
    assert torch.equal(x.flip(0, 1), torch.from_numpy(np.flip(x.numpy(), (0, 1)).copy()))


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2), (0, 1, 2), ()])
def test_flip_matches_numpy(dims):
    base = numbered(2, 3, 4)
    same(base.flip(dims), np.flip(base.numpy(), dims))
    turned = base.permute(2, 0, 1)
    same(turned.flip(dims), np.flip(turned.numpy(), dims))


@pytest.mark.parametrize(
    ("shift", "dims"),
    [(1, 0), (-1, 1), (7, 2), ((1, 2), (0, 2)), ((1, 1), (2, 2)), (0, 1), (2**62, 2)],
)
def test_roll_matches_numpy(shift, dims):
    base = numbered(2, 3, 4)
    same(base.roll(shift, dims), np.roll(base.numpy(), shift, dims))
    same(base.transpose(0, 2).roll(5), np.roll(base.numpy().swapaxes(0, 2), 5))


@pytest.mark.parametrize("k", range(-2, 5))
def test_rot90_matches_numpy(k):
    base = numbered(2, 3, 4)
    same(base.rot90(k, (0, 2)), np.rot90(base.numpy(), k, (0, 2)))


@pytest.mark.parametrize("repeats", [(2,), (2, 3), (1, 2, 3), (2, 0)])
def test_tile_matches_numpy(repeats):
    base = numbered(2, 3)
    same(base.tile(repeats), np.tile(base.numpy(), repeats))
    same(base.t().tile(repeats), np.tile(base.numpy().T, repeats))


def test_repeat_interleave_matches_numpy():
    base = numbered(2, 3)
    for dim in (None, 0, 1):
        same(base.repeat_interleave(2, dim), np.repeat(base.numpy(), 2, dim))
    counts = torch.tensor([2, 0, 1])
    same(base.repeat_interleave(counts, 1), np.repeat(base.numpy(), counts.numpy(), 1))
    same(torch.repeat_interleave(counts), [0, 0, 2])


@pytest.mark.parametrize("diagonal", [-(2**62), -3, -1, 0, 1, 3, 2**62])
@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (2, 3, 3), (0, 3)])
def test_triangles_match_numpy(diagonal, shape):
    base = numbered(*shape) + 1
    k = max(min(diagonal, 9), -9)
    for tensor in (base, base.mT):
        same(tensor.tril(diagonal), np.tril(tensor.numpy(), k))
        same(tensor.triu(diagonal), np.triu(tensor.numpy(), k))
        copy = tensor.clone()
        assert copy.tril_(diagonal) is copy
        same(copy, np.tril(tensor.numpy(), k))


@pytest.mark.parametrize("offset", [-2, 0, 1])
def test_diagonal_constructions_match_numpy(offset):
    vector, matrix = numbered(3) + 1, numbered(3, 4)
    same(torch.diag(vector, offset), np.diag(vector.numpy(), offset))
    same(torch.diag(matrix, offset), np.diag(matrix.numpy(), offset))
    same(torch.diagflat(matrix, offset), np.diagflat(matrix.numpy(), offset))
    same(torch.diag_embed(matrix, offset)[1], np.diag(matrix.numpy()[1], offset))


# ---- padding -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]
)
@pytest.mark.parametrize("padded", [1, 2, 3])
def test_edge_padding_matches_numpy(ours, theirs, padded):
    base = numbered(2, 3, 4, 5, 4)[(0,) * (3 - padded)]
    pads = [(0, 0)] * (base.dim() - padded) + [(1, 2), (2, 1), (3, 2)][:padded]
    flat = [p for pair in reversed(pads[base.dim() - padded :]) for p in pair]
    same(torch._C._nn.pad(base, flat, ours), np.pad(base.numpy(), pads, mode=theirs))


def test_constant_padding_grows_and_crops():
    base = numbered(2, 3)
    same(
        torch._C._nn.pad(base, (1, 2, 0, 1), value=7),
        np.pad(base.numpy(), ((0, 1), (1, 2)), constant_values=7),
    )
    same(torch._C._nn.pad(base, (-1, 1)), [[1, 2, 0], [4, 5, 0]])
    with pytest.raises(RuntimeError, match="negative"):
        torch._C._nn.pad(base, (-2, -2))


def test_pixel_shuffle_is_undone_by_unshuffle():
    base = numbered(2, 8, 3, 2)
    out = torch.pixel_shuffle(base, 2)
    same(
        out, base.numpy().reshape(2, 2, 2, 2, 3, 2).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 4)
    )
    same(torch.pixel_unshuffle(out, 2), base.numpy())
    same(
        torch.channel_shuffle(base, 4),
        base.numpy().reshape(2, 4, 2, 3, 2).swapaxes(1, 2).reshape(2, 8, 3, 2),
    )


# ---- grids -------------------------------------------------------------------------------------


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_meshgrid_matches_numpy(indexing):
    vectors = [numbered(2), numbered(3), numbered(4)]
    expected = np.meshgrid(*(v.numpy() for v in vectors), indexing=indexing)
    for ours, theirs in zip(torch.meshgrid(*vectors, indexing=indexing), expected, strict=True):
        same(ours, theirs)


@pytest.mark.parametrize("with_replacement", [False, True])
def test_combinations_and_products_match_itertools(with_replacement):
    vector = numbered(4)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    expected = np.array(list(choose(vector.tolist(), 3)))
    same(torch.combinations(vector, 3, with_replacement), expected)
    same(
        torch.cartesian_prod(vector, vector),
        np.array(list(itertools.product(vector.tolist(), repeat=2))),
    )


def test_atleast_and_broadcast():
    assert [torch.atleast_3d(numbered(*s)).shape for s in [(3,), (2, 3)]] == [(1, 3, 1), (2, 3, 1)]
    a, b = torch.broadcast_tensors(numbered(3, 1), numbered(4))
    assert a.shape == b.shape == (3, 4)


# ---- lazy conjugation --------------------------------------------------------------------------


def test_conjugate_view_is_lazy_and_right():
    base = torch.tensor([1 + 2j, 3 - 4j])
    lazy = base.conj()
    assert lazy.is_conj() and shares_memory(lazy, base)
    assert not lazy.conj().is_conj()
    same(lazy + 0, base.numpy().conj())
    same(lazy.resolve_conj(), base.numpy().conj())
    assert lazy[1:].is_conj()
    assert not lazy.clone().is_conj()
    same(lazy.clone(), base.numpy().conj())
    same(torch.cat([lazy, base]), np.concatenate([base.numpy().conj(), base.numpy()]))
    same(lazy.imag.resolve_neg(), [-2, 4])
    assert lazy.imag.is_neg()


def test_writes_into_a_conjugate_view_are_conjugated_back():
    base = torch.tensor([1 + 2j, 3 - 4j])
    lazy = base.conj()
    assert lazy.add_(1j) is lazy
    same(base, [1 + 1j, 3 - 5j])
    base.imag.neg_()
    same(base, [1 - 1j, 3 + 5j])


def test_complex_as_real_and_back():
    base = torch.tensor([[1 + 2j, 3 - 4j]])
    pairs = torch.view_as_real(base)
    same(pairs, [[[1, 2], [3, -4]]])
    assert shares_memory(pairs, base)
    same(torch.view_as_complex(pairs), base.numpy())


# ---- copies ------------------------------------------------------------------------------------


def test_view_copies_own_their_memory():
    base = numbered(2, 3)
    for out in (
        torch.t_copy(base),
        torch.permute_copy(base, (1, 0)),
        torch.transpose_copy(base, 0, 1),
    ):
        same(out, base.numpy().T)
        assert out.is_contiguous() and not shares_memory(out, base)
    for ours, theirs in zip(torch.unbind_copy(base), base.numpy(), strict=True):
        same(ours, theirs)
    out = torch.empty(0)
    same(torch.diagonal_copy(base, out=out), [0, 4])


# ---- errors ------------------------------------------------------------------------------------

M = torch.ones(2, 3)
ERRORS = [
    (lambda: M.view(7), RuntimeError, r"shape '\[7\]' is invalid for input of size 6"),
    (lambda: M.view(-1, -1), RuntimeError, "only one dimension can be inferred"),
    (lambda: M.view(-2, 3), RuntimeError, "invalid shape dimension -2"),
    (lambda: M.view(2**62, 2**62), RuntimeError, "overflow|large|invalid"),
    (lambda: torch.ones(0, 3).view(-1, 0), RuntimeError, "ambiguous"),
    (
        lambda: M.expand(3, 3),
        RuntimeError,
        r"expanded size of the tensor \(3\) must match the existing size \(2\)",
    ),
    (lambda: M.expand(3), RuntimeError, "number of sizes provided"),
    (lambda: M.permute(0), RuntimeError, "number of dimensions in the tensor input does not match"),
    (lambda: M.permute(0, 0), RuntimeError, "duplicate dims"),
    (lambda: M.transpose(0, 2), IndexError, "Dimension out of range"),
    (lambda: M.select(0, 2), IndexError, r"select\(\): index 2 out of range"),
    (lambda: torch.ones(()).select(0, 0), IndexError, "0-dim tensor"),
    (lambda: M.narrow(0, 1, 4), RuntimeError, "exceeds dimension size"),
    (lambda: M.narrow(0, 0, -1), RuntimeError, "length must be non-negative"),
    (lambda: M.squeeze((0, 0)), RuntimeError, "appears multiple times"),
    (lambda: M.flatten(1, 0), RuntimeError, "start_dim cannot come after end_dim"),
    (lambda: M.unflatten(1, (2, 2)), RuntimeError, "don't multiply up"),
    (lambda: M.as_strided((20,), (1,)), RuntimeError, "out of bounds for storage"),
    (lambda: M.as_strided((2,), (-1,)), RuntimeError, "Negative strides"),
    (lambda: M.as_strided((2**62, 2), (1, 2**62)), RuntimeError, "overflow|large|bounds"),
    (lambda: M.diagonal(0, 1, 1), RuntimeError, "diagonal dimensions cannot be identical"),
    (lambda: M.unfold(0, 3, 1), RuntimeError, "maximum size for tensor at dimension 0 is 2"),
    (lambda: M.unfold(0, 1, 0), RuntimeError, "step is 0 but must be > 0"),
    (lambda: M.split(0), RuntimeError, "split_size can only be 0"),
    (lambda: torch.zeros(0).chunk(2**62), RuntimeError, "too many"),
    (lambda: M.split([1, 2]), RuntimeError, "sum exactly to 2"),
    (lambda: M.movedim((0, 0), (0, 1)), RuntimeError, "repeated dim in `source`"),
    (lambda: torch.ones(1, 1, 1).t(), RuntimeError, "expects a tensor with <= 2 dimensions"),
    (lambda: torch.cat([]), ValueError, "non-empty list"),
    (lambda: torch.cat([M, torch.ones(2)]), RuntimeError, "same number of dimensions"),
    (
        lambda: torch.cat([M, torch.ones(2, 4)]),
        RuntimeError,
        "Sizes of tensors must match except in dimension 0",
    ),
    (lambda: torch.stack([M, torch.ones(2)]), RuntimeError, "equal size"),
    (lambda: M.roll((1, 2), 0), RuntimeError, "must align"),
    (lambda: M[0].tril(), RuntimeError, "at least 2 dimensions"),
    (lambda: M.repeat(2), RuntimeError, "can not be smaller"),
    (lambda: M.repeat(2**62, 2**62), RuntimeError, "overflow|large"),
    (lambda: M.repeat_interleave(-1), RuntimeError, "non-negative"),
    (
        lambda: torch._C._nn.pad(M, (3, 1), "reflect"),
        RuntimeError,
        "should be less than the corresponding",
    ),
    (
        lambda: torch._C._nn.pad(M, (1, 1), "other"),
        NotImplementedError,
        "Unrecognised padding mode",
    ),
    (lambda: M.view(torch.complex128), RuntimeError, "must be divisible by 4"),
    (lambda: torch.view_as_complex(torch.ones(3)), RuntimeError, "last dimension of size 2"),
    (lambda: torch.meshgrid(M, indexing="ij"), RuntimeError, "Expected 0D or 1D"),
]


@pytest.mark.parametrize("index", range(len(ERRORS)))
def test_errors_have_type_and_phrase(index):
    call, kind, phrase = ERRORS[index]
    with pytest.raises(kind, match=phrase):
        call()


# ---- sequences ---------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["left", "right"])
def test_pad_sequence_fills_up_to_the_longest(side):
    out = torch._C._nn.pad_sequence([numbered(2), numbered(3)], True, 7.0, side)
    same(out, [[7, 0, 1] if side == "left" else [0, 1, 7], [0, 1, 2]])
    assert torch._C._nn.pad_sequence([numbered(2, 2), numbered(3, 2)]).shape == (3, 2, 2)


def test_flat_buffers_are_cut_back_into_their_tensors():
    parts = [numbered(2), numbered(3, 1)]
    flat = torch._C._nn.flatten_dense_tensors(parts)
    same(flat, [0, 1, 0, 1, 2])
    for ours, theirs in zip(torch._C._nn.unflatten_dense_tensors(flat, parts), parts, strict=True):
        same(ours, theirs.numpy())


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (7, 2), (2, 5), (2, 2, 2)])
def test_fill_diagonal_matches_numpy(shape, wrap):
    expected = np.zeros(shape, np.float32)
    np.fill_diagonal(expected, 5, wrap)
    same(torch.zeros(shape).fill_diagonal_(5, wrap), expected)


def test_cat_out_may_lie_beside_its_inputs_in_one_memory():
    w = torch.arange(10.0)
    torch.cat([w[:2], w[4:6]], out=w[6:])
    assert w.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 4, 5]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.cat([w[:2], w[4:6]], out=torch.zeros(1).expand(4))
