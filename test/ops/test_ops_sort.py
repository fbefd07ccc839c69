"""Sorting, searching, unique values, histograms and quantiles against NumPy: all dtypes, NaN, ties,
strides, empty and 0-dim tensors, the meta device, and the errors users see."""

import math

import numpy as np
import pytest

import torch

DTYPES = [
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
]
LENGTHS = [1, 2, 7, 16, 17, 100, 600, 3000]


def numbers(*shape, dtype=torch.float32, seed=0, high=50):
    values = np.random.default_rng(seed).integers(
        0 if str(dtype).startswith("torch.u") else -high, high, shape
    )
    return torch.from_numpy(values).to(dtype)


def same(tensor, array):
    array = np.asarray(array)
    assert tuple(tensor.shape) == array.shape
    np.testing.assert_array_equal(tensor.numpy(), array)


# ---- sort ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES + [torch.bool])
@pytest.mark.parametrize("length", LENGTHS)
def test_sort_every_dtype(dtype, length):
    t = numbers(length, dtype=dtype)
    wide = t.to(torch.float64).numpy()
    for descending in (False, True):
        order = np.argsort(-wide if descending else wide, kind="stable")
        values, indices = torch.sort(t, stable=True, descending=descending)
        assert values.dtype == dtype
        same(values.to(torch.float64), wide[order])
        same(indices, order)
        values, indices = torch.sort(t, descending=descending)
        same(values.to(torch.float64), wide[order])
        same(values.to(torch.float64), wide[indices.numpy()])
        assert sorted(indices.tolist()) == list(range(length))


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_sort_along_dims_and_layouts(dim):
    base = numbers(4, 5, 6)
    views = [base, base.permute(2, 0, 1).contiguous().permute(1, 2, 0), numbers(4, 5, 6, 2)[..., 0]]
    for t in views:
        values, indices = torch.sort(t, dim=dim, stable=True)
        same(values, np.sort(t.numpy(), axis=dim))
        same(indices, np.argsort(t.numpy(), axis=dim, kind="stable"))
        same(torch.argsort(t, dim=dim, stable=True), indices.numpy())
    assert torch.sort(base.transpose(0, 2)).values.stride() == (1, 6, 30)
    assert torch.sort(numbers(4, 6)[:, ::2]).values.stride() == (3, 1)


def test_sort_nan_zero_and_infinity():
    nan, inf = math.nan, math.inf
    t = torch.tensor([0.0, nan, -0.0, inf, -inf, nan, 0.0])
    _values, indices = torch.sort(t, stable=True)
    assert indices.tolist() == [4, 0, 2, 6, 3, 1, 5]
    assert torch.sort(t, stable=True, descending=True).indices.tolist() == [1, 5, 3, 0, 2, 6, 4]
    big = torch.cat([t] * 200)
    same(torch.sort(big, stable=True).indices, np.argsort(big.numpy(), kind="stable"))


def test_sort_of_nothing_and_of_numbers():
    assert torch.sort(torch.zeros(0, 3)).values.shape == (0, 3)
    assert torch.sort(torch.zeros(3, 0)).indices.shape == (3, 0)
    values, index = torch.sort(torch.tensor(2.0))
    assert values.item() == 2 and index.item() == 0
    same(torch.msort(numbers(5, 2)), np.sort(numbers(5, 2).numpy(), axis=0))


def test_long_sort_is_stable_and_full_width():
    rng = np.random.default_rng(0)
    for array in (
        rng.integers(-(2**62), 2**62, 30000),
        rng.standard_normal(30000),
        rng.integers(0, 9, 30000),
    ):
        t = torch.from_numpy(array)
        values, indices = torch.sort(t)
        same(values, np.sort(array))
        same(indices, np.argsort(array, kind="stable"))


def test_sort_out():
    t = numbers(6)
    out = (torch.empty(0), torch.empty(0, dtype=torch.int64))
    torch.sort(t, out=out)
    same(out[0], np.sort(t.numpy()))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        torch.sort(t, out=(torch.empty(0, dtype=torch.int32), torch.empty(0, dtype=torch.int64)))


