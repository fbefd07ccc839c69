"""What distributions given by probabilities or log odds share: exactly one of the two is passed,
the other is computed when asked for.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits
from torch.types import Number


def require_one(probs, logits) -> Any:
    """Raises unless exactly one of both is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def set_binary(distribution, probs, logits) -> Any:
    """Stores the one that is given and the shape of the batch."""
    require_one(probs, logits)
    given = logits if probs is None else probs
    is_scalar = isinstance(given, Number)
    if probs is not None:
        (distribution.probs,) = broadcast_all(probs)
    else:
        (distribution.logits,) = broadcast_all(logits)
    return torch.Size() if is_scalar else distribution._param.size()


class BinaryParameters:
    """Mixin: `probs` and `logits` of events with two outcomes."""

    @lazy_property
    def _param(self):
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self):
        return self._param.size()
