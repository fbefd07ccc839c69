"""The distribution of f(x) for x of a base distribution and a chain of transforms f.

The density follows from that of x = f^-1(y) by the change of variables; the chain's values are
computed once, from y backwards, and serve both the base density and the log determinants.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._transform_core import chain_volume
from torch.distributions.distribution import Distribution
from torch.distributions.independent import Independent
from torch.distributions.transforms import ComposeTransform, Transform
from torch.distributions.utils import EMPTY, Shape

__all__ = ["TransformedDistribution"]


def _as_list(transforms: Transform | list[Transform]) -> list[Transform]:
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, list):
        raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
    if not all(isinstance(t, Transform) for t in transforms):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return transforms


class TransformedDistribution(Distribution):
    """The distribution of a base distribution's outcomes after one or more transforms."""

    arg_constraints: dict[str, constraints.Constraint] = {}
    _parts = ("base_dist", "transforms")

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = _as_list(transforms)
        chain = ComposeTransform(self.transforms)
        needed = chain.domain.event_dim
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(base_shape) < needed:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{needed}, but got {base_shape}."
            )
        shape = chain.forward_shape(base_shape)
        # Parameters of transforms may add dimensions to the batch, and transforms of vectors take
        # dimensions of it into their events.
        full = chain.inverse_shape(shape)
        if full != base_shape:
            base_batch = full[: len(full) - len(base_distribution.event_shape)]
            base_distribution = base_distribution.expand(base_batch)
        taken = max(needed - len(base_distribution.event_shape), 0)
        self.base_dist = Independent(base_distribution, taken) if taken else base_distribution
        grown = chain.codomain.event_dim - needed
        split = len(shape) - len(self.base_dist.event_shape) - grown
        super().__init__(shape[:split], shape[split:], validate_args=validate_args)

    def _batch_of_part(self, part: Distribution, batch_shape: torch.Size) -> torch.Size:
        whole = ComposeTransform(self.transforms).inverse_shape(batch_shape + self._event_shape)
        return whole[: len(whole) - len(part.event_shape)]

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether the base distribution has one."""
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """The codomain of the last transform, with the dimensions of the event."""
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        missing = len(self._event_shape) - last.event_dim
        return constraints.independent(last, missing) if missing > 0 else last

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def _backward(self, y: Tensor) -> list[Tensor]:
        """All values of the chain that ends at ``y``, the base distribution's first."""
        values = [y]
        for transform in reversed(self.transforms):
            values.append(transform.inv(values[-1]))
        return values[::-1]

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Draws from the base distribution and transforms the outcome."""
        with torch.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Draws from the base distribution with gradients and transforms the outcome."""
        return self._forward(self.base_dist.rsample(sample_shape))

    def _log_density(self, value: Tensor) -> Tensor:
        values = self._backward(value)
        volumes = chain_volume(self.transforms, values, len(self.base_dist.event_shape))
        return self.base_dist.log_prob(values[0]) - sum(volumes)

    def _oriented(self, probability: Tensor) -> Tensor:
        """A probability of the base distribution as one of this, or back: 1 - p if f decreases."""
        sign: Tensor | int = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int):
            return probability if sign == 1 else 1 - probability
        return torch.where(sign > 0, probability, 1 - probability)

    _monotonize_cdf = _oriented

    def _cdf(self, value: Tensor) -> Tensor:
        return self._oriented(self.base_dist.cdf(self._backward(value)[0]))

    def _quantile(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._oriented(value)))
