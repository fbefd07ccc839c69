"""The chi-squared distribution."""

from __future__ import annotations

from torch import Tensor
from torch.distributions import constraints
from torch.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of ``df`` squared standard normal variables: a gamma with shape df/2, rate 1/2."""

    arg_constraints = {"df": constraints.positive}
    _held = Gamma.arg_constraints
    _parts = ()

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return 2 * self.concentration
