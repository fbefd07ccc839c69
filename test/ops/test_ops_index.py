"""Indexing operators against NumPy and plain Python: advanced indexing and its strides, gather and
scatter in all forms, take and put, parts replaced. Also empty, 0-dim, strided and
overlapping tensors, all dtypes, the meta device, thread counts, and the errors users see."""

import itertools
import random

import numpy as np
import pytest
from index_samples import DTYPES, layouts, numbered, same

import torch


def tensors_in(key):
    key = key if isinstance(key, tuple) else (key,)
    return tuple(torch.from_numpy(k) if isinstance(k, np.ndarray) else k for k in key)


# ---- advanced indexing ---------------------------------------------------------------------------

I = np.array([1, 0, -1])
J = np.array([[0], [2]])
KEYS = [
    (I,),
    (J,),
    (slice(None), I),
    (Ellipsis, I),
    (I, slice(None), I),
    (slice(None), I, I),
    (I, I, I),
    (J, I),
    (J, slice(None), I),
    (I, Ellipsis),
    (None, I),
    (I, None, I),
    (slice(0, 2), J, None),
    (1, I),
    (I, 1),
    (slice(None), 1, I),
    (I, slice(None), 1),
    (slice(None, None, 2), I),
    (np.array([], dtype=np.int64),),
    (np.array(2), I),
    (I.astype(np.int32), I),
    (np.array([True, False, True]),),
    (slice(None), np.array([True, False, True, False])),
    (np.array([[True, False, True, False]] * 3),),
    (I[:2], np.array([True, False, True, False])),
    (Ellipsis, np.array([[False] * 5] * 4)),
    (np.array([False, False, False]), slice(1, 3)),
]


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_index_matches_numpy(key):
    base = numbered(3, 4, 5)
    for t in layouts(base):
        same(t[tensors_in(key)], base.numpy()[key])


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_index_put_matches_numpy(key):
    for t in layouts(numbered(3, 4, 5)):
        array = t.numpy().copy()
        result = array[key]
        values = -np.arange(result.size, dtype=np.float32).reshape(result.shape) - 1
        array[key] = values
        t[tensors_in(key)] = torch.from_numpy(values)
        same(t, array)
        array[key] = 7
        t[tensors_in(key)] = 7
        same(t, array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_index_every_dtype(dtype):
    t = (numbered(4, 3) % 2).to(dtype)
    index = torch.tensor([3, 1, 1])
    assert torch.equal(t[index], torch.stack([t[3], t[1], t[1]]))
    copy = t.clone()
    copy[index] = torch.ones(3, dtype=dtype)
    assert bool((copy[1].to(torch.complex128) == 1).all())


def test_float8_moves():
    t = numbered(4, 3).to(torch.float8_e5m2)
    assert torch.equal(t[torch.tensor([2, 0])].float(), t.float()[torch.tensor([2, 0])])


def test_random_keys_match_numpy():
    rng = random.Random(0)
    array = np.arange(2 * 3 * 4 * 2, dtype=np.int64).reshape(2, 3, 4, 2)
    for _ in range(300):
        shapes = rng.choice([[(2,)], [(2,), (1,)], [(3, 1), (2,)], [(2, 2)]])
        key = []
        for _d, size in enumerate(array.shape):
            kind = rng.choice(["slice", "tensor", "tensor", "int"])
            if kind == "slice":
                key.append(slice(rng.randrange(size), None, rng.choice([1, 2])))
            elif kind == "int":
                key.append(rng.randrange(-size, size))
            else:
                shape = rng.choice(shapes)
                key.append(
                    np.array(
                        [rng.randrange(-size, size) for _ in range(int(np.prod(shape)))],
                        dtype=np.int64,
                    ).reshape(shape)
                )
        key = tuple(key)
        # NumPy counts plain numbers beside arrays as indices, PyTorch selects with them first.
        if any(isinstance(k, int) for k in key):
            selected, rest = array, []
            for k in reversed(range(4)):
                if isinstance(key[k], int):
                    selected = selected.take(key[k], axis=k)
            rest = tuple(k for k in key if not isinstance(k, int))
            expected = selected[rest]
        else:
            expected = array[key]
        same(torch.from_numpy(array)[tensors_in(key)], expected)


def test_result_strides_follow_self():
    a = numbered(2, 3, 4)
    i = torch.tensor([0, 1])
    b = a.transpose(0, 2)
    assert b[i].stride() == (6, 1, 3)
    assert b[:, i].stride() == (1, 4, 8)
    assert a.transpose(0, 1)[:, :, i].stride() == (2, 6, 1)
    assert a[:, i].stride() == (8, 4, 1)
    grid = torch.tensor([[0, 1, 1], [1, 0, 1]]).t()
    assert a[grid].stride() == (12, 36, 4, 1)
    # Dimensions of size 1 count in the order as well.
    c = numbered(2, 3, 4, 2).permute(2, 1, 3, 0)
    assert c.unsqueeze(0)[:, i].shape == (1, 2, 3, 2, 2)


def test_index_put_accumulates_in_order():
    t = torch.zeros(3, 2)
    t.index_put_((torch.tensor([1, 1, 0, -2]),), torch.ones(4, 2), accumulate=True)
    same(t, [[1, 1], [3, 3], [0, 0]])
    flags = torch.zeros(2, dtype=torch.bool)
    flags.index_put_((torch.tensor([1, 1]),), torch.tensor(True), accumulate=True)
    same(flags, [False, True])
    last = torch.zeros(2)
    last[torch.tensor([0, 0, 0])] = torch.tensor([1.0, 2.0, 3.0])
    same(last, [3, 0])


def test_index_put_changes_nothing_on_error():
    t = numbered(4)
    with pytest.raises(IndexError, match="index 9 is out of bounds for dimension 0 with size 4"):
        t[torch.tensor([0, 1, 9])] = -1.0
    same(t, [0, 1, 2, 3])
    with pytest.raises(RuntimeError, match="out of bounds"):
        t.scatter_(0, torch.tensor([0, 9]), 5.0)
    same(t, [0, 1, 2, 3])


def test_index_put_bumps_the_version():
    t = numbered(4)
    before = t._version
    t[torch.tensor([0])] = 1.0
    assert t._version > before
    before = t._version
    t[t > 2] = 1.0
    assert t._version > before


INDEX_ERRORS = [
    (
        lambda a: a[torch.tensor([5])],
        IndexError,
        "index 5 is out of bounds for dimension 0 with size 2",
    ),
    (
        lambda a: a[torch.tensor([-3])],
        IndexError,
        "index -3 is out of bounds for dimension 0 with size 2",
    ),
    (lambda a: a[torch.tensor([True, False, True])], IndexError, "The shape of the mask"),
    (lambda a: a[torch.tensor([1.0])], IndexError, "must be long, int, byte or bool"),
    (
        lambda a: a[torch.tensor([0, 1, 2]), torch.tensor([0, 1])],
        IndexError,
        "shape mismatch: indexing",
    ),
    (
        lambda a: torch.zeros(0, 3)[torch.tensor([0])],
        IndexError,
        "out of bounds for dimension with size 0",
    ),
    (
        lambda a: torch.index_put(a, [torch.tensor([0])], torch.zeros(5)),
        RuntimeError,
        "shape mismatch: value",
    ),
    (
        lambda a: torch.index_put(a, [torch.tensor([0])], torch.zeros(1, dtype=torch.float64)),
        RuntimeError,
        "dtypes match",
    ),
    (lambda a: a.index_put_([torch.tensor([0, 1])], a), RuntimeError, "unsupported operation"),
    (
        lambda a: torch.index_select(a, 0, torch.tensor([2])),
        IndexError,
        "index out of range in self",
    ),
    (
        lambda a: torch.index_select(a, 0, torch.tensor([[1]])),
        IndexError,
        "supposed to be a vector",
    ),
    (lambda a: torch.index_select(a, 5, torch.tensor([1])), IndexError, "Dimension out of range"),
    (lambda a: torch.gather(a, 0, torch.tensor([[[7]]])), RuntimeError, "index 7 is out of bounds"),
    (lambda a: torch.gather(a, 0, torch.tensor([[7]])), RuntimeError, "same number of dimensions"),
    (
        lambda a: torch.gather(a, 0, torch.zeros(1, 4, 4, dtype=torch.long)),
        RuntimeError,
        "Size does not match at dimension 1",
    ),
    (
        lambda a: torch.scatter(a, 0, torch.tensor([[[0]]]), torch.zeros(1, 1, 1).double()),
        RuntimeError,
        "Expected self.dtype to be equal to src.dtype",
    ),
    (
        lambda a: torch.scatter(a, 0, torch.zeros(2, 2, 2, dtype=torch.long), 1, reduce="x"),
        RuntimeError,
        "must be either add or multiply",
    ),
    (
        lambda a: torch.scatter_reduce(a, 0, torch.zeros(1, 1, 1, dtype=torch.long), a, "x"),
        RuntimeError,
        "must be either sum, prod, mean, amax or amin",
    ),
    (
        lambda a: torch.zeros(1).expand(4).scatter_(0, torch.tensor([0]), 1.0),
        RuntimeError,
        "more than one element of the written-to tensor",
    ),
    (
        lambda a: a.scatter_(0, torch.zeros(1, 1, 1, dtype=torch.long), a),
        RuntimeError,
        "unsupported operation",
    ),
    (
        lambda a: torch.index_add(a, 0, torch.tensor([7]), a[:1]),
        RuntimeError,
        "index 7 is out of bounds",
    ),
    (lambda a: torch.index_add(a, 0, torch.tensor([0]), a), RuntimeError, "Number of indices"),
    (
        lambda a: torch.index_copy(a, 0, torch.tensor([-1]), a[:1]),
        IndexError,
        "index -1 is out of bounds",
    ),
    (
        lambda a: torch.index_copy(a, 0, torch.tensor([0, 1]), a[:, :2]),
        RuntimeError,
        "same slice shapes",
    ),
    (
        lambda a: torch.index_fill(a, 0, torch.tensor([7]), 1),
        IndexError,
        "index 7 is out of bounds",
    ),
    (lambda a: torch.index_fill(a, 0, torch.tensor([0]), 1j), RuntimeError, "complex"),
    (
        lambda a: torch.index_reduce(a, 0, torch.tensor([0]), a[:1], "x"),
        RuntimeError,
        "Expected reduce",
    ),
    (lambda a: torch.masked_fill(a, a, 1), RuntimeError, "only supports boolean masks"),
    (
        lambda a: torch.masked_fill(a, a > 1, torch.tensor([1.0])),
        RuntimeError,
        "0-dimensional value tensor",
    ),
    (lambda a: torch.masked_fill(a.byte(), a > 1, 300), RuntimeError, "without overflow"),
    (
        lambda a: a[0, 0].masked_fill_(torch.ones(3, 4) > 0, 1.0),
        RuntimeError,
        "doesn't match the broadcast shape",
    ),
    (
        lambda a: torch.masked_scatter(a, a > 3, torch.zeros(3)),
        RuntimeError,
        "Number of elements of source",
    ),
    (lambda a: torch.masked_select(a, a), RuntimeError, "expected BoolTensor"),
    (lambda a: torch.take(a, torch.tensor([30])), IndexError, "tried to access index 30"),
    (lambda a: torch.take(torch.zeros(0), torch.tensor([1])), IndexError, "empty tensor"),
    (
        lambda a: a.put_(torch.tensor([3]), torch.tensor([1.0, 2.0])),
        IndexError,
        "same number of elements",
    ),
    (lambda a: torch.where(a, a, a), RuntimeError, "condition to be a boolean tensor"),
    (
        lambda a: torch.select_scatter(a, torch.zeros(4), 0, 1),
        RuntimeError,
        "size equal to the slice",
    ),
    (lambda a: torch.embedding(a[0], torch.tensor([5])), IndexError, "index out of range in self"),
    (lambda a: torch.embedding(a, torch.tensor([0])), RuntimeError, "'weight' must be 2-D"),
    (lambda a: torch.isin(a > 1, a > 1), RuntimeError, "Unsupported input type"),
]


@pytest.mark.parametrize("case", INDEX_ERRORS, ids=range(len(INDEX_ERRORS)))
def test_errors(case):
    call, error, phrase = case
    with pytest.raises(error, match=phrase):
        call(numbered(2, 3, 4))


# ---- one index along one dimension ---------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_index_select(dim, index_dtype):
    base = numbered(3, 4, 5)
    index = torch.tensor([2, 0, 0], dtype=index_dtype)
    for t in layouts(base):
        out = torch.index_select(t, dim, index)
        same(out, base.numpy().take([2, 0, 0], axis=dim))
        assert out.is_contiguous()
    same(torch.index_select(torch.tensor(3.0), 0, torch.tensor([0])), 3.0)
    assert torch.index_select(base, 0, torch.tensor([], dtype=torch.int64)).shape == (0, 4, 5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1])
