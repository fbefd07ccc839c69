"""Pointwise operators against NumPy and SciPy in float64, over dtypes, layouts and variants."""

import numpy as np
import pytest
import scipy.special as sp

import torch

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
TOLERANCE = {
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
    torch.float32: 3e-6,
    torch.float64: 1e-12,
}

# name: (reference, low, high)
UNARY = {
    "abs": (np.abs, -5, 5),
    "neg": (np.negative, -5, 5),
    "exp": (np.exp, -5, 5),
    "exp2": (np.exp2, -5, 5),
    "expm1": (np.expm1, -3, 3),
    "log": (np.log, 0.1, 50),
    "log2": (np.log2, 0.1, 50),
    "log10": (np.log10, 0.1, 50),
    "log1p": (np.log1p, -0.5, 50),
    "sqrt": (np.sqrt, 0, 50),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 50),
    "reciprocal": (lambda x: 1 / x, 0.2, 5),
    "sin": (np.sin, -10, 10),
    "cos": (np.cos, -10, 10),
    "tan": (np.tan, -1.2, 1.2),
    "asin": (np.arcsin, -0.9, 0.9),
    "acos": (np.arccos, -0.9, 0.9),
    "atan": (np.arctan, -5, 5),
    "sinh": (np.sinh, -3, 3),
    "cosh": (np.cosh, -3, 3),
    "tanh": (np.tanh, -3, 3),
    "asinh": (np.arcsinh, -5, 5),
    "acosh": (np.arccosh, 1.1, 5),
    "atanh": (np.arctanh, -0.9, 0.9),
    "erf": (sp.erf, -2, 2),
    "erfc": (sp.erfc, -2, 2),
    "sigmoid": (sp.expit, -6, 6),
    "floor": (np.floor, -5, 5),
    "ceil": (np.ceil, -5, 5),
    "trunc": (np.trunc, -5, 5),
    "round": (np.round, -5, 5),
    "frac": (lambda x: x - np.trunc(x), -5, 5),
    "sign": (np.sign, -5, 5),
    "square": (np.square, -5, 5),
    "lgamma": (sp.gammaln, 0.5, 10),
    "digamma": (sp.digamma, 0.5, 10),
    "logit": (sp.logit, 0.1, 0.9),
    "i0": (sp.i0, -3, 3),
    "sinc": (np.sinc, -3, 3),
}


def sample(shape, low, high, dtype, seed=0):
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return torch.from_numpy(values).to(dtype)


def as_double(t):
    return t.to(torch.float64).numpy()


