"""The Poisson distribution."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._special import log_poisson
from torch.distributions.exp_family import ExponentialFamily
from torch.distributions.utils import Number, broadcast_all

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """The number of events when ``rate`` are expected: rate^k exp(-rate) / k!."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _parts = ()

    def __init__(self, rate: Tensor | Number, validate_args: bool | None = None) -> None:
        self._set_parameters(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        """The rate."""
        return self.rate

    @property
    def mode(self) -> Tensor:
        """The whole part of the rate."""
        return torch.floor(self.rate)

    @property
    def variance(self) -> Tensor:
        """The rate."""
        return self.rate

    def _draw(self, shape: torch.Size) -> Tensor:
        return torch.poisson(self.rate.expand(shape))

    def _log_density(self, value: Tensor) -> Tensor:
        rate, value = broadcast_all(self.rate, value)
        return log_poisson(value, rate)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (torch.log(self.rate),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return torch.exp(x)
