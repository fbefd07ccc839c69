"""Logarithms of gamma functions and densities without the cancellation of the plain formulas.

log n! - log k! - log (n - k)! subtracts numbers of size n log n whose difference is small: in
float32 nothing is left at n = 1e6. Here the large parts are removed by hand. Stirling's series
gives lgamma(x) = (x - 1/2) log x - x + log(2 pi)/2 + stirling_error(x), and the rest combines into
deviances k log(k/m) - k + m, which are small where the density is large (C. Loader, "Fast and
accurate computation of binomial probabilities", 2000).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def stirling_error(x: Tensor) -> Tensor:
    """lgamma(x) minus Stirling's (x - 1/2) log x - x + log(2 pi)/2, for x > 0."""
    small = x < 16
    # Each branch sees only arguments at which its value and derivative are finite.
    low = torch.where(small, x, 1.0)
    high = torch.where(small, 16.0, x)
    exact = torch.lgamma(low) - (low - 0.5) * low.log() + low - HALF_LOG_2PI
    return torch.where(small, exact, stirling_series(high))


def stirling_series(x: Tensor) -> Tensor:
    """stirling_error(x) for x >= 16, where five terms are enough."""
    r = x.reciprocal()
    r2 = r * r
    return r * (1 / 12 - r2 * (1 / 360 - r2 * (1 / 1260 - r2 * (1 / 1680 - r2 / 1188))))


def deviance(k: Tensor, m: Tensor) -> Tensor:
    """k log(k / m) - k + m for k >= 0 and m >= 0; zero at k == m, m at k == 0."""
    gap, total = k - m, k + m
    near = gap.abs() < 0.1 * total
    # Near k == m, with v = (k - m)/(k + m): log(k / m) = 2 atanh(v), so that the deviance is
    # (k - m) v + 2 k (v^3/3 + v^5/5 + ...). |v| < 0.1: each term is a hundredth of the one before.
    v = torch.where(near, gap / torch.where(near, total, 1.0), 0.0)
    v2 = v * v
    last = 17 if k.dtype == torch.float64 else 9
    tail = 1 / last
    for odd in range(last - 2, 1, -2):
        tail = tail * v2 + 1 / odd
    series = gap * v + 2 * k * v * v2 * tail
    # m == 0 < k is impossible under the distribution: infinite, through the logarithm.
    ratio = torch.where(near | (k == 0), 1.0, k / torch.where(near, 1.0, m))
    direct = k * ratio.log() - gap
    return torch.where(near, series, direct)


def lbeta(a: Tensor, b: Tensor) -> Tensor:
    """log B(a, b) = lgamma(a) + lgamma(b) - lgamma(a + b)."""
    total = a + b
    entropy = a * torch.log1p(b / a) + b * torch.log1p(a / b)
    errors = stirling_error(a) + stirling_error(b) - stirling_error(total)
    return errors - entropy + 0.5 * (total / a / b).log() + HALF_LOG_2PI


def log1mexp(t: Tensor) -> Tensor:
    """log(1 - exp(-t)) for t >= 0, without losing either the one or the exponential."""
    near = t < math.log(2)
    small = torch.where(near, t, 1.0)
    large = torch.where(near, 1.0, t)
    return torch.where(near, torch.log(-torch.expm1(-small)), torch.log1p(-torch.exp(-large)))


def log_poisson(k: Tensor, rate: Tensor) -> Tensor:
    """k log(rate) - rate - lgamma(k + 1) for k >= 0."""
    zero = k == 0
    n = torch.where(zero, 1.0, k)
    positive = -deviance(n, rate) - stirling_error(n) - 0.5 * n.log() - HALF_LOG_2PI
    return torch.where(zero, -rate, positive)


def log_choose(n: Tensor, k: Tensor) -> Tensor:
    """The logarithm of the binomial coefficient, for real 0 <= k <= n."""
    return -torch.log1p(n) - lbeta(k + 1, n - k + 1)
