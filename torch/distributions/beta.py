"""The beta distribution on the unit interval."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._special import lbeta
from torch.distributions.dirichlet import Dirichlet
from torch.distributions.exp_family import ExponentialFamily
from torch.distributions.utils import broadcast_all

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """x^(a - 1) (1 - x)^(b - 1) / B(a, b); a = ``concentration1`` and b = ``concentration0``."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _parts = ("_dirichlet",)

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        both = torch.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(both.shape[:-1], validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        """The exponent of x, plus one."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """The exponent of 1 - x, plus one."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        """a / (a + b)."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        """That of the Dirichlet distribution of x and 1 - x."""
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        """That of the Dirichlet distribution of x and 1 - x."""
        return self._dirichlet.variance[..., 0]

    def _draw(self, shape: torch.Size) -> Tensor:
        return self._dirichlet.rsample(self._lead(shape)).select(-1, 0)

    def _log_density(self, value: Tensor) -> Tensor:
        a, b = self.concentration1, self.concentration0
        powers = torch.xlogy(a - 1, value) + torch.special.xlog1py(b - 1, -value)
        return powers - lbeta(a, b)

    def entropy(self) -> Tensor:
        """That of the Dirichlet distribution of x and 1 - x."""
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return lbeta(x, y)
