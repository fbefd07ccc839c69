"""The Kullback-Leibler divergence KL(p || q) = E_p[log p(x) - log q(x)]: a table from pairs of
classes to closed forms, which users may extend. Most entries are minus the entropy of p minus the
mean of q's log density, written out through the moments of p.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import inf

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily, _recording
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost
from .utils import euler_constant as _euler_gamma

__all__ = ["register_kl", "kl_divergence"]

_KL_REGISTRY = {}  # pairs of classes, as registered
_KL_MEMOIZE = {}  # pairs of classes, as met


def register_kl(type_p, type_q) -> Any:
    """Decorator that registers a function fun(p, q) for a pair of classes. It serves their
    subclasses too; of several that fit, the most derived is called.

        @register_kl(Normal, Normal)
        def kl_normal_normal(p, q): ...
    """
    if not issubclass(type_p, Distribution) and not isinstance(type_p, type):
        raise TypeError(f"Expected type_p to be a Distribution subclass but got {type_p}")
    if not issubclass(type_q, Distribution) and not isinstance(type_q, type):
        raise TypeError(f"Expected type_q to be a Distribution subclass but got {type_q}")

    def decorator(fun):
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


def _more_derived(pair, other):
    """Whether the first class of the pairs that differs is a subclass of the other's."""
    for mine, theirs in zip(pair, other, strict=True):
        if mine is not theirs:
            return issubclass(mine, theirs)
    return False


def _dispatch_kl(type_p, type_q):
    """The function of the most derived registered pair, or NotImplemented. Where looking at p
    first and looking at q first disagree, p decides, with a warning.
    """
    by_p = by_q = None
    for pair in _KL_REGISTRY:
        if not (issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])):
            continue
        if by_p is None or _more_derived(pair, by_p):
            by_p = pair
        if by_q is None or _more_derived(pair[::-1], by_q[::-1]):
            by_q = pair
    if by_p is None:
        return NotImplemented
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[by_p]


def kl_divergence(p, q) -> Any:
    """KL(p || q) of two distributions, one number for each element of their broadcast batch."""
    key = type(p), type(q)
    fun = _KL_MEMOIZE.get(key)
    if fun is None:
        fun = _KL_MEMOIZE[key] = _dispatch_kl(*key)
    if fun is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} "
            f"and q type {q.__class__.__name__}"
        )
    return fun(p, q)


def _infinite_unless(condition, value):
    return torch.where(condition, value, inf)


def _normal_cross_entropy(mean, variance, q):
    """-E[log q(x)] of a normal q for x of the given moments."""
    var_q = q.scale.pow(2)
    distance = (variance + (mean - q.loc).pow(2)) / (2 * var_q)
    return 0.5 * (var_q * 2 * math.pi).log() + distance


def _gamma_cross_entropy(mean, mean_log, q):
    """-E[log q(x)] of a gamma q for x of the given E[x] and E[log x]."""
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    return normalizer - (q.concentration - 1) * mean_log + q.rate * mean


def _exponential_cross_entropy(mean, q):
    return q.rate * mean - q.rate.log()


def _continuous_bernoulli_cross_entropy(mean, q):
    return -mean * q.logits - torch.log1p(-q.probs) - q._log_normalizer_of_probs()


def _gumbel_cross_entropy(mean, mean_exp, q):
    """-E[log q(x)] of a Gumbel q, given E[x] and E[exp(-(x - loc) / scale)]."""
    return q.scale.log() + (mean - q.loc) / q.scale + mean_exp


def _dirichlet_divergence(a, b):
    """Between Dirichlet distributions of concentrations a and b, in the last dimension: the
    difference of the log normalizers and, for each part, of the powers times E[log x]."""

    def log_normalizer(concentration):
        return concentration.lgamma().sum(-1) - concentration.sum(-1).lgamma()

    mean_log = a.digamma() - a.sum(-1, keepdim=True).digamma()
    return log_normalizer(b) - log_normalizer(a) + ((a - b) * mean_log).sum(-1)


def _uniform_mean_log(low, high):
    """E[log x] of x uniform between two non-negative bounds."""
    return (torch.xlogy(high, high) - torch.xlogy(low, low)) / (high - low) - 1


