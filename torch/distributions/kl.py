"""Kullback-Leibler divergences: the registry of pairs of families and the divergences themselves.

Within a family they have closed forms, written so that they do not cancel when p is near q: with
deviances (see ``_special``) and log1p. Between families the divergence is the cross-entropy of
``_cross_entropy`` less the entropy of p. Members of other exponential families are compared by the
Bregman divergence of their log normalizers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions._cross_entropy import bounds, cross_entropy
from torch.distributions._matrix import log_diagonal, solve_lower
from torch.distributions._probs import ProbsOrLogits
from torch.distributions._special import deviance
from torch.distributions.bernoulli import Bernoulli
from torch.distributions.beta import Beta
from torch.distributions.binomial import Binomial
from torch.distributions.categorical import Categorical
from torch.distributions.cauchy import Cauchy
from torch.distributions.continuous_bernoulli import ContinuousBernoulli
from torch.distributions.dirichlet import Dirichlet
from torch.distributions.distribution import Distribution
from torch.distributions.exp_family import ExponentialFamily
from torch.distributions.exponential import Exponential
from torch.distributions.gamma import Gamma
from torch.distributions.geometric import Geometric
from torch.distributions.gumbel import Gumbel
from torch.distributions.half_normal import HalfNormal
from torch.distributions.independent import Independent
from torch.distributions.laplace import Laplace
from torch.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from torch.distributions.multivariate_normal import MultivariateNormal, _batch_mahalanobis
from torch.distributions.normal import Normal
from torch.distributions.one_hot_categorical import OneHotCategorical
from torch.distributions.pareto import Pareto
from torch.distributions.poisson import Poisson
from torch.distributions.transformed_distribution import TransformedDistribution
from torch.distributions.uniform import Uniform
from torch.distributions.utils import _sum_rightmost, euler_constant

__all__ = ["register_kl", "kl_divergence"]

Divergence = Callable[[Distribution, Distribution], Tensor]
_KL_REGISTRY: dict[tuple[type, type], Divergence] = {}
_KL_MEMOIZE: dict[tuple[type, type], Divergence] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Decorates the function that computes ``kl_divergence(p, q)`` for two classes.

    It serves subclasses too, until a more derived pair is registered. The classes need not derive
    from :class:`Distribution`: other packages have roots of their own.
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def enter(fun: Divergence) -> Divergence:
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return enter


def _names(kinds: tuple[type, ...]) -> str:
    return ", ".join(kind.__name__ for kind in kinds)


def _dispatch_kl(type_p: type, type_q: type) -> Divergence:
    """The function of the nearest registered pair of ancestors.

    When the nearest by the class of p is not the nearest by that of q, the former is taken.
    """
    near_p = {kind: i for i, kind in enumerate(type_p.__mro__)}
    near_q = {kind: i for i, kind in enumerate(type_q.__mro__)}
    fitting = [pair for pair in _KL_REGISTRY if pair[0] in near_p and pair[1] in near_q]
    if not fitting:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type_p.__name__} and q type "
            f"{type_q.__name__}"
        )
    left = min(fitting, key=lambda pair: (near_p[pair[0]], near_q[pair[1]]))
    right = min(fitting, key=lambda pair: (near_q[pair[1]], near_p[pair[0]]))
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        pair, missing = (type_p, type_q), (left[0], right[1])
        warnings.warn(
            f"Ambiguous kl_divergence({_names(pair)}). Please register_kl({_names(missing)})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence E_p[log p - log q] of each pair of the batches, in nats.

    Raises NotImplementedError when no pair of their classes was registered with
    :func:`register_kl`.
    """
    key = type(p), type(q)
    if key not in _KL_MEMOIZE:
        _KL_MEMOIZE[key] = _dispatch_kl(*key)
    return _KL_MEMOIZE[key](p, q)


def _unless(outside: Tensor, kl: Tensor) -> Tensor:
    """The divergence, but infinite where p can take a value that q cannot."""
    return torch.where(outside, torch.inf, kl)


# Discrete families.


def _log(x: Tensor) -> Tensor:
    """log x; at zero its derivative is zero, so that a product with zero has a gradient."""
    zero = x == 0
    return torch.where(zero, -torch.inf, torch.where(zero, 1.0, x).log())


