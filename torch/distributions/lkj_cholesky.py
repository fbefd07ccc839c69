"""The LKJ distribution over Cholesky factors of correlation matrices (Lewandowski, Kurowicka and
Joe, 2009).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.distributions import constraints
from torch.distributions.beta import Beta
from torch.distributions.distribution import Distribution
from torch.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors L of dim x dim correlation matrices with density proportional to
    det(L L^T)^(concentration - 1) over the matrices; uniform for concentration 1.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        self._beta = self._row_lengths()
        shape = torch.Size((dim, dim))
        super().__init__(self.concentration.shape, shape, validate_args)

    def _row_lengths(self):
        """The onion method: row i is grown from the rows above it by a direction and a squared
        length, drawn from Beta(i - 1/2, concentration + (dim - 1 - i) / 2). The paper has i / 2
        for the first number, which from the third row on is another one: programs that fix a seed
        expect these. Row 0 has nothing left of its diagonal; it gets the numbers of row 1, so
        that every row draws one.
        """
        place = self.concentration
        row = torch.arange(self.dim, dtype=place.dtype, device=place.device).clamp(min=1)
        return Beta(row - 0.5, place.unsqueeze(-1) + (self.dim - 1 - row) / 2)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(LKJCholesky, _instance)
        batch_shape = torch.Size(batch_shape)
        new.dim = self.dim
        new.concentration = self.concentration.expand(batch_shape)
        new._beta = self._beta.expand(batch_shape + (self.dim,))
        return self._finish_expand(LKJCholesky, new, batch_shape)

    def sample(self, sample_shape=torch.Size()) -> torch.Tensor:  # noqa: B008
        squared = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        # A direction for each row among the places left of its diagonal, stretched to its length.
        arrow = torch.randn(shape, dtype=squared.dtype, device=squared.device).tril(-1)
        left = squared.sqrt() * (arrow / arrow.norm(dim=-1, keepdim=True))
        left[..., 0, :] = 0
        rest = (1 - left.square().sum(-1)).clamp(min=torch.finfo(left.dtype).tiny)
        return left + rest.sqrt().diag_embed()

    def log_prob(self, value) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # The Jacobian from the matrix to its factor gives row i the power dim - 1 - i of its
        # diagonal, the density the power 2 (concentration - 1); row 0 is 1.
        row = torch.arange(1, self.dim, device=self.concentration.device)
        power = (self.dim - 1 - row) + 2 * (self.concentration.unsqueeze(-1) - 1)
        shape = (power * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        # Lewandowski, Kurowicka and Joe, equation 16, in terms of the multivariate gamma function.
        count = self.dim - 1
        top = self.concentration + count / 2
        volume = torch.mvlgamma(top - 0.5, count) - count * torch.lgamma(top)
        return shape - volume - count * math.log(math.pi) / 2