# Distributions of the same kind.


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p, q):
    def surprise(chance, possible, certain, difference):
        # chance * (log of p's probability of an outcome - log of q's), with its limits.
        value = _infinite_unless(possible, chance * difference)
        return torch.where(certain, 0.0, value)

    one = F.softplus(-q.logits) - F.softplus(-p.logits)
    zero = F.softplus(q.logits) - F.softplus(p.logits)
    return surprise(p.probs, q.probs != 0, p.probs == 0, one) + surprise(
        1 - p.probs, q.probs != 1, p.probs == 1, zero
    )


@register_kl(Beta, Beta)
def _kl_beta_beta(p, q):
    return _dirichlet_divergence(
        torch.stack([p.concentration1, p.concentration0], -1),
        torch.stack([q.concentration1, q.concentration0], -1),
    )


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    trial = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return _infinite_unless(p.total_count <= q.total_count, p.total_count * trial)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p, q):
    outcomes = _infinite_unless(q.probs != 0, p.probs * (p.logits - q.logits))
    return torch.where(p.probs == 0, 0.0, outcomes).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p, q):
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p, q):
    # Chyzak and Nielsen, "A closed-form formula for the Kullback-Leibler divergence between
    # Cauchy distributions", 2019.
    apart = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return (apart / (4 * p.scale * q.scale)).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p, q):
    return _continuous_bernoulli_cross_entropy(p.mean, q) - _continuous_bernoulli_cross_entropy(
        p.mean, p
    )


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p, q):
    return _dirichlet_divergence(p.concentration, q.concentration)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    # The Bregman divergence of the log normalizer at the natural parameters.
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot "
            "be computed using Bregman divergences"
        )
    here, there = _recording(p._natural_params), q._natural_params
    with torch.enable_grad():
        height = p._log_normalizer(*here)
        slopes = torch.autograd.grad(height.sum(), here, create_graph=True)
    divergence = q._log_normalizer(*there) - height
    for start, end, slope in zip(here, there, slopes, strict=True):
        divergence = divergence - _sum_rightmost((end - start) * slope, start.dim() - height.dim())
    return divergence


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p, q):
    mean_log = p.concentration.digamma() - p.rate.log()
    return _gamma_cross_entropy(p.mean, mean_log, q) - p.entropy()


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p, q):
    mean_exp = torch.exp((q.loc - p.loc) / q.scale + (1 + p.scale / q.scale).lgamma())
    return _gumbel_cross_entropy(p.mean, mean_exp, q) - p.entropy()


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p, q):
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p, q):
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p, q):
    # E|x - q.loc| for x of p; q is a constant minus that distance over its scale.
    apart = (p.loc - q.loc).abs()
    distance = apart + p.scale * torch.exp(-apart / p.scale)
    return (2 * q.scale).log() + distance / q.scale - p.entropy()


@register_kl(Normal, Normal)
def _kl_normal_normal(p, q):
    ratio = p.scale / q.scale
    shift = (p.loc - q.loc) / q.scale
    return 0.5 * (ratio.square() + shift.square() - 1 - 2 * ratio.log())


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p, q):
    # log(x / q.scale) is exponential beyond where p begins.
    rates = q.alpha / p.alpha
    begin = q.alpha * (p.scale / q.scale).log()
    return _infinite_unless(p.scale >= q.scale, begin + rates - rates.log() - 1)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p, q):
    return torch.xlogy(p.rate, p.rate) - torch.xlogy(p.rate, q.rate) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return _infinite_unless((q.low <= p.low) & (q.high >= p.high), result)


@register_kl(Independent, Independent)
def _kl_independent_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    result = kl_divergence(p.base_dist, q.base_dist)
    return _sum_rightmost(result, p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p, q):
    # One bijection applied to both changes nothing.
    if p.transforms != q.transforms:
        raise NotImplementedError
    if p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


# Multivariate normals.


def _is_low_rank(normal):
    return isinstance(normal, LowRankMultivariateNormal)


def _log_det(normal):
    """log det of the covariance."""
    if _is_low_rank(normal):
        return normal._inverse.log_det()
    return 2 * normal._half_log_det()


