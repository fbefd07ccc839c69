"""The Pareto distribution."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.exponential import Exponential
from torch.distributions.transformed_distribution import TransformedDistribution
from torch.distributions.transforms import AffineTransform, ExpTransform
from torch.distributions.utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Above ``scale`` the probability of exceeding x is (scale / x)^alpha."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    _parts = ("base_dist", "transforms")

    def __init__(
        self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        exponent = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(exponent, [ExpTransform(), AffineTransform(0, self.scale)], validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """Numbers from the scale on."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        """alpha scale / (alpha - 1); infinite unless alpha > 1."""
        over = self.alpha - 1
        return (self.scale * (self.alpha / over)).masked_fill(over <= 0, torch.inf)

    @property
    def mode(self) -> Tensor:
        """The scale."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """(scale / (alpha - 1))^2 alpha / (alpha - 2); infinite unless alpha > 2."""
        over = self.alpha - 2
        unit = torch.square(self.scale / (self.alpha - 1))
        return (unit * self.alpha / over).masked_fill(over <= 0, torch.inf)

    def _log_density(self, value: Tensor) -> Tensor:
        ratio = torch.log(value / self.scale)
        return torch.log(self.alpha / self.scale) - (self.alpha + 1) * ratio

    def _cdf(self, value: Tensor) -> Tensor:
        return -torch.expm1(-self.alpha * torch.log(value / self.scale))

    def _quantile(self, value: Tensor) -> Tensor:
        return self.scale * torch.exp(-torch.log1p(-value) / self.alpha)

    def entropy(self) -> Tensor:
        """log(scale / alpha) + 1 + 1 / alpha."""
        return torch.log(self.scale / self.alpha) + self.alpha.reciprocal() + 1
