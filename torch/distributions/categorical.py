"""The categorical distribution of class indices."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._probs import ProbsOrLogits

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits):
    """Class indices, drawn with the probabilities or log weights of the last dimension.

    Both are normalized. Indices have ``int64``, since they are made to index.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False
    _parts = ("_given", "_num_events")

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        weights = self._one_of(probs, logits)[self._given]
        if weights.dim() < 1:
            raise ValueError(f"`{self._given}` parameter must be at least one-dimensional.")
        if self._given == "probs":
            self.probs = weights / weights.sum(-1, keepdim=True)
        else:
            self.logits = weights - torch.logsumexp(weights, -1, keepdim=True)
        self._num_events = weights.shape[-1]
        super().__init__(weights.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """Indices below the number of classes."""
        return constraints.integer_interval(0, self._num_events - 1)

    def _undefined(self) -> Tensor:
        return self._param.new_full(self._batch_shape, torch.nan)

    @property
    def mean(self) -> Tensor:
        """NaN: classes have no order."""
        return self._undefined()

    @property
    def mode(self) -> Tensor:
        """The likeliest class."""
        return torch.argmax(self.probs, -1)

    @property
    def variance(self) -> Tensor:
        """NaN: classes have no order."""
        return self._undefined()

    def _draw(self, shape: torch.Size) -> Tensor:
        lead = self._lead(shape)
        # One row of draws for each distribution of the batch; samples come first in the result.
        rows = torch.multinomial(self.probs.reshape(-1, self._num_events), lead.numel(), True)
        return rows.t().reshape(shape)

    def _log_density(self, value: Tensor) -> Tensor:
        shape = torch.broadcast_shapes(value.shape, self._batch_shape)
        index = value.long().expand(shape).unsqueeze(-1)
        return self.logits.expand(*shape, -1).gather(-1, index).squeeze(-1)

    def entropy(self) -> Tensor:
        """-sum p log p; classes that cannot occur add nothing."""
        finite = self.logits.clamp(min=torch.finfo(self.logits.dtype).min)
        return torch.sum(-self.probs * finite, -1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All indices."""
        return self._spread(torch.arange(self._num_events, device=self._param.device), expand)
