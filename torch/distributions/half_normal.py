"""The distribution of the absolute value of a normal variable."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.normal import Normal
from torch.distributions.transformed_distribution import TransformedDistribution
from torch.distributions.transforms import AbsTransform

__all__ = ["HalfNormal"]


class HalfNormal(TransformedDistribution):
    """|x| for x of a normal distribution with mean zero and standard deviation ``scale``."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _parts = ("base_dist", "transforms")
    base_dist: Normal

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        normal = Normal(0, scale, validate_args=False)
        super().__init__(normal, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the normal distribution."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        """scale sqrt(2 / pi)."""
        return math.sqrt(2 / math.pi) * self.scale

    @property
    def mode(self) -> Tensor:
        """Zero."""
        return torch.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        """scale^2 (1 - 2 / pi)."""
        return (1 - 2 / math.pi) * self.scale.square()

    def _log_density(self, value: Tensor) -> Tensor:
        doubled = self.base_dist.log_prob(value) + math.log(2)
        return doubled.masked_fill(value < 0, -torch.inf)

    def _cdf(self, value: Tensor) -> Tensor:
        return torch.erf(value / (math.sqrt(2) * self.scale))

    def icdf(self, prob: Tensor) -> Tensor:
        """The inverse of :meth:`cdf`."""
        return self._quantile(prob)

    def _quantile(self, value: Tensor) -> Tensor:
        return math.sqrt(2) * self.scale * torch.erfinv(value)

    def entropy(self) -> Tensor:
        """That of the normal distribution less log 2."""
        return self.base_dist.entropy() - math.log(2)
