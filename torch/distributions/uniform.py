"""The uniform distribution of an interval."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.distribution import Distribution

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Numbers from ``low`` on and below ``high``, all as likely."""

    has_rsample = True
    _parts = ()

    def __init__(
        self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self._set_parameters(validate_args, low=low, high=high)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """Each bound is limited by the other."""
        return {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """The interval."""
        return constraints.interval(self.low, self.high)

    @property
    def _width(self) -> Tensor:
        return self.high - self.low

    @property
    def mean(self) -> Tensor:
        """The middle of the interval."""
        return 0.5 * (self.low + self.high)

    @property
    def mode(self) -> Tensor:
        """NaN: no outcome is likelier than others."""
        return torch.full_like(self.high, torch.nan)

    @property
    def stddev(self) -> Tensor:
        """The width over sqrt(12)."""
        return self._width / math.sqrt(12)

    @property
    def variance(self) -> Tensor:
        """A twelfth of the squared width."""
        return self._width.square() / 12

    def _draw(self, shape: torch.Size) -> Tensor:
        share = torch.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + share * self._width

    def _log_density(self, value: Tensor) -> Tensor:
        outside = (value < self.low) | (value >= self.high)
        inside = (0 - torch.log(self._width)).expand(outside.shape)
        return inside.masked_fill(outside, -torch.inf)

    def _cdf(self, value: Tensor) -> Tensor:
        return torch.clamp((value - self.low) / self._width, 0, 1)

    def _quantile(self, value: Tensor) -> Tensor:
        return self.low + value * self._width

    def entropy(self) -> Tensor:
        """The logarithm of the width."""
        return torch.log(self._width)
