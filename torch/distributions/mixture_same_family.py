"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributions import constraints
from torch.distributions.categorical import Categorical
from torch.distributions.constraints import MixtureSameFamilyConstraint
from torch.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A component of the last batch dimension of `component_distribution`, chosen by the
    categorical `mixture_distribution`, gives the sample.
    """

    arg_constraints = {}
    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, validate_args=None) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
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
        mixture_batch = mixture_distribution.batch_shape
        component_batch = component_distribution.batch_shape[:-1]
        for m, c in zip(reversed(mixture_batch), reversed(component_batch), strict=False):
            if m != 1 and c != 1 and m != c:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_batch}) is not compatible "
                    f"with `component_distribution.batch_shape`({component_batch})"
                )
        n_mixture = mixture_distribution.logits.shape[-1]
        n_component = component_distribution.batch_shape[-1]
        if n_mixture is not None and n_component is not None and n_mixture != n_component:
            raise ValueError(
                f"`mixture_distribution component` ({n_mixture}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({n_component})"
            )
        self._num_component = n_mixture
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(
            batch_shape=component_batch, event_shape=event_shape, validate_args=validate_args
        )

    def expand(self, batch_shape, _instance=None) -> Any:
        batch_shape = torch.Size(batch_shape)
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand(
            batch_shape + (self._num_component,)
        )
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        event_shape = new._component_distribution.event_shape
        return self._finish_expand(MixtureSameFamily, new, batch_shape, event_shape)

    @constraints.dependent_property
    def support(self):
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self):
        """The categorical distribution that chooses a component."""
        return self._mixture_distribution

    @property
    def component_distribution(self):
        """The components, in the last batch dimension."""
        return self._component_distribution

    @property
    def mean(self):
        probs = self._weights()
        return torch.sum(probs * self.component_distribution.mean, dim=-1 - self._event_ndims)

    @property
    def variance(self):
        # The mean of the variances and the variance of the means.
        probs = self._weights()
        dim = -1 - self._event_ndims
        within = torch.sum(probs * self.component_distribution.variance, dim=dim)
        deviation = self.component_distribution.mean - self._pad(self.mean)
        return within + torch.sum(probs * deviation.pow(2.0), dim=dim)

    def cdf(self, x) -> torch.Tensor:
        x = self._pad(x)
        return torch.sum(self.component_distribution.cdf(x) * self.mixture_distribution.probs, -1)

    def log_prob(self, x) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(x)
        shares = self.mixture_distribution.logits.log_softmax(-1)
        return (self.component_distribution.log_prob(self._pad(x)) + shares).logsumexp(-1)

    def sample(self, sample_shape=torch.Size()) -> torch.Tensor:  # noqa: B008
        with torch.no_grad():
            mixture = self.mixture_distribution
            if mixture.batch_shape != self.batch_shape:
                mixture = mixture.expand(self.batch_shape)
            chosen = mixture.sample(sample_shape)
            candidates = self.component_distribution.sample(sample_shape)
            dim = candidates.dim() - 1 - self._event_ndims
            index = chosen.reshape(chosen.shape + (1,) * (1 + self._event_ndims))
            index = index.expand(candidates.shape[:dim] + (1,) + candidates.shape[dim + 1 :])
            return candidates.gather(dim, index).squeeze(dim)

    def _pad(self, x):
        """A dimension for the components before the event."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _weights(self):
        """The mixture's probabilities with dimensions for the event."""
        probs = self.mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_ndims)

    def __repr__(self) -> str:
        parts = f"{self.mixture_distribution},\n  {self.component_distribution}"
        return f"MixtureSameFamily(\n  {parts})"
