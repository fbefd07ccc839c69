"""The Kumaraswamy distribution on the unit interval."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._special import lbeta, log1mexp
from torch.distributions.transformed_distribution import TransformedDistribution
from torch.distributions.transforms import AffineTransform, PowerTransform
from torch.distributions.uniform import Uniform
from torch.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Exceeds x with probability (1 - x^a)^b; a = ``concentration1`` and b = ``concentration0``."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _parts = ("base_dist", "transforms")

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        a, b = broadcast_all(concentration1, concentration0)
        self.concentration1, self.concentration0 = a, b
        uniform = Uniform(torch.zeros_like(a), torch.ones_like(a), validate_args=validate_args)
        steps = [PowerTransform(1 / b), AffineTransform(1, -1), PowerTransform(1 / a)]
        super().__init__(uniform, steps, validate_args)

    def _moment(self, order: int) -> Tensor:
        """The mean of x^order: b B(1 + order / a, b)."""
        a, b = self.concentration1, self.concentration0
        return torch.exp(torch.log(b) + lbeta(1 + order / a, b))

    @property
    def mean(self) -> Tensor:
        """b B(1 + 1/a, b)."""
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """((a - 1) / (a b - 1))^(1/a); NaN where the density has no single peak."""
        a, b = self.concentration1, self.concentration0
        peak = torch.pow((a - 1) / (a * b - 1), 1 / a)
        return peak.masked_fill((a < 1) | (b < 1), torch.nan)

    @property
    def variance(self) -> Tensor:
        """The second moment less the squared mean."""
        return self._moment(2) - self._moment(1).square()

    def _log_density(self, value: Tensor) -> Tensor:
        a, b = self.concentration1, self.concentration0
        powers = torch.xlogy(a - 1, value)
        # 0 log 0 is 0: at b = 1 the second power is one, also where its base is zero.
        rest = (b - 1) * log1mexp(-a * torch.log(value))
        return torch.log(a * b) + powers + torch.where(b == 1, 0.0, rest)

    def _cdf(self, value: Tensor) -> Tensor:
        rest = log1mexp(-self.concentration1 * torch.log(value))
        return -torch.expm1(self.concentration0 * rest)

    def _quantile(self, value: Tensor) -> Tensor:
        inner = -torch.expm1(torch.log1p(-value) / self.concentration0)
        return torch.pow(inner, 1 / self.concentration1)

    def entropy(self) -> Tensor:
        """(1 - 1/b) + (1 - 1/a) H(b) - log(a b) with the harmonic number H."""
        a, b = self.concentration1, self.concentration0
        harmonic = torch.digamma(1 + b) + euler_constant
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - torch.log(a * b)
