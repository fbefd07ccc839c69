"""The gamma distribution."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._special import HALF_LOG_2PI, deviance, stirling_series
from torch.distributions.exp_family import ExponentialFamily

__all__ = ["Gamma"]


def _standard_gamma(concentration: Tensor) -> Tensor:
    return torch._standard_gamma(concentration)


class Gamma(ExponentialFamily):
    """rate^a x^(a - 1) exp(-rate x) / Gamma(a) with a = ``concentration``."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _parts = ()

    def __init__(
        self,
        concentration: Tensor | float,
        rate: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self._set_parameters(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Tensor:
        """a / rate."""
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        """(a - 1) / rate, or zero when a < 1."""
        return torch.clamp(self.concentration - 1, min=0) / self.rate

    @property
    def variance(self) -> Tensor:
        """a / rate^2."""
        return self.mean / self.rate

    def _draw(self, shape: torch.Size) -> Tensor:
        unit = _standard_gamma(self.concentration.expand(shape))
        sample = unit / self.rate
        # Zero is outside of the support of what divides by a sample.
        sample.detach().clamp_(min=torch.finfo(sample.dtype).tiny)
        return sample

    def log_prob(self, value: Tensor | float) -> Tensor:
        """The logarithm of the density; plain numbers are taken too."""
        like = self.rate
        return super().log_prob(torch.as_tensor(value, dtype=like.dtype, device=like.device))

    def _log_density(self, value: Tensor) -> Tensor:
        a, rate = self.concentration, self.rate
        scaled = rate * value
        # For a large shape the terms cancel; see _special. At x = 0 the plain formula has the
        # right limits.
        large = (a >= 16) & (scaled > 0)
        shape, point = torch.where(large, a, 16.0), torch.where(large, scaled, 16.0)
        error = stirling_series(shape)
        centred = 0.5 * shape.log() - HALF_LOG_2PI - error - deviance(shape, point)
        shape, point = torch.where(large, 1.0, a), torch.where(large, 1.0, value)
        plain = torch.xlogy(shape, rate) + torch.xlogy(shape - 1, point) - rate * point
        return torch.where(
            large,
            centred - torch.where(large, value, 1.0).log(),
            plain - torch.lgamma(shape),
        )

    def _cdf(self, value: Tensor) -> Tensor:
        return torch.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        """a - log(rate) + log Gamma(a) + (1 - a) digamma(a)."""
        a = self.concentration
        return torch.lgamma(a) - (a - 1) * torch.digamma(a) + a - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration - 1, torch.neg(self.rate)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.lgamma(1 + x) - (1 + x) * torch.log(torch.neg(y))
