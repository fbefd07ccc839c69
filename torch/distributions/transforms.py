"""Invertible maps between tensors with the logarithm of their volume change, from which
transformed distributions are built. The general machinery (inverse, composition, independence,
reshaping, concatenation) is in _transform_core; here are the maps themselves.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch.distributions import constraints
from torch.distributions._transform_core import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    StackTransform,
    Transform,
    _InverseTransform,
    broadcast_scalar_shape,
    identity_transform,
    require_dims,
)
from torch.distributions.utils import (
    broadcast_all,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
    "Transform",
    "identity_transform",
]

for _class in (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    StackTransform,
    Transform,
    _InverseTransform,
):
    _class.__module__ = __name__
del _class


class _Plain(Transform):
    """A map without parameters: all of one class are equal."""

    def __eq__(self, other) -> Any:
        return isinstance(other, type(self))


class ExpTransform(_Plain):
    """y = exp(x)."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y) -> Any:
        return x


class PowerTransform(Transform):
    """y = x ** exponent on positive numbers."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent, cache_size=0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size=1) -> Any:
        if self._cache_size == cache_size:
            return self
        return PowerTransform(self.exponent, cache_size=cache_size)

    @property
    def sign(self):
        return self.exponent.sign()

    def __eq__(self, other) -> Any:
        if not isinstance(other, PowerTransform):
            return False
        return self.exponent.eq(other.exponent).all().item()

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape) -> Any:
        return torch.broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    def inverse_shape(self, shape) -> Any:
        return torch.broadcast_shapes(shape, getattr(self.exponent, "shape", ()))


def _inside(probability):
    """Kept inside the open unit interval, where logarithms are finite."""
    limits = torch.finfo(probability.dtype)
    return probability.clamp(min=limits.tiny, max=1.0 - limits.eps)


def _clipped_sigmoid(x):
    return _inside(torch.sigmoid(x))


class SigmoidTransform(_Plain):
    """y = 1 / (1 + exp(-x)), kept inside the open interval."""

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def _call(self, x):
        return _clipped_sigmoid(x)

    def _inverse(self, y):
        return _inside(y).logit()

    def log_abs_det_jacobian(self, x, y) -> Any:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Plain):
    """y = log(1 + exp(x)); the identity beyond 20."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x):
        return F.softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y) -> Any:
        return -F.softplus(-x)