def test_index_add_copy_fill(dtype, dim):
    base = (numbered(4, 4) % 3).to(dtype)
    source = (numbered(4, 4) % 2).to(dtype)
    order = [3, 1, 1, 0]
    index = torch.tensor(order)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    for t in layouts(base):
        added, copied = base.to(wide).numpy().copy(), base.to(wide).numpy().copy()
        added, copied = np.moveaxis(added, dim, 0), np.moveaxis(copied, dim, 0)
        parts = np.moveaxis(source.to(wide).numpy(), dim, 0)
        for target, part in zip(order, parts, strict=False):
            added[target] += part
            copied[target] = part
        if dtype == torch.bool:
            added = added != 0
        same(torch.index_add(t, dim, index, source).to(wide), np.moveaxis(added, 0, dim))
        same(torch.index_copy(t, dim, index, source).to(wide), np.moveaxis(copied, 0, dim))
        filled = base.to(wide).numpy().copy()
        np.moveaxis(filled, dim, 0)[[0, -1]] = 1
        same(torch.index_fill(t, dim, torch.tensor([0, -1]), 1).to(wide), filled)
        in_place = t.clone()
        in_place.index_add_(dim, index, source)
        same(in_place.to(wide), np.moveaxis(added, 0, dim))


def test_index_add_alpha():
    t = torch.zeros(3)
    same(torch.index_add(t, 0, torch.tensor([0, 2, 0]), torch.ones(3), alpha=2.5), [5, 0, 2.5])
    same(torch.index_add(torch.tensor(1.0), 0, torch.tensor(0), torch.tensor(2.0)), 3.0)


