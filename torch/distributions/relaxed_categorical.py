"""Continuous relaxations of the categorical distribution.

Maddison et al., "The Concrete Distribution" (2016); Jang et al., "Categorical Reparameterization
with Gumbel-Softmax" (2016).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.categorical import Categorical
from torch.distributions.distribution import Distribution
from torch.distributions.transformed_distribution import TransformedDistribution
from torch.distributions.transforms import ExpTransform
from torch.distributions.utils import clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithms of a relaxed one-hot vector: normalized logits with Gumbel noise."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    # The vectors have log-sum-exp zero, a subset of this.
    support = constraints.real_vector
    has_rsample = True
    _parts = ("_categorical", "temperature")

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _new(self, *args: int, **kwargs: torch.device) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def probs(self) -> Tensor:
        """The probabilities of the classes."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self) -> torch.Size:
        """The shape of the probabilities."""
        return self._categorical.param_shape

    def _draw(self, shape: torch.Size) -> Tensor:
        u = clamp_probs(torch.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        gumbel = -torch.log(-torch.log(u))
        scores = (self.logits + gumbel) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def _log_density(self, value: Tensor) -> Tensor:
        n = self._event_shape[-1]
        scores = self.logits - value * self.temperature
        like = {"dtype": scores.dtype, "device": scores.device}
        log_temperature = torch.as_tensor(self.temperature, **like).log()
        volume = (n - 1) * log_temperature + math.lgamma(n)
        return torch.log_softmax(scores, -1).sum(-1) + volume


class RelaxedOneHotCategorical(TransformedDistribution):
    """Vectors on the simplex that gather at its corners as ``temperature`` goes to zero."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    _parts = ("base_dist", "transforms")
    base_dist: ExpRelaxedCategorical

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        logs = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(logs, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """How far the outcomes are from the corners."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Tensor:
        """The probabilities of the corners."""
        return self.base_dist.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self.base_dist.logits
