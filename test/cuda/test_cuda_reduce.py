"""Reductions and running reductions on CUDA against NumPy in float64, in the layouts that take
different kernels: rows, columns, full, mixed and strided, short and cut into pieces."""

import numpy as np
import pytest
from cuda_support import EMULATED, cuda

import torch

rng = np.random.default_rng(1)


def on_gpu(array):
    return torch.tensor(array).to(cuda)


def check(result, expected, tolerance=2e-6):
    assert result.device.type == "cuda"
    np.testing.assert_allclose(
        result.cpu().to(torch.float64).numpy(), expected, rtol=tolerance, atol=tolerance
    )


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((5,), (0,)),
        ((1000,), (0,)),
        ((7, 3), (1,)),
        ((9, 33), (1,)),
        ((4, 1030), (1,)),
        ((33, 9), (0,)),
        ((300, 64), (0,)),
        ((2, 50, 12), (1,)),
        ((6, 8, 10), (0, 2)),
        ((3, 4, 5, 16), (0, 2, 3)),
        ((3, 4, 5, 6), (1, 3)),
        ((2, 3), ()),
        ((0, 3), (0,)),
        ((3, 0), (1,)),
    ],
)
def test_sums_over_any_dimensions(shape, dims):
    a = floats(*shape)
    axis = dims or tuple(range(len(shape)))
    check(on_gpu(a).sum(dims), a.astype(np.float64).sum(axis), 2e-5)


def test_sums_of_long_rows_and_tall_columns_are_cut_and_combined():
    a = floats(40000)
    check(on_gpu(a).sum(), a.astype(np.float64).sum(), 1e-4)
    tall = a.reshape(5000, 8)
    check(on_gpu(tall).sum(0), tall.astype(np.float64).sum(0), 1e-4)
    wide = a.reshape(2, 20000)
    check(on_gpu(wide).sum(1), wide.astype(np.float64).sum(1), 1e-4)


def test_sums_of_views():
    a = floats(30, 44)
    x = on_gpu(a)
    check(x.t().sum(0), a.astype(np.float64).sum(1), 2e-5)
    check(x[::3, 1:40:2].sum(1), a[::3, 1:40:2].astype(np.float64).sum(1), 2e-5)
    check(x[::3, 1:40:2].sum(0), a[::3, 1:40:2].astype(np.float64).sum(0), 2e-5)
    check(x[:, 3:].sum(1), a[:, 3:].astype(np.float64).sum(1), 2e-5)
    check(x[1].expand(6, 44).sum(0), 6 * a[1].astype(np.float64), 2e-5)
    check(x.sum(), a.astype(np.float64).sum(), 2e-5)


def test_results_repeat_to_the_last_bit():
    x = on_gpu(floats(50000))
    assert x.sum().item() == x.sum().item()


def test_streams_count_their_blocks_apart():
    a = floats(40000)
    x = on_gpu(a)
    torch.cuda.synchronize()
    totals = []
    for _ in range(2):
        with torch.cuda.stream(torch.cuda.Stream()):
            totals += [x.sum(), x.sum()]
    torch.cuda.synchronize()
    assert len({total.item() for total in totals}) == 1


def test_integers_sum_in_64_bits_and_halves_in_float():
    i = np.full(1000, 100, np.int8)
    assert on_gpu(i).sum().item() == 100_000
    assert on_gpu(i).sum().dtype == torch.int64
    assert on_gpu(np.array([True, False, True])).sum().item() == 2
    half = torch.full((5000,), 0.1, dtype=torch.bfloat16)
    total = half.to(cuda).sum()
    assert total.dtype == torch.bfloat16
    assert total.item() == half.double().sum().to(torch.bfloat16).item()
    check(half.to(cuda).sum(dtype=torch.float32), half.double().sum().item(), 1e-4)


def test_means_norms_and_products():
    a = floats(6, 35)
    x, d = on_gpu(a), a.astype(np.float64)
    check(x.mean(1), d.mean(1))
    check(torch.linalg.vector_norm(x, dim=1), np.linalg.norm(d, axis=1))
    check(torch.linalg.vector_norm(x, 3), (np.abs(d) ** 3).sum() ** (1 / 3), 1e-5)
    check(torch.linalg.vector_norm(x, float("inf"), 0), np.abs(d).max(0))
    check(torch.linalg.vector_norm(x, 0), np.count_nonzero(d))
    check(x[:, :4].prod(1), d[:, :4].prod(1))


@pytest.mark.parametrize("dim", [0, 1])
def test_extremes_and_their_first_positions(dim):
    a = rng.integers(0, 9, (30, 40)).astype(np.float32)
    x = on_gpu(a)
    values, indices = x.max(dim)
    check(values, a.max(dim))
    assert indices.tolist() == a.argmax(dim).tolist()
    assert x.argmin(dim).tolist() == a.argmin(dim).tolist()
    low, high = torch.aminmax(x, dim=dim)
    check(low, a.min(dim))
    check(high, a.max(dim))
    check(x.amax(), a.max())


