"""torch.distributions: densities, moments and entropies against scipy.stats in float64, seeded
samples against recorded values, gradients through samples, divergences against numerical
integration, and validation.
"""

import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats as st

import torch
import torch.distributions as D
from torch.distributions import constraints
from torch.distributions.utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    probs_to_logits,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)

pytestmark = pytest.mark.usefixtures("float64_default")


def t(values):
    return torch.tensor(values, dtype=torch.float64)


COV = t([[2.0, 0.3], [0.3, 1.0]])

# name -> (ours with a batch of two, SciPy's of each element)
CONTINUOUS = {
    "Normal": (
        lambda: D.Normal(t([1.0, -2.0]), t([1.0, 2.5])),
        [st.norm(1.0, 1.0), st.norm(-2.0, 2.5)],
    ),
    "Uniform": (
        lambda: D.Uniform(t([1.0, -2.0]), t([2.0, 4.0])),
        [st.uniform(1.0, 1.0), st.uniform(-2.0, 6.0)],
    ),
    "Beta": (lambda: D.Beta(t([1.5, 2.0]), t([2.0, 0.5])), [st.beta(1.5, 2.0), st.beta(2.0, 0.5)]),
    "Cauchy": (
        lambda: D.Cauchy(t([1.0, -2.0]), t([1.0, 2.5])),
        [st.cauchy(1.0, 1.0), st.cauchy(-2.0, 2.5)],
    ),
    "Chi2": (lambda: D.Chi2(t([2.5, 7.0])), [st.chi2(2.5), st.chi2(7.0)]),
    "Exponential": (
        lambda: D.Exponential(t([0.5, 3.0])),
        [st.expon(0, 2.0), st.expon(0, 1 / 3.0)],
    ),
    "FisherSnedecor": (
        lambda: D.FisherSnedecor(t([3.0, 6.0]), t([5.0, 9.0])),
        [st.f(3.0, 5.0), st.f(6.0, 9.0)],
    ),
    "Gamma": (
        lambda: D.Gamma(t([0.7, 6.0]), t([5.0, 0.5])),
        [st.gamma(0.7, 0, 1 / 5.0), st.gamma(6.0, 0, 2.0)],
    ),
    "GeneralizedPareto": (
        lambda: D.GeneralizedPareto(t([1.0, 0.0]), t([2.0, 1.5]), t([0.2, 0.0])),
        [st.genpareto(0.2, 1.0, 2.0), st.genpareto(0.0, 0.0, 1.5)],
    ),
    "Gumbel": (
        lambda: D.Gumbel(t([0.3, -1.0]), t([1.0, 2.0])),
        [st.gumbel_r(0.3, 1.0), st.gumbel_r(-1.0, 2.0)],
    ),
    "HalfCauchy": (
        lambda: D.HalfCauchy(t([0.3, 2.0])),
        [st.halfcauchy(0, 0.3), st.halfcauchy(0, 2.0)],
    ),
    "HalfNormal": (
        lambda: D.HalfNormal(t([0.3, 2.0])),
        [st.halfnorm(0, 0.3), st.halfnorm(0, 2.0)],
    ),
    "InverseGamma": (
        lambda: D.InverseGamma(t([3.0, 6.0]), t([5.0, 0.5])),
        [st.invgamma(3.0, 0, 5.0), st.invgamma(6.0, 0, 0.5)],
    ),
    "Laplace": (
        lambda: D.Laplace(t([1.0, -2.0]), t([1.0, 2.5])),
        [st.laplace(1.0, 1.0), st.laplace(-2.0, 2.5)],
    ),
    "LogNormal": (
        lambda: D.LogNormal(t([0.3, -1.0]), t([0.5, 0.2])),
        [st.lognorm(0.5, 0, math.exp(0.3)), st.lognorm(0.2, 0, math.exp(-1.0))],
    ),
    "Pareto": (
        lambda: D.Pareto(t([1.0, 2.0]), t([2.5, 3.0])),
        [st.pareto(2.5, 0, 1.0), st.pareto(3.0, 0, 2.0)],
    ),
    "StudentT": (
        lambda: D.StudentT(t([3.0, 5.0]), t([0.2, -1.0]), t([1.0, 2.0])),
        [st.t(3.0, 0.2, 1.0), st.t(5.0, -1.0, 2.0)],
    ),
    "Weibull": (
        lambda: D.Weibull(t([1.0, 3.0]), t([0.8, 2.5])),
        [st.weibull_min(0.8, 0, 1.0), st.weibull_min(2.5, 0, 3.0)],
    ),
}
DISCRETE = {
    "Bernoulli": (lambda: D.Bernoulli(t([0.3, 0.8])), [st.bernoulli(0.3), st.bernoulli(0.8)]),
    "Binomial": (
        lambda: D.Binomial(6, t([0.3, 0.8])),
        [st.binom(6, 0.3), st.binom(6, 0.8)],
    ),
    "Geometric": (
        lambda: D.Geometric(t([0.3, 0.8])),
        [st.geom(0.3, -1), st.geom(0.8, -1)],
    ),
    "NegativeBinomial": (
        lambda: D.NegativeBinomial(t([3.0, 2.5]), t([0.3, 0.6])),
        [st.nbinom(3.0, 0.7), st.nbinom(2.5, 0.4)],
    ),
    "Poisson": (lambda: D.Poisson(t([0.3, 12.0])), [st.poisson(0.3), st.poisson(12.0)]),
}


