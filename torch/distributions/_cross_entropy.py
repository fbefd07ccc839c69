"""Cross-entropies -E_p[log q] between different families.

log q is a sum of few statistics of the outcome, so that the families of q need the means of these
under p: of x and x^2 (from the moments of p), of log x, log(1 - x), exp(t x) and |x - m|. Each is
written once for every p that has it, and each q once for all p.
"""

from __future__ import annotations

import math
from functools import singledispatch

import torch
from torch import Tensor
from torch.distributions._special import HALF_LOG_2PI, lbeta
from torch.distributions.bernoulli import Bernoulli
from torch.distributions.beta import Beta
from torch.distributions.continuous_bernoulli import ContinuousBernoulli
from torch.distributions.distribution import Distribution
from torch.distributions.exponential import Exponential
from torch.distributions.gamma import Gamma
from torch.distributions.gumbel import Gumbel
from torch.distributions.laplace import Laplace
from torch.distributions.normal import Normal
from torch.distributions.pareto import Pareto
from torch.distributions.poisson import Poisson
from torch.distributions.uniform import Uniform
from torch.distributions.utils import euler_constant


def bounds(d: Distribution) -> tuple[Tensor | float, Tensor | float]:
    """The ends of the support of a distribution of numbers."""
    if isinstance(d, Uniform):
        return d.low, d.high
    if isinstance(d, (Bernoulli, Beta, ContinuousBernoulli)):
        return 0.0, 1.0
    if isinstance(d, (Exponential, Gamma, Poisson)):
        return 0.0, math.inf
    if isinstance(d, Pareto):
        return d.scale, math.inf
    return -math.inf, math.inf


@singledispatch
def mean_log(p: Distribution) -> Tensor:
    """E[log x]."""
    raise NotImplementedError(f"E[log x] of {type(p).__name__}")


@mean_log.register
def _(p: Gamma) -> Tensor:
    return torch.digamma(p.concentration) - p.rate.log()


@mean_log.register
def _(p: Exponential) -> Tensor:
    return -euler_constant - p.rate.log()


@mean_log.register
def _(p: Beta) -> Tensor:
    return torch.digamma(p.concentration1) - torch.digamma(p.concentration1 + p.concentration0)


@mean_log.register
def _(p: Uniform) -> Tensor:
    return _uniform_mean_log(p.low, p.high)


@mean_log.register
def _(p: Pareto) -> Tensor:
    return p.scale.log() + 1 / p.alpha


def _uniform_mean_log(low: Tensor, high: Tensor) -> Tensor:
    """The antiderivative of log x is x log x - x."""
    return (torch.xlogy(high, high) - torch.xlogy(low, low)) / (high - low) - 1


@singledispatch
def mean_exp(p: Distribution, t: Tensor, origin: Tensor) -> Tensor:
    """E[exp(t (x - at))], the moment generating function of x - at."""
    raise NotImplementedError(f"E[exp(t x)] of {type(p).__name__}")


@mean_exp.register
def _(p: Normal, t: Tensor, origin: Tensor) -> Tensor:
    return torch.exp(t * (p.loc - origin) + 0.5 * torch.square(t * p.scale))


@mean_exp.register
def _(p: Gamma, t: Tensor, origin: Tensor) -> Tensor:
    return torch.exp(-t * origin - p.concentration * torch.log1p(-t / p.rate))


@mean_exp.register
def _(p: Exponential, t: Tensor, origin: Tensor) -> Tensor:
    return torch.exp(-t * origin - torch.log1p(-t / p.rate))


@mean_exp.register
def _(p: Uniform, t: Tensor, origin: Tensor) -> Tensor:
    width = t * (p.high - p.low)
    return torch.exp(t * (p.low - origin)) * torch.expm1(width) / width


def mean_distance(p: Normal, origin: Tensor) -> Tensor:
    """E|x - at| of a normal variable."""
    away = p.loc - origin
    z = away / (math.sqrt(2) * p.scale)
    return math.sqrt(2 / math.pi) * p.scale * torch.exp(-z * z) + away * torch.erf(z)


@singledispatch
def cross_entropy(q: Distribution, p: Distribution) -> Tensor:
    """-E_p[log q], where p's support lies in q's."""
    raise NotImplementedError(f"-E[log q] of {type(q).__name__}")


@cross_entropy.register
def _(q: Normal, p: Distribution) -> Tensor:
    squared = p.variance + torch.square(p.mean - q.loc)
    return q.scale.log() + HALF_LOG_2PI + 0.5 * squared / q.variance


@cross_entropy.register
def _(q: Exponential, p: Distribution) -> Tensor:
    return q.rate * p.mean - q.rate.log()


@cross_entropy.register
def _(q: Gamma, p: Distribution) -> Tensor:
    a = q.concentration
    return torch.lgamma(a) - a * q.rate.log() - (a - 1) * mean_log(p) + q.rate * p.mean


@cross_entropy.register
def _(q: Beta, p: Uniform) -> Tensor:
    a, b = q.concentration1, q.concentration0
    mirrored = _uniform_mean_log(1 - p.high, 1 - p.low)
    return lbeta(a, b) - (a - 1) * mean_log(p) - (b - 1) * mirrored


@cross_entropy.register
def _(q: ContinuousBernoulli, p: Distribution) -> Tensor:
    return -q._log_density(p.mean)  # linear in the outcome


@cross_entropy.register
def _(q: Uniform, p: Distribution) -> Tensor:
    return q.entropy()


@cross_entropy.register
def _(q: Pareto, p: Distribution) -> Tensor:
    return (q.alpha + 1) * mean_log(p) - q.alpha.log() - q.alpha * q.scale.log()


@cross_entropy.register
def _(q: Gumbel, p: Distribution) -> Tensor:
    return q.scale.log() + (p.mean - q.loc) / q.scale + mean_exp(p, -1 / q.scale, q.loc)


@cross_entropy.register
def _(q: Laplace, p: Normal) -> Tensor:
    return torch.log(2 * q.scale) + mean_distance(p, q.loc) / q.scale


@cross_entropy.register
def _(q: Poisson, p: Bernoulli) -> Tensor:
    return q.rate - torch.xlogy(p.probs, q.rate)  # 0! = 1! = 1