# ---- topk ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 5, 100, 700])
def test_topk(dtype, length):
    t = numbers(2, length, dtype=dtype)
    wide = t.to(torch.float64).numpy()
    for k in {0, 1, 2, length // 2, length}:
        if k > length:
            continue
        values, indices = torch.topk(t, k)
        same(values.to(torch.float64), -np.sort(-wide, axis=1)[:, :k])
        same(values.to(torch.float64), np.take_along_axis(wide, indices.numpy(), 1))
        values, indices = torch.topk(t, k, largest=False)
        same(values.to(torch.float64), np.sort(wide, axis=1)[:, :k])
        values, indices = torch.topk(t, k, sorted=False)
        same(values.to(torch.float64).sort(descending=True).values, -np.sort(-wide, axis=1)[:, :k])
        values, indices = torch.topk(t.t(), k, 0)
        same(values.to(torch.float64), -np.sort(-wide.T, axis=0)[:k])


def test_topk_nan_and_numbers():
    _values, indices = torch.topk(torch.tensor([3.0, math.nan, 1.0]), 2)
    assert indices.tolist() == [1, 0]
    assert torch.topk(torch.tensor(4.0), 1).values.item() == 4


# ---- search --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.int32, torch.float16, torch.bfloat16, torch.float64]
)
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(dtype, right):
    row = numbers(40, dtype=dtype).sort().values
    values = numbers(3, 30, dtype=dtype, seed=1)
    expected = np.searchsorted(
        row.double().numpy(), values.double().numpy(), side="right" if right else "left"
    )
    same(torch.searchsorted(row, values, right=right), expected)
    same(torch.bucketize(values, row, right=right), expected)
    found = torch.searchsorted(row, values.t(), side="right" if right else "left", out_int32=True)
    assert found.dtype == torch.int32 and found.is_contiguous()
    same(found, expected.T)


def test_searchsorted_rows_sorter_and_numbers():
    rows = numbers(3, 20).sort().values
    values = numbers(3, 5, seed=2)
    expected = [np.searchsorted(r, v) for r, v in zip(rows.numpy(), values.numpy(), strict=False)]
    same(torch.searchsorted(rows, values), expected)
    shuffled = numbers(20)
    order = torch.argsort(shuffled)
    same(
        torch.searchsorted(shuffled, values, sorter=order),
        np.searchsorted(np.sort(shuffled.numpy()), values.numpy()),
    )
    assert torch.searchsorted(torch.tensor([1.0, 2.0, 3.0]), 2).item() == 1
    assert torch.bucketize(2.5, torch.tensor([1, 2, 3])).item() == 2
    assert torch.searchsorted(
        torch.tensor([1.0, 2.0, math.nan]), torch.tensor([2.0, math.nan, 9.0])
    ).tolist() == [1, 3, 3]
    assert torch.searchsorted(torch.zeros(0), torch.tensor([1.0])).tolist() == [0]


# ---- unique --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES + [torch.bool])
def test_unique(dtype):
    t = numbers(20, 10, dtype=dtype, high=6)
    values, inverse, counts = torch._unique2(t, True, True, True)
    wide = t.to(torch.float64).numpy()
    e_values, e_inverse, e_counts = np.unique(wide, return_inverse=True, return_counts=True)
    same(values.to(torch.float64), e_values)
    same(inverse, e_inverse.reshape(wide.shape))
    same(counts, e_counts)
    for dim in (0, 1):
        small = t[:, :2] % 2 if dtype != torch.bool else t[:, :2]
        small = small if dim == 0 else small.t()
        rows, inverse, counts = torch.unique_dim(small, dim, True, True, True)
        reference = small.to(torch.float64).numpy()
        e_rows, e_inverse, e_counts = np.unique(
            reference, axis=dim, return_inverse=True, return_counts=True
        )
        same(rows.to(torch.float64), e_rows)
        same(inverse, e_inverse.reshape(-1))
        same(counts, e_counts)


def test_unique_consecutive():
    t = torch.tensor([1, 1, 2, 2, 2, 1, 3])
    values, inverse, counts = torch.unique_consecutive(t, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 1, 3]
    assert inverse.tolist() == [0, 0, 1, 1, 1, 2, 3]
    assert counts.tolist() == [2, 3, 1, 1]
    rows = torch.tensor([[1, 2], [1, 2], [3, 4]])
    assert torch.unique_consecutive(rows, dim=0).tolist() == [[1, 2], [3, 4]]
    assert torch.unique_consecutive(rows.t(), dim=1).tolist() == [[1, 3], [2, 4]]


def test_unique_nan_and_empty():
    values, _, counts = torch._unique2(
        torch.tensor([3.0, math.nan, math.nan, -0.0, 0.0]), True, False, True
    )
    assert (
        values[:2].tolist() == [0.0, 3.0]
        and bool(values[2:].isnan().all())
        and counts.tolist() == [2, 1, 1, 1]
    )
    assert torch._unique2(torch.zeros(0), True, True, True)[0].shape == (0,)
    assert torch.unique_dim(torch.zeros(0, 3), 0)[0].shape == (0, 3)