def _two_ways(d: ProbsOrLogits) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """p, 1 - p and their logarithms, from what the distribution was given by."""
    if d._given == "logits":
        x = d.logits
        return x.sigmoid(), torch.sigmoid(-x), F.logsigmoid(x), F.logsigmoid(-x)
    p = d.probs
    return p, 1 - p, _log(p), torch.where(p < 0.5, torch.log1p(-p.clamp(max=0.5)), _log(1 - p))


def _share(weight: Tensor, log_ratio: Tensor) -> Tensor:
    """weight log(ratio), zero where the weight is."""
    none = weight == 0
    return weight * torch.where(none, 0.0, log_ratio)


def _trial(p: ProbsOrLogits, q: ProbsOrLogits) -> Tensor:
    """The divergence of one trial with two outcomes."""
    yes, no, log_yes, log_no = _two_ways(p)
    _, _, other_yes, other_no = _two_ways(q)
    return _share(yes, log_yes - other_yes) + _share(no, log_no - other_no)


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    return _trial(p, q)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    return _unless(p.total_count > q.total_count, p.total_count * _trial(p, q))


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p: Geometric, q: Geometric) -> Tensor:
    return _trial(p, q) / p.probs  # 1 / p trials on average


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p: Categorical, q: Categorical) -> Tensor:
    each = _share(p.probs, p.logits - q.logits)
    return _unless((q.probs == 0) & (p.probs > 0), each).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p: Poisson, q: Poisson) -> Tensor:
    return deviance(p.rate, q.rate)


# Continuous families of numbers.


def _excess(ratio: Tensor) -> Tensor:
    """r - 1 - log r, small where r is near one."""
    return deviance(torch.ones_like(ratio), ratio)


@register_kl(Normal, Normal)
def _kl_normal_normal(p: Normal, q: Normal) -> Tensor:
    shift, ratio = (p.loc - q.loc) / q.scale, p.scale / q.scale
    # (r^2 - 1)/2 - log r, without squaring the logarithm's argument, which may underflow.
    scales = 2 * _excess(ratio) + torch.square(ratio - 1)
    return 0.5 * (scales + shift.square())


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _kl_normal_normal(p.base_dist, q.base_dist)


def _as_gamma(d: Gamma | Exponential) -> tuple[Tensor, Tensor]:
    """Shape and rate; an exponential distribution is the gamma one of shape 1."""
    return (d.concentration if isinstance(d, Gamma) else torch.ones_like(d.rate)), d.rate


@register_kl(Exponential, Exponential)
@register_kl(Exponential, Gamma)
@register_kl(Gamma, Exponential)
@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p: Gamma | Exponential, q: Gamma | Exponential) -> Tensor:
    (a, rate), (b, other) = _as_gamma(p), _as_gamma(q)
    ratio = other / rate
    shapes = torch.lgamma(b) - torch.lgamma(a) - (b - a) * (torch.digamma(a) + ratio.log())
    return a * _excess(ratio) + shapes


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    means = torch.digamma(a) - torch.digamma(a.sum(-1, keepdim=True))
    return ((a - b) * means).sum(-1) + q._log_normalizer(b) - p._log_normalizer(a)


@register_kl(Beta, Beta)
def _kl_beta_beta(p: Beta, q: Beta) -> Tensor:
    return _kl_dirichlet_dirichlet(p._dirichlet, q._dirichlet)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(
    p: ContinuousBernoulli, q: ContinuousBernoulli
) -> Tensor:
    mean = p.mean
    return p._log_density(mean) - q._log_density(mean)  # both linear in the outcome


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    apart = torch.square(p.loc - q.loc) + torch.square(p.scale - q.scale)
    return torch.log1p(apart / (4 * p.scale * q.scale))


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, away = p.scale / q.scale, torch.abs(p.loc - q.loc)
    # E|x - m| = away + scale exp(-away / scale) under p.
    return _excess(ratio) + away / q.scale + ratio * torch.expm1(-away / p.scale)


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, shift = p.scale / q.scale, (p.loc - q.loc) / q.scale
    mean_exp = torch.exp(torch.lgamma(1 + ratio) - shift)
    return mean_exp + shift - ratio.log() + euler_constant * (ratio - 1) - 1


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p: Pareto, q: Pareto) -> Tensor:
    inside = _excess(q.alpha / p.alpha) + q.alpha * torch.log(p.scale / q.scale)
    return _unless(p.scale < q.scale, inside)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p: Uniform, q: Uniform) -> Tensor:
    return _across(p, q)


