"""Transforms by name: elementwise maps of numbers, and maps onto simplices, Cholesky factors and
other sets of vectors and matrices. Chains and combinations of them are in ``_transform_core``.

The log determinants of maps of vectors follow from Jacobians that are triangular in a suitable
order of the entries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._transform_core import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    StackTransform,
    Stateless,
    Transform,
    identity_transform,
)
from torch.distributions._transform_core import _InverseTransform as _InverseTransform
from torch.distributions.distribution import Distribution
from torch.distributions.utils import (
    _sum_rightmost,
    broadcast_all,
    lazy_property,
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

_Shape = Sequence[int]


class _Increasing(Stateless):
    """A map of the real line onto its codomain that increases everywhere."""

    domain = constraints.real
    bijective = True
    sign = +1


class ExpTransform(_Increasing):
    """y = exp(x)."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return torch.exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return torch.log(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log exp(x) = x."""
        return x


def _open_unit(p: Tensor) -> Tensor:
    """Keeps probabilities off zero and one, as near to them as the format has numbers."""
    info = torch.finfo(p.dtype)
    return p.clamp(info.tiny, 1.0 - info.eps)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    return _open_unit(x.sigmoid())


class SigmoidTransform(_Increasing):
    """y = 1 / (1 + exp(-x)), kept off zero and one."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        inside = _open_unit(y)
        return inside.log() - torch.log1p(-inside)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log y + log(1 - y), from x so that neither saturates."""
        return F.logsigmoid(x) + F.logsigmoid(-x)


