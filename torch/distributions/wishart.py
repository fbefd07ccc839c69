"""The Wishart distribution of sums of squared normal vectors.

Samples are made by Bartlett's decomposition: the Cholesky factor of a sample is that of the scale
matrix times a triangle of independent chi and normal variables.
"""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._matrix import (
    CONSTRAINTS,
    MatrixParameter,
    log_diagonal,
    the_one,
    to_scale_tril,
)
from torch.distributions.chi2 import Chi2
from torch.distributions.exp_family import ExponentialFamily
from torch.distributions.utils import EMPTY, Number, Shape, _holds

__all__ = ["Wishart"]


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of the logarithm of the multivariate gamma function."""
    if not _holds(x > (p - 1) / 2):
        raise AssertionError("Wrong domain for multivariate digamma function.")
    halves = torch.arange(p, dtype=x.dtype, device=x.device) / 2
    return torch.digamma(x.unsqueeze(-1) - halves).sum(-1)


class Wishart(MatrixParameter, ExponentialFamily):
    """The sum of x x^T over ``df`` normal vectors x with the given covariance.

    The mean is df times that covariance. ``df`` may be fractional, above the dimension less one.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _parts = ("_unbroadcasted_scale_tril", "_batch_dims", "_dist_chi2")

    def __init__(
        self,
        df: Tensor | Number,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = the_one(
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if given is None:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        name, matrix = given
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        df = torch.as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        event = matrix.shape[-2:]
        batch = torch.broadcast_shapes(matrix.shape[:-2], df.shape)
        self._check_df(df, event[-1])
        self.df = df.expand(batch)
        setattr(self, name, matrix.expand(batch + event))
        super().__init__(batch, event, validate_args=validate_args)
        self._batch_dims = [-(n + 1) for n in range(len(batch))]
        self._unbroadcasted_scale_tril = to_scale_tril(name, matrix)
        steps = torch.arange(event[-1], dtype=df.dtype, device=df.device)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - steps, validate_args=False)

    @staticmethod
    def _check_df(df: Tensor, n: int) -> None:
        if (df <= n - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if (df < n).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=3,
            )

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """df is above the dimension less one."""
        return {**CONSTRAINTS, "df": constraints.greater_than(self._event_shape[-1] - 1)}

    def _batch_of_part(self, part: Chi2, batch_shape: torch.Size) -> torch.Size:
        return batch_shape + self._event_shape[-1:]

    def _per_matrix(self, number: Tensor) -> Tensor:
        return number[..., None, None]

    @property
    def mean(self) -> Tensor:
        """df V."""
        return self._per_matrix(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """(df - n - 1) V; NaN unless that is positive."""
        over = self.df - self._event_shape[-1] - 1
        return self._per_matrix(over.masked_fill(over <= 0, torch.nan)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """df (V_ij^2 + V_ii V_jj)."""
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._per_matrix(self.df) * (V.square() + products)

    def _bartlett_sampling(self, sample_shape: Shape = EMPTY) -> Tensor:
        n = self._event_shape[-1]
        chi = self._dist_chi2.rsample(sample_shape).sqrt()
        rows, columns = torch.tril_indices(n, n, -1, device=chi.device)
        triangle = chi.diag_embed()
        triangle[..., rows, columns] = torch.randn(
            chi.shape[:-1] + rows.shape, dtype=chi.dtype, device=chi.device
        )
        factor = self._unbroadcasted_scale_tril @ triangle
        return factor @ factor.mT

    def rsample(self, sample_shape: Shape = EMPTY, max_try_correction: int | None = None) -> Tensor:
        """Draws matrices; those that rounding made singular are drawn again, a few times.

        ``max_try_correction`` says how often, 10 times unless given.
        """
        lead = torch.Size(sample_shape)
        tries = 10 if max_try_correction is None else max_try_correction
        sample = self._bartlett_sampling(lead)
        if tries > 0:
            # The first draw is discarded: what programs get for a seed depends on it.
            sample = self._bartlett_sampling(lead)
        for _ in range(tries - 1):
            again = self._singular(sample).reshape(*lead, -1).any(-1)
            if not again.any():
                return sample
            sample = sample.index_put((again,), self._bartlett_sampling(again[again].shape))
        if self._singular(sample).any():
            warnings.warn("Singular sample detected.", stacklevel=2)
        return sample

    def _singular(self, sample: Tensor) -> Tensor:
        return ~self.support.check(sample)

    def _log_density(self, value: Tensor) -> Tensor:
        n = self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        trace = torch.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1)
        determinant = torch.linalg.slogdet(value).logabsdet
        body = (self.df - n - 1) * determinant - trace
        return 0.5 * body - self._log_norm()

    def _log_norm(self) -> Tensor:
        """The logarithm of what |x|^((df-n-1)/2) exp(-tr(V^-1 x)/2) is divided by."""
        n, half = self._event_shape[-1], 0.5 * self.df
        root = log_diagonal(self._unbroadcasted_scale_tril)
        return half * (n * math.log(2) + 2 * root) + torch.mvlgamma(half, n)

    def entropy(self) -> Tensor:
        """The log normalizer, less (df - n - 1)/2 times the mean of log|x|, plus df n / 2."""
        n, half = self._event_shape[-1], 0.5 * self.df
        root = log_diagonal(self._unbroadcasted_scale_tril)
        mean_log_det = _mvdigamma(half, n) + n * math.log(2) + 2 * root
        return self._log_norm() - 0.5 * (self.df - n - 1) * mean_log_det + half * n

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        n = self._event_shape[-1]
        return -0.5 * self.precision_matrix, 0.5 * (self.df - n - 1)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        n = x.shape[-1]
        half = y + 0.5 * (n + 1)
        determinant = torch.linalg.slogdet(-2 * x).logabsdet
        return half * (n * math.log(2) - determinant) + torch.mvlgamma(half, n)
