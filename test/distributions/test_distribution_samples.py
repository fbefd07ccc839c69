"""Samples of torch.distributions for a seed against recorded values, and the gradients that flow
through them against finite differences of SciPy's quantile functions.
"""

import numpy as np
import pytest
import scipy.special

import torch
import torch.distributions as D

pytestmark = pytest.mark.usefixtures("float64_default")


t = torch.tensor

MAKE = {
    "Normal": lambda: D.Normal(t([1.0, 2.0]), t([1.0, 2.0])),
    "Uniform": lambda: D.Uniform(t([1.0, 2.0]), t([2.0, 4.0])),
    "Bernoulli": lambda: D.Bernoulli(t([0.3, 0.6])),
    "Beta": lambda: D.Beta(t([1.0, 2.0]), t([2.0, 0.5])),
    "Binomial": lambda: D.Binomial(t([10.0, 3.0]), t([0.3, 0.6])),
    "Categorical": lambda: D.Categorical(t([[0.3, 0.6], [0.1, 0.1]])),
    "Cauchy": lambda: D.Cauchy(t([1.0, 2.0]), t([1.0, 2.0])),
    "Chi2": lambda: D.Chi2(t([1.0, 2.0])),
    "CB": lambda: D.ContinuousBernoulli(t([0.3, 0.6])),
    "Dirichlet": lambda: D.Dirichlet(t([0.3, 0.6])),
    "Exponential": lambda: D.Exponential(t([0.3, 0.6])),
    "F": lambda: D.FisherSnedecor(t([3.0, 6.0]), t([5.0, 6.0])),
    "Gamma": lambda: D.Gamma(t([3.0, 6.0]), t([5.0, 6.0])),
    "GPD": lambda: D.GeneralizedPareto(t([3.0, 6.0]), t([5.0, 6.0]), t([0.1, 0.0])),
    "Geometric": lambda: D.Geometric(t([0.3, 0.6])),
    "Gumbel": lambda: D.Gumbel(t([0.3, 0.6]), t([1.0, 2.0])),
    "HalfCauchy": lambda: D.HalfCauchy(t([0.3, 0.6])),
    "HalfNormal": lambda: D.HalfNormal(t([0.3, 0.6])),
    "Independent": lambda: D.Independent(D.Normal(t([0.3, 0.6]), 1.0), 1),
    "InverseGamma": lambda: D.InverseGamma(t([3.0, 6.0]), t([5.0, 6.0])),
    "Kumaraswamy": lambda: D.Kumaraswamy(t([3.0, 6.0]), t([5.0, 6.0])),
    "LKJ": lambda: D.LKJCholesky(3, t([0.5, 2.0])),
    "Laplace": lambda: D.Laplace(t([3.0, 6.0]), t([5.0, 6.0])),
    "LogNormal": lambda: D.LogNormal(t([3.0, 6.0]), t([5.0, 6.0])),
    "LogisticNormal": lambda: D.LogisticNormal(t([3.0, 6.0]), t([5.0, 6.0])),
    "LowRank": lambda: D.LowRankMultivariateNormal(t([3.0, 6.0]), t([[5.0], [6.0]]), t([1.0, 2.0])),
    "Mixture": lambda: D.MixtureSameFamily(
        D.Categorical(t([0.3, 0.7])), D.Normal(t([3.0, 6.0]), t([5.0, 6.0]))
    ),
    "Multinomial": lambda: D.Multinomial(5, t([0.3, 0.7])),
    "MVN": lambda: D.MultivariateNormal(t([3.0, 7.0]), t([[2.0, 0.3], [0.3, 1.0]])),
    "NegBin": lambda: D.NegativeBinomial(t([3.0, 7.0]), t([0.2, 0.3])),
    "OneHot": lambda: D.OneHotCategorical(t([0.2, 0.3])),
    "OneHotST": lambda: D.OneHotCategoricalStraightThrough(t([0.2, 0.3])),
    "Pareto": lambda: D.Pareto(t([0.2, 0.3]), t([2.0, 3.0])),
    "Poisson": lambda: D.Poisson(t([0.2, 0.3])),
    "RBern": lambda: D.RelaxedBernoulli(t(0.5), t([0.2, 0.3])),
    "RCat": lambda: D.RelaxedOneHotCategorical(t(0.5), t([0.2, 0.3])),
    "StudentT": lambda: D.StudentT(t([3.0, 5.0]), t([0.2, 0.3])),
    "VonMises": lambda: D.VonMises(t([3.0, 5.0]), t([0.2, 3.0])),
    "Weibull": lambda: D.Weibull(t([3.0, 5.0]), t([0.2, 3.0])),
    "Wishart": lambda: D.Wishart(t([3.0, 5.0]), torch.eye(2)),
}