# Pairs of different families.


def _across(p: Distribution, q: Distribution) -> Tensor:
    (low, high), (other_low, other_high) = bounds(p), bounds(q)
    kl = cross_entropy(q, p) - p.entropy()
    outside = torch.as_tensor((low < other_low) | (high > other_high), device=kl.device)
    return _unless(outside, kl)


def _nowhere(p: Distribution, q: Distribution) -> Tensor:
    """Infinite: p takes values outside of q's support whatever the parameters."""
    like = p.mean
    shape = torch.broadcast_shapes(p.batch_shape, q.batch_shape)
    return torch.full(shape, torch.inf, dtype=like.dtype, device=like.device)


_REAL = (Normal, Laplace, Gumbel)
_POSITIVE = (Exponential, Gamma)
_UNIT = (Beta, ContinuousBernoulli)

_ACROSS: dict[type, tuple[type, ...]] = {
    Normal: (*_UNIT, *_POSITIVE, Gumbel, Laplace, Pareto, Uniform),
    Exponential: (*_UNIT, Pareto, Uniform),
    Gamma: (Beta, Pareto, Uniform),
    Gumbel: (*_POSITIVE, Normal, Uniform),
    Uniform: _UNIT,
    ContinuousBernoulli: (Beta, Uniform),
    Beta: (Uniform,),
    Laplace: (Normal,),
    Pareto: (Uniform,),
    Poisson: (Bernoulli,),
}
_NOWHERE = [
    *product(_REAL, (*_POSITIVE, *_UNIT, Pareto, Uniform)),
    *product(_POSITIVE, (*_UNIT, Pareto, Uniform)),
    *product((Pareto,), (*_UNIT, Uniform)),
    *product(_UNIT, (Pareto,)),
    *product((Poisson,), (Bernoulli, Binomial)),
]
for _q, _ps in _ACROSS.items():
    _KL_REGISTRY.update({(_p, _q): _across for _p in _ps})
_KL_REGISTRY.update(dict.fromkeys(_NOWHERE, _nowhere))


# Distributions of vectors and made of others.

_Gaussian = MultivariateNormal | LowRankMultivariateNormal


def _roots(p: _Gaussian) -> list[Tensor]:
    """Matrices whose products with their transposes add up to the covariance."""
    if isinstance(p, MultivariateNormal):
        return [p._unbroadcasted_scale_tril]
    return [p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()]


def _log_det(d: _Gaussian) -> Tensor:
    if isinstance(d, MultivariateNormal):
        return 2 * log_diagonal(d._unbroadcasted_scale_tril)
    return _batch_lowrank_logdet(*d._factors, d._capacitance_tril)


def _trace(q: _Gaussian, root: Tensor) -> Tensor:
    """tr(V^-1 R R^T) for the covariance V of q and a matrix R."""
    if isinstance(q, MultivariateNormal):
        return solve_lower(q._unbroadcasted_scale_tril, root).square().sum((-2, -1))
    W, D = q._factors
    scaled = root / D.unsqueeze(-1)
    explained = solve_lower(q._capacitance_tril, W.mT @ scaled).square().sum((-2, -1))
    return (scaled * root).sum((-2, -1)) - explained


def _distance(q: _Gaussian, away: Tensor) -> Tensor:
    if isinstance(q, MultivariateNormal):
        return _batch_mahalanobis(q._unbroadcasted_scale_tril, away)
    return _batch_lowrank_mahalanobis(*q._factors, away, q._capacitance_tril)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p: _Gaussian, q: _Gaussian) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {type(p).__name__} and {type(q).__name__} with different "
            "event shapes cannot be computed"
        )
    traces = sum(_trace(q, root) for root in _roots(p))
    volume = _log_det(q) - _log_det(p)
    return 0.5 * (volume + traces + _distance(q, q.loc - p.loc) - p.event_shape[0])


@register_kl(Independent, Independent)
def _kl_independent_independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "KL between Independent distributions with other numbers of reinterpreted dimensions"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL between distributions transformed in different ways")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    params, normalizer, means = p._mean_statistics()
    others = q._natural_params
    gaps = tuple(other - param for other, param in zip(others, params, strict=True))
    return q._log_normalizer(*others) - normalizer - p._inner(gaps, means)
