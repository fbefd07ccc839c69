"""Kullback-Leibler divergences of torch.distributions against integrals and sums of
p log(p / q), and the dispatch over pairs of classes.
"""

import math

import numpy as np
import pytest

import torch
import torch.distributions as D

pytestmark = pytest.mark.usefixtures("float64_default")


def t(values):
    return torch.tensor(values, dtype=torch.float64)


COV = t([[2.0, 0.3], [0.3, 1.0]])


def close(actual, expected, rtol=1e-10, atol=1e-12):
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=rtol, atol=atol)


# p and q for which SciPy's integral of p log(p / q) is easy.
KL_PAIRS = [
    (D.Beta(2.0, 3.0), D.Beta(1.5, 1.2)),
    (D.Beta(2.0, 3.0), D.ContinuousBernoulli(0.3)),
    (D.Beta(2.0, 3.0), D.Exponential(1.5)),
    (D.Beta(2.0, 3.0), D.Gamma(2.0, 1.5)),
    (D.Beta(2.0, 3.0), D.Normal(0.3, 1.5)),
    (D.Beta(2.0, 3.0), D.Uniform(-0.5, 1.5)),
    (D.Cauchy(0.0, 1.0), D.Cauchy(1.0, 2.0)),
    (D.ContinuousBernoulli(0.3), D.ContinuousBernoulli(0.8)),
    (D.ContinuousBernoulli(0.3), D.Exponential(1.5)),
    (D.ContinuousBernoulli(0.3), D.Normal(0.3, 1.5)),
    (D.ContinuousBernoulli(0.3), D.Uniform(0.0, 1.5)),
    (D.Exponential(1.5), D.Exponential(0.5)),
    (D.Exponential(1.5), D.Gamma(2.0, 0.5)),
    (D.Exponential(1.5), D.Gumbel(0.5, 2.0)),
    (D.Exponential(1.5), D.Normal(0.5, 2.0)),
    (D.Gamma(2.0, 1.5), D.Gamma(3.0, 1.0)),
    (D.Gamma(2.0, 1.5), D.Exponential(0.7)),
    (D.Gamma(2.0, 1.5), D.Gumbel(0.5, 2.0)),
    (D.Gamma(2.0, 1.5), D.Normal(0.5, 2.0)),
    (D.Gumbel(0.5, 2.0), D.Gumbel(0.0, 1.5)),
    (D.Gumbel(0.5, 2.0), D.Normal(0.0, 1.5)),
    (D.HalfNormal(1.5), D.HalfNormal(0.7)),
    (D.Laplace(0.5, 2.0), D.Laplace(1.0, 1.5)),
    (D.Laplace(0.5, 2.0), D.Normal(1.0, 1.5)),
    (D.LogNormal(0.5, 1.0), D.LogNormal(0.0, 1.5)),
    (D.Normal(0.5, 2.0), D.Normal(0.0, 1.5)),
    (D.Normal(0.5, 2.0), D.Gumbel(0.0, 1.5)),
    (D.Normal(0.5, 2.0), D.Laplace(0.0, 1.5)),
    (D.Pareto(2.0, 3.5), D.Pareto(1.0, 2.0)),
    (D.Pareto(2.0, 3.5), D.Exponential(0.7)),
    (D.Pareto(2.0, 3.5), D.Gamma(2.0, 0.7)),
    (D.Pareto(2.0, 4.5), D.Normal(2.0, 1.7)),
    (D.Uniform(0.2, 0.8), D.Beta(2.0, 3.0)),
    (D.Uniform(0.2, 0.8), D.ContinuousBernoulli(0.3)),
    (D.Uniform(0.2, 0.8), D.Exponential(1.3)),
    (D.Uniform(0.2, 0.8), D.Gamma(2.0, 1.3)),
    (D.Uniform(0.2, 0.8), D.Gumbel(0.1, 1.3)),
    (D.Uniform(0.2, 0.8), D.Normal(0.1, 1.3)),
    (D.Uniform(0.2, 0.8), D.Pareto(0.1, 1.3)),
    (D.Uniform(0.2, 0.8), D.Uniform(0.0, 1.3)),
]


