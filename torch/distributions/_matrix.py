"""Symmetric matrices given in one of three ways, for distributions that are parameterized by one.

The covariance V, the precision V^-1 and the Cholesky factor L of V describe the same thing; what is
computed with is always L, at the batch shape in which the matrix was given.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.distribution import Distribution
from torch.distributions.utils import lazy_property

LOG_2PI = math.log(2 * math.pi)

CONSTRAINTS = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


def solve_lower(factor: Tensor, right: Tensor) -> Tensor:
    """L^-1 B for lower triangular L."""
    return torch.linalg.solve_triangular(factor, right, upper=False)


def log_diagonal(factor: Tensor) -> Tensor:
    """Half of log det(L L^T): the sum of the logarithms on the diagonal."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Matrices times vectors; either batch may be the smaller one."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """x^T (L L^T)^-1 x.

    Dimensions of x before the batch of L become columns of one right-hand side, so that samples do
    not multiply the matrices.
    """
    lead = bx.shape[: max(bx.dim() + 1 - bL.dim(), 0)]
    columns = bx.reshape(lead.numel(), *bx.shape[len(lead) :]).movedim(0, -1)
    squared = solve_lower(bL, columns).square().sum(-2)
    return squared.movedim(-1, 0).reshape(lead + squared.shape[:-1])


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """The Cholesky factor of P^-1 without inverting P.

    Reversing rows and columns turns the factor of P into R with P = R^T R, R lower triangular; then
    P^-1 = R^-1 R^-T.
    """
    reverse = torch.linalg.cholesky(P.flip(-2, -1)).flip(-2, -1).mT
    return solve_lower(reverse, torch.eye(P.shape[-1], dtype=P.dtype, device=P.device))


_TO_TRIL = {
    "covariance_matrix": torch.linalg.cholesky,
    "precision_matrix": _precision_to_scale_tril,
    "scale_tril": lambda factor: factor,
}


class MatrixParameter(Distribution):
    """A distribution with ``covariance_matrix``, ``precision_matrix`` and ``scale_tril``."""

    _unbroadcasted_scale_tril: Tensor

    def _expanded(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._expanded(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The matrix itself."""
        factor = self._unbroadcasted_scale_tril
        return self._expanded(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._expanded(torch.cholesky_inverse(self._unbroadcasted_scale_tril))


def the_one(**matrices: Tensor | None) -> tuple[str, Tensor] | None:
    """Name and value of the only matrix that was given; None when it is not one."""
    given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
    return given[0] if len(given) == 1 else None


def to_scale_tril(name: str, matrix: Tensor) -> Tensor:
    """The Cholesky factor of the covariance, of a matrix of that name."""
    return _TO_TRIL[name](matrix)
