"""The Weibull distribution."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.exponential import Exponential
from torch.distributions.transformed_distribution import TransformedDistribution
from torch.distributions.transforms import AffineTransform, PowerTransform
from torch.distributions.utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """scale e^(1/k) for e of the standard exponential distribution, k = ``concentration``."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _parts = ("base_dist", "transforms", "concentration_reciprocal")

    def __init__(
        self,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = 1 / self.concentration
        unit = Exponential(torch.ones_like(self.scale), validate_args=False)
        power = PowerTransform(self.concentration_reciprocal)
        super().__init__(unit, [power, AffineTransform(0, self.scale)], validate_args)

    def _log_moment(self, order: int) -> Tensor:
        """The logarithm of the mean of (x / scale)^order."""
        return torch.lgamma(1 + order / self.concentration)

    @property
    def mean(self) -> Tensor:
        """scale Gamma(1 + 1/k)."""
        return self.scale * self._log_moment(1).exp()

    @property
    def mode(self) -> Tensor:
        """scale (1 - 1/k)^(1/k)."""
        inverse = 1 / self.concentration
        return self.scale * (1 - inverse).pow(inverse)

    @property
    def variance(self) -> Tensor:
        """mean^2 (Gamma(1 + 2/k) / Gamma(1 + 1/k)^2 - 1)."""
        ratio = self._log_moment(2) - 2 * self._log_moment(1)
        return self.mean.square() * torch.expm1(ratio)

    def _log_density(self, value: Tensor) -> Tensor:
        k = self.concentration
        z = value / self.scale
        return torch.log(k / self.scale) + torch.xlogy(k - 1, z) - z.pow(k)

    def _cdf(self, value: Tensor) -> Tensor:
        return -torch.expm1(-torch.pow(value / self.scale, self.concentration))

    def _quantile(self, value: Tensor) -> Tensor:
        return self.scale * torch.pow(-torch.log1p(-value), 1 / self.concentration)

    def entropy(self) -> Tensor:
        """Euler's constant times (1 - 1/k), plus log(scale / k) + 1."""
        k = self.concentration
        return euler_constant * (1 - 1 / k) + torch.log(self.scale / k) + 1
