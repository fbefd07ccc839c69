"""Families that are given by probabilities or by logits.

The one that was given is stored, the other is computed on first use.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions.distribution import Distribution
from torch.distributions.utils import Number, lazy_property, logits_to_probs, probs_to_logits


class ProbsOrLogits(Distribution):
    """A distribution with ``probs`` and ``logits``; ``_given`` names the one that was passed."""

    _is_binary = True

    @lazy_property
    def _given(self) -> str:
        # An instance that a subclass's expand() filled by hand has only the parameter.
        return "probs" if "probs" in vars(self) else "logits"

    def _one_of(
        self, probs: Tensor | Number | None, logits: Tensor | Number | None
    ) -> dict[str, Tensor | Number]:
        """The argument that was passed, by its name."""
        passed = {"probs": probs, "logits": logits}
        passed = {name: value for name, value in passed.items() if value is not None}
        if len(passed) != 1:
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        (self._given,) = passed
        return passed

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @lazy_property
    def logits(self) -> Tensor:
        """The log odds of binary outcomes, else the logarithms of the probabilities."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def _param(self) -> Tensor:
        return getattr(self, self._given)

    @property
    def param_shape(self) -> torch.Size:
        """The shape of the probabilities."""
        return self._param.shape

    def _new(self, *args: int, **kwargs: torch.device) -> Tensor:
        return self._param.new(*args, **kwargs)