def close(actual, expected, rtol=1e-10, atol=1e-12):
    actual = actual.detach().numpy() if isinstance(actual, torch.Tensor) else actual
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_density_and_moments_match_scipy(name):
    make, refs = CONTINUOUS[name]
    d = make()
    q = np.array([0.05, 0.3, 0.5, 0.9])
    values = np.stack([r.ppf(q) for r in refs], -1)
    expected = [r.logpdf(v) for r, v in zip(refs, values.T, strict=True)]
    close(d.log_prob(t(values)), np.stack(expected, -1))
    if name != "Cauchy" and name != "HalfCauchy":
        close(d.mean, [r.mean() for r in refs])
        close(d.variance, [r.var() for r in refs])
        close(d.stddev, [r.std() for r in refs])
    if name != "FisherSnedecor":
        close(d.entropy(), [r.entropy() for r in refs], rtol=1e-7)
        close(d.perplexity(), np.exp([r.entropy() for r in refs]), rtol=1e-7)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_distribution_function_and_quantile_match_scipy(name):
    make, refs = CONTINUOUS[name]
    d = make()
    q = np.array([0.05, 0.3, 0.5, 0.9])
    values = np.stack([r.ppf(q) for r in refs], -1)
    expected = np.stack([q, q], -1)
    if name in ("Beta", "FisherSnedecor", "StudentT"):
        with pytest.raises(NotImplementedError):
            d.cdf(t(values))
        return
    close(d.cdf(t(values)), expected)
    if name in ("Gamma", "Chi2", "InverseGamma"):
        with pytest.raises(NotImplementedError):
            d.icdf(t(expected))
        return
    close(d.icdf(t(expected)), values)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_mode_is_where_the_density_is_highest(name):
    d = CONTINUOUS[name][0]()
    if name == "Uniform":
        assert d.mode.isnan().all()
        return
    d._validate_args = False
    edge = torch.where(d.support.check(d.mode), d.mode, d.mode + 1e-9)  # open supports
    highest = d.log_prob(edge)
    for step in (-1e-2, 1e-2):
        near = edge + step
        outside = ~d.support.check(near)
        lower = d.log_prob(torch.where(outside, edge, near)) <= highest
        assert (lower | outside).all()


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_probabilities_and_moments_match_scipy(name):
    make, refs = DISCRETE[name]
    d = make()
    top = 2 if name == "Bernoulli" else 7
    values = np.arange(float(top))
    expected = np.stack([r.logpmf(values) for r in refs], -1)
    close(d.log_prob(t(values).unsqueeze(-1)), expected)
    close(d.mean, [r.mean() for r in refs])
    close(d.variance, [r.var() for r in refs])
    many = np.arange(60.0)
    modes = [many[np.argmax(r.pmf(many))] for r in refs]
    close(d.mode if name != "Poisson" else d.mode[:1], modes if name != "Poisson" else modes[:1])
    if name in ("Bernoulli", "Binomial", "Geometric"):
        close(d.entropy(), [r.entropy() for r in refs], rtol=1e-7)
    if d.has_enumerate_support:
        close(d.log_prob(d.enumerate_support()).exp().sum(0), np.ones(2))
        assert d.enumerate_support(expand=False).shape == (top, 1)
    by_logits = type(d)(logits=d.logits) if name in ("Bernoulli", "Geometric") else None
    if by_logits is not None:
        close(by_logits.log_prob(t(values).unsqueeze(-1)), expected)


