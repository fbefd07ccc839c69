"""The multivariate normal distribution whose covariance is of low rank plus a diagonal."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.distributions import constraints
from torch.distributions.distribution import Distribution
from torch.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv
from torch.distributions.utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _add_to_diagonal(square, amount):
    """A copy of square matrices with a number added on the diagonal."""
    return square + amount * torch.eye(square.shape[-1], dtype=square.dtype, device=square.device)


class _Woodbury:
    """F F^T + diag(d) without a matrix of its size: whitened = diag(d)^(-1/2) F has few columns,
    and the Cholesky factor of I + whitened^T whitened, as many rows, stands for the inverse and
    the determinant (Woodbury's identity and the matrix determinant lemma)."""

    def __init__(self, factor, diagonal) -> None:
        self.deviation = diagonal.sqrt()
        self.whitened = factor / self.deviation.unsqueeze(-1)
        self.small = torch.linalg.cholesky(_add_to_diagonal(self.whitened.mT @ self.whitened, 1))

    def log_det(self) -> Any:
        """log det(F F^T + diag(d))."""
        outer = self.deviation.log().sum(-1)
        return 2 * (outer + self.small.diagonal(dim1=-2, dim2=-1).log().sum(-1))

    def squared_length(self, vector) -> Any:
        """v^T (F F^T + diag(d))^-1 v."""
        scaled = vector / self.deviation
        return scaled.square().sum(-1) - _batch_mahalanobis(
            self.small, _batch_mv(self.whitened.mT, scaled)
        )

    def correction(self) -> Any:
        """The matrix A of (F F^T + diag(d))^-1 = diag(1 / d) - A^T A."""
        narrow = (self.whitened / self.deviation.unsqueeze(-1)).mT
        return torch.linalg.solve_triangular(self.small, narrow, upper=False)

    def trace_with_diagonal(self, diagonal) -> Any:
        """trace of (F F^T + diag(d))^-1 diag(diagonal)."""
        plain = diagonal / self.deviation.square()
        return (plain - diagonal * self.correction().square().sum(-2)).sum(-1)

    def trace_with(self, matrix) -> Any:
        """trace of (F F^T + diag(d))^-1 M M^T."""
        plain = (matrix / self.deviation.unsqueeze(-1)).square().sum((-2, -1))
        return plain - (self.correction() @ matrix).square().sum((-2, -1))


class LowRankMultivariateNormal(Distribution):
    """A normal vector with mean `loc` and covariance cov_factor cov_factor^T + diag(cov_diag),
    computed without any matrix of the full size.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")

        try:
            batch = torch.broadcast_shapes(
                loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch + event_shape)
        self.cov_diag = cov_diag.expand(batch + event_shape)
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        # As given: what does not depend on the batch is computed once.
        self._factor, self._diagonal = cov_factor, cov_diag
        self._inverse = _Woodbury(cov_factor, cov_diag)
        super().__init__(batch, event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        batch_shape = torch.Size(batch_shape)
        loc_shape = batch_shape + self.event_shape
        new.loc = self.loc.expand(loc_shape)
        new.cov_diag = self.cov_diag.expand(loc_shape)
        new.cov_factor = self.cov_factor.expand(loc_shape + self.cov_factor.shape[-1:])
        new._factor, new._diagonal, new._inverse = self._factor, self._diagonal, self._inverse
        return self._finish_expand(LowRankMultivariateNormal, new, batch_shape)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        diagonal = self._factor.square().sum(-1) + self._diagonal
        return diagonal.expand(self._batch_shape + self._event_shape)

    def _expand_matrix(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        # The whitened matrix has eigenvalues from 1 on: its factor, and not that of the covariance.
        whitened = self._inverse.whitened
        core = torch.linalg.cholesky(_add_to_diagonal(whitened @ whitened.mT, 1))
        return self._expand_matrix(self._inverse.deviation.unsqueeze(-1) * core)

    @lazy_property
    def covariance_matrix(self):
        return self._expand_matrix(self._factor @ self._factor.mT + self._diagonal.diag_embed())

    @lazy_property
    def precision_matrix(self):
        correction = self._inverse.correction()
        inverse = self._diagonal.reciprocal().diag_embed() - correction.mT @ correction
        return self._expand_matrix(inverse)

    def rsample(self, sample_shape=torch.Size()) -> torch.Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        common = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], **options)
        own = _standard_normal(shape, **options)
        return self.loc + _batch_mv(self._factor, common) + self._inverse.deviation * own

    def log_prob(self, value) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        length = self._inverse.squared_length(value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -(constant + self._inverse.log_det() + length) / 2

    def entropy(self) -> torch.Tensor:
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        entropy = (constant + self._inverse.log_det()) / 2
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