REDUCTIONS = {
    "sum": np.add,
    "prod": np.multiply,
    "amax": np.maximum,
    "amin": np.minimum,
    "mean": np.add,
}


def reduce_reference(start, index, values, name, include_self):
    """One column: what meets each place, combined in order."""
    out = []
    for place, own in enumerate(start):
        met = [v for where, v in zip(index, values, strict=False) if where == place]
        if not met:
            out.append(own)
            continue
        group = ([own] if include_self else []) + met
        total = group[0]
        for v in group[1:]:
            total = REDUCTIONS[name](total, v)
        if name == "mean":
            total = (
                total / len(group)
                if isinstance(total, (float, np.floating))
                else total // len(group)
            )
        out.append(total)
    return out


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int8, torch.float64])
def test_scatter_reduce_and_index_reduce(name, include_self, dtype):
    generator = np.random.default_rng(0)
    start = torch.from_numpy(generator.integers(-4, 5, (5, 3))).to(dtype)
    source = torch.from_numpy(generator.integers(-3, 4, (6, 3))).to(dtype)
    index = torch.from_numpy(generator.integers(0, 5, (6, 3)))
    expected = np.stack(
        [
            reduce_reference(
                start[:, c].numpy(), index[:, c].tolist(), source[:, c].numpy(), name, include_self
            )
            for c in range(3)
        ],
        1,
    )
    for t in layouts(start):
        out = torch.scatter_reduce(t, 0, index, source, name, include_self=include_self)
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)
        out = torch.scatter_reduce(t.t(), 1, index.t(), source.t(), name, include_self=include_self)
        np.testing.assert_allclose(out.numpy(), expected.T, rtol=1e-6)
    if name == "sum":
        return
    row = index[:, 0]
    expected = np.stack(
        [
            reduce_reference(
                start[:, c].numpy(), row.tolist(), source[:, c].numpy(), name, include_self
            )
            for c in range(3)
        ],
        1,
    )
    out = torch.index_reduce(start, 0, row, source, name, include_self=include_self)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_reductions_keep_nan():
    nan = float("nan")
    t = torch.zeros(2)
    index = torch.tensor([0, 0, 1])
    for name in ("amax", "amin"):
        out = torch.scatter_reduce(t, 0, index, torch.tensor([1.0, nan, 2.0]), name)
        assert bool(out[0] != out[0])
        out = torch.scatter_reduce(
            t, 0, index, torch.tensor([nan, 1.0, 2.0]), name, include_self=False
        )
        assert bool(out[0] != out[0])


