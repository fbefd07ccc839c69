"""The continuous Bernoulli distribution (Loaiza-Ganem and Cunningham, 2019)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.distributions import constraints
from torch.distributions._probs import BinaryParameters, set_binary
from torch.distributions.exp_family import ExponentialFamily
from torch.distributions.utils import clamp_probs
from torch.nn.functional import binary_cross_entropy_with_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(BinaryParameters, ExponentialFamily):
    """The density on [0, 1] proportional to probs^x (1 - probs)^(1 - x). Its normalizer is 0 / 0
    at probs = 0.5, so that Taylor series are used for probs inside `lims`.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None) -> None:
        batch_shape = set_binary(self, probs, logits)
        if probs is not None:
            # The normalizer is not finite at 0 and 1.
            if validate_args is not None and not self._valid_probs():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(batch_shape, validate_args=validate_args)

    def _valid_probs(self):
        return self.arg_constraints["probs"].check(self.probs).all()

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(ContinuousBernoulli, _instance)
        new._lims = self._lims
        return self._expand_parameters(ContinuousBernoulli, ("probs", "logits"), batch_shape, new)

    def _far(self):
        """Where the closed forms are used; nearer to 0.5 they lose all their digits."""
        low, high = self._lims
        return (self.probs <= low) | (self.probs > high)

    def _safe(self):
        """The probabilities with a harmless one where the closed forms are not used, so that
        their gradients stay finite there."""
        return torch.where(self._far(), self.probs, self._lims[0])

    def _log_normalizer_of_probs(self):
        """log of 2 atanh(1 - 2 probs) / (1 - 2 probs), and its series around 0.5."""
        probs = self._safe()
        closed = (torch.log1p(-probs) - probs.log()).abs().log() - (1 - 2 * probs).abs().log()
        square = (self.probs - 0.5).square()
        series = math.log(2.0) + square * (4.0 / 3.0 + square * (104.0 / 45.0))
        return torch.where(self._far(), closed, series)

    @property
    def mean(self):
        probs = self._safe()
        closed = (torch.log1p(-probs) - probs.log()).reciprocal() + probs / (2 * probs - 1)
        step = self.probs - 0.5
        series = 0.5 + step * (1.0 / 3.0 + step.square() * (16.0 / 45.0))
        return torch.where(self._far(), closed, series)

    @property
    def stddev(self):
        return torch.sqrt(self.variance)

    @property
    def variance(self):
        probs = self._safe()
        closed = (torch.log1p(-probs) - probs.log()).square().reciprocal()
        closed = closed - probs * (1 - probs) / (1 - 2 * probs).square()
        square = (self.probs - 0.5).square()
        series = 1.0 / 12.0 + square * (square * (128.0 / 945.0) - 1.0 / 15.0)
        return torch.where(self._far(), closed, series)

    def sample(self, sample_shape=torch.Size()) -> torch.Tensor:  # noqa: B008
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=torch.Size()) -> torch.Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = torch.broadcast_tensors(self.logits, value)
        binary = binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._log_normalizer_of_probs() - binary

    def cdf(self, value) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        probs = self._safe()
        power = probs**value * (1 - probs) ** (1 - value)
        inside = torch.where(self._far(), (power + probs - 1) / (2 * probs - 1), value)
        inside = torch.where(value <= 0, 0.0, inside)
        return torch.where(value >= 1, 1.0, inside)

    def icdf(self, value) -> torch.Tensor:
        probs = self._safe()
        start = torch.log1p(-probs)
        reached = torch.log1p(value * (2 * probs - 1) - probs)
        return torch.where(self._far(), (reached - start) / (probs.log() - start), value)

    def entropy(self) -> torch.Tensor:
        zero, one = torch.log1p(-self.probs), self.probs.log()
        return -(zero + self.mean * (one - zero) + self._log_normalizer_of_probs())

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        """log of the integral of exp(x t) over [0, 1]; its series near 0."""
        low, high = (limit - 0.5 for limit in self._lims)
        far = (x <= low) | (x > high)
        safe = torch.where(far, x, low)
        square = x.square()
        series = x / 2 + square * (1 / 24.0 - square / 2880.0)
        return torch.where(far, (safe.expm1() / safe).log(), series)
