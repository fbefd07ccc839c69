"""The generalized Pareto distribution."""

from __future__ import annotations

from typing import Any

import torch
from torch import inf, nan
from torch.distributions import constraints
from torch.distributions.distribution import Distribution
from torch.distributions.utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The limit of excesses over a threshold `loc`: exponential for concentration 0, with a
    power tail above and a bounded one below.
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        names = ("loc", "scale", "concentration")
        return self._expand_parameters(GeneralizedPareto, names, batch_shape, _instance)

    def rsample(self, sample_shape=torch.Size()) -> torch.Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def _is_exponential(self):
        return torch.isclose(self.concentration, torch.zeros_like(self.concentration))

    def _safe_concentration(self, exponential):
        return torch.where(exponential, torch.ones_like(self.concentration), self.concentration)

    def log_prob(self, value) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        exponential = self._is_exponential()
        safe = self._safe_concentration(exponential)
        power = torch.log1p(safe * z) * (1 + 1 / safe)
        return -self.scale.log() - torch.where(exponential, z, power)

    def log_survival_function(self, value) -> Any:
        """log of the probability of a sample above each value."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        exponential = self._is_exponential()
        safe = self._safe_concentration(exponential)
        return torch.where(exponential, -z, -torch.log1p(safe * z) / safe)

    def log_cdf(self, value) -> Any:
        """log of the probability of a sample at most as large as each value."""
        if self._validate_args:
            self._validate_sample(value)
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return torch.exp(self.log_cdf(value))

    def icdf(self, value) -> torch.Tensor:
        exponential = self._is_exponential()
        safe = self._safe_concentration(exponential)
        log_survival = torch.log1p(-value)
        power = torch.expm1(-safe * log_survival) / safe
        return self.loc + self.scale * torch.where(exponential, -log_survival, power)

    def _z(self, x):
        return (x - self.loc) / self.scale

    @property
    def mean(self):
        c = self.concentration
        valid = c < 1
        safe = torch.where(valid, c, 0.5)
        return torch.where(valid, self.loc + self.scale / (1 - safe), nan)

    @property
    def variance(self):
        c = self.concentration
        valid = c < 0.5
        safe = torch.where(valid, c, 0.25)
        return torch.where(valid, self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe)), nan)

    def entropy(self) -> torch.Tensor:
        return torch.log(self.scale) + self.concentration + 1

    @property
    def mode(self):
        return self.loc

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        bounded = self.concentration < 0
        upper = torch.where(bounded, self.loc - self.scale / self.concentration, inf)
        return constraints.interval(self.loc, upper)