# The first numbers of sample((2,)) after torch.manual_seed(0).
SEEDED = {
    "Normal": [2.54099610824404, 1.41314218847811, -1.17878938207456, 3.13686255456134],
    "Uniform": [1.97005300180655, 3.41563972879958, 1.45938294312745, 3.84149536824392],
    "Bernoulli": [0.0, 0.0, 0.0, 0.0],
    "Beta": [0.686578004519306, 0.873351168647637, 0.120834229011903, 0.821575944377484],
    "Binomial": [6.0, 2.0, 2.0, 2.0],
    "Categorical": [1.0, 0.0, 1.0, 1.0],
    "Cauchy": [11.5977293266823, 3.5295345192118, 0.871700657916826, 9.8661466219893],
    "Chi2": [0.00157871641269515, 0.237967417935739, 0.144712000062159, 3.22340973045884],
    "CB": [0.953791031889812, 0.747281693110399, 0.359372257979347, 0.933970523176505],
    "Dirichlet": [8.22437506955853e-05, 0.999917756249304, 0.15879522367888, 0.84120477632112],
    "Exponential": [11.6944206223588, 2.05064127363279, 2.0501469796467, 4.2251977403598],
    "F": [4.9148703415691, 1.07515544661567, 0.504738580426208, 0.198602066048097],
    "Gamma": [1.2115309934466, 0.832745540279947, 0.251756146509226, 0.491133683586423],
    "GPD": [24.012479137643, 13.3823085850781, 6.17175928091489, 21.2107118652953],
    "Geometric": [0.0, 0.0, 2.0, 0.0],
    "Gumbel": [3.79316242068066, 2.72514529910881, 0.551194426620742, 5.58823615722247],
    "HalfCauchy": [3.17931879800469, 0.45886035576354, 0.0384898026249522, 2.35984398659679],
    "HalfNormal": [0.462298832473213, 0.176057343456568, 0.653636814622367, 0.341058766368401],
    "Independent": [1.84099610824404, 0.306571094239054, -1.87878938207456, 1.16843127728067],
    "InverseGamma": [0.825401913289208, 1.20084701944345, 3.97209765825262, 2.03610551143156],
    "Kumaraswamy": [0.18234044729859, 0.61847500028242, 0.5242410259444, 0.488967915327292],
    "LKJ": [1.0, 0.0, 0.0, -0.207280469314584],
    "Laplace": [17.0758950307385, 9.22342550171839, 2.57638031278608, 17.0518287819356],
    "LogNormal": [44577.3223506366, 69.3680623867952, 0.000372994490065178, 12217.0483828359],
    "LogisticNormal": [
        0.999955136150696,
        4.42262894820602e-05,
        6.37559821628796e-07,
        0.000186462470295577,
    ],
    "LowRank": [8.52619115914566, 16.0498598710716, 0.448333128771247, 2.26151398902827],
    "Mixture": [9.41058766368401, -2.39157237222526],
    "Multinomial": [1.0, 4.0, 1.0, 4.0],
    "MVN": [5.17929759584288, 7.04014387789018, -0.0812734936843347, 7.0933033339082],
    "NegBin": [1.0, 2.0, 0.0, 2.0],
    "OneHot": [0.0, 1.0, 0.0, 1.0],
    "OneHotST": [0.0, 1.0, 0.0, 1.0],
    "Pareto": [1.1557219121878, 0.452103316202825, 0.272010158627837, 0.698420965027479],
    "Poisson": [1.0, 0.0, 1.0, 1.0],
    "RBern": [0.984980234123046, 0.518751829596374, 0.0431797971597573, 0.961227619591006],
    "RCat": [0.982880162535946, 0.0171198374640537, 0.00498275300466884, 0.995017246995331],
    "StudentT": [3.41987154587635, -0.258056664386147, -3.39990510970264, 1.00493539839957],
    "VonMises": [2.05100604910205, -0.477661762872771, 1.67864933030146, -0.814737089335601],
    "Weibull": [1594.48735804816, 5.35776489756261, 0.264029538690046, 6.81767195881091],
    "Wishart": [3.22842054662404, -1.85014891044223, -1.85014891044223, 6.46665980286153],
}

GAMMA = [
    1.675381434420486e-31,
    0.1043933779001236,
    1.05320405960083,
    4.282602310180664,
    74.45909881591797,
]
DIRICHLET = [1.1754943508222875e-38, 0.0038863099180161953, 0.19748005270957947, 0.7986336350440979]


