"""The von Mises distribution on the circle."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.distributions import constraints
from torch.distributions.distribution import Distribution
from torch.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


def _envelope(concentration):
    """The parameter of the wrapped Cauchy envelope; its series where the closed form cancels."""
    root = 1 + (1 + (2 * concentration).square()).sqrt()
    width = (root - (2 * root).sqrt()) / (2 * concentration)
    closed = (width + width.reciprocal()) / 2
    return torch.where(concentration < 1e-5, 1 / concentration + concentration, closed)


class VonMises(Distribution):
    """Angles around `loc` with density proportional to exp(concentration * cos(x - loc))."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, torch.Size(), validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        names = ("loc", "concentration")
        return self._expand_parameters(VonMises, names, batch_shape, _instance)

    def log_prob(self, value) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_i0 = torch.special.i0e(self.concentration).log() + self.concentration
        cosine = self.concentration * torch.cos(value - self.loc)
        return cosine - math.log(2 * math.pi) - log_i0

    @lazy_property
    def _loc(self):
        return self.loc.to(torch.double)

    @lazy_property
    def _concentration(self):
        return self.concentration.to(torch.double)

    @torch.no_grad()
    def sample(self, sample_shape=torch.Size()) -> torch.Tensor:  # noqa: B008
        """By the rejection method of Best and Fisher (1979), in double precision, since the
        acceptance test loses too many digits for small concentrations.
        """
        shape = self._extended_shape(sample_shape)
        sharpness = self._concentration.expand(shape)
        envelope = _envelope(self._concentration).expand(shape)
        angle = torch.zeros(shape, dtype=torch.double, device=self.loc.device)
        missing = torch.ones(shape, dtype=torch.bool, device=self.loc.device)
        while missing.any():
            place, height, side = torch.rand((3, *shape), dtype=torch.double, device=angle.device)
            cosine = torch.cos(math.pi * place)
            cosine = (1 + envelope * cosine) / (envelope + cosine)
            gap = sharpness * (envelope - cosine)
            # Best and Fisher's cheap sufficient test, then the exact one.
            taken = (height < gap * (2 - gap)) | ((gap / height).log() >= gap - 1)
            angle = torch.where(taken, torch.sign(side - 0.5) * cosine.acos(), angle)
            missing &= ~taken
        turned = angle + self._loc + math.pi
        return (turned % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @property
    def mean(self):
        """The circular mean."""
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        """The circular variance."""
        ratio = torch.special.i1e(self.concentration) / torch.special.i0e(self.concentration)
        return 1 - ratio