class TanhTransform(_Plain):
    """y = tanh(x)."""

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        # No clipping: use cache_size=1 where values near the bounds must come back.
        return y.atanh()

    def log_abs_det_jacobian(self, x, y) -> Any:
        # log(1 - tanh(x)^2) without the cancellation.
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(_Plain):
    """y = |x|, whose inverse is taken on the positive half line."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class AffineTransform(Transform):
    """y = loc + scale * x."""

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self):
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        if self.event_dim == 0:
            return constraints.real
        return constraints.independent(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        if self.event_dim == 0:
            return constraints.real
        return constraints.independent(constraints.real, self.event_dim)

    def with_cache(self, cache_size=1) -> Any:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other) -> Any:
        if not isinstance(other, AffineTransform):
            return False
        return _same_value(self.loc, other.loc) and _same_value(self.scale, other.scale)

    @property
    def sign(self):
        if isinstance(self.scale, torch.Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y) -> Any:
        shape = x.shape
        if isinstance(self.scale, torch.Tensor):
            result = torch.abs(self.scale).log()
        else:
            result = torch.full_like(x, math.log(abs(self.scale)))
        if self.event_dim:
            result = result.view(result.size()[: -self.event_dim] + (-1,)).sum(-1)
            shape = shape[: -self.event_dim]
        return result.expand(shape)

    def forward_shape(self, shape) -> Any:
        return broadcast_scalar_shape(shape, self.loc, self.scale)

    def inverse_shape(self, shape) -> Any:
        return broadcast_scalar_shape(shape, self.loc, self.scale)


def _same_value(a, b):
    """Equality of numbers or tensors, of shapes that broadcast."""
    same = a == b
    return same.all().item() if isinstance(same, torch.Tensor) else same


class CorrCholeskyTransform(Transform):
    """Vectors of n (n - 1) / 2 reals to Cholesky factors of n x n correlation matrices: tanh of
    each number is a signed share of what its row has left of length 1.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        limit = 1 - torch.finfo(x.dtype).eps
        shares = vec_to_tril_matrix(x.tanh().clamp(min=-limit, max=limit), diag=-1)
        # What a row has left before column k: the product of sqrt(1 - share^2) to its left.
        left = (1 - shares.square()).sqrt().cumprod(-1).roll(1, -1)
        left[..., 0] = 1
        unit = torch.eye(shares.shape[-1], dtype=shares.dtype, device=shares.device)
        return (shares + unit) * left

    @staticmethod
    def _left(y):
        """The squared length that each row has left after each column; the whole is 1."""
        return 1 - y.square().cumsum(-1)

    def _inverse(self, y):
        before = F.pad(self._left(y)[..., :-1], (1, 0), value=1)
        shares = y / before.sqrt()
        return tril_matrix_to_vec(shares, diag=-1).atanh()

    def log_abs_det_jacobian(self, x, y, intermediates=None) -> Any:
        # d y / d share is the length left before it, d share / d x = 1 - tanh(x)^2.
        lengths = tril_matrix_to_vec(self._left(y), diag=-2).log().sum(-1) / 2
        slopes = 2 * (math.log(2.0) - x - F.softplus(-2 * x))
        return lengths + slopes.sum(-1)

    def forward_shape(self, shape) -> Any:
        require_dims(shape, 1)
        length = shape[-1]
        n = round((0.25 + 2 * length) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != length:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape) -> Any:
        require_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        n = shape[-1]
        return shape[:-2] + (n * (n - 1) // 2,)


class SoftmaxTransform(_Plain):
    """Reals to the simplex by softmax. Not injective; the inverse is the logarithm. Gradient
    methods cope with it, Hamiltonian ones should take StickBreakingTransform.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        return x.softmax(-1)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape) -> Any:
        return require_dims(shape, 1)

    def inverse_shape(self, shape) -> Any:
        return require_dims(shape, 1)


class StickBreakingTransform(_Plain):
    """n reals to the simplex of n + 1 parts: each breaks its share, by a sigmoid, off what is
    left of a stick of length 1. Zero maps to equal parts.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x):
        share = _inside(torch.sigmoid(x - self._even(x)))
        left = (1 - share).cumprod(-1)
        return F.pad(share, (0, 1), value=1) * F.pad(left, (1, 0), value=1)

    @staticmethod
    def _even(x):
        """log of the number of parts still to come: from 0, a break of the stick into equals."""
        return torch.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()

    def _inverse(self, y):
        parts = y[..., :-1]
        # Zero only by rounding; its logarithm must stay finite.
        left = (1 - parts.cumsum(-1)).clamp(min=torch.finfo(y.dtype).tiny)
        return (parts / left).log() + self._even(parts)

    def log_abs_det_jacobian(self, x, y) -> Any:
        # A part is its share of what is left: d part / d x = part (1 - share).
        return (y[..., :-1].log() + F.logsigmoid(self._even(x) - x)).sum(-1)

    def forward_shape(self, shape) -> Any:
        require_dims(shape, 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape) -> Any:
        require_dims(shape, 1)
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(_Plain):
    """Square matrices to lower triangular ones with a positive diagonal, by its exponential."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Plain):
    """Square matrices to positive definite ones, through their Cholesky factor."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    def _inverse(self, y):
        y = torch.linalg.cholesky(y)
        return LowerCholeskyTransform().inv(y)


class CumulativeDistributionTransform(Transform):
    """The distribution function of a univariate distribution: its samples become uniform."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution, cache_size=0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self):
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y) -> Any:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size=1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
