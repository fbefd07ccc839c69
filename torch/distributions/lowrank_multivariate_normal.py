"""The normal distribution of vectors with covariance W W^T + diag(D).

W has few columns. All is computed with the small "capacitance" matrix I + W^T D^-1 W: by Woodbury's
identity for the inverse of the covariance and by the matrix determinant lemma for its determinant.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._matrix import (
    LOG_2PI,
    _batch_mahalanobis,
    _batch_mv,
    log_diagonal,
    solve_lower,
)
from torch.distributions.distribution import Distribution
from torch.distributions.utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(W: Tensor, D: Tensor) -> Tensor:
    """The Cholesky factor of I + W^T D^-1 W."""
    identity = torch.eye(W.shape[-1], dtype=W.dtype, device=W.device)
    return torch.linalg.cholesky(identity + (W.mT / D.unsqueeze(-2)) @ W)


def _batch_lowrank_logdet(W: Tensor, D: Tensor, capacitance_tril: Tensor) -> Tensor:
    """log det(W W^T + diag(D))."""
    return D.log().sum(-1) + 2 * log_diagonal(capacitance_tril)


def _batch_lowrank_mahalanobis(W: Tensor, D: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """x^T (W W^T + diag(D))^-1 x."""
    scaled = x / D
    explained = _batch_mahalanobis(capacitance_tril, _batch_mv(W.mT, scaled))
    return (scaled * x).sum(-1) - explained


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with mean ``loc`` and covariance cov_factor cov_factor^T + diag(cov_diag)."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _parts = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        try:
            batch = torch.broadcast_shapes(
                loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch + event)
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch + event)
        super().__init__(batch, event, validate_args=validate_args)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)

    @property
    def mean(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def _factors(self) -> tuple[Tensor, Tensor]:
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag

    def _square(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + 2 * self._event_shape)

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        """The diagonal of the covariance."""
        W, D = self._factors
        return (W.square().sum(-1) + D).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance.

        That of I + D^-1/2 W W^T D^-1/2, scaled by rows: its eigenvalues are at least one.
        """
        W, D = self._factors
        root = D.sqrt().unsqueeze(-1)
        scaled = W / root
        identity = torch.eye(D.shape[-1], dtype=D.dtype, device=D.device)
        return self._square(root * torch.linalg.cholesky(identity + scaled @ scaled.mT))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """W W^T + diag(D)."""
        W, D = self._factors
        return self._square(W @ W.mT + D.diag_embed())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """D^-1 - D^-1 W C^-1 W^T D^-1 with the capacitance C."""
        W, D = self._factors
        half = solve_lower(self._capacitance_tril, W.mT / D.unsqueeze(-2))
        return self._square(D.reciprocal().diag_embed() - half.mT @ half)

    def _draw(self, shape: torch.Size) -> Tensor:
        W, D = self._factors
        like = {"dtype": self.loc.dtype, "device": self.loc.device}
        shared = _standard_normal(shape[:-1] + W.shape[-1:], **like)
        single = _standard_normal(shape, **like)
        return self.loc + _batch_mv(W, shared) + D.sqrt() * single

    def _log_det(self) -> Tensor:
        return _batch_lowrank_logdet(*self._factors, self._capacitance_tril)

    def _log_density(self, value: Tensor) -> Tensor:
        away = value - self.loc
        distance = _batch_lowrank_mahalanobis(*self._factors, away, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * LOG_2PI + self._log_det() + distance)

    def entropy(self) -> Tensor:
        """(n log(2 pi e) + log det) / 2."""
        both = self._event_shape[0] * (LOG_2PI + 1) + self._log_det()
        return (0.5 * both).expand(self._batch_shape)