ERRORS = [
    (lambda a: torch.sort(a, 5), IndexError, "Dimension out of range"),
    (lambda a: torch.sort(a + 0j), RuntimeError, "does not support complex"),
    (lambda a: torch.topk(a, 9), RuntimeError, "selected index k out of range"),
    (lambda a: torch.topk(a, -1), RuntimeError, "selected index k out of range"),
    (lambda a: torch.topk(a > 1, 1), RuntimeError, "does not support bool"),
    (lambda a: torch.searchsorted(a, 2.0), RuntimeError, "can be a scalar only when"),
    (
        lambda a: torch.searchsorted(a, torch.zeros(5)),
        RuntimeError,
        "boundaries tensor should be 1 dimension",
    ),
    (lambda a: torch.searchsorted(a[0], a[0], side="x"), RuntimeError, "side can only be"),
    (lambda a: torch.searchsorted(a[0], a[0], right=True, side="left"), RuntimeError, "opposites"),
    (
        lambda a: torch.searchsorted(a[0], a[0], sorter=torch.tensor([0, 1, 9])),
        RuntimeError,
        "out of range",
    ),
    (lambda a: torch.bucketize(a, a), RuntimeError, "boundaries tensor must be 1 dimension"),
    (lambda a: torch._unique2(a + 0j), NotImplementedError, "not implemented for 'ComplexFloat'"),
    (lambda a: torch.unique_dim(torch.zeros(0, 3), 1), RuntimeError, "0 sized dimensions"),
]


@pytest.mark.parametrize("case", ERRORS, ids=range(len(ERRORS)))
def test_errors(case):
    call, error, phrase = case
    with pytest.raises(error, match=phrase):
        call(torch.arange(6.0).reshape(2, 3))


def test_meta():
    a = torch.zeros(4, 6).t()
    for call in (
        lambda t: torch.sort(t)[0],
        lambda t: torch.topk(t, 2)[1],
        lambda t: torch.argsort(t),
        lambda t: torch.searchsorted(t, t),
    ):
        real, meta = call(a), call(a.to("meta"))
        assert (meta.shape, meta.stride(), meta.dtype) == (real.shape, real.stride(), real.dtype)


# ---- counting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_bincount(dtype):
    t = torch.tensor([1, 3, 1, 0, 7], dtype=dtype)
    same(torch.bincount(t), np.bincount(t.numpy()))
    same(torch.bincount(t, minlength=12), np.bincount(t.numpy(), minlength=12))
    weights = torch.tensor([0.5, 1.0, 2.0, 4.0, 8.0])
    same(torch.bincount(t, weights), np.bincount(t.numpy(), weights.numpy()))
    assert torch.bincount(t, weights).dtype == torch.float32
    assert torch.bincount(t, weights.long()).dtype == torch.float64
    assert torch.bincount(t[:0], minlength=3).tolist() == [0, 0, 0]
    for bad in (torch.tensor([-1, 2]), torch.zeros(2, 2, dtype=torch.long)):
        with pytest.raises(RuntimeError, match="1-d non-negative"):
            torch.bincount(bad)


def test_histograms_match_numpy():
    x = torch.from_numpy(np.random.default_rng(0).standard_normal(500))
    same(torch.histc(x, 20, -2, 2), np.histogram(x.numpy(), 20, (-2, 2))[0])
    counts, edges = torch.histogram(x, 13)
    e_counts, e_edges = np.histogram(x.numpy(), 13)
    same(counts, e_counts)
    np.testing.assert_allclose(edges.numpy(), e_edges)
    weight = torch.arange(500, dtype=torch.float64)
    bins = torch.tensor([-1.0, 0.0, 0.5, 3.0], dtype=torch.float64)
    counts, edges = torch.histogram(x, bins, weight=weight, density=True)
    expected = np.histogram(x.numpy(), bins.numpy(), weights=weight.numpy(), density=True)[0]
    np.testing.assert_allclose(counts.numpy(), expected)
    points = x[:498].reshape(-1, 3)
    counts, edges = torch.histogramdd(points, [2, 3, 4])
    e_counts, e_edges = np.histogramdd(points.numpy(), (2, 3, 4))
    same(counts, e_counts)
    assert len(edges) == 3
    with pytest.raises(RuntimeError, match="bins must be > 0"):
        torch.histc(x, 0)
    with pytest.raises(RuntimeError, match="not finite"):
        torch.histc(torch.tensor([1.0, math.inf]))


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_quantile(how, dim):
    t = torch.from_numpy(np.random.default_rng(0).standard_normal((5, 7)))
    q = torch.tensor([0.0, 0.3, 0.8, 1.0], dtype=torch.float64)
    for keepdim in (False, True):
        expected = np.quantile(t.numpy(), q.numpy(), axis=dim, method=how, keepdims=keepdim)
        np.testing.assert_allclose(
            torch.quantile(t, q, dim, keepdim, interpolation=how).numpy(), expected
        )
        one = torch.quantile(t, 0.3, dim, keepdim, interpolation=how).numpy()
        np.testing.assert_allclose(one, expected[1])
    holes = t.clone()
    holes[1, 2] = math.nan
    expected = np.nanquantile(holes.numpy(), q.numpy(), axis=dim, method=how)
    np.testing.assert_allclose(
        torch.nanquantile(holes, q, dim, interpolation=how).numpy(), expected
    )
    assert bool(torch.quantile(holes, q, 0).isnan()[:, 2].all())


