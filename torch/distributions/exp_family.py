"""Exponential families: densities of the form exp(<theta, t(x)> - F(theta) + k(x)).

The entropy and the divergence between two members follow from the log normalizer F and its
gradient, which is the mean of the sufficient statistic t; autograd supplies the gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions.distribution import Distribution
from torch.distributions.utils import _sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution with natural parameters.

    A subclass gives ``_natural_params``, ``_log_normalizer`` as a function of them and, when the
    carrier k is not zero, its mean ``_mean_carrier_measure``.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Tensor | float:
        raise NotImplementedError

    def _mean_statistics(self) -> tuple[tuple[Tensor, ...], Tensor, tuple[Tensor, ...]]:
        """The natural parameters, F at them, and its gradient: the means of the statistics.

        Gradients flow through all three when the parameters ask for them.
        """
        given = self._natural_params
        wanted = torch.is_grad_enabled() and any(p.requires_grad for p in given)
        with torch.enable_grad():
            # Views keep apart two parameters that are one tensor.
            parameters = tuple(p.view_as(p) if wanted else p.detach() for p in given)
            parameters = tuple(
                p if p.requires_grad else p.detach().requires_grad_() for p in parameters
            )
            normalizer = self._log_normalizer(*parameters)
            means = torch.autograd.grad(normalizer.sum(), parameters, create_graph=wanted)
        return (parameters, normalizer, means) if wanted else (given, normalizer.detach(), means)

    def entropy(self) -> Tensor:
        """The entropy F(theta) - <theta, E t> - E k, from the log normalizer and its gradient."""
        carrier = self._mean_carrier_measure  # raises first when the family does not know it
        params, normalizer, means = self._mean_statistics()
        return normalizer - self._inner(params, means) - carrier

    def _inner(self, params: tuple[Tensor, ...], statistics: tuple[Tensor, ...]) -> Tensor:
        """<params, statistics>, one number per distribution of the batch."""
        kept = len(self._batch_shape)  # the other dimensions of a statistic are its own
        pairs = zip(params, statistics, strict=True)
        return sum(_sum_rightmost(p * s, s.dim() - kept) for p, s in pairs)
