"""The generalized Pareto distribution of excesses over a threshold.

Everything goes through g = log(1 + c z) / c, c = ``concentration`` and z the standardized value:
the survival function is exp(-g), and for c = 0, where g = z, the distribution is exponential.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.distribution import Distribution

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Values above ``loc`` with a tail of index ``concentration``; bounded if negative."""

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _parts = ()

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self._set_parameters(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """From loc on, up to loc - scale / c when c is negative."""
        bounded = self.concentration < 0
        end = self.loc - self.scale / torch.where(bounded, self.concentration, -1.0)
        return constraints.interval(self.loc, torch.where(bounded, end, torch.inf))

    @property
    def mean(self) -> Tensor:
        """loc + scale / (1 - c); infinite unless c < 1."""
        mean = self.loc + self.scale / (1 - self.concentration)
        return mean.masked_fill(self.concentration >= 1, torch.inf)

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """(scale / (1 - c))^2 / (1 - 2c); infinite unless c < 1/2."""
        c = self.concentration
        variance = torch.square(self.scale / (1 - c)) / (1 - 2 * c)
        return variance.masked_fill(c >= 0.5, torch.inf)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def _hazard(self, value: Tensor) -> Tensor:
        """Minus the logarithm of the probability of exceeding the value."""
        z, c = self._z(value), self.concentration
        return torch.where(c == 0, z, torch.log1p(c * z) / self._divisor())

    def _divisor(self) -> Tensor:
        """The concentration, or one where the limit for zero is taken."""
        return torch.where(self.concentration == 0, 1.0, self.concentration)

    def _draw(self, shape: torch.Size) -> Tensor:
        return self._quantile(torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def _log_density(self, value: Tensor) -> Tensor:
        slope = torch.log1p(self.concentration * self._z(value))
        return -self._hazard(value) - slope - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of exceeding the value."""
        return -self._hazard(self._checked(value))

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of :meth:`cdf`."""
        return torch.log(self.cdf(value))

    def _cdf(self, value: Tensor) -> Tensor:
        return -torch.expm1(-self._hazard(value))

    def _quantile(self, value: Tensor) -> Tensor:
        hazard, c = -torch.log1p(-value), self.concentration
        curved = self.scale / self._divisor() * torch.expm1(c * hazard)
        return self.loc + torch.where(c == 0, self.scale * hazard, curved)

    def entropy(self) -> Tensor:
        """log(scale) + c + 1."""
        return self.scale.log() + self.concentration + 1