def _bounds(d):
    if isinstance(d, D.Uniform):
        return d.low.item(), d.high.item()
    if isinstance(d, (D.Beta, D.ContinuousBernoulli)):
        return 0.0, 1.0
    if isinstance(d, D.Pareto):
        return d.scale.item(), math.inf
    if isinstance(d, (D.Exponential, D.Gamma, D.HalfNormal, D.LogNormal)):
        return 0.0, math.inf
    return -math.inf, math.inf


@pytest.mark.parametrize(
    "p, q", KL_PAIRS, ids=lambda d: type(d).__name__ if isinstance(d, D.Distribution) else None
)
def test_divergence_is_the_integral(p, q):
    low, high = _bounds(p)
    # A fixed rule over a substitution of the real line: thousands of points in one call.
    s = torch.linspace(-6.0, 6.0, 4001, dtype=torch.float64)
    w = math.pi / 2 * s.sinh()
    if math.isinf(low):
        scale = 6.0 if not isinstance(p, D.Cauchy) else 1.0
        x, dx = scale * w.sinh(), scale * w.cosh()
    elif math.isinf(high):
        x, dx = low + w.exp(), w.exp()
    else:
        share = torch.sigmoid(2 * w)
        x = low + (high - low) * share
        dx = (high - low) * 2 * share * torch.sigmoid(-2 * w)
    dx = dx * math.pi / 2 * s.cosh() * (s[1] - s[0])
    inside = (x > low) & (x < high) & x.isfinite() & dx.isfinite() & (x.abs() < 1e30)
    x, dx = x[inside], dx[inside]
    p64, q64 = (_double(d) for d in (p, q))
    lp = p64.log_prob(x)
    keep = lp > -600
    lp, x, dx = lp[keep], x[keep], dx[keep]
    integral = (lp.exp() * (lp - q64.log_prob(x)) * dx).sum()
    # The kink of a Laplace density costs the rule its accuracy.
    rtol = 1e-3 if isinstance(p, D.Laplace) or isinstance(q, D.Laplace) else 1e-6
    close(D.kl_divergence(p64, q64), integral, rtol=rtol, atol=1e-8)


def _double(d):
    """The distribution with float64 parameters; those of this list were made in float32."""
    names = [n for n in d.arg_constraints if n != "logits"]
    return type(d)(**{n: getattr(d, n).double() for n in names})


def test_divergence_of_discrete_distributions_is_the_sum():
    for p, q in [
        (D.Bernoulli(t([0.3, 0.0, 1.0])), D.Bernoulli(t([0.6, 0.5, 0.5]))),
        (D.Binomial(5, t([0.3, 0.7])), D.Binomial(5, t([0.5, 0.6]))),
        (D.Categorical(t([[0.3, 0.7], [1.0, 2.0]])), D.Categorical(t([0.5, 0.5]))),
        (D.OneHotCategorical(t([0.3, 0.7])), D.OneHotCategorical(t([0.5, 0.5]))),
        (D.Bernoulli(t([0.3, 0.9])), D.Poisson(t([0.3, 2.0]))),
    ]:
        x = p.enumerate_support()
        lp, lq = p.log_prob(x), q.log_prob(x)
        total = torch.where(lp > -30, lp.exp() * (lp - lq), 0.0).sum(0)
        close(D.kl_divergence(p, q), total, rtol=1e-8, atol=1e-12)
    x = torch.arange(200.0).unsqueeze(-1)
    for p, q in [
        (D.Poisson(t([0.5, 7.0])), D.Poisson(t([1.5, 5.0]))),
        (D.Geometric(t([0.5, 0.2])), D.Geometric(t([0.3, 0.9]))),
    ]:
        lp, lq = p.log_prob(x), q.log_prob(x)
        close(D.kl_divergence(p, q), (lp.exp() * (lp - lq)).sum(0), rtol=1e-8)
    assert D.kl_divergence(D.Poisson(0.0), D.Poisson(2.0)).item() == 2.0
    assert D.kl_divergence(D.Bernoulli(0.5), D.Bernoulli(0.0)).item() == math.inf