class SoftplusTransform(_Increasing):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y + torch.log(-torch.expm1(-y))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The slope is the sigmoid."""
        return F.logsigmoid(x)


class TanhTransform(_Increasing):
    """y = tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return torch.tanh(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return torch.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log(1 - tanh(x)^2) = 2 log(2 sigmoid(2x) exp(-x)), which does not saturate."""
        return 2 * (F.logsigmoid(2 * x) - x + math.log(2))


class AbsTransform(Stateless):
    """y = |x|; the inverse picks the positive number."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


def _same(a: Tensor | float, b: Tensor | float) -> bool:
    """Whether two parameters, numbers or tensors, are equal everywhere."""
    equal = a == b
    return bool(equal.all()) if isinstance(equal, Tensor) else equal


class PowerTransform(Transform):
    """y = x ** exponent, for positive x."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor | float, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @lazy_property
    def sign(self) -> Tensor:  # type: ignore[override]
        """The sign of the exponent."""
        return self.exponent.sign()

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Returns this transform with another cache size."""
        same = cache_size == self._cache_size
        return self if same else PowerTransform(self.exponent, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)

    def _call(self, x: Tensor) -> Tensor:
        return torch.pow(x, self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return torch.pow(y, 1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |exponent x ** (exponent - 1)|."""
        return (y / x * self.exponent).abs().log()

    def forward_shape(self, shape: _Shape) -> torch.Size:
        """The shape broadcast with the exponent's."""
        return torch.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


class AffineTransform(Transform):
    """y = loc + scale x; ``event_dim`` says how many dimensions are one value."""

    bijective = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        event_dim: int = 0,
        cache_size: int = 0,
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        """The dimensions of one value."""
        return self._event_dim

    def _space(self) -> constraints.Constraint:
        dims = self._event_dim
        return constraints.independent(constraints.real, dims) if dims else constraints.real

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        """Real arrays of ``event_dim`` dimensions."""
        return self._space()

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        """Real arrays of ``event_dim`` dimensions."""
        return self._space()

    @property
    def sign(self) -> Tensor | int:
        """The sign of the scale."""
        if isinstance(self.scale, Tensor):
            return torch.sign(self.scale)
        return (self.scale > 0) - (self.scale < 0)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Returns this transform with another cache size."""
        if cache_size == self._cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform)
            and _same(self.loc, other.loc)
            and _same(self.scale, other.scale)
        )

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |scale| for every number of a value."""
        scale = torch.as_tensor(self.scale, dtype=x.dtype, device=x.device)
        return _sum_rightmost(scale.abs().log().expand(x.shape), self._event_dim)

    def forward_shape(self, shape: _Shape) -> torch.Size:
        """The shape broadcast with those of the parameters."""
        tensors = (p for p in (self.loc, self.scale) if isinstance(p, Tensor))
        return torch.broadcast_shapes(shape, *(p.shape for p in tensors))

    inverse_shape = forward_shape


class ReshapeTransform(Transform):
    """Gives the rightmost dimensions another shape of as many entries."""

    bijective = True

    def __init__(self, in_shape: _Shape, out_shape: _Shape, cache_size: int = 0) -> None:
        self.in_shape = torch.Size(in_shape)
        self.out_shape = torch.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        """Arrays of ``in_shape``."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        """Arrays of ``out_shape``."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Returns this transform with another cache size."""
        same = cache_size == self._cache_size
        return self if same else ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Zero: nothing is stretched."""
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    @staticmethod
    def _exchange(shape: _Shape, old: torch.Size, new: torch.Size) -> torch.Size:
        split = len(shape) - len(old)
        if split < 0:
            raise ValueError("Too few dimensions on input")
        if tuple(shape[split:]) != tuple(old):
            raise ValueError(f"Shape mismatch: expected {tuple(shape[split:])} but got {old}")
        return torch.Size(shape[:split]) + new

    def forward_shape(self, shape: _Shape) -> torch.Size:
        """The shape with ``in_shape`` at its end exchanged for ``out_shape``."""
        return self._exchange(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: _Shape) -> torch.Size:
        """The shape with ``out_shape`` at its end exchanged for ``in_shape``."""
        return self._exchange(shape, self.out_shape, self.in_shape)


class CumulativeDistributionTransform(Transform):
    """Maps a value to its probability under a distribution of numbers."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> constraints.Constraint | None:  # type: ignore[override]
        """The support of the distribution."""
        return self.distribution.support

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Returns this transform with another cache size."""
        same = cache_size == self._cache_size
        return self if same else CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The slope of a distribution function is the density."""
        return self.distribution.log_prob(x)


def _needs(dims: int, shape: _Shape) -> torch.Size:
    if len(shape) < dims:
        raise ValueError("Too few dimensions on input")
    return torch.Size(shape)


class SoftmaxTransform(Stateless):
    """Maps log weights to probabilities; the logarithm is one of its many inverses."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return torch.log(y)

    def forward_shape(self, shape: _Shape) -> torch.Size:
        """The same shape, which has at least one dimension."""
        return _needs(1, shape)

    inverse_shape = forward_shape


class StickBreakingTransform(Stateless):
    """Breaks from a stick of length one n pieces, each a share of what is left.

    The share of piece i is sigmoid(x_i - log(n - i)): zeros give n + 1 pieces of one length.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _log_left(x: Tensor) -> Tensor:
        """log of the number of pieces that come after each."""
        n = x.shape[-1]
        return torch.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        share = _clipped_sigmoid(x - self._log_left(x))
        left = torch.cumprod(1 - share, -1)
        return F.pad(share, (0, 1), value=1) * F.pad(left, (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        piece = y[..., :-1]
        # One less the pieces before, not the pieces behind: the last piece is no free variable.
        left = (1 - piece.cumsum(-1)).clamp(min=torch.finfo(y.dtype).tiny)
        return piece.log() - left.log() + self._log_left(piece)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Piece i depends on x_1..x_i: the diagonal has y_i (1 - share_i)."""
        others = F.logsigmoid(self._log_left(x) - x)
        return (y[..., :-1].log() + others).sum(-1)

    def forward_shape(self, shape: _Shape) -> torch.Size:
        """One entry more."""
        *batch, n = _needs(1, shape)
        return torch.Size([*batch, n + 1])

    def inverse_shape(self, shape: _Shape) -> torch.Size:
        """One entry fewer."""
        *batch, n = _needs(1, shape)
        return torch.Size([*batch, n - 1])


class CorrCholeskyTransform(Transform):
    """Maps n(n-1)/2 real numbers to the Cholesky factor of an n x n correlation matrix.

    tanh(x) are partial correlations: each entry of a row takes that share of the length that the
    entries before it left of one, and the diagonal takes the rest.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        limit = 1 - torch.finfo(x.dtype).eps
        share = vec_to_tril_matrix(torch.tanh(x).clamp(-limit, limit), -1)
        left = torch.cumprod((1 - share * share).sqrt()[..., :-1], -1)
        identity = torch.eye(share.shape[-1], dtype=x.dtype, device=x.device)
        return (share + identity) * F.pad(left, (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        # atanh(share) is asinh of the entry over what it leaves. The diagonal is no free variable.
        entries = y.tril(-1)
        left = 1 - entries.square().cumsum(-1)
        safe = tril_matrix_to_vec(left, -1).clamp(min=torch.finfo(y.dtype).tiny)
        return torch.asinh(tril_matrix_to_vec(entries, -1) * safe.rsqrt())

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: None = None) -> Tensor:
        """Row by row the Jacobian is triangular: the lengths left, times the slopes of tanh."""
        # What the entries before leave is the length of the entries from there on.
        left = y.square().flip(-1).cumsum(-1).flip(-1)
        lengths = 0.5 * tril_matrix_to_vec(left, -1).log().sum(-1)
        return lengths + TanhTransform().log_abs_det_jacobian(x, y).sum(-1)

    def forward_shape(self, shape: _Shape) -> torch.Size:
        """The matrix whose strict lower triangle has that many entries."""
        *batch, k = _needs(1, shape)
        n = (1 + math.isqrt(1 + 8 * k)) // 2
        if n * (n - 1) // 2 != k:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return torch.Size([*batch, n, n])

    def inverse_shape(self, shape: _Shape) -> torch.Size:
        """The number of entries below the diagonal."""
        *batch, rows, n = _needs(2, shape)
        if rows != n:
            raise ValueError("Input is not square")
        return torch.Size([*batch, n * (n - 1) // 2])


class LowerCholeskyTransform(Stateless):
    """Drops what is above the diagonal and exponentiates the diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Stateless):
    """The product of a Cholesky factor, made as above, with its transpose."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))
