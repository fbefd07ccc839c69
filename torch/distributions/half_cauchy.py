"""The distribution of the absolute value of a Cauchy variable."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.cauchy import Cauchy
from torch.distributions.transformed_distribution import TransformedDistribution
from torch.distributions.transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """|x| for x of a Cauchy distribution around zero with ``scale``."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _parts = ("base_dist", "transforms")
    base_dist: Cauchy

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        cauchy = Cauchy(0, scale, validate_args=False)
        super().__init__(cauchy, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The median."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        """Infinite."""
        return torch.full_like(self.scale, torch.inf)

    @property
    def mode(self) -> Tensor:
        """Zero."""
        return torch.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        """Infinite."""
        return self.base_dist.variance

    def _log_density(self, value: Tensor) -> Tensor:
        value = torch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        doubled = self.base_dist.log_prob(value) + math.log(2)
        return doubled.masked_fill(value < 0, -torch.inf)

    def _cdf(self, value: Tensor) -> Tensor:
        return torch.atan(value / self.scale) * (2 / math.pi)

    def icdf(self, prob: Tensor) -> Tensor:
        """The inverse of :meth:`cdf`."""
        return self._quantile(prob)

    def _quantile(self, value: Tensor) -> Tensor:
        # The angle from the nearer axis.
        low = value < 0.5
        tangent = torch.tan(0.5 * math.pi * torch.where(low, value, 1 - value))
        return self.scale * torch.where(low, tangent, 1 / tangent)

    def entropy(self) -> Tensor:
        """That of the Cauchy distribution less log 2."""
        return self.base_dist.entropy() - math.log(2)