def _squared_length(normal, vector):
    """v^T covariance^-1 v."""
    if _is_low_rank(normal):
        return normal._inverse.squared_length(vector)
    return _batch_mahalanobis(normal._unbroadcasted_scale_tril, vector)


def _trace_of_ratio(q, root):
    """trace of covariance_q^-1 M M^T for a matrix M."""
    if _is_low_rank(q):
        return q._inverse.trace_with(root)
    tril = q._unbroadcasted_scale_tril
    batch = torch.broadcast_shapes(tril.shape[:-2], root.shape[:-2])
    tril, root = tril.expand(batch + tril.shape[-2:]), root.expand(batch + root.shape[-2:])
    return torch.linalg.solve_triangular(tril, root, upper=False).square().sum((-2, -1))


def _trace_of_covariances(q, p):
    """trace of covariance_q^-1 covariance_p, part by part of p's covariance."""
    if not _is_low_rank(p):
        return _trace_of_ratio(q, p._unbroadcasted_scale_tril)
    common = _trace_of_ratio(q, p._factor)
    if _is_low_rank(q):
        return common + q._inverse.trace_with_diagonal(p._diagonal)
    return common + _trace_of_ratio(q, p._diagonal.sqrt().diag_embed())


def _normal_divergence(p, q, names):
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {names} with different event shapes cannot be computed"
        )
    volume = _log_det(q) - _log_det(p)
    spread = _trace_of_covariances(q, p) - p.event_shape[0]
    return (volume + spread + _squared_length(q, q.loc - p.loc)) / 2


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_between_low_rank_normals(p, q):
    return _normal_divergence(p, q, "Low Rank Multivariate Normals")


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_with_a_low_rank_normal(p, q):
    return _normal_divergence(p, q, "(Low Rank) Multivariate Normals")


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_between_normals(p, q):
    return _normal_divergence(p, q, "Multivariate Normals")


# Distributions of different kinds, of which q covers the support of p.


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p, q):
    return _continuous_bernoulli_cross_entropy(p.mean, q) - p.entropy()


@register_kl(Beta, Exponential)
def _kl_beta_exponential(p, q):
    return _exponential_cross_entropy(p.mean, q) - p.entropy()


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p, q):
    mean_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return _gamma_cross_entropy(p.mean, mean_log, q) - p.entropy()


@register_kl(Beta, Normal)
def _kl_beta_normal(p, q):
    return _normal_cross_entropy(p.mean, p.variance, q) - p.entropy()


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p, q):
    result = (q.high - q.low).log() - p.entropy()
    return _infinite_unless((q.low <= 0) & (q.high >= 1), result)


@register_kl(ContinuousBernoulli, Exponential)
def _kl_continuous_bernoulli_exponential(p, q):
    return _exponential_cross_entropy(p.mean, q) - p.entropy()


@register_kl(ContinuousBernoulli, Normal)
def _kl_continuous_bernoulli_normal(p, q):
    return _normal_cross_entropy(p.mean, p.variance, q) - p.entropy()


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p, q):
    result = (q.high - q.low).log() - p.entropy()
    return _infinite_unless((q.low <= 0) & (q.high >= 1), result)


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p, q):
    mean_log = -_euler_gamma - p.rate.log()
    return _gamma_cross_entropy(p.mean, mean_log, q) - p.entropy()


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p, q):
    product = p.rate * q.scale
    mean_exp = torch.exp(q.loc / q.scale) * product / (product + 1)
    return _gumbel_cross_entropy(p.mean, mean_exp, q) - p.entropy()


@register_kl(Exponential, Normal)
def _kl_exponential_normal(p, q):
    return _normal_cross_entropy(p.mean, p.variance, q) - p.entropy()


@register_kl(Gamma, Exponential)
def _kl_gamma_exponential(p, q):
    return _exponential_cross_entropy(p.mean, q) - p.entropy()


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p, q):
    decay = (1 + (p.rate * q.scale).reciprocal()).pow(-p.concentration)
    mean_exp = torch.exp(q.loc / q.scale) * decay
    return _gumbel_cross_entropy(p.mean, mean_exp, q) - p.entropy()


