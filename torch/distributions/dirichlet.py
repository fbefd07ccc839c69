"""The Dirichlet distribution on the simplex."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x: Tensor, concentration: Tensor, grad_output: Tensor) -> Tensor:
    """The gradient at ``concentration`` of a sample ``x``, which moves within the simplex."""
    total = concentration.sum(-1, keepdim=True).expand_as(concentration)
    along = grad_output - (grad_output * x).sum(-1, keepdim=True)
    return torch._dirichlet_grad(x, concentration, total) * along


class Dirichlet(ExponentialFamily):
    """Vectors on the simplex with density proportional to the product of x_i^(c_i - 1)."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _parts = ()

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self._set_parameters(validate_args, event_dim=1, concentration=concentration)

    @property
    def _total(self) -> Tensor:
        return self.concentration.sum(-1, keepdim=True)

    @property
    def mean(self) -> Tensor:
        """c / sum(c)."""
        return self.concentration / self._total

    @property
    def mode(self) -> Tensor:
        """(c - 1) / sum(c - 1); the likeliest corner where all c are below one."""
        c = self.concentration
        excess = torch.clamp(c - 1, min=0)
        peak = excess / excess.sum(-1, keepdim=True)
        corner = torch.zeros_like(c).scatter_(-1, c.argmax(-1, keepdim=True), 1.0)
        return torch.where((c < 1).all(-1, keepdim=True), corner, peak)

    @property
    def variance(self) -> Tensor:
        """m (1 - m) / (sum(c) + 1) with the mean m."""
        mean = self.mean
        return mean * (1 - mean) / (1 + self._total)

    def _draw(self, shape: torch.Size) -> Tensor:
        return torch._sample_dirichlet(self.concentration.expand(shape))

    def _log_density(self, value: Tensor) -> Tensor:
        powers = torch.xlogy(self.concentration - 1, value).sum(-1)
        return powers - self._log_normalizer(self.concentration)

    def entropy(self) -> Tensor:
        """The log normalizer less (c - 1) times the means of log x."""
        c, total = self.concentration, self._total
        means = torch.digamma(c) - torch.digamma(total)
        return self._log_normalizer(c) - torch.sum((c - 1) * means, -1)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return torch.lgamma(x).sum(-1) - torch.lgamma(x.sum(-1))