def test_categorical_and_one_hot():
    p = t([[0.1, 0.6, 0.3], [2.0, 1.0, 1.0]])
    d, h = D.Categorical(p), D.OneHotCategorical(p)
    probs = (p / p.sum(-1, keepdim=True)).numpy()
    close(d.log_prob(torch.tensor([2, 0])), np.log([probs[0, 2], probs[1, 0]]))
    close(d.entropy(), [st.entropy(r) for r in probs])
    assert d.mode.tolist() == [1, 0] and d.mean.isnan().all()
    assert d.enumerate_support().shape == (3, 2)
    close(h.log_prob(t([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])), np.log([probs[0, 2], probs[1, 0]]))
    close(h.variance, probs * (1 - probs))
    assert h.mode.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert h.enumerate_support().shape == (3, 2, 3)
    zero = D.Categorical(logits=t([0.0, -math.inf]), validate_args=False)
    assert zero.entropy().item() == 0.0


def test_multinomial_matches_scipy():
    p = [0.2, 0.5, 0.3]
    d, ref = D.Multinomial(4, t(p)), st.multinomial(4, p)
    close(d.log_prob(t([1.0, 2.0, 1.0])), ref.logpmf([1, 2, 1]))
    close(d.entropy(), ref.entropy())
    close(d.mean, 4 * np.array(p))
    close(d.variance, np.diag(ref.cov()))
    assert d.sample((5,)).sum(-1).tolist() == [4.0] * 5


