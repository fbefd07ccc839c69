"""The exponential distribution."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.exp_family import ExponentialFamily

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Waiting times of events that come at ``rate``: rate exp(-rate x)."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _parts = ()

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self._set_parameters(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        """1 / rate."""
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        """Zero."""
        return torch.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        """1 / rate."""
        return self.mean

    @property
    def variance(self) -> Tensor:
        """1 / rate^2."""
        return self.mean.square()

    def _draw(self, shape: torch.Size) -> Tensor:
        unit = torch.empty(shape, dtype=self.rate.dtype, device=self.rate.device)
        return unit.exponential_() / self.rate

    def _log_density(self, value: Tensor) -> Tensor:
        return torch.log(self.rate) - value * self.rate

    def _cdf(self, value: Tensor) -> Tensor:
        return -torch.expm1(-value * self.rate)

    def _quantile(self, value: Tensor) -> Tensor:
        return -torch.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        """1 - log(rate)."""
        return 1 - torch.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (torch.neg(self.rate),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return -torch.log(torch.neg(x))