# ---- gather and scatter --------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.float16, torch.float32, torch.float64, torch.complex128]
)
def test_gather_and_scatter(dim, dtype):
    generator = np.random.default_rng(dim)
    base = numbered(3, 4, 5).to(dtype)
    shape = [2, 3, 4]
    shape[dim] = 6
    index = torch.from_numpy(generator.integers(0, base.shape[dim], shape))
    source = (100 + numbered(*shape) % 50).to(dtype)
    wide = torch.complex128
    expected = np.zeros(shape, dtype=np.complex128)
    put = base.to(wide).numpy().copy()
    added = base.to(wide).numpy().copy()
    for coordinates in itertools.product(*map(range, shape)):
        place = list(coordinates)
        place[dim] = int(index[coordinates])
        expected[coordinates] = base.to(wide).numpy()[tuple(place)]
        put[tuple(place)] = source.to(wide).numpy()[coordinates]
        added[tuple(place)] += source.to(wide).numpy()[coordinates]
    if dtype == torch.uint8:
        added = (added.real.astype(np.int64) % 256).astype(np.complex128)
    for t, i, s in itertools.product(layouts(base), layouts(index), layouts(source)):
        out = torch.gather(t, dim, i)
        same(out.to(wide), expected)
        assert out.is_contiguous()
        same(torch.scatter(t, dim, i, s).to(wide), put)
        same(torch.scatter_add(t, dim, i, s).to(wide), added)
        same(torch.gather(t, dim, i.int()).to(wide), expected)