def test_dirichlet_matches_scipy():
    a = [0.7, 2.0, 3.5]
    d, ref = D.Dirichlet(t(a)), st.dirichlet(a)
    x = np.array([0.2, 0.3, 0.5])
    close(d.log_prob(t(x)), ref.logpdf(x))
    close(d.entropy(), ref.entropy())
    close(d.mean, ref.mean())
    close(d.variance, ref.var())
    close(D.Dirichlet(t([2.0, 3.0, 4.0])).mode, [1 / 6, 1 / 3, 1 / 2])
    assert D.Dirichlet(t([0.5, 0.3])).mode.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("given", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_multivariate_normal_matches_scipy(given):
    matrix = {
        "covariance_matrix": COV,
        "precision_matrix": torch.linalg.inv(COV),
        "scale_tril": torch.linalg.cholesky(COV),
    }[given]
    loc = t([[1.0, -1.0], [0.0, 3.0], [2.0, 2.0]])
    d = D.MultivariateNormal(loc, **{given: matrix})
    x = np.array([[[0.3, 0.4]], [[1.0, 2.0]]])
    expected = [
        [st.multivariate_normal(m, COV.numpy()).logpdf(v) for m in loc.numpy()] for v in x[:, 0]
    ]
    close(d.log_prob(t(x)), expected)
    close(d.entropy(), [st.multivariate_normal([0, 0], COV.numpy()).entropy()] * 3)
    close(d.covariance_matrix, np.broadcast_to(COV.numpy(), (3, 2, 2)))
    close(d.precision_matrix @ d.covariance_matrix, np.broadcast_to(np.eye(2), (3, 2, 2)))
    close(d.variance, np.broadcast_to([2.0, 1.0], (3, 2)))
    assert d.expand((4, 3)).rsample((5,)).shape == (5, 4, 3, 2)


def test_low_rank_normal_is_the_dense_one():
    W, diag, loc = t([[1.0], [2.0], [0.5]]), t([1.0, 0.5, 2.0]), t([1.0, 0.0, -1.0])
    d = D.LowRankMultivariateNormal(loc, W, diag)
    dense = D.MultivariateNormal(loc, W @ W.mT + torch.diag(diag))
    x = t([[0.1, 0.2, 0.3], [1.0, 1.0, 1.0]])
    close(d.log_prob(x), dense.log_prob(x).numpy())
    for name in ("covariance_matrix", "precision_matrix", "scale_tril", "variance"):
        close(getattr(d, name), getattr(dense, name).numpy())
    close(d.entropy(), dense.entropy().numpy())
    other = D.MultivariateNormal(t([0.0, 1.0, 0.0]), torch.eye(3) * 2 + 0.3)
    expected = D.kl_divergence(dense, other)
    close(D.kl_divergence(d, other), expected.numpy())
    close(D.kl_divergence(other, d), D.kl_divergence(other, dense).numpy())
    close(
        D.kl_divergence(d, D.LowRankMultivariateNormal(loc * 0, W * 2, diag + 1)),
        D.kl_divergence(dense, D.MultivariateNormal(loc * 0, 4 * W @ W.mT + torch.diag(diag + 1))),
    )


def test_wishart_matches_scipy():
    d, ref = D.Wishart(t(5.0), COV), st.wishart(5, COV.numpy())
    x = t([[3.0, 0.5], [0.5, 2.0]])
    close(d.log_prob(x), ref.logpdf(x.numpy()))
    close(d.entropy(), ref.entropy())
    close(d.mean, ref.mean())
    close(d.variance, ref.var())
    close(d.mode, ref.mode())
    with pytest.warns(UserWarning, match="Low df values"):
        D.Wishart(t(1.5), COV)


def test_lkj_normalizes_and_von_mises_matches_scipy():
    # For two dimensions the correlation r has density proportional to (1 - r^2)^(eta - 1).
    eta = 1.7
    d = D.LKJCholesky(2, t(eta))

    def density(r):
        L = t([[1.0, 0.0], [r, math.sqrt(1 - r * r)]])
        return d.log_prob(L).exp().item() * 1.0

    # The density over L's free entry is that over r; L has one free entry.
    total, _ = scipy.integrate.quad(density, -1 + 1e-9, 1 - 1e-9, limit=60)
    assert abs(total - 1) < 1e-5
    v = D.VonMises(t([1.0, -2.0]), t([0.5, 30.0]))
    x = t([0.3, -1.9])
    close(v.log_prob(x), [st.vonmises(0.5, 1.0).logpdf(0.3), st.vonmises(30.0, -2.0).logpdf(-1.9)])
    bessel = scipy.special.i1e([0.5, 30.0]) / scipy.special.i0e([0.5, 30.0])
    close(v.variance, 1 - bessel)


@pytest.mark.parametrize(
    "d",
    [
        lambda: D.ContinuousBernoulli(t(0.3)),
        lambda: D.ContinuousBernoulli(t(0.4995)),
        lambda: D.Kumaraswamy(t(1.5), t(2.5)),
        lambda: D.RelaxedBernoulli(t(0.7), t(0.4)),
        lambda: D.LogisticNormal(t([0.3]), t([0.8])),
    ],
)
def test_density_on_the_unit_interval_integrates_to_one(d):
    d = d()

    def density(x):
        value = t([x, 1 - x]) if isinstance(d, D.LogisticNormal) else t(x)
        return d.log_prob(value).exp().item()

    total, _ = scipy.integrate.quad(density, 1e-7, 1 - 1e-7, limit=60)
    assert abs(total - 1) < 1e-3
    if isinstance(d, (D.ContinuousBernoulli, D.Kumaraswamy)):
        mean, _ = scipy.integrate.quad(lambda x: x * density(x), 0.0 + 1e-9, 1 - 1e-9)
        second, _ = scipy.integrate.quad(lambda x: x * x * density(x), 0.0 + 1e-9, 1 - 1e-9)
        minus_log, _ = scipy.integrate.quad(
            lambda x: -density(x) * math.log(density(x)), 1e-9, 1 - 1e-9
        )
        close(d.mean, mean, rtol=1e-6)
        close(d.variance, second - mean**2, rtol=1e-5)
        close(d.entropy(), minus_log, rtol=1e-5, atol=1e-6)
        close(d.icdf(d.cdf(t(0.37))), 0.37)


def test_mixture_is_the_weighted_sum():
    mix = D.Categorical(t([0.3, 0.7]))
    d = D.MixtureSameFamily(mix, D.Normal(t([3.0, 6.0]), t([5.0, 2.0])))
    a, b = st.norm(3.0, 5.0), st.norm(6.0, 2.0)
    x = np.array([1.0, 4.0])
    close(d.log_prob(t(x)), np.log(0.3 * a.pdf(x) + 0.7 * b.pdf(x)))
    close(d.cdf(t(x)), 0.3 * a.cdf(x) + 0.7 * b.cdf(x))
    close(d.mean, 5.1)
    close(d.variance, 0.3 * (25 + 9) + 0.7 * (4 + 36) - 5.1**2)
    vector = D.MixtureSameFamily(mix, D.Independent(D.Normal(torch.zeros(2, 3), 1.0), 1))
    assert vector.sample((4,)).shape == (4, 3) and vector.mean.shape == (3,)
    assert d.expand((5,)).sample().shape == (5,)
    shared = D.MixtureSameFamily(mix, D.Normal(torch.zeros(5, 2), 1.0))
    assert shared.sample((3,)).shape == (3, 5) and shared.mean.shape == (5,)


def test_transformed_distribution_follows_the_change_of_variables():
    base = D.Normal(t([0.0, 1.0]), t([1.0, 0.5]))
    steps = [D.ExpTransform(), D.AffineTransform(1.0, -2.0)]
    d = D.TransformedDistribution(base, steps)
    y = t([-0.5, -3.0])
    x = ((y - 1) / -2).log()
    close(d.log_prob(y), (base.log_prob(x) - x - math.log(2)).numpy())
    close(d.cdf(y), (1 - base.cdf(x)).numpy())
    close(d.icdf(t([0.3, 0.3])), (1 - 2 * base.icdf(t([0.7, 0.7])).exp()).numpy())
    assert repr(d.support) == "Real()"
    simplex = D.TransformedDistribution(base, D.StickBreakingTransform())
    assert simplex.event_shape == (3,) and simplex.batch_shape == ()
    assert isinstance(simplex.base_dist, D.Independent)


ERRORS = [
    (
        lambda: D.Normal(t([0.0, 1.0]), t([1.0, -1.0])),
        "Expected parameter scale (Tensor of shape (2,)) of distribution Normal(loc: "
        "torch.Size([2]), scale: torch.Size([2])) to satisfy the constraint "
        "GreaterThan(lower_bound=0.0), but found invalid values:\ntensor([ 1., -1.])",
    ),
    (
        lambda: D.Normal(0.0, 1.0).log_prob(torch.tensor(math.nan)),
        "Expected value argument (Tensor of shape ()) to be within the support (Real()) of the "
        "distribution Normal(loc: 0.0, scale: 1.0), but found invalid values:\nnan",
    ),
    (lambda: D.Normal(0.0, 1.0).log_prob(3.0), "The value argument to log_prob must be a Tensor"),
    (
        lambda: D.Normal(torch.zeros(2), 1.0).log_prob(torch.zeros(3)),
        "Value is not broadcastable with batch_shape+event_shape: torch.Size([3]) vs "
        "torch.Size([2]).",
    ),
    (lambda: D.Bernoulli(), "Either `probs` or `logits` must be specified, but not both."),
    (lambda: D.Categorical(t(0.3)), "`probs` parameter must be at least one-dimensional."),
    (
        lambda: D.Categorical(t([0.3, 0.7])).log_prob(torch.tensor(2)),
        "Expected value argument (Tensor of shape ()) to be within the support "
        "(IntegerInterval(lower_bound=0, upper_bound=1)) of the distribution Categorical(probs: "
        "torch.Size([2])), but found invalid values:\n2",
    ),
    (
        lambda: D.Uniform(1.0, 0.0),
        "Expected parameter low (Tensor of shape ()) of distribution Uniform(low: 1.0, high: 0.0) "
        "to satisfy the constraint LessThan(upper_bound=0.0), but found invalid values:\n1.0",
    ),
    (
        lambda: D.Geometric(0.0),
        "Expected parameter probs (Tensor of shape ()) of distribution Geometric(probs: 0.0) to "
        "be positive but found invalid values:\ntensor([0.])",
    ),
    (
        lambda: D.MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(3)),
        "The right-most size of value must match event_shape: torch.Size([3]) vs torch.Size([2]).",
    ),
    (
        lambda: D.MultivariateNormal(torch.zeros(2)),
        "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.",
    ),
    (
        lambda: D.LKJCholesky(1),
        "Expected dim to be an integer greater than or equal to 2. Found dim=1.",
    ),
    (
        lambda: D.Independent(D.Normal(0.0, 1.0), 1),
        "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual 1 vs 0",
    ),
    (
        lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), 3),
        "transforms must be a Transform or list, but was 3",
    ),
    (
        lambda: D.MixtureSameFamily(D.Categorical(t([0.3, 0.7])), D.Normal(torch.zeros(3), 1.0)),
        "`mixture_distribution component` (2) does not equal "
        "`component_distribution.batch_shape[-1]` (3)",
    ),
    (
        lambda: D.Wishart(t(1.0), torch.eye(2)),
        "Value of df=1.0 expected to be greater than ndim - 1 = 1.",
    ),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_error_says_what_is_wrong(case):
    call, text = ERRORS[case]
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == text


