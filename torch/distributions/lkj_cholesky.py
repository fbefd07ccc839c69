"""The LKJ distribution of Cholesky factors of correlation matrices.

Lewandowski, Kurowicka and Joe, "Generating random correlation matrices based on vines and extended
onion method" (2009). Samples are made by the onion method: row by row, the squared length of the
entries before the diagonal is a beta variable, their direction uniform on the sphere.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.beta import Beta
from torch.distributions.distribution import Distribution
from torch.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Factors L with density of the correlation matrix L L^T proportional to det^(concentration-1).

    A concentration of one makes all matrices as likely, more draws them to the identity.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _parts = ("_beta", "dim")

    def __init__(
        self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        batch = self.concentration.shape
        super().__init__(batch, torch.Size((dim, dim)), validate_args=validate_args)
        # Row i has max(i - 1, 0) correlations before its last one; row 0 is never used.
        before = self.concentration.new_tensor([max(i - 1, 0) for i in range(dim)])
        last = self.concentration.unsqueeze(-1) + 0.5 * (dim - 2)
        self._beta = Beta(before + 0.5, last - 0.5 * before, validate_args=False)

    def _batch_of_part(self, part: Beta, batch_shape: torch.Size) -> torch.Size:
        return batch_shape + part.batch_shape[-1:]

    def _draw(self, shape: torch.Size) -> Tensor:
        like = self.concentration
        length = self._beta.sample(self._lead(shape)).unsqueeze(-1)
        normal = torch.randn(shape, dtype=like.dtype, device=like.device).tril(-1)
        row = torch.sqrt(length) * F.normalize(normal, dim=-1, eps=torch.finfo(like.dtype).tiny)
        # The diagonal takes what the row leaves of length one, never quite nothing.
        rest = torch.clamp(1 - row.square().sum(-1), min=torch.finfo(like.dtype).tiny)
        return row + rest.sqrt().diag_embed()

    def _log_density(self, value: Tensor) -> Tensor:
        eta, n = self.concentration.unsqueeze(-1), self.dim
        order = torch.arange(1, n, dtype=eta.dtype, device=eta.device)
        # Row i (from 0) of L has n - 1 - i rows below it, whose volumes its diagonal enters.
        logs = value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()
        powers = (2 * (eta - 1) + (n - 1 - order)) * logs
        # Each row adds the volume of the ball in which it lies, weighted by the density.
        top = eta + 0.5 * (n - 1)
        volumes = 0.5 * order * math.log(math.pi) + torch.lgamma(top - 0.5 * order)
        return (powers - volumes + torch.lgamma(top)).sum(-1)
