"""The inverse gamma distribution."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.gamma import Gamma
from torch.distributions.transformed_distribution import TransformedDistribution
from torch.distributions.transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / x for x of a gamma distribution with the same parameters."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parts = ("base_dist", "transforms")
    base_dist: Gamma

    def __init__(
        self,
        concentration: Tensor | float,
        rate: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        gamma = Gamma(concentration, rate, validate_args=validate_args)
        minus_one = gamma.rate.new_tensor(-1.0)
        super().__init__(gamma, PowerTransform(minus_one), validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape of the gamma distribution."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma distribution."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        """rate / (a - 1); infinite unless a > 1."""
        over = self.concentration - 1
        return (self.rate / over).masked_fill(over <= 0, torch.inf)

    @property
    def mode(self) -> Tensor:
        """rate / (a + 1)."""
        return self.rate / (1 + self.concentration)

    @property
    def variance(self) -> Tensor:
        """mean^2 / (a - 2); infinite unless a > 2."""
        over = self.concentration - 2
        return (self.mean.square() / over).masked_fill(over <= 0, torch.inf)

    def _log_density(self, value: Tensor) -> Tensor:
        return self.base_dist._log_density(1 / value) - 2 * torch.log(value)

    def _cdf(self, value: Tensor) -> Tensor:
        return torch.special.gammaincc(self.concentration, self.rate / value)

    def entropy(self) -> Tensor:
        """a + log(rate) + log Gamma(a) - (1 + a) digamma(a)."""
        a = self.concentration
        return torch.lgamma(a) - (1 + a) * torch.digamma(a) + a + self.rate.log()