def test_scatter_values_and_old_reduce():
    t = torch.ones(2, 3)
    index = torch.tensor([[0, 2, 2]])
    same(t.scatter(1, index, 5.0), [[5, 1, 5], [1, 1, 1]])
    same(t.scatter(1, index, 5.0, reduce="add"), [[6, 1, 11], [1, 1, 1]])
    same(t.scatter(1, index, 5.0, reduce="multiply"), [[5, 1, 25], [1, 1, 1]])
    same(
        t.scatter(1, index, torch.tensor([[2.0, 3.0, 4.0]]), reduce="multiply"),
        [[2, 1, 12], [1, 1, 1]],
    )


def test_scatter_of_numbers_and_nothing():
    same(torch.tensor(3.0).scatter_add(0, torch.tensor([0, 0]), torch.tensor([5.0, 6.0])), 14.0)
    same(torch.tensor([3.0]).scatter(0, torch.tensor(0), torch.tensor(5.0)), [5.0])
    t = numbered(2, 3)
    same(t.scatter(0, torch.zeros(0, dtype=torch.long), t), t.numpy())
    assert torch.gather(t, 0, torch.zeros(0, dtype=torch.long)).shape == (0,)
    same(torch.gather(torch.tensor(1.0), 0, torch.tensor([0])), [1.0])


def test_expanded_index():
    t = torch.zeros(4, 3)
    row = torch.tensor([1, 3, 1, 0])
    source = numbered(4, 3)
    expected = np.zeros((4, 3), dtype=np.float32)
    np.add.at(expected, row.numpy(), source.numpy())
    same(t.scatter_add(0, row[:, None].expand(4, 3), source), expected)
    same(t.index_add(0, row, source), expected)


