"""Continuous relaxations of the Bernoulli distribution.

Maddison et al., "The Concrete Distribution" (2016); Jang et al., "Categorical Reparameterization
with Gumbel-Softmax" (2016).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._probs import ProbsOrLogits
from torch.distributions.transformed_distribution import TransformedDistribution
from torch.distributions.transforms import SigmoidTransform
from torch.distributions.utils import Number, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The log odds of a relaxed Bernoulli variable: logistic noise around ``logits``.

    All is divided by ``temperature``; as that goes to zero the odds become certain.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _parts = ("_given", "temperature")

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | Number | None = None,
        logits: Tensor | Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._set_parameters(validate_args, **self._one_of(probs, logits))

    def _draw(self, shape: torch.Size) -> Tensor:
        p = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(torch.rand(shape, dtype=p.dtype, device=p.device))
        noise = u.log() - torch.log1p(-u)
        return (noise + p.log() - torch.log1p(-p)) / self.temperature

    def _log_density(self, value: Tensor) -> Tensor:
        noise = self.logits - value * self.temperature
        return torch.log(self.temperature) + F.logsigmoid(noise) + F.logsigmoid(-noise)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1) that gather at the ends as ``temperature`` goes to zero."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _parts = ("base_dist", "transforms")
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | Number | None = None,
        logits: Tensor | Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        odds = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(odds, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """How far the outcomes are from zero and one."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Tensor:
        """The probabilities of an outcome above 1/2."""
        return self.base_dist.probs

    @property
    def logits(self) -> Tensor:
        """Their log odds."""
        return self.base_dist.logits
