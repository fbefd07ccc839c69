"""Distributions of the form exp(<natural parameters, statistics> - log normalizer + carrier)."""

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

    def entropy(self):
        # A = log normalizer has the mean statistics as its gradient: H = A - <eta, grad A> - E[h].
        result = -self._mean_carrier_measure
        nparams = _recording(self._natural_params)
        with torch.enable_grad():
            lg_normal = self._log_normalizer(*nparams)
            gradients = torch.autograd.grad(lg_normal.sum(), nparams, create_graph=True)
        result = result + lg_normal
        for np, g in zip(nparams, gradients, strict=True):
            result = result - (np * g).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
