"""The geometric distribution of the number of failures before the first success."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._probs import ProbsOrLogits
from torch.distributions.utils import Number, _holds

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits):
    """k failures, then a success of probability ``probs``: (1 - p)^k p."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _parts = ("_given",)

    def __init__(
        self,
        probs: Tensor | Number | None = None,
        logits: Tensor | Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_parameters(validate_args, **self._one_of(probs, logits))
        if self._validate_args and self._given == "probs":
            valid = self.probs > 0
            if not _holds(valid):
                raise ValueError(
                    f"Expected parameter probs ({type(self.probs).__name__} of shape "
                    f"{tuple(self.probs.shape)}) of distribution {self!r} to be positive but "
                    f"found invalid values:\n{self.probs[~valid]}"
                )

    @property
    def mean(self) -> Tensor:
        """(1 - p) / p, which is exp(-logits)."""
        return self.probs.reciprocal() - 1

    @property
    def mode(self) -> Tensor:
        """No failure at all."""
        return torch.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        """(1 - p) / p^2."""
        return self.mean / self.probs

    def _draw(self, shape: torch.Size) -> Tensor:
        probs = self.probs.expand(shape)
        uniform = torch.rand(shape, dtype=probs.dtype, device=probs.device)
        # A draw of exactly zero would have an infinite logarithm.
        floor = torch.finfo(probs.dtype).tiny
        return torch.floor(uniform.clamp_(min=floor).log() / torch.log1p(-probs))

    def _log_density(self, value: Tensor) -> Tensor:
        if self._given == "logits":
            return value * F.logsigmoid(-self.logits) + F.logsigmoid(self.logits)
        return torch.special.xlog1py(value, -self.probs) + self.probs.log()

    def entropy(self) -> Tensor:
        """The entropy of one trial, for each of the 1 / p trials of the mean."""
        trial = F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return trial / self.probs
