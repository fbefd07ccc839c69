"""How exact the functions with a vector form of their own are: against SciPy and NumPy in double
precision, in units in the last place of the result, over the whole range of each function and on
lengths that fill no register."""

import decimal
import math

import numpy as np
import pytest
import scipy.special as sp

import torch

INF, NAN = float("inf"), float("nan")


def units_off(got, expected, least=0.0):
    """The largest distance in units in the last place of the expected float32 or float64 values,
    or of `least` where they are smaller."""
    expected = np.asarray(expected)
    got = got.numpy()
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(got[~finite], expected[~finite].astype(got.dtype))
    exact = expected[finite]
    sizes = np.maximum(np.abs(exact), least)
    space = np.spacing(sizes.astype(got.dtype)).astype(np.float64)
    return np.max(np.abs(got[finite].astype(np.float64) - exact) / space)


RANGES = {
    "erfinv": (torch.erfinv, sp.erfinv, [(-1, 1), (-1e-6, 1e-6), (0.99, 1), (-1, -0.999)]),
    "ndtri": (torch.special.ndtri, sp.ndtri, [(0, 1), (0, 1e-6), (1e-37, 1e-30), (0.99, 1)]),
    "erfc": (torch.erfc, np.vectorize(math.erfc), [(-6, 6), (-0.1, 0.1), (0, 9)]),
    "lgamma": (torch.lgamma, sp.gammaln, [(0, 3), (3, 40), (40, 1e6)]),
    "digamma": (torch.digamma, sp.digamma, [(0, 1.3), (1.6, 40), (40, 1e6)]),
    "k0": (torch.special.modified_bessel_k0, sp.k0, [(0, 2), (2, 50)]),
    "k1": (torch.special.modified_bessel_k1, sp.k1, [(0, 2), (2, 50)]),
    "k0e": (torch.special.scaled_modified_bessel_k0, sp.k0e, [(0, 2), (2, 1000)]),
    "k1e": (torch.special.scaled_modified_bessel_k1, sp.k1e, [(0, 2), (2, 1000)]),
    "sinh": (torch.sinh, np.sinh, [(-2, 2), (-80, 80)]),
    "cosh": (torch.cosh, np.cosh, [(-2, 2), (-80, 80)]),
    "atanh": (torch.atanh, np.arctanh, [(-0.99, 0.99)]),
    "erfcx": (torch.special.erfcx, sp.erfcx, [(-5, 5), (0, 100), (1e4, 1e8)]),
    "i0": (torch.special.i0, sp.i0, [(-8.5, 8.5), (-60, 60)]),
    "i0e": (torch.special.i0e, sp.i0e, [(-8.5, 8.5), (-500, 500)]),
    "i1": (torch.special.i1, sp.i1, [(-8.5, 8.5), (-60, 60)]),
    "i1e": (torch.special.i1e, sp.i1e, [(-8.5, 8.5), (-500, 500)]),
    "log2": (torch.log2, np.log2, [(0, 4), (0.99, 1.01), (0, 1e30)]),
    "tan": (torch.tan, np.tan, [(-1.5, 1.5), (-100, 100), (-9000, 9000)]),
    "log_ndtr": (torch.special.log_ndtr, sp.log_ndtr, [(-20, -1.01), (-0.99, 3)]),
}  # fmt: skip
# SciPy itself is this far off in double precision, where it is the reference of a double.
DOUBLE_UNITS = dict.fromkeys(RANGES, 32) | {"erfcx": 40, "log_ndtr": 64, "ndtri": 64}
# Where a value is near a zero of the function the distance counts in units of this size.
NEAR_ZERO = {"lgamma": 1e-2, "digamma": 1.0}


@pytest.mark.parametrize("name", RANGES)
def test_float32_function_over_its_range_is_within_five_units(name):
    function, reference, ranges = RANGES[name]
    random = np.random.default_rng(0)
    for low, high in ranges:
        x = random.uniform(low, high, 20_001).astype(np.float32)
        expected = reference(x.astype(np.float64))
        assert units_off(function(torch.from_numpy(x)), expected) <= 5, (low, high)


@pytest.mark.parametrize("name", RANGES)
def test_float64_function_over_its_range_agrees_with_scipy(name):
    function, reference, ranges = RANGES[name]
    random = np.random.default_rng(1)
    for low, high in ranges:
        x = random.uniform(low, high, 5_003)
        off = units_off(function(torch.from_numpy(x)), reference(x), NEAR_ZERO.get(name, 0.0))
        # SciPy's gammaln is good to some 1e-13 between its zeros.
        assert off <= (2000 if name == "lgamma" and high <= 3 else DOUBLE_UNITS[name]), low


