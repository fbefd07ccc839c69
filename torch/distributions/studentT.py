"""Student's t distribution."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._special import lbeta
from torch.distributions.chi2 import Chi2
from torch.distributions.distribution import Distribution
from torch.distributions.utils import _standard_normal

__all__ = ["StudentT"]


class StudentT(Distribution):
    """A normal variable divided by the root of a chi-squared one over its ``df``."""

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _parts = ("_chi2",)

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self._set_parameters(validate_args, df=df, loc=loc, scale=scale)
        self._chi2 = Chi2(self.df, validate_args=False)

    @property
    def mean(self) -> Tensor:
        """The location; NaN unless df > 1."""
        return self.loc.masked_fill(self.df <= 1, torch.nan)

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """scale^2 df / (df - 2); infinite unless df > 2, NaN unless df > 1."""
        finite = self.scale.square() * (self.df / (self.df - 2))
        return finite.masked_fill(self.df <= 2, torch.inf).masked_fill(self.df <= 1, torch.nan)

    def _draw(self, shape: torch.Size) -> Tensor:
        normal = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        chi2 = self._chi2.rsample(self._lead(shape))
        return self.loc + self.scale * (normal * torch.rsqrt(chi2 / self.df))

    def _log_norm(self) -> Tensor:
        """The logarithm of what the density is divided by, for scale one."""
        half = 0.5 * self.df
        return 0.5 * self.df.log() + lbeta(half, torch.full_like(half, 0.5))

    def _log_density(self, value: Tensor) -> Tensor:
        # (1 + z^2 / df) is a squared length, which does not overflow where z^2 would.
        z = (value - self.loc) / (self.scale * self.df.sqrt())
        small = z.abs() < 1
        near = torch.log1p(torch.where(small, z, 0.0).square())
        far = 2 * torch.hypot(torch.where(small, 1.0, z), torch.ones_like(z)).log()
        kernel = torch.where(small, near, far)
        return -0.5 * (self.df + 1) * kernel - self.scale.log() - self._log_norm()

    def entropy(self) -> Tensor:
        """The log of the density's divisor and (df + 1)/2 times the mean of log(1 + z^2 / df)."""
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        kernel = more * (torch.digamma(more) - torch.digamma(half))
        return self.scale.log() + kernel + self._log_norm()