def test_divergence_outside_the_support_is_infinite():
    infinite = [
        (D.Normal(0.0, 1.0), D.Uniform(-9.0, 9.0)),
        (D.Uniform(-1.0, 1.0), D.Uniform(0.0, 2.0)),
        (D.Exponential(1.0), D.Beta(1.0, 1.0)),
        (D.Pareto(1.0, 0.5), D.Exponential(1.0)),
        (D.Poisson(1.0), D.Bernoulli(0.5)),
        (D.Gumbel(0.0, 1.0), D.Gamma(1.0, 1.0)),
    ]
    for p, q in infinite:
        assert D.kl_divergence(p, q).item() == math.inf


def test_divergence_of_exponential_families_is_the_bregman_one():
    general = D.kl._kl_expfamily_expfamily
    for p, q in [
        (D.Normal(t([0.5, 1.0]), t([2.0, 1.0])), D.Normal(t([0.0, 2.0]), t([1.5, 3.0]))),
        (D.Gamma(t([2.0]), t([1.5])), D.Gamma(t([3.0]), t([1.0]))),
        (D.Dirichlet(t([1.0, 2.0, 3.0])), D.Dirichlet(t([2.0, 2.0, 0.5]))),
        (D.Beta(t(2.0), t(3.0)), D.Beta(t(1.0), t(4.0))),
        (D.Exponential(t(2.0)), D.Exponential(t(3.0))),
        (D.Bernoulli(t(0.3)), D.Bernoulli(t(0.6))),
    ]:
        close(general(p, q), D.kl_divergence(p, q).numpy())
    for d in (D.Gamma(t([2.0]), t([1.5])), D.Exponential(t([3.0])), D.Normal(t([1.0]), t([2.0]))):
        close(D.ExponentialFamily.entropy(d), d.entropy().numpy())
    wishart = D.kl_divergence(D.Wishart(t(5.0), COV), D.Wishart(t(4.0), torch.eye(2)))
    assert wishart.shape == () and wishart.item() > 0
    df = t(5.0).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda v: D.kl_divergence(D.Wishart(v, COV), D.Wishart(t(4.0), torch.eye(2))), df
    )
    with pytest.raises(NotImplementedError, match="Bregman"):
        D.kl_divergence(D.Bernoulli(0.3), D.Normal(0.0, 1.0))


def test_divergence_dispatch_takes_the_most_derived_pair():
    class A(D.Normal):
        pass

    class B(D.Normal):
        pass

    before = dict(D.kl._KL_REGISTRY)
    try:
        D.register_kl(A, D.Normal)(lambda p, q: "left")
        assert D.kl_divergence(A(0.0, 1.0), D.Normal(0.0, 1.0)) == "left"
        assert D.kl_divergence(B(0.0, 1.0), B(0.0, 1.0)).item() == 0.0
        D.register_kl(D.Normal, B)(lambda p, q: "right")
        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(A, B\)"):
            assert D.kl_divergence(A(0.0, 1.0), B(0.0, 1.0)) == "left"
    finally:
        D.kl._KL_REGISTRY.clear()
        D.kl._KL_REGISTRY.update(before)
        D.kl._KL_MEMOIZE.clear()
    with pytest.raises(NotImplementedError, match=r"No KL.* p type Cauchy and q type Normal"):
        D.kl_divergence(D.Cauchy(0.0, 1.0), D.Normal(0.0, 1.0))
    p = D.Independent(D.Normal(torch.zeros(2, 3), 1.0), 1)
    q = D.Independent(D.Normal(torch.ones(2, 3), 1.0), 1)
    assert D.kl_divergence(p, q).tolist() == [1.5, 1.5]


def test_divergence_can_be_registered_for_classes_of_other_packages():
    class Root:
        """The root of another package's distributions."""

    class Point(Root):
        pass

    before = dict(D.kl._KL_REGISTRY)
    try:
        D.register_kl(Point, Root)(lambda p, q: "theirs")
        D.register_kl(Point, D.Normal)(lambda p, q: "mixed")
        assert D.kl_divergence(Point(), Point()) == "theirs"
        assert D.kl_divergence(Point(), D.Normal(0.0, 1.0)) == "mixed"
    finally:
        D.kl._KL_REGISTRY.clear()
        D.kl._KL_REGISTRY.update(before)
        D.kl._KL_MEMOIZE.clear()
    with pytest.raises(TypeError, match="Expected type_q to be a Distribution subclass but got 3"):
        D.register_kl(D.Normal, 3)
