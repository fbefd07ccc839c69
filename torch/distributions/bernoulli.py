"""The Bernoulli distribution."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._probs import ProbsOrLogits
from torch.distributions.exp_family import ExponentialFamily
from torch.distributions.utils import Number, broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """One with probability ``probs``, else zero; ``logits`` are the log odds."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _parts = ("_given",)

    def __init__(
        self,
        probs: Tensor | Number | None = None,
        logits: Tensor | Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_parameters(validate_args, **self._one_of(probs, logits))

    @property
    def mean(self) -> Tensor:
        """The probability of a one."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The likelier outcome; NaN when both are as likely."""
        return (2 * self.probs - 1).sign().add(1).div(2).masked_fill(self.probs == 0.5, torch.nan)

    @property
    def variance(self) -> Tensor:
        """p (1 - p)."""
        return self.probs * (1 - self.probs)

    def _draw(self, shape: torch.Size) -> Tensor:
        return torch.bernoulli(self.probs.expand(shape))

    def _log_density(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        """The mean of minus the log probability, which is linear in the outcome."""
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Zero and one."""
        both = torch.arange(2, dtype=self._param.dtype, device=self._param.device)
        return self._spread(both, expand)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (torch.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return torch.logaddexp(x, torch.zeros_like(x))
