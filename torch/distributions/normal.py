"""The normal distribution."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._special import HALF_LOG_2PI
from torch.distributions.exp_family import ExponentialFamily
from torch.distributions.utils import _standard_normal

__all__ = ["Normal"]


class Normal(ExponentialFamily):
    """The normal distribution with mean ``loc`` and standard deviation ``scale``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0
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
        """The scale."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """The square of the scale."""
        return self.scale * self.scale

    def _draw(self, shape: torch.Size) -> Tensor:
        noise = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + noise * self.scale

    def _standardized(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale

    def _log_density(self, value: Tensor) -> Tensor:
        z = self._standardized(value)
        return -0.5 * z * z - torch.log(self.scale) - HALF_LOG_2PI

    def _cdf(self, value: Tensor) -> Tensor:
        return torch.special.ndtr(self._standardized(value))

    def _quantile(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * torch.special.ndtri(value)

    def entropy(self) -> Tensor:
        """log(scale sqrt(2 pi e))."""
        return torch.log(self.scale) + (HALF_LOG_2PI + 0.5)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        precision = self.scale.pow(-2)
        return self.loc * precision, -0.5 * precision

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return 0.5 * torch.log(-math.pi / y) - 0.25 * x * x / y
