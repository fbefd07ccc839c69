"""The Wishart distribution over positive definite matrices."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import nan
from torch.distributions import constraints
from torch.distributions.chi2 import Chi2
from torch.distributions.exp_family import ExponentialFamily
from torch.distributions.multivariate_normal import _precision_to_scale_tril
from torch.distributions.utils import _holds, lazy_property
from torch.types import Number

__all__ = ["Wishart"]

_log_2 = math.log(2)


def _multivariate_digamma(x, size):
    """The derivative of torch.mvlgamma: digamma at x, x - 1/2, x - 1, ..."""
    return sum(torch.digamma(x - i / 2) for i in range(size))


class Wishart(ExponentialFamily):
    """The sum of `df` outer products of normal vectors of mean 0, given by one of the covariance
    matrix of these vectors, its inverse or its Cholesky factor; df > size - 1 may be any real.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self):
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df,
        covariance_matrix=None,
        precision_matrix=None,
        scale_tril=None,
        validate_args=None,
    ) -> None:
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = [name for name, matrix in matrices.items() if matrix is not None]
        if len(given) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        (name,) = given
        matrix = matrices[name]
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if isinstance(df, Number):
            df = torch.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape = torch.broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch_shape)
        event_shape = matrix.shape[-2:]
        if not _holds(self.df > event_shape[-1] - 1):
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}."
            )
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        if not _holds(self.df >= event_shape[-1]):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = torch.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)
        self._squares = self._make_squares()

    def _make_squares(self):
        """The squared diagonal of Bartlett's factor: chi-squared of df - i in row i."""
        row = torch.arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)
        return Chi2(self.df.unsqueeze(-1) - row)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = torch.Size(batch_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(
            batch_shape + self.event_shape
        )
        new.df = self.df.expand(batch_shape)
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(batch_shape + self.event_shape))
        self._finish_expand(Wishart, new, batch_shape)
        new._squares = new._make_squares()
        return new

    def _expand_matrix(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        return self._expand_matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        tril = self._unbroadcasted_scale_tril
        return self._expand_matrix(tril @ tril.mT)

    @lazy_property
    def precision_matrix(self):
        tril = self._unbroadcasted_scale_tril
        identity = torch.eye(self._event_shape[-1], dtype=tril.dtype, device=tril.device)
        return self._expand_matrix(torch.cholesky_solve(identity, tril))

    @property
    def mean(self):
        return self.df.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mode(self):
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = torch.where(factor > 0, factor, nan)
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self):
        V = self.covariance_matrix
        diag_V = V.diagonal(dim1=-2, dim2=-1)
        outer = torch.einsum("...i,...j->...ij", diag_V, diag_V)
        return self.df.view(self._batch_shape + (1, 1)) * (V.pow(2) + outer)

    def _draw(self, sample_shape):
        """Bartlett's decomposition: roots of chi-squared variables on the diagonal of a triangle
        and normal ones below it, taken through the factor of the scale."""
        size = self._event_shape[-1]
        edge = self._squares.rsample(sample_shape).sqrt()
        triangle = edge.clamp(min=torch.finfo(edge.dtype).eps).diag_embed()
        rows, columns = torch.tril_indices(size, size, offset=-1)
        below = torch.Size(sample_shape) + self._batch_shape + (size * (size - 1) // 2,)
        triangle[..., rows, columns] = torch.randn(
            below, dtype=triangle.dtype, device=triangle.device
        )
        root = self._unbroadcasted_scale_tril @ triangle
        return root @ root.mT

    def rsample(self, sample_shape=torch.Size(), max_try_correction=None) -> torch.Tensor:  # noqa: B008
        """Samples, of which singular ones are drawn again up to `max_try_correction` times (3
        below ten rows and 10 above, unless told).

        The first draw is always discarded: programs that fix a seed depend on it.
        """
        if max_try_correction is None:
            max_try_correction = 3 if self._event_shape[-1] < 10 else 10
        sample_shape = torch.Size(sample_shape)
        sample = self._draw(sample_shape)
        if max_try_correction > 0:
            sample = self._draw(sample_shape)
        for _ in range(max_try_correction - 1):
            singular = ~self.support.check(sample)
            if self._batch_shape:
                singular = singular.flatten(-len(self._batch_shape)).any(-1)
            if not singular.any():
                break
            warnings.warn("Singular sample detected.", stacklevel=2)
            again = self._draw(singular[singular].shape)
            sample = sample.clone()
            sample[singular] = again
        return sample

    def log_prob(self, value) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        size = self._event_shape[-1]
        tril = self._unbroadcasted_scale_tril
        ratio = torch.cholesky_solve(value, tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        volume = (self.df - size - 1) * torch.linalg.slogdet(value).logabsdet
        return (volume - ratio) / 2 - self._log_constant(self.df / 2)

    def _log_constant(self, half):
        """log of 2^(n half) det(scale)^half Gamma_n(half)."""
        size = self._event_shape[-1]
        half_log_det = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return half * (size * _log_2 + 2 * half_log_det) + torch.mvlgamma(half, size)

    def entropy(self) -> torch.Tensor:
        # -E[log density], with E[log det x] = multivariate digamma + n log 2 + log det(scale).
        size = self._event_shape[-1]
        half_log_det = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        mean_log_det = _multivariate_digamma(self.df / 2, size) + size * _log_2 + 2 * half_log_det
        power = (self.df - size - 1) / 2
        return self._log_constant(self.df / 2) - power * mean_log_det + self.df * size / 2

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        size = self._event_shape[-1]
        half = y + (size + 1) / 2
        scale = size * _log_2 - torch.linalg.slogdet(-2 * x).logabsdet
        return half * scale + torch.mvlgamma(half, size)