def test_take_along_dim():
    base = numbered(3, 4)
    order = np.argsort(-base.numpy(), axis=1)
    same(
        torch.take_along_dim(base, torch.from_numpy(order), 1),
        np.take_along_axis(base.numpy(), order, 1),
    )
    same(torch.take_along_dim(base, torch.tensor([[0], [1], [-1]]), 1), [[0], [5], [11]])
    same(torch.take_along_dim(base, torch.tensor([11, 0])), [11, 0])
    same(torch.take_along_dim(base, torch.tensor([[2]]), 1), [[2], [6], [10]])


# ---- thread counts -------------------------------------------------------------------------------


def test_bits_do_not_depend_on_the_number_of_threads():
    generator = np.random.default_rng(0)
    rows = torch.from_numpy(generator.integers(0, 50, 20000))
    values = torch.from_numpy(generator.standard_normal((20000, 16)).astype(np.float32))
    grid = torch.from_numpy(generator.integers(0, 50, (20000, 16)))

    def results():
        yield torch.zeros(50, 16).index_put((rows,), values, accumulate=True)
        yield torch.zeros(50, 16).index_add(0, rows, values)
        yield torch.zeros(50, 16).scatter_add(0, grid, values)
        yield torch.zeros(50).scatter_add(0, rows, values[:, 0])
        yield torch.zeros(50, 16).index_put((rows,), values)
        yield torch.zeros(16, 50).scatter(1, grid.t(), values.t())

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = list(results())
        for n in (2, 3, 8):
            torch.set_num_threads(n)
            assert all(torch.equal(a, b) for a, b in zip(alone, results(), strict=False))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(alone[4][rows[-1]], values[-1])


def test_large_moves_match_numpy():
    generator = np.random.default_rng(1)
    x = generator.standard_normal((700, 300)).astype(np.float32)
    t = torch.from_numpy(x)
    i = generator.integers(0, 300, 1000)
    r = generator.integers(-700, 700, 5000)
    same(t[torch.from_numpy(r)], x[r])
    same(t[:, torch.from_numpy(i)], x[:, i])
    same(t.t()[torch.from_numpy(i)], x.T[i])
    mask = x > 0.3
    same(t[torch.from_numpy(mask)], x[mask])
    same(torch.nonzero(torch.from_numpy(mask)), np.argwhere(mask))
    same(torch.masked_select(t.t(), torch.from_numpy(mask).t()), x.T[mask.T])
    filled = x.copy()
    filled[mask] = 2
    same(t.masked_fill(torch.from_numpy(mask), 2.0), filled)
    same(torch.where(torch.from_numpy(mask), 2.0, t), filled)
    flat = generator.integers(0, x.size, 100000)
    same(torch.take(t.t(), torch.from_numpy(flat)), x.T.reshape(-1)[flat])


# ---- positions in row-major order ----------------------------------------------------------------


def test_take_and_put():
    base = numbered(3, 4)
    for t in layouts(base):
        same(torch.take(t, torch.tensor([[-1, 0], [5, 5]])), [[11, 0], [5, 5]])
        own = t.clone()
        own.put_(torch.tensor([0, -1, 0]), torch.tensor([7.0, 8.0, 9.0]))
        assert own[0, 0] == 9 and own[2, 3] == 8
        own.put_(torch.tensor([[1, 1]]), torch.tensor([1.0, 2.0]), accumulate=True)
        assert own[0, 1] == 4
        assert torch.put(t, torch.tensor([2]), torch.tensor([5.0]))[0, 2] == 5


# ---- parts replaced ------------------------------------------------------------------------------


