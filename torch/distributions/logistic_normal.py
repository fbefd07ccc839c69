"""The logistic-normal distribution on the simplex."""

from __future__ import annotations

from typing import Any

from torch.distributions import constraints
from torch.distributions.independent import Independent
from torch.distributions.normal import Normal
from torch.distributions.transformed_distribution import TransformedDistribution
from torch.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Independent normal variables taken to the simplex by breaking a stick."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None) -> None:
        base_dist = Normal(loc, scale, validate_args=validate_args)
        if not base_dist.batch_shape:
            base_dist = base_dist.expand([1])
        super().__init__(base_dist, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(LogisticNormal, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def _normal(self):
        base = self.base_dist
        return base.base_dist if isinstance(base, Independent) else base

    @property
    def loc(self):
        return self._normal.loc

    @property
    def scale(self):
        return self._normal.scale
