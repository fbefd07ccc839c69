"""The continuous Bernoulli distribution on the unit interval.

With logits x the density at v is exp(x v) x / (exp(x) - 1). Around z = x / 2 it is symmetric, and
everything follows from s(z) = log(sinh(z) / z): log density x (v - 1/2) - s(z), mean
1/2 + s'(z)/2, variance s''(z)/4. Near z = 0 one series gives all three, so that nothing is lost
around probability 1/2 and no value is clamped at the edges.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._probs import ProbsOrLogits
from torch.distributions.exp_family import ExponentialFamily
from torch.distributions.utils import Number, clamp_probs

__all__ = ["ContinuousBernoulli"]

# coth(z) - 1/z = sum of _COTH[n] z^(2n + 1), from the Bernoulli numbers.
_COTH = (
    1 / 3,
    -1 / 45,
    2 / 945,
    -1 / 4725,
    2 / 93555,
    -1382 / 638512875,
    4 / 18243225,
    -3617 / 162820783125,
    87734 / 38979295480125,
)
_NEAR = 0.4  # the series is exact to float64 below


def _even_series(z: Tensor, weight: Callable[[int], float]) -> Tensor:
    """The sum over n of _COTH[n] weight(n) z^(2n)."""
    square = z * z
    total = torch.zeros_like(z)
    for n in reversed(range(len(_COTH))):
        total = total * square + _COTH[n] * weight(n)
    return total


def _split(z: Tensor, near: Callable[[Tensor], Tensor], far: Callable[[Tensor], Tensor]) -> Tensor:
    """near(z) around zero, far(|z|) elsewhere; neither sees arguments of the other."""
    size = z.abs()
    close = size < _NEAR
    return torch.where(close, near(torch.where(close, z, 0.0)), far(torch.where(close, 1.0, size)))


def _log_sinhc(z: Tensor) -> Tensor:
    """log(sinh(z) / z)."""
    return _split(
        z,
        lambda v: v * v * _even_series(v, lambda n: 1 / (2 * n + 2)),
        lambda v: v + torch.log1p(-torch.exp(-2 * v)) - torch.log(2 * v),
    )


def _langevin(z: Tensor) -> Tensor:
    """coth(z) - 1/z, the derivative of log(sinh(z) / z)."""
    sign = torch.where(z < 0, -1.0, 1.0).to(z.dtype)
    return _split(
        z,
        lambda v: v * _even_series(v, lambda n: 1.0),
        lambda v: sign * (1 / torch.tanh(v) - 1 / v),
    )


def _langevin_slope(z: Tensor) -> Tensor:
    """1/z^2 - 1/sinh(z)^2, the second derivative of log(sinh(z) / z)."""

    def far(v: Tensor) -> Tensor:
        q = torch.exp(-2 * v)
        return 1 / (v * v) - 4 * q / (1 - q) ** 2

    return _split(z, lambda v: _even_series(v, lambda n: 2 * n + 1), far)


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers of the unit interval with density proportional to p^v (1 - p)^(1 - v).

    ``lims`` once bounded the region around 1/2 that was computed by a series; it has no effect.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _parts = ("_given", "_lims")

    def __init__(
        self,
        probs: Tensor | Number | None = None,
        logits: Tensor | Number | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._lims = lims
        self._set_parameters(validate_args, **self._one_of(probs, logits))
        if self._given == "probs":
            self.probs = clamp_probs(self.probs)

    @property
    def mean(self) -> Tensor:
        """1/2 + (coth(z) - 1/z) / 2 at half the logits z."""
        return 0.5 + 0.5 * _langevin(self.logits / 2)

    @property
    def variance(self) -> Tensor:
        """(1/z^2 - 1/sinh(z)^2) / 4 at half the logits z."""
        return 0.25 * _langevin_slope(self.logits / 2)

    def _draw(self, shape: torch.Size) -> Tensor:
        uniform = torch.rand(shape, dtype=self._param.dtype, device=self._param.device)
        return self._quantile(uniform)

    def _log_density(self, value: Tensor) -> Tensor:
        return self.logits * (value - 0.5) - _log_sinhc(self.logits / 2)

    def _branches(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Where the logits are zero and where exp() of them is large, and logits safe for each."""
        x = self.logits
        zero, large = x == 0, x > 20
        return zero, large, torch.where(zero | large, 1.0, x), torch.where(large, x, 20.0)

    def _cdf(self, value: Tensor) -> Tensor:
        zero, large, x, big = self._branches()
        small = torch.expm1(x * value) / torch.expm1(x)
        far = torch.exp(big * (value - 1)) * torch.expm1(-big * value) / torch.expm1(-big)
        inner = torch.where(zero, value, torch.where(large, far, small))
        return inner.masked_fill(value <= 0, 0.0).masked_fill(value >= 1, 1.0)

    def _quantile(self, value: Tensor) -> Tensor:
        zero, large, x, big = self._branches()
        small = torch.log1p(value * torch.expm1(x)) / x
        far = 1 + torch.log(value + (1 - value) * torch.exp(-big)) / big
        return torch.where(zero, value, torch.where(large, far, small))

    def entropy(self) -> Tensor:
        """s(z) - z s'(z)."""
        half = self.logits / 2
        return _log_sinhc(half) - half * _langevin(half)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return 0.5 * x + _log_sinhc(0.5 * x)