def test_validation_can_be_turned_off():
    d = D.Normal(0.0, -1.0, validate_args=False)
    assert d.expand((2,))._validate_args is False
    D.Distribution.set_default_validate_args(False)
    try:
        D.Bernoulli(3.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError):
        D.Bernoulli(3.0)
    with pytest.raises(ValueError):
        D.Distribution.set_default_validate_args(3)


def test_base_class_says_what_a_subclass_lacks():
    class Odd(D.Distribution):
        arg_constraints = {}

        def log_prob(self, value):
            self._validate_sample(value)
            return value

    with pytest.warns(UserWarning, match="does not define `support`"):
        Odd().log_prob(t(1.0))
    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        D.Distribution()
    for name in ("mean", "variance", "support", "mode"):
        with pytest.raises(NotImplementedError):
            getattr(Odd(), name)
    for name in ("sample", "rsample", "entropy", "enumerate_support"):
        with pytest.raises(NotImplementedError):
            getattr(Odd(), name)()

    class Sub(D.Normal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)

    with pytest.raises(NotImplementedError, match=r"must also define a custom \.expand"):
        Sub(0.0).expand((2,))


def test_subclass_with_other_parameters_expands_through_its_own_expand():
    class Threshold(D.Categorical):
        arg_constraints = {"cut": constraints.unit_interval}

        def __init__(self, cut):
            self.cut = cut
            super().__init__(torch.stack([cut, 1 - cut], -1))

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Threshold, _instance)
            new.cut = self.cut.expand(batch_shape)
            return super().expand(batch_shape, new)

    d = Threshold(t(0.25)).expand((3,))
    assert type(d) is Threshold and d.batch_shape == (3,) and d.cut.shape == (3,)
    close(d.probs, [[0.25, 0.75]] * 3)
    assert d.sample((5,)).shape == (5, 3)
    bits = D.Chi2(t(4.0)).expand((2,))
    close(bits.df, [4.0, 4.0])


