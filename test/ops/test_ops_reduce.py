"""Reductions, scans, softmax and order statistics: values against float64 NumPy, every layout the
driver treats differently, empty and 0-dim tensors, NaN, bits that do not depend on the number of
threads, the meta device, out= tensors, and the errors users see."""

import itertools
import math

import numpy as np
import pytest

import torch

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
COMPLEX = [torch.complex64, torch.complex128]
TOLERANCE = {
    torch.float16: 2e-3,
    torch.bfloat16: 2e-2,
    torch.float32: 2e-6,
    torch.complex64: 2e-6,
    torch.float64: 1e-13,
    torch.complex128: 1e-13,
}


def sample(shape, dtype=torch.float32, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == torch.bool:
        return torch.from_numpy(rng.random(shape) > 0.4)
    if dtype in INTEGERS:
        return torch.from_numpy(np.asarray(rng.integers(0, 7, shape))).to(dtype)
    values = torch.from_numpy(np.asarray(rng.standard_normal(shape)))
    if dtype in COMPLEX:
        imag = np.asarray(rng.standard_normal(shape))
        return torch.from_numpy(np.asarray(values.numpy() + 1j * imag)).to(dtype)
    return values.to(dtype)


def exact(tensor):
    """The tensor's values as float64, int64, bool or complex128."""
    if tensor.dtype in COMPLEX:
        return tensor.to(torch.complex128).numpy()
    if tensor.dtype in FLOATS:
        return tensor.to(torch.float64).numpy()
    return tensor.numpy() if tensor.dtype == torch.bool else tensor.to(torch.int64).numpy()


def close(tensor, expected, dtype=None, scale=1.0):
    expected = np.asarray(expected)
    assert tuple(tensor.shape) == expected.shape
    tolerance = TOLERANCE.get(dtype or tensor.dtype, 0) * scale
    np.testing.assert_allclose(exact(tensor), expected, rtol=tolerance, atol=tolerance)


def layouts():
    """Tensors of shape (5, 6, 7) whose memory is laid out in different ways."""
    base = sample((5, 6, 7))
    yield "contiguous", base
    yield "permuted", sample((7, 5, 6)).permute(1, 2, 0)
    yield "reversed", sample((7, 6, 5)).permute(2, 1, 0)
    yield "sliced", sample((10, 6, 21))[::2, :, ::3]
    yield "expanded", sample((5, 1, 7)).expand(5, 6, 7)
    yield "offset", sample((6, 7, 8))[1:, 1:, 1:]


DIMS = [d for n in range(1, 4) for d in itertools.combinations(range(3), n)]

# ---- values in every layout --------------------

REDUCTIONS = {
    "sum": (lambda t, d, k: t.sum(d, k), lambda a, d, k: a.sum(d, keepdims=k)),
    "mean": (lambda t, d, k: t.mean(d, k), lambda a, d, k: a.mean(d, keepdims=k)),
    "amax": (lambda t, d, k: t.amax(d, k), lambda a, d, k: a.max(d, keepdims=k)),
    "amin": (lambda t, d, k: t.amin(d, k), lambda a, d, k: a.min(d, keepdims=k)),
    "var": (lambda t, d, k: t.var(d, keepdim=k), lambda a, d, k: a.var(d, ddof=1, keepdims=k)),
    "std0": (
        lambda t, d, k: t.std(d, correction=0, keepdim=k),
        lambda a, d, k: a.std(d, keepdims=k),
    ),
    "norm2": (
        lambda t, d, k: torch.linalg.vector_norm(t, 2, d, k),
        lambda a, d, k: np.sqrt((a * a).sum(d, keepdims=k)),
    ),
    "norm3": (
        lambda t, d, k: torch.linalg.vector_norm(t, 3, d, k),
        lambda a, d, k: (abs(a) ** 3).sum(d, keepdims=k) ** (1 / 3),
    ),
    "norm1": (lambda t, d, k: t.norm(1, d, k), lambda a, d, k: abs(a).sum(d, keepdims=k)),
    "norm_inf": (lambda t, d, k: t.norm(math.inf, d, k), lambda a, d, k: abs(a).max(d, keepdims=k)),
    "logsumexp": (
        lambda t, d, k: t.logsumexp(d, k),
        lambda a, d, k: np.log(np.exp(a).sum(d, keepdims=k)),
    ),
    "all": (lambda t, d, k: (t > -1).all(d, k), lambda a, d, k: (a > -1).all(d, keepdims=k)),
    "any": (lambda t, d, k: (t > 1).any(d, k), lambda a, d, k: (a > 1).any(d, keepdims=k)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("layout,tensor", list(layouts()), ids=[n for n, _ in layouts()])
def test_reductions_equal_numpy_for_every_layout_and_set_of_dims(name, layout, tensor):
    op, reference = REDUCTIONS[name]
    array = exact(tensor)
    for dims in DIMS:
        for keepdim in (False, True):
            result = op(tensor, dims, keepdim)
            close(result, reference(array, dims, keepdim), scale=4)
            assert result.is_contiguous()


@pytest.mark.parametrize("layout,tensor", list(layouts()), ids=[n for n, _ in layouts()])
def test_indexed_extremes_point_at_the_first_extreme_element(layout, tensor):
    array = exact(tensor)
    for dim in (0, 1, 2, -1):
        for keepdim in (False, True):
            result = tensor.max(dim, keepdim)
            close(result.values, array.max(dim, keepdims=keepdim))
            close(result.indices, array.argmax(dim, keepdims=keepdim))
            result = tensor.min(dim, keepdim)
            close(result.values, array.min(dim, keepdims=keepdim))
            close(tensor.argmin(dim, keepdim), array.argmin(dim, keepdims=keepdim))
    assert tensor.argmax().item() == array.argmax()
    assert tensor.argmin().item() == array.argmin()


@pytest.mark.parametrize("dtype", [torch.bool, *INTEGERS, *FLOATS, *COMPLEX])
@pytest.mark.parametrize("shape,dim", [((33, 5), 0), ((5, 67), 1), ((3, 40, 9), 1), ((1000,), 0)])
def test_sum_and_prod_of_every_dtype(dtype, shape, dim):
    tensor = sample(shape, dtype)
    array = exact(tensor)
    wide = torch.int64 if dtype in (torch.bool, *INTEGERS) else dtype
    total = tensor.sum(dim)
    assert total.dtype == wide
    close(total, array.sum(dim), scale=20)
    small = tensor.narrow(dim, 0, 5)
    product = small.prod(dim)
    assert product.dtype == wide
    close(product, exact(small).prod(dim), scale=20)


@pytest.mark.parametrize("dtype", [torch.bool, *INTEGERS, *FLOATS])
@pytest.mark.parametrize(
    "shape,dim", [((300, 5), 0), ((5, 300), 1), ((3, 40, 67), 1), ((1000,), 0)]
)
def test_extremes_of_every_dtype(dtype, shape, dim):
    tensor = sample(shape, dtype)
    array = exact(tensor)
    np.testing.assert_array_equal(exact(tensor.amax(dim)), array.max(dim))
    np.testing.assert_array_equal(exact(tensor.amin(dim)), array.min(dim))
    low, high = torch.aminmax(tensor, dim=dim)
    np.testing.assert_array_equal(exact(low), array.min(dim))
    np.testing.assert_array_equal(exact(high), array.max(dim))
    result = tensor.max(dim)
    np.testing.assert_array_equal(exact(result.values), array.max(dim))
    np.testing.assert_array_equal(exact(result.indices), array.argmax(dim))
    np.testing.assert_array_equal(exact(tensor.min(dim).indices), array.argmin(dim))
    np.testing.assert_array_equal(
        exact(torch.count_nonzero(tensor, dim)), np.count_nonzero(array, dim)
    )


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_variance_and_norms_of_every_dtype(dtype):
    tensor = sample((4, 700), dtype)
    array = exact(tensor)
    variance, mean = torch.var_mean(tensor, 1)
    close(variance, array.var(1, ddof=1), dtype, 4)
    close(mean, array.mean(1), dtype, 4)
    assert variance.dtype == (tensor.abs().dtype if tensor.is_complex() else dtype)
    close(torch.linalg.vector_norm(tensor, 2, 0), np.sqrt((abs(array) ** 2).sum(0)), dtype, 4)
    close(torch.linalg.vector_norm(tensor, 0), np.asarray(2800.0), dtype, 4)


def test_variance_is_accurate_far_from_zero():
    rng = np.random.default_rng(3)
    values = (rng.standard_normal((64, 5000)) * 1e-2 + 1e4).astype(np.float32)
    for array in (values, values.T.copy().T):
        tensor = torch.from_numpy(array)
        np.testing.assert_allclose(
            tensor.var(1).numpy(), values.astype(np.float64).var(1, ddof=1), rtol=1e-6
        )
        np.testing.assert_allclose(
            tensor.t().var(0).numpy(), values.astype(np.float64).var(1, ddof=1), rtol=1e-6
        )
    assert torch.full((100,), 1e20).std().item() == 0
    assert torch.tensor([1e30, -1e30]).std().item() == pytest.approx(math.sqrt(2) * 1e30)


def test_long_float_sums_are_accurate():
    values = np.random.default_rng(1).random(3_000_000).astype(np.float32)
    expected = values.astype(np.float64).sum()
    assert abs(torch.from_numpy(values).sum().item() - expected) / expected < 2e-7
    columns = torch.from_numpy(values.reshape(-1, 3)).sum(0).numpy()
    np.testing.assert_allclose(columns, values.reshape(-1, 3).astype(np.float64).sum(0), rtol=3e-7)


# ---- threads --------------------

THREADED = {
    "sum": lambda t: t.sum(),
    "mean0": lambda t: t.mean(0),
    "sum1": lambda t: t.sum(1),
    "var": lambda t: t.var(),
    "var0": lambda t: t.var(0),
    "prod": lambda t: (t * 0 + 1).prod(),
    "norm": lambda t: t.norm(3, 0),
    "logsumexp": lambda t: t.logsumexp(0),
    "argmax": lambda t: t.argmax(0),
    "sum_strided": lambda t: t[:, ::2].sum(),
    "softmax": lambda t: t.softmax(0),
    "cumsum": lambda t: t.cumsum(0),
}


@pytest.mark.parametrize("name", THREADED)
def test_bits_do_not_depend_on_the_number_of_threads(name):
    before = torch.get_num_threads()
    tensor = sample((3001, 173))
    try:
        results = []
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            results.append(THREADED[name](tensor).numpy().tobytes())
    finally:
        torch.set_num_threads(before)
    assert results[0] == results[1] == results[2]


# ---- empty, 0-dim, NaN, infinity --------------------


def test_empty_reductions_give_the_identity():
    empty = torch.zeros(0, 3)
    assert empty.sum().item() == 0 and empty.prod().item() == 1
    assert math.isnan(empty.mean().item()) and math.isnan(empty.var().item())
    assert empty.all().item() is True and empty.any().item() is False
    close(empty.sum(0), np.zeros(3))
    close(empty.logsumexp(0), np.full(3, -np.inf))
    assert empty.sum(1).shape == (0,) and empty.amax(1).shape == (0,)
    assert empty.max(1).indices.shape == (0,)
    assert torch.zeros(3, 0).sum(0).shape == (0,)
    assert empty.norm().item() == 0


def test_zero_dim_tensors_reduce_over_their_imaginary_dimension():
    three = torch.tensor(3.0)
    for result in (
        three.sum(),
        three.sum(0),
        three.mean(-1),
        three.amax(0),
        three.max(0).values,
        three.prod(0),
    ):
        assert result.shape == () and result.item() == 3
    assert three.argmax(0).item() == 0 and three.cumsum(0).item() == 3
    with pytest.raises(
        IndexError,
        match=r"Dimension out of range \(expected to be in range of \[-1, 0\], but got 1\)",
    ):
        three.sum(1)


@pytest.mark.parametrize("n", [1, 3, 8, 9, 70, 300, 5000])
def test_nan_wins_in_every_position(n):
    for position in {0, n // 2, n - 1}:
        tensor = sample((n,))
        tensor[position] = math.nan
        assert math.isnan(tensor.max().item()) and math.isnan(tensor.amin(0).item())
        assert tensor.argmax().item() == position and tensor.min(0).indices.item() == position
        columns = tensor.unsqueeze(1).repeat(1, 9)
        assert columns.argmin(0).tolist() == [position] * 9
        assert bool(columns.amax(0).isnan().all())
        assert tensor.nansum().item() == pytest.approx(np.nansum(exact(tensor)), rel=1e-5, abs=1e-5)
    assert math.isnan(torch.full((n,), math.nan).nanmean().item())


def test_infinities_in_logsumexp_and_softmax():
    inf = math.inf
    assert torch.tensor([inf, 1.0]).logsumexp(0).item() == inf
    assert torch.tensor([-inf, -inf]).logsumexp(0).item() == -inf
    assert torch.full((9000,), -1000.0).logsumexp(0).item() == pytest.approx(-1000 + math.log(9000))
    mixed = torch.cat([torch.full((5000,), -inf), torch.full((5000,), -1000.0)])
    assert mixed.logsumexp(0).item() == pytest.approx(-1000 + math.log(5000))
    assert bool(torch.tensor([-inf, -inf]).softmax(0).isnan().all())
    assert torch.tensor([-inf, 0.0]).log_softmax(0).tolist() == [-inf, 0.0]


# ---- dtypes and out= --------------------


def test_dtype_argument_converts_before_reducing():
    tensor = torch.tensor([0.6, 0.6, 0.6])
    assert tensor.sum(dtype=torch.int64).item() == 0
    assert torch.tensor([200, 100], dtype=torch.uint8).sum(dtype=torch.uint8).item() == 44
    assert torch.tensor([1, -1]).sum(dtype=torch.bool).item() is True
    halves = torch.full((4096,), 60000.0, dtype=torch.float16)
    assert halves.sum(dtype=torch.float32).item() == 4096 * 60000.0 - 4096 * (
        60000 - float(halves[0])
    )
    assert torch.tensor([1, 2]).mean(dtype=torch.float64).dtype == torch.float64
    assert torch.tensor([1.0, math.nan]).nansum(dtype=torch.int64).item() == 1


def test_out_tensors_are_resized_filled_and_decide_the_dtype():
    tensor = sample((4, 5))
    out = torch.empty(0, dtype=torch.float64)
    assert torch.sum(tensor, 0, out=out) is out
    close(out, exact(tensor).sum(0))
    strided = torch.zeros(10)[::2]
    torch.amax(tensor, 0, out=strided)
    close(strided, exact(tensor).max(0))
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    torch.max(tensor, 1, out=(values, indices))
    close(indices, exact(tensor).argmax(1))
    truth = torch.empty(0, dtype=torch.uint8)
    torch.all(tensor, 0, out=truth)
    assert truth.tolist() == [1] * 5


def test_truth_keeps_uint8():
    tensor = torch.tensor([0, 2, 3], dtype=torch.uint8)
    assert tensor.all().dtype == tensor.any(0).dtype == torch.uint8
    assert torch.tensor([0, 2]).all().dtype == torch.bool
    assert torch.tensor(math.nan).any().item() is True
    assert sample((2, 3)).all(()).shape == (2, 3)
    assert torch.zeros(5, 3, dtype=torch.complex64).any().item() is False


def test_hash_is_the_exclusive_or_of_64_bit_images():
    values = np.array([1.5, -2.25, 7.0], dtype=np.float32)
    expected = np.bitwise_xor.reduce(values.astype(np.float64).view(np.uint64))
    assert torch.hash_tensor(torch.from_numpy(values)).item() == int(expected)
    assert torch.hash_tensor(torch.tensor([-1], dtype=torch.int8)).item() == 2**64 - 1


# ---- comparisons, trace, sum_to_size, dist --------------------


def test_equal_and_allclose():
    tensor = sample((300, 200))
    assert torch.equal(tensor, tensor.clone()) and torch.equal(tensor.t(), tensor.t().contiguous())
    other = tensor.clone()
    other[299, 199] += 1
    assert not torch.equal(tensor, other) and not torch.equal(tensor, tensor[0])
    assert not torch.equal(torch.tensor([math.nan]), torch.tensor([math.nan]))
    assert torch.equal(torch.tensor([1, 2]), torch.tensor([1.0, 2.0]))
    assert torch.equal(torch.tensor([0.0]), torch.tensor([-0.0]))
    assert torch.allclose(tensor, tensor + 1e-9) and not torch.allclose(tensor, other)


def test_trace_sum_to_size_and_dist():
    tensor = sample((4, 6))
    close(torch.trace(tensor), np.trace(exact(tensor)))
    assert torch.trace(torch.ones(2, 2, dtype=torch.int32)).dtype == torch.int64
    close(sample((2, 3, 4)).sum_to_size(3, 1), exact(sample((2, 3, 4))).sum((0, 2))[:, None])
    assert tensor.sum_to_size(4, 6) is not None and tensor.sum_to_size(1).shape == (1,)
    assert torch.dist(tensor, tensor + 1, 1).item() == pytest.approx(24, rel=1e-5)


# ---- scans --------------------


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *COMPLEX])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_cumsum_and_cumprod_equal_numpy(dtype, dim):
    tensor = sample((4, 5, 6), dtype)
    for view in (tensor, tensor.permute(2, 0, 1)):
        array = exact(view)
        close(view.cumsum(dim), array.cumsum(dim), scale=8)
        close(view.cumprod(dim), array.cumprod(dim), scale=8)
        assert view.cumsum(dim).is_contiguous()


def test_running_extremes_report_the_last_position():
    result = torch.tensor([1, 3, 3, 2]).cummax(0)
    assert result.values.tolist() == [1, 3, 3, 3] and result.indices.tolist() == [0, 1, 2, 2]
    result = torch.tensor([1.0, math.nan, 3.0, math.nan]).cummax(0)
    assert result.indices.tolist() == [0, 1, 1, 3]
    tensor = sample((3, 50, 7))
    close(tensor.cummin(1).values, np.minimum.accumulate(exact(tensor), 1))


def test_logcumsumexp_and_in_place_scans():
    tensor = sample((3, 40))
    close(tensor.logcumsumexp(1), np.logaddexp.accumulate(exact(tensor), 1), scale=4)
    assert torch.tensor([-math.inf, -math.inf, 1.0]).logcumsumexp(0).tolist() == [
        -math.inf,
        -math.inf,
        1.0,
    ]
    integers = torch.tensor([1, 2, 3], dtype=torch.int32)
    assert integers.cumsum_(0) is integers and integers.tolist() == [1, 3, 6]
    with pytest.raises(RuntimeError, match="Bad in-place call"):
        integers.cumsum_(0, dtype=torch.float32)


# ---- softmax --------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape,dim", [((7, 5), 1), ((7, 100), -1), ((100, 70), 0), ((3, 20, 33), 1), ((5,), 0)]
)
def test_softmax_and_its_backward_equal_numpy(dtype, shape, dim):
    tensor = sample(shape, dtype)
    array = exact(tensor)
    e = np.exp(array - array.max(dim, keepdims=True))
    expected = e / e.sum(dim, keepdims=True)
    close(tensor.softmax(dim), expected)
    close(tensor.log_softmax(dim), np.log(expected), scale=4)
    output = tensor.softmax(dim)
    grad = sample(shape, dtype, seed=1)
    g, y = exact(grad), exact(output)
    close(
        torch._softmax_backward_data(grad, output, dim, dtype),
        (g - (g * y).sum(dim, keepdims=True)) * y,
        scale=4,
    )
    output = tensor.log_softmax(dim)
    y = exact(output)
    close(
        torch._log_softmax_backward_data(grad, output, dim, dtype),
        g - np.exp(y) * g.sum(dim, keepdims=True),
        scale=8,
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_softmax_of_short_lines_equals_numpy_and_writes_nothing_behind(dtype):
    for length in range(1, 40):
        tensor = sample((3, length), dtype)
        array = exact(tensor)
        e = np.exp(array - array.max(1, keepdims=True))
        expected = e / e.sum(1, keepdims=True)
        close(tensor.softmax(1), expected)
        close(tensor.log_softmax(1), np.log(expected), scale=4)
        memory = torch.full((length + 40,), 7, dtype=dtype)
        torch.softmax(tensor[0], 0, out=memory[:length])
        close(memory[:length], expected[0])
        assert bool((memory[length:] == 7).all())


def test_softmax_converts_first_and_accepts_views():
    tensor = torch.arange(6).reshape(2, 3)
    close(tensor.softmax(0, dtype=torch.float32).sum(0), np.ones(3))
    view = sample((4, 5)).t()
    assert view.softmax(-1).is_contiguous()
    assert torch.zeros(0, 3).softmax(1).shape == (0, 3) and torch.zeros(0, 3).softmax(0).shape == (
        0,
        3,
    )


# ---- order statistics --------------------


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_median_kthvalue_and_mode(dtype):
    tensor = sample((5, 17, 4), dtype)
    array = np.sort(exact(tensor), 1, kind="stable")
    order = np.argsort(exact(tensor), 1, kind="stable")
    result = tensor.median(1)
    np.testing.assert_array_equal(exact(result.values), array[:, 8])
    np.testing.assert_array_equal(exact(result.indices), order[:, 8])
    np.testing.assert_array_equal(exact(tensor.kthvalue(3, 1).values), array[:, 2])
    assert exact(tensor.median()) == np.sort(exact(tensor).ravel())[(tensor.numel() - 1) // 2]
    values, indices = tensor.mode(1)
    picked = np.take_along_axis(exact(tensor), exact(indices)[:, None], 1)[:, 0]
    np.testing.assert_array_equal(exact(values), picked)


def test_median_of_nan():
    tensor = torch.tensor([[3.0, math.nan, 1.0], [math.nan, math.nan, math.nan]])
    assert bool(tensor.median(1).values.isnan().all()) and tensor.median(1).indices.tolist() == [
        1,
        0,
    ]
    result = tensor.nanmedian(1)
    assert result.values[0].item() == 1 and result.indices.tolist() == [2, 0]


def test_segment_reduce():
    data = torch.tensor([1.0, 2.0, 4.0, 8.0])
    lengths = torch.tensor([1, 0, 3])
    assert torch.segment_reduce(data, "sum", lengths=lengths).tolist() == [1, 0, 14]
    assert torch.segment_reduce(data, "max", lengths=lengths).tolist() == [1, -math.inf, 8]
    assert torch.segment_reduce(data, "prod", offsets=torch.tensor([0, 1, 4])).tolist() == [1, 64]
    assert torch.segment_reduce(data, "mean", lengths=torch.tensor([0, 4]), initial=7).tolist() == [
        7,
        5.5,
    ]
    with pytest.raises(RuntimeError, match="to sum to"):
        torch.segment_reduce(data, "sum", lengths=torch.tensor([9]), unsafe=True)
    with pytest.raises(RuntimeError, match="ascend and lie inside"):
        torch.segment_reduce(data, "sum", offsets=torch.tensor([0, 100]))
    with pytest.raises(RuntimeError, match="negative value"):
        torch.segment_reduce(data, "sum", lengths=torch.tensor([-1, 5]))


def test_trapezoid_and_renorm():
    y = sample((3, 8))
    x = torch.linspace(0, 1, 8)
    trapezoid = getattr(np, "trapezoid", None) or np.trapz
    close(torch.trapezoid(y, x), trapezoid(exact(y), exact(x)), scale=4)
    close(torch.trapezoid(y, dx=0.5, dim=0), trapezoid(exact(y), dx=0.5, axis=0), scale=4)
    close(torch.cumulative_trapezoid(y)[:, -1], trapezoid(exact(y)), scale=4)
    scaled = torch.renorm(y, 2, 0, 0.5)
    close(scaled.norm(2, 1), np.minimum(np.linalg.norm(exact(y), axis=1), 0.5), scale=4)


def test_diff_and_gradient():
    y = sample((4, 9))
    for n, dim in itertools.product(range(4), (0, 1)):
        close(torch.diff(y, n, dim), np.diff(exact(y), n, dim), scale=8)
    assert torch.diff(torch.tensor([True, False, False])).tolist() == [True, False]
    close(torch.diff(y, prepend=y[:, :2]), np.diff(exact(y), prepend=exact(y)[:, :2]), scale=4)
    x = torch.tensor([0.0, 1.0, 3.0, 4.0])
    for order in (1, 2):
        rows, columns = torch.gradient(y, spacing=(x, torch.arange(9.0) * 2), edge_order=order)
        close(rows, np.gradient(exact(y), exact(x), axis=0, edge_order=order), scale=8)
        close(columns, np.gradient(exact(y), 2.0, axis=1, edge_order=order), scale=8)
        (result,) = torch.gradient(y, spacing=0.5, dim=1, edge_order=order)
        close(result, np.gradient(exact(y), 0.5, axis=1, edge_order=order), scale=8)


# ---- meta --------------------

META = {
    "sum": lambda t: t.sum(1),
    "mean": lambda t: t.mean((0, 2), True),
    "prod": lambda t: t.prod(0),
    "max": lambda t: t.max(1),
    "argmin": lambda t: t.argmin(2, True),
    "any": lambda t: t.any(0),
    "var_mean": lambda t: torch.var_mean(t, 1),
    "norm": lambda t: t.norm(2, 1),
    "aminmax": lambda t: torch.aminmax(t),
    "logsumexp": lambda t: t.logsumexp(2),
    "count_nonzero": lambda t: torch.count_nonzero(t, 1),
    "cumsum": lambda t: t.cumsum(0),
    "cummax": lambda t: t.cummax(0),
    "softmax": lambda t: t.softmax(1),
    "median": lambda t: t.median(1),
    "kthvalue": lambda t: t.kthvalue(1, 0),
    "mode": lambda t: t.mode(0),
}


@pytest.mark.parametrize("name", META)
def test_meta_tensors_have_the_geometry_of_real_ones(name):
    tensor = sample((2, 3, 4)).permute(2, 0, 1)
    real, meta = META[name](tensor), META[name](tensor.to("meta"))
    real, meta = (real, meta) if isinstance(real, tuple) else ((real,), (meta,))
    for a, b in zip(real, meta, strict=True):
        assert b.is_meta and (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype)


# ---- errors --------------------

EMPTY = "Expected reduction dim to be specified for input.numel\\(\\) == 0"
ERRORS = {
    "dim_range": (
        lambda t: t.sum(3),
        IndexError,
        r"expected to be in range of \[-3, 2\], but got 3",
    ),
    "dim_twice": (
        lambda t: t.sum((0, -3)),
        RuntimeError,
        "dim 0 appears multiple times in the list of dims",
    ),
    "mean_int": (
        lambda t: t.long().mean(),
        RuntimeError,
        r"mean\(\): could not infer output dtype. Input dtype must be "
        "either a floating point or complex dtype. Got: Long",
    ),
    "mean_dtype": (
        lambda t: t.mean(dtype=torch.int32),
        RuntimeError,
        "Optional dtype must be .* Got: Int",
    ),
    "max_empty": (lambda t: t[:0].max(), RuntimeError, EMPTY),
    "amax_empty_dim": (
        lambda t: t[:0].amax(0),
        IndexError,
        "Expected reduction dim 0 to have non-zero size",
    ),
    "argmax_empty": (lambda t: t[:0].argmax(), IndexError, EMPTY),
    "aminmax_empty": (lambda t: torch.aminmax(t[:0]), RuntimeError, "no identity"),
    "argmax_bool": (lambda t: (t > 0).argmax(), RuntimeError, "does not support bool input"),
    "max_complex": (lambda t: (t * 1j).max(0), RuntimeError, "does not support complex input"),
    "amax_complex": (
        lambda t: (t * 1j).amax(),
        NotImplementedError,
        "\"max_values_cpu\" not implemented for 'ComplexFloat'",
    ),
    "std_int": (
        lambda t: t.long().std(),
        RuntimeError,
        "std and var only support floating point and complex dtypes",
    ),
    "norm_int": (
        lambda t: t.long().norm(),
        RuntimeError,
        "Expected a floating point or complex tensor as input. Got Long",
    ),
    "norm_empty": (lambda t: t[:0].norm(math.inf), RuntimeError, "does not have an identity"),
    "amax_out": (
        lambda t: torch.amax(t, 0, out=torch.empty(0, dtype=torch.float64)),
        RuntimeError,
        "Expected the dtype for input and out to match",
    ),
    "argmax_out": (
        lambda t: torch.argmax(t, out=torch.empty(0)),
        RuntimeError,
        "Expected out tensor to have dtype long int, but got float instead",
    ),
    "all_out": (
        lambda t: torch.all(t, 0, out=torch.empty(0)),
        RuntimeError,
        "all only supports bool tensor for result, got: Float",
    ),
    "softmax_int": (
        lambda t: t.long().softmax(-1),
        NotImplementedError,
        "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'",
    ),
    "trace": (
        lambda t: torch.trace(t),
        RuntimeError,
        "trace: expected a matrix, but got tensor with dim 3",
    ),
    "kth": (lambda t: t.kthvalue(9), RuntimeError, "selected number k out of range for dimension"),
    "sum_to_size": (lambda t: t.sum_to_size(2, 2), RuntimeError, "is not expandable to size"),
    "trapezoid": (
        lambda t: torch.trapezoid(t, torch.ones(9)),
        RuntimeError,
        "one `x` value for each sample point",
    ),
    "diff_scalar": (lambda t: torch.diff(t.sum()), RuntimeError, "at least one-dimensional"),
    "gradient_short": (lambda t: torch.gradient(t[:1]), RuntimeError, "at least edge_order\\+1"),
    "renorm": (
        lambda t: torch.renorm(t, 0, 0, 1.0),
        RuntimeError,
        "non-positive-norm not supported",
    ),
    "many_dims": (lambda t: torch.ones([1] * 65).sum(), RuntimeError, "up to 64 dims"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call(sample((2, 3, 4)))


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "cumsum", "cumprod", "nansum"])
def test_out_of_another_dtype_than_the_one_asked_for_is_refused(name):
    x = torch.rand(3, 3)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype double, but got f"):
        getattr(torch, name)(x, 0, dtype=torch.float64, out=torch.empty(0))
    wide = getattr(torch, name)(x, 0, dtype=torch.float64, out=torch.empty(0, dtype=torch.float64))
    assert torch.equal(wide, getattr(torch, name)(x.double(), 0))