@pytest.mark.parametrize("name", MAKE)
def test_samples_of_a_seed_are_the_recorded_ones(name):
    d = MAKE[name]()
    torch.manual_seed(0)
    sample = d.sample((2,))
    expected = SEEDED[name]
    first = sample.flatten()[: len(expected)].tolist()
    np.testing.assert_allclose(first, expected, rtol=1e-12, atol=1e-14)
    assert sample.shape == (2,) + d.batch_shape + d.event_shape
    assert not sample.requires_grad
    assert d.support.check(sample).all()


@pytest.mark.parametrize("name", MAKE)
def test_expanded_distribution_keeps_its_parameters(name):
    d = MAKE[name]()
    new = d.expand((3,) + d.batch_shape)
    assert new.batch_shape == (3,) + d.batch_shape and new.event_shape == d.event_shape
    torch.manual_seed(1)
    x = new.sample()
    assert x.shape == (3,) + d.batch_shape + d.event_shape
    torch.testing.assert_close(new.log_prob(x), d.log_prob(x))
    assert type(new) is type(d)
    if d.has_rsample:
        assert new.rsample((2,)).shape == (2, 3) + d.batch_shape + d.event_shape


def test_binomial_of_single_precision_rounds_its_hat_as_recorded():
    # Recorded from PyTorch 2.13: in double precision these two draws would be one more.
    torch.manual_seed(9)
    drawn = torch.binomial(torch.full((62061,), 1000.0), torch.full((62061,), 0.3))
    assert drawn[26485].item() == 281
    assert drawn[62060].item() == 315


def test_samplers_of_single_precision_are_the_recorded_ones():
    def seeded(f, *args):
        torch.manual_seed(0)
        return f(*(t(a, dtype=torch.float32) for a in args)).tolist()

    assert seeded(torch._standard_gamma, [0.05, 0.7, 1.0, 3.0, 80.0]) == GAMMA
    assert seeded(torch.poisson, [0.3, 5.0, 12.0, 300.0]) == [1.0, 7.0, 11.0, 293.0]
    counts, probs = [5.0, 40.0, 40.0, 1000.0], [0.3, 0.2, 0.9, 0.5]
    assert seeded(torch.binomial, counts, probs) == [3.0, 8.0, 36.0, 508.0]
    assert seeded(torch._sample_dirichlet, [1e-3, 0.5, 2.0, 7.0]) == DIRICHLET
    # Shapes so small that the gamma draws underflow still give points of the simplex.
    tiny = seeded(torch._sample_dirichlet, [[1e-3, 1e-3]] * 4)
    assert tiny[0] == [0.5, 0.5] and tiny[1] == [0.9999999403953552, 1.1754943508222875e-38]


def test_samplers_reject_what_they_cannot_draw_from():
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        torch.poisson(t([-1.0]))
    assert torch.poisson(torch.empty(0, 3)).shape == (0, 3)
    assert torch._standard_gamma(torch.empty(0)).shape == (0,)
    assert torch._sample_dirichlet(torch.empty(2, 0)).shape == (2, 0)
    assert torch.binomial(t(5.0), t(0.0)).item() == 0.0
    assert torch.binomial(t(5.0), t(1.0)).item() == 5.0
    assert torch.binomial(t(float("nan")), t(0.5)).isnan()
    assert torch._sample_dirichlet(t([float("nan"), 1.0])).isnan().all()
    with pytest.raises(ValueError, match="binomial only supports floating-point dtypes for count"):
        torch.binomial(t([1, 2]), t([0.1, 0.2]))
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        torch.binomial(t([1.0]).float(), t([0.1]))
    with pytest.raises(NotImplementedError, match="\"poisson_cpu\" not implemented for 'Long'"):
        torch.poisson(t([1, 2]))


def _gamma_fd(a, u):
    h = 1e-4 * a
    f = lambda s: scipy.special.gammaincinv(s, u)
    return (8 * (f(a + h) - f(a - h)) - (f(a + 2 * h) - f(a - 2 * h))) / (12 * h)


@pytest.mark.parametrize("a", [0.05, 0.5, 1.0, 3.0, 9.0, 40.0, 900.0, 5000.0])
def test_gamma_gradient_is_the_slope_of_the_quantile(a):
    for u in (0.01, 0.2, 0.5, 0.8, 0.99):
        x = scipy.special.gammaincinv(a, u)
        slope = torch._standard_gamma_grad(t(a), t(x)).item()
        assert slope == pytest.approx(_gamma_fd(a, u), rel=1e-7)