def test_view_scatters():
    a = numbered(3, 4)
    same(a.select_scatter(torch.zeros(3), 1, -1), np.c_[a.numpy()[:, :3], np.zeros(3)])
    expected = a.numpy().copy()
    expected[:, 1:4:2] = -1
    same(a.slice_scatter(torch.full((3, 2), -1.0), 1, 1, 4, 2), expected)
    expected = a.numpy().copy()
    expected[[0, 1, 2], [1, 2, 3]] = 5
    same(a.diagonal_scatter(torch.full((3,), 5.0), 1), expected)
    expected = a.numpy().copy().reshape(-1)
    expected[[1, 3, 5]] = 0
    same(a.as_strided_scatter(torch.zeros(3), (3,), (2,), 1), expected.reshape(3, 4))
    assert a.t().select_scatter(torch.zeros(3), 0, 1).stride() == (1, 4)
    part = numbered(4, 3)[1:]
    out = part.as_strided_scatter(torch.full((2,), -1.0), (2,), (1,))
    assert out[0, 0] == -1 and out[0, 1] == -1 and out[0, 2] == 5


def test_isin():
    values = torch.tensor([1.0, float("nan"), 3.0])
    same(torch.isin(values, torch.tensor([3.0, float("nan")])), [False, False, True])
    same(torch.isin(values, torch.tensor([3, 1]), invert=True), [False, True, False])
    many = torch.arange(0, 1000, 7)
    same(torch.isin(torch.arange(1000), many), np.isin(np.arange(1000), many.numpy()))
    same(torch.isin(torch.tensor([1, 2]), 2), [False, True])
    same(torch.isin(2, torch.tensor([1, 2])), True)


# ---- meta ----------------------------------------------------------------------------------------

L = torch.tensor([[1, 0], [0, 1]])
META = [
    lambda a, i: a[i],
    lambda a, i: a[:, i],
    lambda a, i: a.t()[i],
    lambda a, i: torch.gather(a, 0, i),
    lambda a, i: torch.scatter(a, 0, i, 1.0),
    lambda a, i: torch.scatter_add(a, 0, i, a),
    lambda a, i: torch.index_select(a, 1, i[0]),
    lambda a, i: torch.index_add(a, 0, i[0], a[:2]),
    lambda a, i: torch.index_copy(a.t(), 1, i[0], a.t()[:, :2]),
    lambda a, i: torch.take(a, i),
    lambda a, i: torch.index_fill(a.t(), 0, i[0], 1.0),
    lambda a, i: torch.where(a.t() > 1, a.t(), 1.0),
    lambda a, i: torch.masked_fill(a.t(), a.t() > 1, 1.0),
    lambda a, i: torch.index_put(a.t(), (i,), a[0, 0]),
    lambda a, i: torch.select_scatter(a.t(), a[:, 0], 0, 1),
    lambda a, i: torch.embedding(a, i),
    lambda a, i: torch.scatter_reduce(a, 1, i, a, "mean"),
    lambda a, i: torch.isin(a, i),
]


@pytest.mark.parametrize("n", range(len(META)))
def test_meta_gives_the_real_shape(n):
    a = numbered(3, 2)
    real, meta = META[n](a, L), META[n](a.to("meta"), L.to("meta"))
    assert meta.device.type == "meta"
    assert (meta.shape, meta.stride(), meta.dtype) == (real.shape, real.stride(), real.dtype)


# ---- out= ----------------------------------------------------------------------------------------


def test_out_variants():
    a = numbered(3, 4)
    index = torch.tensor([[1, 0, 2, 2]])
    out = torch.empty(0)
    assert torch.gather(a, 0, index, out=out) is out
    same(out, [[4, 1, 10, 11]])
    strided = torch.zeros(1, 8)[:, ::2]
    torch.gather(a, 0, index, out=strided)
    same(strided, [[4, 1, 10, 11]])
    torch.index_select(a, 0, torch.tensor([2]), out=out)
    same(out, [[8, 9, 10, 11]])
    target = torch.empty(3, 4)
    torch.scatter_add(a, 0, index, torch.ones(1, 4), out=target)
    assert target[1, 0] == 5 and target[0, 0] == 0
    assert torch.masked_select(a, a > 9, out=torch.empty(0)).tolist() == [10, 11]
    with pytest.raises(RuntimeError):
        torch.gather(a, 0, index, out=torch.zeros(3, dtype=torch.int32))