def assert_near(got, want, dtype, scale=1.0):
    tolerance = TOLERANCE[dtype] * scale
    np.testing.assert_allclose(as_double(got), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary_matches_reference(name, dtype):
    reference, low, high = UNARY[name]
    x = sample((7, 33), low, high, dtype)
    with np.errstate(all="ignore"):
        want = reference(as_double(x))
    scale = 4 if name in {"lgamma", "digamma", "tan", "logit", "sinc"} else 2
    got = getattr(torch, name)(x)
    assert got.dtype == dtype
    assert_near(got, want, dtype, scale)


@pytest.mark.parametrize("name", UNARY)
def test_unary_variants_and_layouts_agree(name):
    _, low, high = UNARY[name]
    x = sample((6, 10), low, high, torch.float32)
    want = getattr(torch, name)(x)
    layouts = [x.t(), x[::2, 1:], x.t().contiguous().t(), x[:0], x[0, 0], x[:, :1].expand(6, 10)]
    expected = [want.t(), want[::2, 1:], want, want[:0], want[0, 0], want[:, :1].expand(6, 10)]
    for view, result in zip(layouts, expected, strict=False):
        assert torch.equal(getattr(torch, name)(view), result)
    out = torch.empty(0)
    assert getattr(torch, name)(x, out=out) is out
    assert torch.equal(out, want)
    inplace = x.clone()
    assert getattr(inplace, name + "_")() is inplace
    assert torch.equal(inplace, want)


@pytest.mark.parametrize("name", UNARY)
def test_unary_meta_equals_real(name):
    _, low, high = UNARY[name]
    for x in (
        sample((4, 5), low, high, torch.float32),
        sample((3, 4), low, high, torch.float64).t(),
    ):
        real, meta = getattr(torch, name)(x), getattr(torch, name)(x.to("meta"))
        assert (real.shape, real.dtype, real.stride()) == (meta.shape, meta.dtype, meta.stride())


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "fmod": np.fmod,
    "remainder": np.mod,
    "floor_divide": np.floor_divide,
    "logaddexp": np.logaddexp,
    "xlogy": sp.xlogy,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary_matches_numpy_with_broadcasting(name, dtype):
    a = sample((5, 1, 7), 0.5, 9, dtype, 1)
    b = sample((3, 1), 0.5, 3, dtype, 2)
    assert_near(getattr(torch, name)(a, b), BINARY[name](as_double(a), as_double(b)), dtype, 4)


@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "floor_divide", "remainder", "fmod"])
def test_binary_integers_wrap_and_round_like_numpy(name, dtype):
    rng = np.random.default_rng(3)
    info = torch.iinfo(dtype)
    a = torch.from_numpy(rng.integers(info.min, info.max, 200)).to(dtype)
    b = torch.from_numpy(rng.integers(1, 20, 200)).to(dtype)
    with np.errstate(all="ignore"):
        reference = {"floor_divide": np.floor_divide, "remainder": np.mod, "fmod": np.fmod}.get(
            name, BINARY.get(name)
        )
        want = reference(a.numpy(), b.numpy())
    np.testing.assert_array_equal(getattr(torch, name)(a, b).numpy(), want)


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparison_gives_bool_and_follows_nan(name):
    a = torch.tensor([1.0, 2.0, float("nan"), float("inf")])
    b = torch.tensor([1.0, 3.0, float("nan"), -float("inf")])
    reference = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal}
    reference.update(gt=np.greater, ge=np.greater_equal)
    got = getattr(torch, name)(a, b)
    assert got.dtype == torch.bool
    np.testing.assert_array_equal(got.numpy(), reference[name](a.numpy(), b.numpy()))


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
@pytest.mark.parametrize("dtype", [*INTS, torch.bool], ids=str)
def test_bitwise_matches_numpy(name, dtype):
    a, b = torch.arange(0, 40).to(dtype), torch.arange(40, 0, -1).to(dtype)
    want = getattr(np, name)(a.numpy(), b.numpy())
    np.testing.assert_array_equal(getattr(torch, name)(a, b).numpy(), want)


def test_promotion_follows_dimension_then_category():
    assert (torch.ones(2, dtype=torch.float16) + torch.tensor(1.0)).dtype == torch.float16
    assert (torch.ones(2, dtype=torch.int32) + 1.5).dtype == torch.float32
    assert (torch.ones(2, dtype=torch.uint8) + 1).dtype == torch.uint8
    assert (torch.ones(2, dtype=torch.uint8) + torch.ones(2, dtype=torch.int8)).dtype == torch.int16
    assert (torch.ones(2) + 1j).dtype == torch.complex64
    assert (torch.ones(2, dtype=torch.int64) / 2).dtype == torch.float32
    assert torch.exp(torch.ones(2, dtype=torch.bool)).dtype == torch.float32


def test_inplace_result_that_does_not_fit_raises():
    with pytest.raises(RuntimeError, match="result type Float can't be cast"):
        torch.ones(2, dtype=torch.int64).add_(1.5)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.ones(2).add_(torch.ones(3, 2))


