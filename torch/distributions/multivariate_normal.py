"""The normal distribution of vectors."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._matrix import (
    CONSTRAINTS,
    LOG_2PI,
    MatrixParameter,
    _batch_mahalanobis,
    _batch_mv,
    log_diagonal,
    the_one,
    to_scale_tril,
)
from torch.distributions._matrix import _precision_to_scale_tril as _precision_to_scale_tril
from torch.distributions.utils import _standard_normal

__all__ = ["MultivariateNormal"]


class MultivariateNormal(MatrixParameter):
    """Normal vectors with mean ``loc`` and one of covariance, precision or Cholesky factor."""

    arg_constraints = {"loc": constraints.real_vector, **CONSTRAINTS}
    support = constraints.real_vector
    has_rsample = True
    _parts = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = the_one(
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if given is None:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        name, matrix = given
        if matrix.dim() < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(
                f"{what} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(batch + loc.shape[-1:])
        setattr(self, name, matrix.expand(batch + matrix.shape[-2:]))
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = to_scale_tril(name, matrix)

    @property
    def mean(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance: the squared lengths of the factor's rows."""
        rows = self._unbroadcasted_scale_tril.square().sum(-1)
        return rows.expand(self._batch_shape + self._event_shape)

    def _draw(self, shape: torch.Size) -> Tensor:
        noise = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def _log_density(self, value: Tensor) -> Tensor:
        factor = self._unbroadcasted_scale_tril
        distance = _batch_mahalanobis(factor, value - self.loc)
        n = self._event_shape[0]
        return -0.5 * (n * LOG_2PI + distance) - log_diagonal(factor)

    def entropy(self) -> Tensor:
        """n/2 log(2 pi e) + log det L."""
        constant = 0.5 * self._event_shape[0] * (LOG_2PI + 1)
        return (log_diagonal(self._unbroadcasted_scale_tril) + constant).expand(self._batch_shape)