@register_kl(Gamma, Normal)
def _kl_gamma_normal(p, q):
    return _normal_cross_entropy(p.mean, p.variance, q) - p.entropy()


@register_kl(Gumbel, Normal)
def _kl_gumbel_normal(p, q):
    return _normal_cross_entropy(p.mean, p.variance, q) - p.entropy()


@register_kl(Laplace, Normal)
def _kl_laplace_normal(p, q):
    return _normal_cross_entropy(p.mean, p.variance, q) - p.entropy()


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p, q):
    mean_exp = torch.exp((q.loc - p.loc) / q.scale + 0.5 * (p.scale / q.scale).pow(2))
    return _gumbel_cross_entropy(p.mean, mean_exp, q) - p.entropy()


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p, q):
    z = (p.loc - q.loc) / p.scale
    folded = math.sqrt(2 / math.pi) * torch.exp(-0.5 * z.pow(2)) + z * torch.erf(z / math.sqrt(2))
    return (2 * q.scale).log() + p.scale * folded / q.scale - p.entropy()


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p, q):
    return _infinite_unless(p.alpha > 1, _exponential_cross_entropy(p.mean, q) - p.entropy())


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p, q):
    mean_log = p.scale.log() + p.alpha.reciprocal()
    return _infinite_unless(p.alpha > 1, _gamma_cross_entropy(p.mean, mean_log, q) - p.entropy())


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p, q):
    result = _normal_cross_entropy(p.mean, p.variance, q) - p.entropy()
    return _infinite_unless(p.alpha > 2, result)


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p, q):
    c1, c0 = q.concentration1, q.concentration0
    log_beta = c1.lgamma() + c0.lgamma() - (c1 + c0).lgamma()
    powers = (c1 - 1) * _uniform_mean_log(p.low, p.high)
    powers = powers + (c0 - 1) * _uniform_mean_log(1 - p.high, 1 - p.low)
    return _infinite_unless((p.low >= 0) & (p.high <= 1), log_beta - powers - p.entropy())


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p, q):
    result = _continuous_bernoulli_cross_entropy(p.mean, q) - p.entropy()
    return _infinite_unless((p.low >= 0) & (p.high <= 1), result)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponetial(p, q):
    return _infinite_unless(p.low >= 0, _exponential_cross_entropy(p.mean, q) - p.entropy())


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p, q):
    mean_log = _uniform_mean_log(p.low, p.high)
    return _infinite_unless(p.low >= 0, _gamma_cross_entropy(p.mean, mean_log, q) - p.entropy())


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p, q):
    low = torch.exp((q.loc - p.low) / q.scale)
    high = torch.exp((q.loc - p.high) / q.scale)
    mean_exp = q.scale * (low - high) / (p.high - p.low)
    return _gumbel_cross_entropy(p.mean, mean_exp, q) - p.entropy()


@register_kl(Uniform, Normal)
def _kl_uniform_normal(p, q):
    return _normal_cross_entropy(p.mean, p.variance, q) - p.entropy()


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p, q):
    mean_log = _uniform_mean_log(p.low, p.high)
    cross = (q.alpha + 1) * mean_log - q.alpha.log() - q.alpha * q.scale.log()
    return _infinite_unless(p.low >= q.scale, cross - p.entropy())


# Distributions p, each with a parameter that has its shape, and those q that do not cover the
# support of p.
_NOT_COVERED = [
    (Beta, "concentration1", [Pareto]),
    (ContinuousBernoulli, "probs", [Pareto]),
    (Exponential, "rate", [Beta, ContinuousBernoulli, Pareto, Uniform]),
    (Gamma, "concentration", [Beta, ContinuousBernoulli, Pareto, Uniform]),
    (Gumbel, "loc", [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform]),
    (Laplace, "loc", [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform]),
    (Normal, "loc", [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform]),
    (Pareto, "scale", [Beta, ContinuousBernoulli, Uniform]),
    (Poisson, "rate", [Bernoulli, Binomial]),
]


def _infinite(parameter):
    return lambda p, q: torch.full_like(getattr(p, parameter), inf)


for _p, _parameter, _others in _NOT_COVERED:
    for _q in _others:
        register_kl(_p, _q)(_infinite(_parameter))
