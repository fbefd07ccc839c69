"""Samples of distributions on CUDA by their moments and the chances of small outcomes, and the
derivatives of samples against differences of quantiles."""

import math

import numpy as np
import pytest
from cuda_support import cuda

import torch

N = 4000


def within(samples, mean, variance):
    """Mean within five standard errors, variance within fifteen per cent."""
    x = samples.double().cpu().numpy()
    assert abs(x.mean() - mean) < 5 * math.sqrt(variance / x.size)
    assert x.var() == pytest.approx(variance, rel=0.15)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 7.5, 400.0])
def test_gamma_samples_have_the_moments_of_the_shape(alpha):
    torch.manual_seed(1)
    shape = torch.full((N,), alpha, dtype=torch.float64, device=cuda)
    samples = torch._standard_gamma(shape)
    assert (samples > 0).all()
    within(samples, alpha, alpha)
    if alpha == 1.0:  # the exponential distribution
        below = (samples < 0.5).double().mean().item()
        assert below == pytest.approx(1 - math.exp(-0.5), abs=0.04)


@pytest.mark.parametrize("rate", [0.4, 6.0, 35.0])
def test_poisson_samples_have_their_rate_as_mean_and_variance(rate):
    torch.manual_seed(2)
    samples = torch.poisson(torch.full((N,), rate, device=cuda))
    assert torch.equal(samples, samples.round()) and samples.min() >= 0
    within(samples, rate, rate)
    if rate < 1:
        assert (samples == 0).double().mean().item() == pytest.approx(math.exp(-rate), abs=0.04)
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        torch.poisson(torch.tensor([1.0, -1.0], device=cuda))


@pytest.mark.parametrize("trials, p", [(5, 0.2), (40, 0.9), (1000, 0.3)])
def test_binomial_samples(trials, p):
    torch.manual_seed(3)
    count = torch.full((N,), float(trials), device=cuda)
    samples = torch.binomial(count, torch.tensor(p, device=cuda))
    assert samples.min() >= 0 and samples.max() <= trials
    within(samples, trials * p, trials * p * (1 - p))


def test_edges_of_the_parameters():
    count = torch.tensor([0.0, 4.0, 4.0, 4.0], device=cuda)
    p = torch.tensor([0.5, 0.0, 1.0, float("nan")], device=cuda)
    samples = torch.binomial(count, p).cpu()
    assert samples[:3].tolist() == [0, 0, 4] and torch.isnan(samples[3])
    assert not torch.poisson(torch.zeros(3, device=cuda)).any()
    assert torch.poisson(torch.empty(0, device=cuda)).shape == (0,)
    half = torch._standard_gamma(torch.full((100,), 2.0, device=cuda).half())
    assert half.dtype == torch.float16 and (half > 0).all()


def test_a_seed_gives_the_same_samples_and_the_next_call_others():
    shape = torch.full((50,), 2.5, device=cuda)
    torch.manual_seed(4)
    first, second = torch._standard_gamma(shape), torch._standard_gamma(shape)
    torch.manual_seed(4)
    assert torch.equal(torch._standard_gamma(shape), first)
    assert not torch.equal(first, second) and first.unique().numel() == 50


def test_dirichlet_samples_are_shares():
    torch.manual_seed(5)
    alpha = torch.tensor([0.5, 2.0, 7.5], device=cuda).expand(N, 3)
    samples = torch._sample_dirichlet(alpha)
    np.testing.assert_allclose(samples.sum(-1).cpu().numpy(), 1, atol=1e-5)
    for i, a in enumerate((0.5, 2.0, 7.5)):
        within(samples[:, i], a / 10, a / 10 * (1 - a / 10) / 11)


def gamma_mass(a, x, steps=20000):
    """The chance of a gamma sample below x, by the midpoint rule after t = x s^4."""
    s = (np.arange(steps) + 0.5) / steps
    t = x * s**4
    return (np.exp((a - 1) * np.log(t) - t - math.lgamma(a)) * 4 * x * s**3).sum() / steps


@pytest.mark.parametrize("a, x", [(0.7, 0.3), (2.0, 1.5), (3.0, 12.0)])
def test_gamma_derivative_keeps_the_quantile(a, x):
    alpha, sample = (torch.tensor([v], dtype=torch.float64, device=cuda) for v in (a, x))
    slope = torch._standard_gamma_grad(alpha, sample).item()
    step = 1e-3
    ahead = gamma_mass(a + step, x + step * slope)
    behind = gamma_mass(a - step, x - step * slope)
    density = math.exp((a - 1) * math.log(x) - x - math.lgamma(a))
    assert abs(ahead - behind) / (2 * step) < 1e-4 * max(density * abs(slope), 1e-2)


def test_gradients_flow_through_sampling():
    alpha = torch.tensor([0.5, 2.0, 7.5], device=cuda, requires_grad=True)
    torch.distributions.Gamma(alpha, 1.0).rsample((20,)).sum().backward()
    assert (alpha.grad > 0).all()
    alpha.grad = None
    torch.distributions.Dirichlet(alpha).rsample()[0].backward()
    assert torch.isfinite(alpha.grad).all() and alpha.grad[0] > 0