def test_repr_shows_scalars_and_shapes():
    torch.set_default_dtype(torch.float32)
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(D.Beta(1.0, 1.0)) == "Beta()"
    assert repr(D.Pareto(1.0, 2.0)) == "Pareto(alpha: 2.0, scale: 1.0)"
    d = D.Independent(D.Normal(torch.zeros(2, 3), 1.0), 1)
    assert repr(d) == "Independent(Normal(loc: torch.Size([2, 3]), scale: torch.Size([2, 3])), 1)"
    m = D.MixtureSameFamily(D.Categorical(torch.ones(2)), D.Normal(torch.zeros(2), 1.0))
    assert repr(m) == (
        "MixtureSameFamily(\n  Categorical(probs: torch.Size([2]), logits: torch.Size([2])),\n"
        "  Normal(loc: torch.Size([2]), scale: torch.Size([2])))"
    )


def test_lazy_properties_are_computed_once_and_with_gradients():
    probs = t([0.3, 0.6]).requires_grad_()
    d = D.Bernoulli(probs)
    assert "logits" not in d.__dict__
    with torch.no_grad():
        first = d.logits
    assert first.requires_grad and d.logits is first
    assert isinstance(D.Bernoulli.logits, property) and isinstance(
        D.Bernoulli.logits, lazy_property
    )
    copy = pickle.loads(pickle.dumps(D.Normal(0.0, 1.0)))
    assert copy.scale.item() == 1.0


