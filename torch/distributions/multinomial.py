"""The multinomial distribution of counts over classes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.binomial import Binomial
from torch.distributions.categorical import Categorical
from torch.distributions.distribution import Distribution

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each class comes up among ``total_count`` draws."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _parts = ("_categorical", "total_count")
    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _new(self, *args: int, **kwargs: torch.device) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """Counts whose sum is at most the number of draws."""
        return constraints.multinomial(self.total_count)

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

    @property
    def mean(self) -> Tensor:
        """n p."""
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        """n p (1 - p)."""
        return self.mean * (1 - self.probs)

    def _draw(self, shape: torch.Size) -> Tensor:
        draws = self._categorical.sample(torch.Size([self.total_count]) + self._lead(shape))
        classes = draws.movedim(0, -1)
        counts = torch.zeros(shape, dtype=self.probs.dtype, device=classes.device)
        ones = counts.new_ones(()).expand(classes.shape)
        return counts.scatter_add_(-1, classes, ones)

    def _log_density(self, value: Tensor) -> Tensor:
        counts = value.to(self.logits.dtype)
        # A class that did not come up counts for nothing, even one that cannot.
        weights = torch.where(counts == 0, 0.0, counts * self.logits).sum(-1)
        orders = torch.lgamma(1 + counts.sum(-1)) - torch.lgamma(1 + counts).sum(-1)
        return weights + orders

    def entropy(self) -> Tensor:
        """n times that of one draw, less the mean logarithm of the number of orders."""
        n = torch.tensor(float(self.total_count), dtype=self.probs.dtype, device=self.probs.device)
        single = Binomial(self.total_count, self.probs)  # the count of one class
        outcomes = single.enumerate_support(expand=False)[1:]
        weights = single.log_prob(outcomes).exp()
        repeats = (weights * torch.lgamma(1 + outcomes)).sum((0, -1))
        return n * self._categorical.entropy() - torch.lgamma(1 + n) + repeats
