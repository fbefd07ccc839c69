"""The F distribution of Fisher and Snedecor."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._special import lbeta
from torch.distributions.distribution import Distribution
from torch.distributions.gamma import Gamma

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared variables, each over its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parts = ("_gamma1", "_gamma2")

    def __init__(
        self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self._set_parameters(validate_args, df1=df1, df2=df2)
        # A chi-squared variable over its degrees of freedom is a gamma one.
        self._gamma1 = Gamma(0.5 * self.df1, self.df1, validate_args=False)
        self._gamma2 = Gamma(0.5 * self.df2, self.df2, validate_args=False)

    @property
    def mean(self) -> Tensor:
        """df2 / (df2 - 2); NaN unless df2 > 2."""
        return (self.df2 / (self.df2 - 2)).masked_fill(self.df2 <= 2, torch.nan)

    @property
    def mode(self) -> Tensor:
        """(1 - 2 / df1) df2 / (df2 + 2); NaN unless df1 > 2."""
        peak = (1 - 2 / self.df1) * (self.df2 / (2 + self.df2))
        return peak.masked_fill(self.df1 <= 2, torch.nan)

    @property
    def variance(self) -> Tensor:
        """2 mean^2 (df1 + df2 - 2) / (df1 (df2 - 4)); NaN unless df2 > 4."""
        over = self.df2 - 4
        spread = 2 * (self.df1 + self.df2 - 2) / (self.df1 * over)
        return (self.mean.square() * spread).masked_fill(over <= 0, torch.nan)

    def _draw(self, shape: torch.Size) -> Tensor:
        lead = self._lead(shape)
        over, under = self._gamma1.rsample(lead), self._gamma2.rsample(lead)
        ratio = over / under
        # A ratio that underflows stays in the support, and keeps its gradient.
        ratio.detach().clamp_(min=torch.finfo(ratio.dtype).tiny)
        return ratio

    def _log_density(self, value: Tensor) -> Tensor:
        half1, half2 = 0.5 * self.df1, 0.5 * self.df2
        ratio = self.df1 / self.df2
        power = half1 * ratio.log() + (half1 - 1) * torch.log(value)
        return power - (half1 + half2) * torch.log1p(ratio * value) - lbeta(half1, half2)