def test_quantile_errors():
    t = torch.zeros(3)
    for call, phrase in (
        (lambda: torch.quantile(t, 1.5), "range"),
        (lambda: torch.quantile(t, torch.tensor([[0.5]])), "scalar or 1D"),
        (lambda: torch.quantile(t.long(), 0.5), "float or double"),
        (lambda: torch.quantile(t[:0], 0.5), "non-empty"),
        (lambda: torch.quantile(t, 0.5, interpolation="x"), "interpolation must be one of"),
    ):
        with pytest.raises(RuntimeError, match=phrase):
            call()


@pytest.mark.parametrize("dtype", [torch.bool, torch.int16, torch.int64, torch.float32])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 130, 100_003])
def test_unique_consecutive_of_many_runs_equals_a_plain_loop(dtype, n):
    lengths = np.random.default_rng(n).integers(1, 90, n)
    x = np.repeat(np.arange(n) % 5, lengths)[:n]
    x = x % 2 if dtype == torch.bool else x
    begins = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
    values, inverse, counts = torch.unique_consecutive(
        torch.from_numpy(x).to(dtype), return_inverse=True, return_counts=True
    )
    assert values.dtype == dtype and values.long().tolist() == x[begins].tolist()
    assert inverse.tolist() == (np.searchsorted(begins, np.arange(n), "right") - 1).tolist()
    assert counts.tolist() == np.diff([*begins, n]).tolist()


def test_unique_consecutive_keeps_every_nan_and_the_first_zero_of_a_run():
    x = torch.tensor([math.nan, math.nan, -0.0, 0.0, 1.0] * 40)
    values = torch.unique_consecutive(x)
    assert len(values) == 160 and values.isnan().sum() == 80
    assert torch.signbit(values[values == 0]).all()


@pytest.mark.parametrize("n", [31, 32, 100, 444, 3000])
def test_sort_of_keys_that_differ_in_few_digits_equals_numpy(n):
    random = np.random.default_rng(n)
    for x in (random.integers(0, 7, n), random.integers(-(2**62), 2**62, n) // 2**40 * 2**40):
        values, positions = torch.sort(torch.from_numpy(x), stable=True)
        np.testing.assert_array_equal(positions.numpy(), np.argsort(x, kind="stable"))
        np.testing.assert_array_equal(values.numpy(), np.sort(x))
        np.testing.assert_array_equal(torch.msort(torch.from_numpy(x)).numpy(), np.sort(x))


@pytest.mark.parametrize("n", [3, 4, 1001, 20_002])
@pytest.mark.parametrize("bins", [1, 9, 5000])
def test_bincount_of_many_elements_equals_numpy(n, bins):
    x = np.random.default_rng(n).integers(0, bins, n)
    for dtype in (torch.uint8, torch.int32, torch.int64):
        if bins <= torch.iinfo(dtype).max:
            got = torch.bincount(torch.from_numpy(x).to(dtype), minlength=bins)
            np.testing.assert_array_equal(got.numpy(), np.bincount(x, minlength=bins))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 64])
def test_histogram_of_given_edges_equals_numpy(count):
    random = np.random.default_rng(count)
    edges = np.sort(random.uniform(-1, 1, count + 1))
    x = np.concatenate([random.uniform(-1.2, 1.2, 4001), edges])
    got, _ = torch.histogram(torch.from_numpy(x), torch.from_numpy(edges))
    np.testing.assert_array_equal(got.numpy(), np.histogram(x, edges)[0])
