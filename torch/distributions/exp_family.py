"""Distributions of the form exp(<natural parameters, statistics> - log normalizer + carrier)."""

from __future__ import annotations

import torch
from torch.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


def _recording(params):
    """The parameters, with copies that record gradients in place of those that do not."""
    return [p if p.requires_grad else p.detach().requires_grad_() for p in params]


class ExponentialFamily(Distribution):
    """Base of exponential families. A subclass that gives its natural parameters, the log
    normalizer as a function of them and the mean of the carrier measure has its entropy, and its
    divergence from its own kind, by differentiating the normalizer.
    """

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError

    def entropy(self) -> torch.Tensor:
        # A = log normalizer has the mean statistics as its gradient: H = A - <eta, grad A> - E[h].
        natural = _recording(self._natural_params)
        with torch.enable_grad():
            normalizer = self._log_normalizer(*natural)
            statistics = torch.autograd.grad(normalizer.sum(), natural, create_graph=True)
        entropy = normalizer - self._mean_carrier_measure
        for parameter, statistic in zip(natural, statistics, strict=True):
            products = (parameter * statistic).reshape(self._batch_shape + (-1,))
            entropy = entropy - products.sum(-1)
        return entropy