WAVES = {
    "j0": (torch.special.bessel_j0, sp.j0),
    "j1": (torch.special.bessel_j1, sp.j1),
    "y0": (torch.special.bessel_y0, sp.y0),
    "y1": (torch.special.bessel_y1, sp.y1),
}


@pytest.mark.parametrize("name", WAVES)
@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 8), (7.9, 8.1), (8, 60), (60, 5000)])
def test_bessel_waves_are_exact_relative_to_their_height(name, low, high):
    function, reference = WAVES[name]
    x = np.random.default_rng(2).uniform(low, high, 20_001)
    height = np.hypot(WAVES["j" + name[1]][1](x), WAVES["y" + name[1]][1](x))
    off = np.abs(function(torch.from_numpy(x)).numpy() - reference(x)) / height
    assert off.max() < 3e-15 + 4e-16 * high  # the last part: how SciPy rounds the angle
    single = x.astype(np.float32)
    off = np.abs(function(torch.from_numpy(single)).numpy() - reference(single.astype(np.float64)))
    assert (off / height).max() < 1e-7


def test_bessel_waves_at_the_edges_of_their_domain():
    inf, nan = math.inf, math.nan
    x = torch.tensor([0.0, -0.0, inf, -inf, nan, -3.0])
    for dtype in (torch.float32, torch.float64):
        j0, j1, y0, y1 = (f(x.to(dtype)) for f, _ in WAVES.values())
        assert j0.nan_to_num(7).tolist()[:5] == [1, 1, 0, 0, 7]
        assert j1.nan_to_num(7).tolist()[:5] == [0, 0, 0, 0, 7]
        assert (j0[5], j1[5]) == (WAVES["j0"][0](-x[5].to(dtype)), -WAVES["j1"][0](-x[5].to(dtype)))
        for y in (y0, y1):
            assert y.tolist()[:3] == [-inf, -inf, 0]
            assert y.isnan().tolist()[3:] == [True] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_special_values_of_inverse_and_bessel_functions(dtype):
    def of(function, *values):
        return function(torch.tensor(values, dtype=dtype)).tolist()

    assert of(torch.erfinv, 0.0, -0.0, 1.0, -1.0) == [0.0, -0.0, INF, -INF]
    assert np.isnan(of(torch.erfinv, 1.5, -2.0, NAN, INF)).all()
    assert of(torch.special.ndtri, 0.0, 0.5, 1.0) == [-INF, 0.0, INF]
    assert np.isnan(of(torch.special.ndtri, -0.1, 1.1, NAN)).all()
    assert of(torch.erfc, INF, -INF, 40.0, -40.0, 0.0) == [0.0, 2.0, 0.0, 2.0, 1.0]
    assert of(torch.special.erfcx, INF, -INF, -30.0) == [0.0, INF, INF]
    assert of(torch.special.i0, 0.0, INF, -INF) == [1.0, INF, INF]
    assert of(torch.special.i1, 0.0, INF, -INF) == [0.0, INF, -INF]
    assert of(torch.special.i0e, 0.0, INF, -INF) == [1.0, 0.0, 0.0]
    assert of(torch.special.i1e, 0.0, INF) == [0.0, 0.0]
    assert of(torch.log2, 0.0, 1.0, 8.0, 0.125, INF) == [-INF, 0.0, 3.0, -3.0, INF]
    assert np.isnan(of(torch.log2, -1.0, NAN)).all()
    assert np.isnan(of(torch.tan, INF, NAN)).all()


def test_subnormal_results_of_erfc_are_kept():
    x = torch.tensor([9.5, 9.9, 10.0], dtype=torch.float32)
    expected = sp.erfc(x.double().numpy()).astype(np.float32)
    np.testing.assert_allclose(torch.erfc(x).numpy(), expected, rtol=0, atol=3e-45)


def test_log2_of_every_power_of_two_is_exact():
    ranges = {torch.float32: range(-149, 128), torch.float64: range(-1074, 1024)}
    for dtype, exponents in ranges.items():
        wanted = np.array(list(exponents), dtype=np.float64)
        powers = torch.from_numpy(np.ldexp(1.0, wanted.astype(int))).to(dtype)
        assert torch.log2(powers).double().tolist() == wanted.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nextafter_of_all_kinds_of_numbers_equals_numpy(dtype):
    tiny, largest = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    numbers = [0.0, -0.0, 1.0, -1.0, tiny, -tiny, largest, -largest, INF, -INF, 0.1, -2.5]
    a, b = (g.ravel().astype(dtype) for g in np.meshgrid(numbers, numbers))
    got = torch.nextafter(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    expected = np.nextafter(a, b)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))
    nan = torch.full((9,), NAN, dtype=torch.from_numpy(a).dtype)
    assert torch.nextafter(nan, torch.zeros_like(nan)).isnan().all()
    assert torch.nextafter(torch.zeros_like(nan), nan).isnan().all()


