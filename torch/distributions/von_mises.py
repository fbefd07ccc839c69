"""The von Mises distribution of angles.

With the exponentially scaled Bessel functions the normalizer cannot overflow, and
cos(x) - 1 = -2 sin(x / 2)^2 keeps the digits of the density near its peak.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.distribution import Distribution
from torch.distributions.utils import lazy_property

__all__ = ["VonMises"]


def _log_modified_bessel_fn(x: Tensor, order: int = 0) -> Tensor:
    """log I_order(x) for order 0 or 1 and x > 0."""
    if order not in (0, 1):
        raise AssertionError(f"order must be 0 or 1, got {order}")
    scaled = torch.special.i1e(x) if order else torch.special.i0e(x)
    return x + scaled.log()


def _best_fisher(loc: Tensor, concentration: Tensor, r: Tensor, shape: torch.Size) -> Tensor:
    """Rejection from a wrapped Cauchy envelope (Best and Fisher, 1979), all places at a time.

    A round draws for every place; a place keeps its last accepted angle when all have one.
    """
    angle = torch.zeros(shape, dtype=loc.dtype, device=loc.device)
    done = torch.zeros(shape, dtype=torch.bool, device=loc.device)
    while not done.all():
        u = torch.rand((3, *shape), dtype=loc.dtype, device=loc.device)
        envelope = torch.cos(math.pi * u[0])
        f = (1 + r * envelope) / (r + envelope)
        c = concentration * (r - f)
        accept = (c * (2 - c) > u[1]) | (torch.log(c / u[1]) + 1 >= c)
        angle = torch.where(accept, torch.copysign(torch.acos(f), u[2] - 0.5), angle)
        done |= accept
    return (angle + math.pi + loc) % (2 * math.pi) - math.pi


class VonMises(Distribution):
    """Angles around ``loc``: exp(concentration cos(x - loc)), normalized over one turn."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _parts = ()

    def __init__(
        self,
        loc: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self._set_parameters(validate_args, loc=loc, concentration=concentration)

    @property
    def mean(self) -> Tensor:
        """The circular mean: the location."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        """The circular variance 1 - I1(k) / I0(k), in float64: it is a small difference."""
        k = self.concentration.double()
        ratio = torch.special.i1e(k) / torch.special.i0e(k)
        return (1 - ratio).to(self.concentration.dtype)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the envelope; float64, since it loses digits for small k."""
        k = self.concentration.double()
        tau = 1 + torch.sqrt(1 + 4 * k * k)
        rho = (tau - torch.sqrt(2 * tau)) / (2 * k)
        return torch.where(k < 1e-5, 1 / k + k, (1 + rho * rho) / (2 * rho))

    @torch.no_grad()
    def _draw(self, shape: torch.Size) -> Tensor:
        loc, k = self.loc.double(), self.concentration.double()
        return _best_fisher(loc, k, self._proposal_r, shape).to(self.loc.dtype)

    def _log_density(self, value: Tensor) -> Tensor:
        half = torch.sin(0.5 * (value - self.loc))
        peak = -torch.log(2 * math.pi * torch.special.i0e(self.concentration))
        return peak - 2 * self.concentration * half.square()