def test_utilities():
    a, b = broadcast_all(1, torch.ones(2, dtype=torch.float32))
    assert a.dtype == torch.float32 and a.shape == (2,) and b.shape == (2,)
    assert broadcast_all(1, 2)[0].dtype == torch.float64
    with pytest.raises(ValueError, match="Input arguments must all be instances of Number"):
        broadcast_all("a")
    eps = torch.finfo(torch.float64).eps
    assert clamp_probs(t([0.0, 1.0])).tolist() == [eps, 1 - eps]
    assert probs_to_logits(t([0.5]), is_binary=True).item() == 0.0
    m = torch.arange(9.0).reshape(3, 3)
    for diag in (-1, 0, 1):
        v = tril_matrix_to_vec(m, diag)
        assert vec_to_tril_matrix(v, diag).equal(m.tril(diag))
    with pytest.raises(ValueError, match="cannot be expressed as the lower triangular part"):
        vec_to_tril_matrix(torch.arange(5.0))
    with pytest.raises(ValueError, match=r"diag \(3\) provided is outside \[-3, 2\]"):
        tril_matrix_to_vec(m, 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert D.Normal(0.0, 1.0).sample_n(3).shape == (3,)
    assert caught[0].category is FutureWarning
    assert constraints.is_dependent(D.Uniform.support)


def test_validation_sees_the_whole_batch_of_vmap():
    x = t([0.5, 2.0])
    expected = st.gamma(x.numpy()).logpdf(1.5)
    close(torch.func.vmap(lambda a: D.Gamma(a, 1.0).log_prob(t(1.5)))(x), expected)
    with pytest.raises(ValueError, match="Expected parameter concentration"):
        torch.func.vmap(lambda a: D.Gamma(a, 1.0).log_prob(t(1.5)))(-x)
