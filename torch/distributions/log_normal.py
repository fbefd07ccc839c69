"""The log-normal distribution."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.normal import Normal
from torch.distributions.transformed_distribution import TransformedDistribution
from torch.distributions.transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """exp(x) for x of a normal distribution with mean ``loc``, standard deviation ``scale``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parts = ("base_dist", "transforms")
    base_dist: Normal

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        normal = Normal(loc, scale, validate_args=validate_args)
        super().__init__(normal, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        """exp(loc + scale^2 / 2)."""
        return torch.exp(self.loc + 0.5 * self.base_dist.variance)

    @property
    def mode(self) -> Tensor:
        """exp(loc - scale^2)."""
        return torch.exp(self.loc - self.base_dist.variance)

    @property
    def variance(self) -> Tensor:
        """mean^2 (exp(scale^2) - 1)."""
        return self.mean.square() * torch.expm1(self.base_dist.variance)

    def entropy(self) -> Tensor:
        """That of the normal distribution plus loc."""
        return self.loc + self.base_dist.entropy()