@pytest.mark.parametrize("a", [0.2, 1.0, 5.0, 100.0])
@pytest.mark.parametrize("b", [0.5, 2.0, 40.0])
def test_beta_gradient_is_the_slope_of_the_quantile(a, b):
    for u in (0.05, 0.5, 0.9):
        x = scipy.special.betaincinv(a, b, u)
        h = 1e-4 * a
        f = lambda s: scipy.special.betaincinv(s, b, u)  # noqa: B023
        fd = (8 * (f(a + h) - f(a - h)) - (f(a + 2 * h) - f(a - 2 * h))) / (12 * h)
        grad = torch._dirichlet_grad(t([x]), t([a]), t([a + b])).item() * (1 - x)
        assert grad == pytest.approx(fd, rel=2e-5)


def test_gradients_flow_through_samples():
    cases = {
        "Normal": (D.Normal, [t([0.5]), t([2.0])]),
        "Gamma": (D.Gamma, [t([2.5]), t([1.5])]),
        "Beta": (D.Beta, [t([2.5]), t([1.5])]),
        "StudentT": (D.StudentT, [t([4.0]), t([0.5]), t([2.0])]),
        "Exponential": (D.Exponential, [t([2.0])]),
        "Uniform": (D.Uniform, [t([0.0]), t([3.0])]),
        "Laplace": (D.Laplace, [t([0.0]), t([3.0])]),
        "Gumbel": (D.Gumbel, [t([0.0]), t([3.0])]),
        "Weibull": (D.Weibull, [t([2.0]), t([3.0])]),
        "Kumaraswamy": (D.Kumaraswamy, [t([2.0]), t([3.0])]),
    }
    for name, (cls, params) in cases.items():
        params = [p.clone().requires_grad_() for p in params]
        torch.manual_seed(3)
        x = cls(*params).rsample((200,))
        grads = torch.autograd.grad(x.sum(), params)
        assert all(g.isfinite().all() and g.abs().max() > 0 for g in grads), name
    # d/da E[x] = 1 / rate and d/drate E[x] = -a / rate^2, near enough with many samples.
    a, rate = t(2.5).requires_grad_(), t(1.5).requires_grad_()
    torch.manual_seed(3)
    ga, gr = torch.autograd.grad(D.Gamma(a, rate).rsample((20000,)).mean(), (a, rate))
    assert ga.item() == pytest.approx(1 / 1.5, rel=0.03)
    assert gr.item() == pytest.approx(-2.5 / 2.25, rel=0.03)


def test_dirichlet_gradient_keeps_to_the_simplex():
    a = t([0.5, 2.0, 3.0]).requires_grad_()
    torch.manual_seed(0)
    x = D.Dirichlet(a).rsample((4,))
    (grad,) = torch.autograd.grad(x.sum(), a)
    np.testing.assert_allclose(grad.numpy(), 0, atol=1e-12)
    (grad,) = torch.autograd.grad(D.Dirichlet(a).rsample((20000,))[:, 0].mean(), a)
    np.testing.assert_allclose(grad.numpy(), [5 / 5.5**2, -0.5 / 5.5**2, -0.5 / 5.5**2], rtol=0.1)


def test_dirichlet_operator_has_the_gradient_of_the_distribution():
    a = t([[0.5, 2.0, 3.0], [1.0, 1.0, 4.0]]).requires_grad_()
    weight = torch.arange(6.0).reshape(2, 3)
    torch.manual_seed(0)
    (direct,) = torch.autograd.grad((torch._sample_dirichlet(a) * weight).sum(), a)
    torch.manual_seed(0)
    (grad,) = torch.autograd.grad((D.Dirichlet(a).rsample() * weight).sum(), a)
    torch.testing.assert_close(direct, grad)


def test_large_shapes_have_finite_slopes():
    # The sample follows the mean: d a / (a + b) / da = b / (a + b)^2, divided by 1 - x.
    for n in (1e6, 1e9, 1e12):
        slope = torch._dirichlet_grad(t([0.5]), t([n]), t([2 * n])).item()
        assert slope == pytest.approx(0.5 / n, rel=1e-6)
        assert torch._standard_gamma_grad(t(n), t(n)).item() == pytest.approx(1.0, rel=1e-6)


def test_straight_through_one_hot_has_the_gradient_of_the_probabilities():
    logits = t([0.1, 1.0, -1.0]).requires_grad_()
    d = D.OneHotCategoricalStraightThrough(logits=logits)
    x = d.rsample((5,))
    assert ((x == 0) | (x - 1).abs().lt(1e-12) | x.abs().lt(1e-12)).all()
    weight = t([1.0, 2.0, 3.0])
    (grad,) = torch.autograd.grad((x[0] * weight).sum(), logits)
    p = torch.softmax(logits.detach(), -1)
    expected = p * (weight - (p * weight).sum())
    torch.testing.assert_close(grad, expected)
