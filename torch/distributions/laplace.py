"""The Laplace, or two-sided exponential, distribution."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.distribution import Distribution

__all__ = ["Laplace"]


class Laplace(Distribution):
    """exp(-|x - loc| / scale) / (2 scale)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parts = ()

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self._set_parameters(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def stddev(self) -> Tensor:
        """sqrt(2) scale."""
        return math.sqrt(2) * self.scale

    @property
    def variance(self) -> Tensor:
        """2 scale^2."""
        return 2 * self.scale.square()

    def _draw(self, shape: torch.Size) -> Tensor:
        # Uniform in (-1, 1): the sign picks the side, the distance from the ends the exponential.
        side = torch.empty(shape, dtype=self.loc.dtype, device=self.loc.device)
        side.uniform_(torch.finfo(side.dtype).eps - 1, 1)
        return self.loc + self.scale * torch.copysign(torch.log1p(-side.abs()), side)

    def _log_density(self, value: Tensor) -> Tensor:
        return -torch.log(2 * self.scale) - torch.abs(value - self.loc) / self.scale

    def _cdf(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        tail = 0.5 * torch.exp(-z.abs())
        return torch.where(z < 0, tail, 1 - tail)

    def _quantile(self, value: Tensor) -> Tensor:
        # From the nearer end, so that neither tail loses digits.
        low = value < 0.5
        tail = torch.where(low, value, 1 - value)
        distance = torch.log(2 * tail)
        return self.loc + self.scale * torch.where(low, distance, -distance)

    def entropy(self) -> Tensor:
        """1 + log(2 scale)."""
        return torch.log(2 * self.scale) + 1
