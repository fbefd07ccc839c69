"""Batch dimensions turned into event dimensions: a batch of independent distributions seen as one
distribution of an array.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.distribution import Distribution
from torch.distributions.utils import EMPTY, Shape, _sum_rightmost

__all__ = ["Independent"]

D = TypeVar("D", bound=Distribution)


class Independent(Distribution, Generic[D]):
    """The last ``reinterpreted_batch_ndims`` batch dimensions of a distribution become its event's.

    ``Independent(Normal(loc, scale), 1)`` is a normal distribution of vectors with a diagonal
    covariance.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    _parts = ("base_dist", "reinterpreted_batch_ndims")
    base_dist: D

    def __init__(
        self,
        base_distribution: D,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch, event = base_distribution.batch_shape, base_distribution.event_shape
        split = len(batch) - reinterpreted_batch_ndims
        if split < 0:
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {len(batch)}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(batch[:split], batch[split:] + event, validate_args=validate_args)

    def _batch_of_part(self, part: Distribution, batch_shape: torch.Size) -> torch.Size:
        return batch_shape + self._event_shape[: self.reinterpreted_batch_ndims]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist!r}, {self.reinterpreted_batch_ndims})"

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether the base distribution has one."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether the outcomes can be listed: not those of arrays."""
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """Arrays of the base distribution's support."""
        inner, dims = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(inner, dims) if dims else inner

    @property
    def mean(self) -> Tensor:
        """The means of the base distribution."""
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        """The modes of the base distribution."""
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        """The variances of the base distribution."""
        return self.base_dist.variance

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Draws from the base distribution."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Draws from the base distribution with gradients."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The sum of the base distribution's over the array."""
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        """The sum of the base distribution's over the array."""
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        """The base distribution's outcomes, when no dimension was reinterpreted."""
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)
