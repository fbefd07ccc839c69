"""Digits of torch.distributions where plain formulas lose them: tails, edges, large counts and
distributions that hardly differ. The references are exact fractions and Decimal numbers of 60
digits, rounded once.
"""

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import torch
import torch.distributions as D

PREC = 60
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
DTYPES = [torch.float32, torch.float64]


@pytest.fixture(autouse=True)
def digits():
    with decimal.localcontext() as context:
        context.prec = PREC
        yield


def dec(tensor_or_number) -> Decimal:
    """The number that a tensor of one element holds, exactly."""
    if isinstance(tensor_or_number, torch.Tensor):
        tensor_or_number = tensor_or_number.item()
    return Decimal(tensor_or_number)


def close(actual, expected: Decimal, ulps: float, size: float = 0.0):
    """Compares within ``ulps`` roundings of the result, or of terms of the given size."""
    eps = torch.finfo(actual.dtype).eps
    slack = ulps * eps * max(abs(float(expected)), size)
    assert abs(actual.item() - float(expected)) <= slack, (actual.item(), float(expected))


def log_choose(n: int, k: int) -> Decimal:
    return Decimal(math.comb(n, k)).ln()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n, k", [(10, 3), (1000, 517), (20000, 9970), (100000, 49900)])
def test_binomial_log_prob_of_many_trials_keeps_its_digits(dtype, n, k):
    p = torch.tensor(0.5, dtype=dtype)
    value = torch.tensor(float(k), dtype=dtype)
    expected = log_choose(n, k) - n * Decimal(2).ln()
    close(D.Binomial(n, p).log_prob(value), expected, 16)
    close(D.Binomial(n, logits=torch.zeros((), dtype=dtype)).log_prob(value), expected, 16)


@pytest.mark.parametrize("dtype", DTYPES)
def test_binomial_near_certain_outcomes_is_exact(dtype):
    for p in (0.0, 1e-30, 1e-9, 0.25):
        probs = torch.tensor(p, dtype=dtype)
        none, one = (
            D.Binomial(40, probs).log_prob(torch.tensor(float(k), dtype=dtype)) for k in (0, 1)
        )
        q = 1 - dec(probs)
        close(none, 40 * q.ln(), 4)
        if p:
            close(one, Decimal(40).ln() + dec(probs).ln() + 39 * q.ln(), 8)
        else:
            assert none.item() == 0.0 and one.item() == -math.inf
    sure = D.Binomial(40, torch.tensor(1.0, dtype=dtype))
    assert sure.log_prob(torch.tensor(40.0, dtype=dtype)).item() == 0.0
    assert sure.log_prob(torch.tensor(39.0, dtype=dtype)).item() == -math.inf
    assert sure.entropy().item() == 0.0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("logit", [-80.0, -20.0, 20.0, 80.0])
