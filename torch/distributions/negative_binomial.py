"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch.distributions import constraints
from torch.distributions._probs import BinaryParameters, require_one
from torch.distributions.distribution import Distribution
from torch.distributions.gamma import Gamma
from torch.distributions.utils import broadcast_all, lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(BinaryParameters, Distribution):
    """The number of successes of probability `probs` before `total_count` failures, which need
    not be a whole number.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None) -> None:
        require_one(probs, logits)
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
            self.total_count = self.total_count.type_as(self.probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
            self.total_count = self.total_count.type_as(self.logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        names = ("total_count", "probs", "logits")
        return self._expand_parameters(NegativeBinomial, names, batch_shape, _instance)

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    @property
    def mean(self):
        return self.total_count * torch.exp(self.logits)

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self):
        return self.mean / torch.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        """A Poisson variable whose rate is gamma distributed is negative binomial."""
        return Gamma(
            concentration=self.total_count, rate=torch.exp(-self.logits), validate_args=False
        )

    def sample(self, sample_shape=torch.Size()) -> torch.Tensor:  # noqa: B008
        with torch.no_grad():
            return torch.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        count = self.total_count
        # Without failures to wait for, 0 successes are certain: both gamma functions are infinite.
        certain = count + value == 0.0
        orders = torch.lgamma(count + value) - torch.lgamma(count) - torch.lgamma(value + 1.0)
        orders = orders.masked_fill(certain, 0.0)
        return orders + count * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
