"""The Cauchy distribution."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.distribution import Distribution

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The ratio of two normal variables: median ``loc``, half width at half maximum ``scale``."""

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
        """NaN: the integral does not converge."""
        return torch.full_like(self.loc, torch.nan)

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Infinite."""
        return torch.full_like(self.loc, torch.inf)

    def _draw(self, shape: torch.Size) -> Tensor:
        unit = torch.empty(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + unit.cauchy_() * self.scale

    def _standardized(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale

    def _log_density(self, value: Tensor) -> Tensor:
        # hypot does not overflow where a square would.
        z = self._standardized(value)
        return -torch.log(math.pi * self.scale) - 2 * torch.hypot(z, torch.ones_like(z)).log()

    def _cdf(self, value: Tensor) -> Tensor:
        # The angle seen from below keeps its digits far out on the left.
        z = self._standardized(value)
        return torch.atan2(torch.ones_like(z), -z) / math.pi

    def _quantile(self, value: Tensor) -> Tensor:
        low = value < 0.5
        cotangent = torch.tan(math.pi * torch.where(low, value, 1 - value)).reciprocal()
        return self.loc + self.scale * torch.where(low, -cotangent, cotangent)

    def entropy(self) -> Tensor:
        """log(4 pi scale)."""
        return torch.log(4 * math.pi * self.scale)