def exact_power(x: float, y: float) -> float:
    """x ** y in 60 digits, rounded once."""
    with decimal.localcontext(decimal.Context(prec=60, Emax=10**6, Emin=-(10**6))):
        return float(decimal.Decimal(x) ** decimal.Decimal(y))


@pytest.mark.parametrize(
    ("low", "high", "most"),
    [(0.9, 1.1, 5000.0), (0.0, 10.0, 300.0), (1e-300, 1e-290, 1.05), (1e150, 1e200, 1.6)],
)
def test_double_power_is_within_one_and_a_half_units(low, high, most):
    random = np.random.default_rng(3)
    x, y = random.uniform(low, high, 403), random.uniform(-most, most, 403)
    expected = np.array([exact_power(a, b) for a, b in zip(x, y, strict=True)])
    got = torch.pow(torch.from_numpy(x), torch.from_numpy(y)).numpy()
    normal = (expected > 1e-300) & (expected < 1e300)
    off = np.abs(got[normal] - expected[normal]) / np.spacing(expected[normal])
    assert normal.sum() > 50 and off.max() <= 1.5
    np.testing.assert_allclose(got[~normal], expected[~normal], rtol=1e-13, atol=5e-324)


def test_double_power_has_the_corners_of_the_c_library():
    inf, nan = math.inf, math.nan
    edges = [0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.0**53, 1e308]
    edges += [5e-324, -1e-310, 1e300, -1e300, 1.5, -1.5]

    def power(a: float, b: float) -> float:
        odd = math.isfinite(b) and b == math.trunc(b) and math.fmod(b, 2) != 0
        try:
            return math.pow(a, b)
        except OverflowError:
            return -inf if a < 0 and odd else inf
        except ValueError:  # a power of zero, or a root of a negative number
            return nan if a else (-inf if odd and math.copysign(1, a) < 0 else inf)

    pairs = [(a, b) for a in edges for b in edges]
    got = torch.pow(*torch.tensor(pairs, dtype=torch.float64).unbind(1)).numpy()
    expected = np.array([power(a, b) for a, b in pairs])
    np.testing.assert_allclose(got, expected, rtol=4e-16, atol=5e-324)
    np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(expected[got == 0]))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("edge", [0.0, 200.0, -200.0, 900.0, math.inf, -math.inf, math.nan])
def test_complex_sigmoid_and_silu_equal_numpy_also_at_the_edges(dtype, edge):
    parts = np.random.default_rng(4).uniform(-6, 6, (2, 67))
    parts[0, ::16] = edge
    z = torch.complex(*torch.from_numpy(parts)).to(dtype)
    wide = z.numpy().astype(np.complex128)
    with np.errstate(all="ignore"):
        share = 1 / (1 + np.exp(-wide))
    tolerance = 2e-6 if dtype == torch.complex64 else 1e-13
    inside = np.isfinite(share) & (np.abs(wide.real) < 80)
    for got, expected in ((z.sigmoid(), share), (torch.nn.functional.silu(z), wide * share)):
        np.testing.assert_allclose(got.numpy()[inside], expected[inside], rtol=tolerance)
        for i in np.flatnonzero(~inside)[:1]:  # alone and in company: the same bits
            alone = torch.sigmoid(z[i : i + 1]).numpy()
            np.testing.assert_array_equal(alone, z.sigmoid().numpy()[i : i + 1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_frexp_takes_numbers_of_every_kind_apart(dtype):
    info = torch.finfo(dtype)
    x = [0.0, -0.0, 1.0, -1.0, 0.75, 3.0, info.max, -info.max, info.tiny, info.tiny / 4]
    x = torch.tensor([*x, math.inf, -math.inf, math.nan], dtype=dtype)
    mantissa, exponent = torch.frexp(x)
    expected = [math.frexp(v) if math.isfinite(v) else (v, 0) for v in x.tolist()]
    np.testing.assert_array_equal(mantissa.double().numpy(), [m for m, _ in expected])
    assert exponent.tolist() == [e for _, e in expected]
    assert mantissa.dtype == dtype and exponent.dtype == torch.int32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log_gamma_and_ndtri_of_whole_numbers_have_their_poles(dtype):
    x = torch.arange(-20.0, 21.0, dtype=dtype)
    expected = [math.inf if v <= 0 else math.lgamma(v) for v in x.tolist()]
    np.testing.assert_allclose(torch.lgamma(x).numpy(), expected, rtol=3e-7)
    points = torch.tensor([0.0, 1.0, -1.0, 2.0, math.nan, 0.5], dtype=dtype)
    got = torch.special.ndtri(points).tolist()
    assert got[:2] == [-math.inf, math.inf] and all(map(math.isnan, got[2:5])) and got[5] == 0