def test_overlapping_outputs_raise_and_leave_the_data():
    x = torch.arange(6.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[:1].expand(4).add_(1)
    with pytest.raises(RuntimeError, match="some elements of the input tensor"):
        torch.add(x[:4], 1, out=x[1:5])
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_unsupported_dtype_names_operator_and_dtype():
    with pytest.raises(NotImplementedError, match="not implemented for 'Float'"):
        torch.bitwise_and(torch.ones(2), torch.ones(2))
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with two bool tensors"):
        torch.ones(2, dtype=torch.bool) - torch.ones(2, dtype=torch.bool)


def test_integer_division_by_zero_raises():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.ones(3, dtype=torch.int32) // torch.zeros(3, dtype=torch.int32)


def test_shape_mismatch_names_sizes_and_call():
    with pytest.raises(
        RuntimeError, match=r"size of tensor a \(3\) must match(.|\n)*torch.add"
    ) as info:
        torch.add(torch.ones(2, 3), torch.ones(4))
    assert "float32[2, 3] cpu" in str(info.value)


def test_clamp_bounds_and_nan():
    x = torch.tensor([-3.0, 0.5, float("nan"), 9.0])
    got = torch.clamp(x, -1, 2)
    assert got[:2].tolist() == [-1, 0.5] and got[2].isnan() and got[3] == 2
    assert torch.clamp(x, min=torch.tensor(0.0))[0] == 0
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        torch.clamp(x)


def test_clamp_to_numbers_keeps_the_zero_it_is_given():
    x = torch.tensor([-0.0, 0.0, 1.0, -1.0, float("nan")] * 13)
    for low, high in ((0.0, 1.0), (-0.0, 1.0), (-1.0, 0.0), (0.0, None), (None, -0.0)):
        got = x.clamp(low, high)
        assert torch.signbit(got[:2]).tolist() == [True, False]
        assert got[2] == (1 if high == 1.0 or high is None else 0)
        assert got[3] == (0 if low == 0.0 else -1) and got[4].isnan()
    nan = float("nan")
    for low, high in ((nan, 1.0), (0.0, nan), (nan, None), (None, nan)):
        assert x.clamp(low, high).isnan().all()
    assert torch.arange(6).clamp(2, 4).tolist() == [2, 2, 2, 3, 4, 4]
    assert torch.arange(4).clamp(3, 1).tolist() == [1, 1, 1, 1]


def test_pow_shortcuts_equal_the_general_form():
    x = sample((100,), 0.5, 3, torch.float64)
    for exponent in (2, 3, 0.5, -1, 1.7, 0):
        np.testing.assert_allclose(torch.pow(x, exponent), as_double(x) ** exponent, rtol=1e-12)
    with pytest.raises(RuntimeError, match="negative integer powers"):
        torch.pow(torch.arange(3), -1)


def test_division_rounding_modes():
    a, b = torch.tensor([7.0, -7.0, 7.5]), torch.tensor([2.0, 2.0, -2.0])
    assert torch.div(a, b, rounding_mode="trunc").tolist() == [3, -3, -3]
    assert torch.div(a, b, rounding_mode="floor").tolist() == [3, -4, -4]
    with pytest.raises(RuntimeError, match="rounding_mode to be one of"):
        torch.div(a, b, rounding_mode="up")


def test_complex_and_polar_join_parts():
    re, im = torch.tensor([1.0, -2.0]), torch.tensor([0.5, 3.0])
    np.testing.assert_array_equal(torch.complex(re, im).numpy(), re.numpy() + 1j * im.numpy())
    np.testing.assert_allclose(
        torch.polar(re.abs(), im).numpy(), np.abs(re.numpy()) * np.exp(1j * im.numpy()), rtol=1e-6
    )


def test_lerp_ends_exactly():
    a, b = torch.tensor([0.1, 5.0]), torch.tensor([0.7, -3.0])
    assert torch.equal(torch.lerp(a, b, 1.0), b)
    assert torch.equal(torch.lerp(a, b, 0.0), a)


def test_large_tensors_equal_small_pieces():
    x = sample((300_007,), -3, 3, torch.float32)
    whole = torch.tanh(x)
    for start in (0, 32768, 299_999):
        assert torch.equal(whole[start : start + 5], torch.tanh(x[start : start + 5].clone()))


def test_in_place_refuses_operands_that_share_part_of_the_memory():
    x = torch.arange(100.0)
    for call in (lambda: x[1:].add_(x[:-1]), lambda: x.mul_(x[3]), lambda: x.mul_(x[0])):
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            call()
    assert x.equal(torch.arange(100.0))
    x[1:].add_(x[1:])
    assert x[5].item() == 10


def test_comparison_with_a_number_out_of_range_wraps_it_around():
    small = torch.tensor([0, 254, 255], dtype=torch.uint8)
    assert (small == -1).tolist() == [False, False, True]
    assert (small < 300).tolist() == [True, False, False]
    assert (torch.tensor([-128, 127], dtype=torch.int8) == 128).tolist() == [True, False]


@pytest.mark.parametrize("name", "abs neg floor ceil trunc sign sgn frac conj_physical".split())
def test_out_of_an_operator_that_keeps_the_dtype_has_that_dtype(name):
    x = torch.tensor([1.5, -2.5])
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        getattr(torch, name)(x, out=torch.empty(2, dtype=torch.float64))


def test_conjugate_of_a_real_tensor_is_the_tensor_itself():
    real, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
    assert torch.conj_physical(real) is real and leaf.conj_physical() is leaf
    pair = torch.tensor([1 + 2j])
    assert torch.conj_physical(pair).tolist() == [1 - 2j] and pair.tolist() == [1 + 2j]
    assert pair.conj_physical_() is pair and pair.tolist() == [1 - 2j]


@pytest.mark.parametrize("name", ["isposinf", "isneginf", "signbit"])
def test_out_of_a_predicate_is_boolean(name):
    x = torch.tensor([float("inf"), float("-inf"), 1.0])
    out = torch.empty(0, dtype=torch.bool)
    assert getattr(torch, name)(x, out=out).tolist() == getattr(np, name)(x.numpy()).tolist()
    with pytest.raises(RuntimeError, match=f"{name} does not support non-boolean outputs"):
        getattr(torch, name)(x, out=torch.empty(3))


def test_out_of_complex_and_polar_is_not_cast():
    x = torch.ones(2)
    for function in (torch.complex, torch.polar):
        with pytest.raises(RuntimeError, match="Expected object of scalar type ComplexFloat but"):
            function(x, x, out=torch.empty(2))


def test_out_of_frexp_has_the_dtypes_of_its_results():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="expects mantissa to have dtype Float but got Double"):
        torch.frexp(x, out=(torch.empty(2, dtype=torch.float64), torch.empty(2, dtype=torch.int32)))
    with pytest.raises(RuntimeError, match="expects exponent to have int dtype but got Long"):
        torch.frexp(x, out=(torch.empty(2), torch.empty(2, dtype=torch.int64)))


