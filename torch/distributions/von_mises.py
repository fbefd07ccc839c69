"""The von Mises distribution on the circle."""

import math

import torch
from torch.distributions import constraints
from torch.distributions.distribution import Distribution
from torch.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


def _proposal_r(concentration):
    """The parameter of the wrapped Cauchy envelope; its series where the closed form cancels."""
    tau = 1 + (1 + 4 * concentration**2).sqrt()
    rho = (tau - (2 * tau).sqrt()) / (2 * concentration)
    closed = (1 + rho**2) / (2 * rho)
    return torch.where(concentration < 1e-5, 1 / concentration + concentration, closed)


class VonMises(Distribution):
    """Angles around `loc` with density proportional to exp(concentration * cos(x - loc))."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, torch.Size(), validate_args)

    def expand(self, batch_shape, _instance=None):
        names = ("loc", "concentration")
        return self._expand_parameters(VonMises, names, batch_shape, _instance)

    def log_prob(self, value):
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
    def sample(self, sample_shape=torch.Size()):  # noqa: B008
        """By the rejection method of Best and Fisher (1979), in double precision, since the
        acceptance test loses too many digits for small concentrations.
        """
        shape = self._extended_shape(sample_shape)
        loc, concentration = self._loc, self._concentration.expand(shape)
        r = _proposal_r(self._concentration).expand(shape)
        x = torch.empty(shape, dtype=loc.dtype, device=self.loc.device)
        done = torch.zeros(shape, dtype=torch.bool, device=self.loc.device)
        while not done.all():
            u1, u2, u3 = torch.rand((3,) + shape, dtype=loc.dtype, device=loc.device).unbind()
            z = torch.cos(math.pi * u1)
            f = (1 + r * z) / (r + z)
            c = concentration * (r - f)
            accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
            if accept.any():
                x = torch.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
        return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

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
