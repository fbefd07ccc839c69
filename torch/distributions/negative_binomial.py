"""The negative binomial distribution of successes before a number of failures."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._probs import ProbsOrLogits
from torch.distributions._special import lbeta
from torch.distributions.gamma import Gamma
from torch.distributions.utils import Number, lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits):
    """Successes of probability ``probs`` before ``total_count`` failures, maybe a fraction."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _parts = ("_given",)

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | Number | None = None,
        logits: Tensor | Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = self._one_of(probs, logits)
        param = given[self._given]
        if isinstance(total_count, Tensor) and isinstance(param, Tensor):
            total_count = total_count.to(param.dtype)
        self._set_parameters(validate_args, **given, total_count=total_count)

    @property
    def mean(self) -> Tensor:
        """r p / (1 - p)."""
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        """The whole part of (r - 1) p / (1 - p), at least zero."""
        return torch.floor((self.total_count - 1) * self.logits.exp()).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        """r p / (1 - p)^2."""
        return self.mean / torch.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        """The distribution of the rate: a negative binomial is a Poisson with a gamma rate."""
        return Gamma(self.total_count, torch.exp(-self.logits), validate_args=False)

    def _draw(self, shape: torch.Size) -> Tensor:
        return torch.poisson(self._gamma.sample(self._lead(shape)))

    def _log_density(self, value: Tensor) -> Tensor:
        r, logits = self.total_count, self.logits
        trials = r * F.logsigmoid(-logits) + value * F.logsigmoid(logits)
        # (k + r - 1 choose k) = 1 / (k B(k, r)); one without successes, none before no failure.
        some, never = value > 0, (value > 0) & (r == 0)
        k, n = torch.where(some, value, 1.0), torch.where(some & ~never, r, 1.0)
        orders = torch.where(some, k.log() + lbeta(k, n), 0.0)
        return (trials - orders).masked_fill(never, -torch.inf)