def test_binomial_of_far_logits_does_not_saturate(dtype, logit):
    logits = torch.tensor(logit, dtype=dtype)
    x = dec(logits)
    log_p, log_q = -(1 + (-x).exp()).ln(), -(1 + x.exp()).ln()
    expected = log_choose(9, 4) + 4 * log_p + 5 * log_q
    close(D.Binomial(9, logits=logits).log_prob(torch.tensor(4.0, dtype=dtype)), expected, 8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rate, k", [(0.25, 7), (900.0, 950), (65536.0, 65000), (1e6, 1002000)])
def test_poisson_log_prob_of_large_rates_keeps_its_digits(dtype, rate, k):
    expected = k * Decimal(rate).ln() - Decimal(rate) - _log_factorial(k)
    d = D.Poisson(torch.tensor(rate, dtype=dtype))
    close(d.log_prob(torch.tensor(float(k), dtype=dtype)), expected, 16)


def _log_factorial(n: int) -> Decimal:
    """Stirling's series, exact to 60 digits above 200; a product below."""
    if n < 200:
        return Decimal(math.factorial(n)).ln()
    x = Decimal(n)
    total = (x + Decimal("0.5")) * x.ln() - x + (2 * PI).ln() / 2
    for i, bernoulli in enumerate(_bernoulli_numbers(14), 1):
        term = bernoulli / (2 * i * (2 * i - 1))
        total += Decimal(term.numerator) / Decimal(term.denominator) / x ** (2 * i - 1)
    return total


def _bernoulli_numbers(count: int) -> list[Fraction]:
    """B_2, B_4, ..., by the recurrence."""
    numbers = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        total = sum(math.comb(m + 1, k) * b for k, b in enumerate(numbers))
        numbers.append(-total / (m + 1))
    return numbers[2::2]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, x", [(3, 0.5), (500, 510.0), (40001, 40100.0)])
def test_gamma_log_prob_of_large_shapes_keeps_its_digits(dtype, shape, x):
    rate = Decimal("0.5")
    value = dec(torch.tensor(2 * x, dtype=dtype))
    expected = shape * rate.ln() + (shape - 1) * value.ln() - rate * value
    expected -= _log_factorial(shape - 1)
    d = D.Gamma(torch.tensor(float(shape), dtype=dtype), torch.tensor(0.5, dtype=dtype))
    close(d.log_prob(torch.tensor(2 * x, dtype=dtype)), expected, 16)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("a, b", [(2, 3), (400, 700), (30000, 20000)])
def test_beta_log_prob_of_large_shapes_keeps_its_digits(dtype, a, b):
    value = torch.tensor(a / (a + b), dtype=dtype)
    x = dec(value)
    norm = _log_factorial(a + b - 1) - _log_factorial(a - 1) - _log_factorial(b - 1)
    powers = (a - 1) * x.ln() + (b - 1) * (1 - x).ln()
    d = D.Beta(torch.tensor(float(a), dtype=dtype), torch.tensor(float(b), dtype=dtype))
    # The powers of x are of size (a + b) log 2; their rounding is what remains.
    close(d.log_prob(value), norm + powers, 4, size=float(-powers))
    # The normalizer alone, without the gamma functions' cancellation.
    exact = -norm
    from_entropy = torch.distributions._special.lbeta(d.concentration1, d.concentration0)
    close(from_entropy, exact, 8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("r, k", [(3, 0), (5, 12), (3000, 4000)])
def test_negative_binomial_of_large_counts_keeps_its_digits(dtype, r, k):
    probs = torch.tensor(0.5, dtype=dtype)
    expected = log_choose(r + k - 1, k) - (r + k) * Decimal(2).ln()
    d = D.NegativeBinomial(torch.tensor(float(r), dtype=dtype), probs)
    got = d.log_prob(torch.tensor(float(k), dtype=dtype))
    close(got, expected, 4, size=(r + k) * math.log(2))


def erfc(x: Decimal) -> Decimal:
    """1 - erf(x), by erf's alternating series at many more digits than it cancels."""
    with decimal.localcontext() as context:
        context.prec = 260
        term = total = x
        n = 0
        while abs(term) > Decimal(10) ** -250:
            n += 1
            term = -term * x * x / n
            total += term / (2 * n + 1)
        pi = _pi(250)
        return 1 - 2 * total / pi.sqrt()


def _pi(digits_wanted: int) -> Decimal:
    """Machin's formula."""
    unit = 10 ** (digits_wanted + 10)

    def arctan_inverse(n: int) -> int:
        total = term = unit // n
        k = 1
        while term:
            term //= -n * n
            k += 2
            total += term // k
        return total

    return Decimal(4 * (4 * arctan_inverse(5) - arctan_inverse(239))) / Decimal(unit)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("z", [-11.0, -6.0, -1.5, 0.25])
def test_normal_cdf_and_quantile_keep_the_lower_tail(dtype, z):
    expected = erfc(-Decimal(z) / Decimal(2).sqrt()) / 2
    p = D.Normal(0.0, 1.0).cdf(torch.tensor(z, dtype=dtype))
    close(p, expected, 64)
    back = D.Normal(torch.zeros((), dtype=dtype), 1.0).icdf(p)
    assert back.item() == pytest.approx(z, rel=64 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_laplace_and_cauchy_keep_the_lower_tail(dtype):
    z = torch.tensor(-30.0, dtype=dtype)
    one = torch.ones((), dtype=dtype)
    laplace, cauchy = D.Laplace(0 * one, one), D.Cauchy(0 * one, one)
    close(laplace.cdf(z), Decimal(-30).exp() / 2, 4)
    close(laplace.icdf(laplace.cdf(z)), Decimal(-30), 4)
    far = torch.tensor(-1e6, dtype=dtype)
    # atan(y) = y - y^3/3 + y^5/5 at y = 1e-6.
    y = Decimal(10) ** -6
    close(cauchy.cdf(far), (y - y**3 / 3 + y**5 / 5) / PI, 4)
    assert cauchy.icdf(cauchy.cdf(far)).item() == pytest.approx(-1e6, rel=1e-6)
    huge = torch.tensor(torch.finfo(dtype).max / 4, dtype=dtype)
    close(cauchy.log_prob(huge), -PI.ln() - 2 * dec(huge).ln(), 4)
    close(D.StudentT(one, 0 * one, one).log_prob(huge), -PI.ln() - 2 * dec(huge).ln(), 4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("z", [-4.0, -2.0, 0.5, 12.0])
def test_gumbel_distribution_function_keeps_both_tails(dtype, z):
    d = D.Gumbel(torch.tensor(1.0, dtype=dtype), torch.tensor(2.0, dtype=dtype))
    value = torch.tensor(1 + 2 * z, dtype=dtype)
    inner = (-Decimal(z)).exp()
    close(d.cdf(value), (-inner).exp(), 16 * (1 + float(inner)))
    close(d.log_prob(value), -Decimal(z) - inner - Decimal(2).ln(), 4, size=float(inner))
    if z < 4:
        assert d.icdf(d.cdf(value)).item() == pytest.approx(value.item(), rel=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("x", [1e-12, 1e-5, 0.5, 1 - 2**-20])
def test_kumaraswamy_keeps_its_digits_at_both_ends(dtype, x):
    a, b = 1.5, 2.5
    d = D.Kumaraswamy(torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype))
    value = torch.tensor(x, dtype=dtype)
    v = dec(value)
    power = v ** Decimal(a)
    close(d.cdf(value), 1 - (1 - power) ** Decimal(b), 16)
    expected = Decimal(a * b).ln() + (Decimal(a) - 1) * v.ln() + (Decimal(b) - 1) * (1 - power).ln()
    close(d.log_prob(value), expected, 8, size=1.0)
    p = torch.tensor(1e-20, dtype=dtype)
    inner = 1 - (1 - dec(p)) ** (1 / Decimal(b))
    close(d.icdf(p), inner ** (1 / Decimal(a)), 16)


def bessel(x: Decimal, order: int) -> Decimal:
    """I_order(x) by its power series."""
    half = x / 2
    term = half**order
    total, k = term, 0
    while term > total * Decimal(10) ** -55:
        k += 1
        term *= half * half / (k * (k + order))
        total += term
    return total


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [1e-3, 0.5, 3.0, 50.0, 300.0])
def test_von_mises_density_and_variance_keep_their_digits(dtype, k):
    concentration = torch.tensor(k, dtype=dtype)
    d = D.VonMises(torch.zeros((), dtype=dtype), concentration)
    kappa = dec(concentration)
    i0, i1 = bessel(kappa, 0), bessel(kappa, 1)
    peak = kappa - (2 * PI).ln() - i0.ln()
    close(d.log_prob(torch.zeros((), dtype=dtype)), peak, 8, size=1.0)
    close(d.variance, 1 - i1 / i0, 64, size=float(dtype == torch.float64))
    # Close to the peak the density falls as -k x^2 / 2.
    x = torch.tensor(1e-3, dtype=dtype)
    fall = kappa * (dec(x) ** 2 / 2 - dec(x) ** 4 / 24)
    close(d.log_prob(x), peak - fall, 8, size=1.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("logit", [0.0, 1e-6, 3e-3, 0.1, -0.7, 5.0, 19.0, 60.0, -60.0])
def test_continuous_bernoulli_keeps_its_digits_for_all_logits(dtype, logit):
    logits = torch.tensor(logit, dtype=dtype)
    d = D.ContinuousBernoulli(logits=logits)
    x = dec(logits)
    v = Decimal("0.25")
    value = torch.tensor(0.25, dtype=dtype)
    if x == 0:
        expected = [Decimal(0), Decimal("0.5"), 1 / Decimal(12), Decimal(0), v]
    else:
        mean = 1 / (1 - (-x).exp()) - 1 / x
        log_norm = (x / (x.exp() - 1)).ln()
        variance = 1 / x**2 - x.exp() / (x.exp() - 1) ** 2
        cdf = ((x * v).exp() - 1) / (x.exp() - 1)
        expected = [x * v + log_norm, mean, variance, -x * mean - log_norm, cdf]
    got = [d.log_prob(value), d.mean, d.variance, d.entropy(), d.cdf(value)]
    sizes = [max(1.0, abs(logit)), 1.0, 0.0, 1.0, 0.0]
    for actual, exact, size in zip(got, expected, sizes, strict=True):
        close(actual, exact, 32 * max(1.0, abs(logit) / 4), size=size)
    if abs(logit) < 30:
        assert d.icdf(d.cdf(value)).item() == pytest.approx(0.25, rel=64 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_inverse_gamma_cdf_keeps_the_lower_tail(dtype):
    d = D.InverseGamma(torch.tensor(3.0, dtype=dtype), torch.tensor(1.0, dtype=dtype))
    # Q(3, r) = exp(-r) (1 + r + r^2 / 2)
    r = Decimal(50)
    close(d.cdf(torch.tensor(0.02, dtype=dtype)), (-r).exp() * (1 + r + r * r / 2), 512)


@pytest.mark.parametrize("dtype", DTYPES)
def test_divergence_of_near_distributions_does_not_cancel(dtype):
    t = lambda x: torch.tensor(x, dtype=dtype)
    step = 2.0**-9
    near = t(1 + step)
    h = Decimal(step)
    excess = h - (1 + h).ln()  # r - 1 - log r at r = 1 + h
    one = t(1.0)
    pairs = [
        (D.Poisson(t(8.0)), D.Poisson(8 * near), 8 * excess),
        (D.Exponential(one), D.Exponential(near), excess),
        (D.Gamma(t(9.0), one), D.Gamma(t(9.0), near), 9 * excess),
        (D.Pareto(one, one), D.Pareto(one, near), excess),
        (D.Cauchy(0 * one, one), D.Cauchy(0 * one, near), (1 + h * h / (4 * (1 + h))).ln()),
        (D.Normal(0 * one, one), D.Normal(t(step), one), h * h / 2),
    ]
    for p, q, expected in pairs:
        close(D.kl_divergence(p, q), expected, 64)


def test_gradients_are_those_of_the_plain_formulas():
    # Both branches of the careful formulas, and the places where they meet.
    def numeric(f, x, h=1e-5):
        return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)

    cases = [
        (lambda r: D.Poisson(r).log_prob(torch.tensor(20.0).double()), [0.5, 19.9, 20.0, 23.0]),
        (lambda p: D.Binomial(30, p).log_prob(torch.tensor(12.0).double()), [0.1, 0.4, 0.9]),
        (lambda p: D.Binomial(30, p).log_prob(torch.tensor(30.0).double()), [0.1, 0.9]),
        (lambda p: D.Binomial(30, p).log_prob(torch.tensor(0.0).double()), [0.1, 0.9]),
        (lambda a: D.Gamma(a, 1.5).log_prob(torch.tensor(14.0).double()), [3.0, 15.9, 30.0]),
        (lambda a: D.Beta(a, a + 1).log_prob(torch.tensor(0.4).double()), [0.7, 15.5, 80.0]),
        (lambda x: D.ContinuousBernoulli(logits=x).mean, [-3.0, 0.0, 0.3, 0.9, 30.0]),
        (lambda x: D.ContinuousBernoulli(logits=x).icdf(torch.tensor(0.3).double()), [1e-2, 25.0]),
        (lambda d: D.StudentT(d).log_prob(torch.tensor(2.0).double()), [0.5, 4.5, 90.0]),
        (lambda k: D.VonMises(0.0, k).log_prob(torch.tensor(1.0).double()), [0.1, 9.0]),
    ]
    for f, points in cases:
        for point in points:
            x = torch.tensor(point, dtype=torch.float64, requires_grad=True)
            (grad,) = torch.autograd.grad(f(x), x)
            expected = numeric(lambda v, f=f: f(torch.tensor(v, dtype=torch.float64)).item(), point)
            assert grad.item() == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_quantiles_of_edges_are_the_ends_of_the_support():
    p = torch.tensor([0.0, 1.0], dtype=torch.float64)
    one = torch.ones((), dtype=torch.float64)
    inf = math.inf
    cases = [
        (D.Normal(0 * one, one), [-inf, inf]),
        (D.Laplace(0 * one, one), [-inf, inf]),
        (D.Gumbel(0 * one, one), [-inf, inf]),
        (D.Exponential(one), [0.0, inf]),
        (D.Weibull(one, 2 * one), [0.0, inf]),
        (D.Pareto(3 * one, one), [3.0, inf]),
        (D.Kumaraswamy(2 * one, 3 * one), [0.0, 1.0]),
        (D.ContinuousBernoulli(0.3 * one), [0.0, 1.0]),
        (D.ContinuousBernoulli(logits=40 * one), [0.0, 1.0]),
        (D.HalfNormal(one), [0.0, inf]),
    ]
    for d, expected in cases:
        np.testing.assert_allclose(d.icdf(p).numpy(), expected, atol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sampling_follows_the_parameters_device_and_dtype_whatever_the_default(dtype):
    p = torch.tensor([0.3, 0.6], dtype=dtype)
    made = [
        D.Normal(p, p),
        D.Laplace(p, p),
        D.Gumbel(p, p),
        D.StudentT(3 + p),
        D.Geometric(p),
        D.Categorical(p),
        D.Multinomial(3, p),
        D.VonMises(p, p),
        D.LKJCholesky(3, p),
        D.MultivariateNormal(p, torch.eye(2, dtype=dtype)),
        D.LowRankMultivariateNormal(p, torch.ones(2, 1, dtype=dtype), p),
        D.Wishart(4 + p, torch.eye(2, dtype=dtype)),
        D.RelaxedOneHotCategorical(p[0], p),
    ]
    torch.set_default_device("meta")
    try:
        for d in made:
            x = d.sample((2,))
            assert x.device.type == "cpu"
            assert x.dtype == (torch.int64 if isinstance(d, D.Categorical) else dtype)
            assert d.log_prob(x).device.type == "cpu"
        assert D.Normal(0.0, 1.0, validate_args=False).sample().device.type == "meta"
    finally:
        torch.set_default_device(None)
