"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import inf, nan
from torch.distributions import constraints
from torch.distributions.chi2 import Chi2
from torch.distributions.distribution import Distribution
from torch.distributions.utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution with `df` degrees of freedom around `loc`."""

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    @property
    def mean(self):
        mean = self.loc.clone(memory_format=torch.contiguous_format)
        mean[self.df <= 1] = nan
        return mean

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        variance = self.df.clone(memory_format=torch.contiguous_format)
        heavy, finite = self.df <= 2, self.df > 2
        variance[finite] = self.scale[finite].pow(2) * self.df[finite] / (self.df[finite] - 2)
        variance[heavy & (self.df > 1)] = inf
        variance[self.df <= 1] = nan
        return variance

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(StudentT, _instance)
        new._chi2 = self._chi2.expand(torch.Size(batch_shape))
        return self._expand_parameters(StudentT, ("df", "loc", "scale"), batch_shape, new)

    def rsample(self, sample_shape=torch.Size()) -> torch.Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        # A normal variable over the root of an independent chi-squared one's mean square.
        normal = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        square = self._chi2.rsample(sample_shape) / self.df
        return self.loc + self.scale * normal * square.rsqrt()

    def log_prob(self, value) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        half = 0.5 * self.df
        tail = torch.log1p(((value - self.loc) / self.scale).square() / self.df)
        constant = torch.lgamma(half + 0.5) - torch.lgamma(half) - 0.5 * math.log(math.pi)
        return constant - 0.5 * self.df.log() - self.scale.log() - (half + 0.5) * tail

    def entropy(self) -> torch.Tensor:
        log_beta = (
            torch.lgamma(0.5 * self.df) + math.lgamma(0.5) - torch.lgamma(0.5 * (self.df + 1))
        )
        spread = torch.digamma(0.5 * (self.df + 1)) - torch.digamma(0.5 * self.df)
        return self.scale.log() + 0.5 * (self.df + 1) * spread + 0.5 * self.df.log() + log_beta
