"""The Gumbel distribution."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.transformed_distribution import TransformedDistribution
from torch.distributions.transforms import AffineTransform, ExpTransform
from torch.distributions.uniform import Uniform
from torch.distributions.utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The largest of many variables: exp(-exp(-z)) is the probability below, z in ``scale`` units.

    Samples are loc - scale log(-log(u)) for u uniform; density and distribution function are
    computed directly, without the uniform variable, which has no digits left in the tails.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _parts = ("base_dist", "transforms")

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = torch.finfo(self.loc.dtype)
        low = torch.full_like(self.loc, info.tiny)
        high = torch.full_like(self.loc, 1 - info.eps)
        log, negate = ExpTransform().inv, AffineTransform(0, -1)
        steps = [log, negate, log, AffineTransform(self.loc, -self.scale)]
        super().__init__(Uniform(low, high, validate_args=False), steps, validate_args)

    @property
    def mean(self) -> Tensor:
        """loc + Euler's constant times scale."""
        return self.loc + euler_constant * self.scale

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def stddev(self) -> Tensor:
        """pi scale / sqrt(6)."""
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        """The square of the standard deviation."""
        return math.pi**2 / 6 * self.scale.square()

    def _standardized(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale

    def _log_density(self, value: Tensor) -> Tensor:
        z = self._standardized(value)
        return -z - torch.exp(-z) - torch.log(self.scale)

    def _cdf(self, value: Tensor) -> Tensor:
        return torch.exp(-torch.exp(-self._standardized(value)))

    def _quantile(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * torch.log(-torch.log(value))

    def entropy(self) -> Tensor:
        """log(scale) + 1 + Euler's constant."""
        return torch.log(self.scale) + (1 + euler_constant)
