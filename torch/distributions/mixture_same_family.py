"""Mixtures of distributions of one family."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.categorical import Categorical
from torch.distributions.constraints import MixtureSameFamilyConstraint
from torch.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Picks one of the last batch dimension of ``component_distribution`` by a categorical."""

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False
    _parts = (
        "_mixture_distribution",
        "_component_distribution",
        "_num_component",
        "_event_ndims",
    )

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        count = mixture_distribution.logits.shape[-1]
        self._check_shapes(mixture_distribution, component_distribution.batch_shape, count)
        self._num_component = count
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        batch = component_distribution.batch_shape[:-1]
        super().__init__(batch, event, validate_args=validate_args)

    @staticmethod
    def _check_shapes(mixture: Categorical, components: torch.Size, count: int) -> None:
        batch = components[:-1]
        sizes = zip(reversed(mixture.batch_shape), reversed(batch), strict=False)
        if any(a != b and a != 1 and b != 1 for a, b in sizes):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({mixture.batch_shape}) is not compatible "
                f"with `component_distribution.batch_shape`({batch})"
            )
        if components and components[-1] != count:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components[-1]})"
            )

    def _batch_of_part(self, part: Distribution, batch_shape: torch.Size) -> torch.Size:
        if part is self._component_distribution:
            return batch_shape + torch.Size((self._num_component,))
        return batch_shape

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution of the component's index."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """What all components support."""
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    def _pad(self, x: Tensor) -> Tensor:
        """Adds the dimension of the components before those of the event."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """Gives a tensor of the mixture's shape dimensions for the event."""
        return x.reshape(x.shape + (1,) * self._event_ndims)

    def _average(self, of_components: Tensor) -> Tensor:
        """The mean over the components of numbers of each."""
        weights = self._pad_mixture_dimensions(self._mixture_distribution.probs)
        return (weights * of_components).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        """The average of the means."""
        return self._average(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The average of the variances plus the variance of the means."""
        parts = self._component_distribution
        away = parts.mean - self._pad(self.mean)
        return self._average(parts.variance + away.square())

    def cdf(self, x: Tensor) -> Tensor:
        """The average of the components' distribution functions."""
        each = self._component_distribution.cdf(self._pad(x))
        return (each * self._mixture_distribution.probs).sum(-1)

    def _log_density(self, value: Tensor) -> Tensor:
        each = self._component_distribution.log_prob(self._pad(value))
        weights = torch.log_softmax(self._mixture_distribution.logits, -1)
        return torch.logsumexp(weights + each, -1)

    def _draw(self, shape: torch.Size) -> Tensor:
        lead = self._lead(shape)
        index = self._mixture_distribution.sample(lead)
        each = self._component_distribution.sample(lead)
        # A mixture with fewer batch dimensions than the components is shared by them.
        missing = len(self._batch_shape) - (index.dim() - len(lead))
        index = index.reshape(lead + (1,) * missing + index.shape[len(lead) :])
        place = self._pad(self._pad_mixture_dimensions(index).expand(shape))
        return each.gather(-1 - self._event_ndims, place).squeeze(-1 - self._event_ndims)

    def __repr__(self) -> str:
        parts = f"{self._mixture_distribution!r},\n  {self._component_distribution!r}"
        return f"MixtureSameFamily(\n  {parts})"