def test_full_argmax_counts_in_row_order():
    a = floats(90, 100)
    assert on_gpu(a).argmax().item() == a.argmax()
    assert on_gpu(a).t().argmax().item() == a.T.argmax()


def test_nan_is_the_extreme():
    a = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, 6.0]], np.float32)
    values, indices = on_gpu(a).max(1)
    assert np.isnan(values[0].item())
    assert indices.tolist() == [1, 2]


def test_truth_of_any_dtype():
    a = np.array([[0, 0, 2], [1, 1, 1]])
    assert on_gpu(a).any(0).tolist() == [True, True, True]
    assert on_gpu(a).all(1).tolist() == [False, True]
    assert torch.count_nonzero(on_gpu(a)).item() == 4
    empty = torch.ones(0, dtype=torch.bool, device=cuda)
    assert empty.all().item() is True
    assert empty.any().item() is False


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_variance_is_exact_far_from_zero(dim):
    a = (floats(60, 50) + 1e4).astype(np.float32)
    check(on_gpu(a).var(dim), a.astype(np.float64).var(dim, ddof=1), 1e-5)
    check(on_gpu(a).std(dim, correction=0), a.astype(np.float64).std(dim), 1e-5)
    assert torch.full((100,), 1e8, device=cuda).var().item() == 0
    assert np.isnan(torch.ones(1, device=cuda).var().item())


def test_logsumexp_neither_overflows_nor_loses_infinities():
    a = (floats(5, 300) * 100).astype(np.float32)
    a[1, 3] = np.inf
    a[2] = -np.inf
    with np.errstate(invalid="ignore", divide="ignore"):
        top = a.astype(np.float64).max(1)
        shift = np.where(np.isfinite(top), top, 0)
        expected = np.log(np.exp(a.astype(np.float64) - shift[:, None]).sum(1)) + shift
    check(on_gpu(a).logsumexp(1), expected, 1e-5)
    check(on_gpu(a.T.copy()).logsumexp(0), expected, 1e-5)


def test_errors_are_those_of_the_cpu():
    with pytest.raises(IndexError):
        torch.ones(0, 3, device=cuda).argmax(0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.ones(3, device=cuda).sum(2)


@pytest.mark.parametrize(
    ("shape", "dim"), [((7,), 0), ((3000,), 0), ((4, 1100), 1), ((50, 6), 0), ((2, 9, 5), 1)]
)
def test_running_sums(shape, dim):
    a = floats(*shape)
    check(on_gpu(a).cumsum(dim), a.astype(np.float64).cumsum(dim), 1e-5)


def test_running_sums_of_long_and_turned_lines():
    a = floats(40000)
    check(on_gpu(a).cumsum(0), a.astype(np.float64).cumsum(), 1e-4)
    tall = a.reshape(5000, 8)[:2000]
    check(on_gpu(tall).cumsum(0), tall.astype(np.float64).cumsum(0), 1e-4)
    check(on_gpu(tall).t().cumsum(1), tall.T.astype(np.float64).cumsum(1), 1e-4)
    assert on_gpu(np.ones(10, bool)).cumsum(0).tolist() == list(range(1, 11))


def test_running_maxima_carry_their_positions():
    a = np.array([3.0, 1.0, 4.0, 4.0, np.nan, 9.0], np.float32)
    values, indices = on_gpu(a).cummax(0)
    assert indices.tolist() == torch.tensor(a).cummax(0).indices.tolist()
    np.testing.assert_array_equal(values.cpu().numpy(), np.maximum.accumulate(a))


@pytest.mark.skipif(EMULATED, reason="needs 20 GB of device memory")
def test_more_elements_than_an_int_counts():
    n = 2**31 + 9
    x = torch.ones(n, dtype=torch.int8, device=cuda)
    assert (x + x)[-1].item() == 2
    assert x.sum().item() == n
    assert x[1:].sum().item() == n - 1
    assert x[::2].sum().item() == (n + 1) // 2
    assert x[::2].contiguous().sum().item() == (n + 1) // 2
    x[n - 3] = 5
    assert x.argmax().item() == n - 3
    assert x[: n - 9].view(-1, 2).sum(0).tolist() == [2**30, 2**30]


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremum_of_bools_along_a_dimension_is_found_on_the_device(name):
    data = np.array([[True, False, True], [False, False, True], [False, True, True]])
    x = torch.tensor(data, device=cuda)
    for dim in (0, 1):
        values, indices = getattr(torch, name)(x, dim)
        assert values.device == x.device and indices.device == x.device
        assert values.tolist() == getattr(data, name)(dim).tolist()
        assert indices.tolist() == getattr(data, "arg" + name)(dim).tolist()