def test_absolute_value_of_complex_numbers_has_no_in_place_form():
    with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors"):
        torch.ones(2, dtype=torch.complex64).abs_()


def test_ldexp_of_doubles_goes_beyond_the_range_of_floats():
    got = torch.ldexp(torch.ones(1, dtype=torch.float64), torch.tensor([128]))
    assert got.item() == 2.0**128


def test_heaviside_refuses_a_complex_out():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="not yet implemented for complex tensors"):
        torch.heaviside(x, x, out=torch.empty(2, dtype=torch.complex64))


# Shapes of two operands whose innermost dimension is short or repeats.
SHORT_ROWS = [
    ((2000, 3), (3,)),
    ((2000, 3), (2000, 1)),
    ((3000, 8), (1, 8)),
    ((7, 1, 30, 1), (1, 9, 1, 31)),
    ((5, 600, 1), (2, 1, 1, 700)),
    ((40, 6, 5), (6, 1)),
    ((11, 1300), (1300,)),
    ((3, 4, 1, 2), (50, 1)),
]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32, torch.int64,
                                   torch.complex64, torch.complex128])  # fmt: skip
@pytest.mark.parametrize(("left", "right"), SHORT_ROWS)
def test_short_rows_broadcast_as_numpy_does(left, right, dtype):
    x = torch.arange(np.prod(left)).reshape(left).remainder(11).to(dtype)
    y = torch.arange(np.prod(right)).reshape(right).remainder(7).to(dtype)
    expected = torch.from_numpy(x.numpy() + y.numpy())
    assert torch.equal(x + y, expected)
    gaps = torch.zeros(*expected.shape[:-1], expected.shape[-1] + 3, dtype=dtype)
    out = gaps[..., 1:-2]
    torch.add(x, y, out=out)
    assert torch.equal(out, expected)
    assert torch.equal(gaps[..., :1], torch.zeros_like(gaps[..., :1]))
    assert torch.equal(gaps[..., -2:], torch.zeros_like(gaps[..., -2:]))
    assert torch.equal(x.mT.contiguous().mT + y, expected) if x.dim() > 1 else True


@pytest.mark.parametrize(("left", "right"), SHORT_ROWS[:3])
def test_short_rows_in_place_and_through_gaps_as_numpy_does(left, right):
    base = torch.randn(left[0], 2 * left[1])
    x, y = base[:, ::2], torch.randn(right)
    kept, expected = base[:, 1::2].clone(), x.numpy() * y.numpy()
    x.mul_(y)
    np.testing.assert_array_equal(x.numpy(), expected)
    assert torch.equal(base[:, 1::2], kept)
