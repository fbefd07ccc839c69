"""Products with something added, norms and moments, and elementwise operators that are made of
others."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch._decomp._register import KIND, decomposes, pointwise, widened
from torch._prims_common import (
    check_float_or_complex,
    get_computation_dtype,
    reduced_dims,
)

aten = torch.ops.aten


def _combined(self: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """beta * self + alpha * product. A self with factor 0 is not read: nan does not pass."""
    found = product if alpha == 1 else product * alpha
    if beta == 0:
        return found.to(self.dtype) if found.dtype != self.dtype else found
    return found + (self if beta == 1 else self * beta)


def _whole_factors(self: Tensor, beta: float, alpha: float) -> tuple[float, float]:
    """Integer tensors take integer factors."""
    if self.is_floating_point() or self.is_complex():
        return beta, alpha
    return int(beta), int(alpha)


@decomposes(aten.addmm.default, aten.addmm.out)
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    beta, alpha = _whole_factors(self, beta, alpha)
    return widened(lambda s, a, b: _combined(s, torch.mm(a, b), beta, alpha))(self, mat1, mat2)


@decomposes(aten.addmv, inplace=True)
def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    beta, alpha = _whole_factors(self, beta, alpha)
    return widened(lambda s, a, b: _combined(s, torch.mv(a, b), beta, alpha))(self, mat, vec)


@decomposes(aten.baddbmm.default, aten.baddbmm.out)
def baddbmm(
    self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    beta, alpha = _whole_factors(self, beta, alpha)
    return _combined(self, torch.bmm(batch1, batch2), beta, alpha)


@decomposes(aten.addbmm, inplace=True)
def addbmm(
    self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    beta, alpha = _whole_factors(self, beta, alpha)
    return widened(lambda s, a, b: _combined(s, torch.bmm(a, b).sum(0), beta, alpha))(
        self, batch1, batch2
    )


@decomposes(aten.addr)
def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    torch._check(
        vec1.dim() == 1, lambda: f"addr: Expected 1-D argument vec1, but got {vec1.dim()}-D"
    )
    torch._check(
        vec2.dim() == 1, lambda: f"addr: Expected 1-D argument vec2, but got {vec2.dim()}-D"
    )
    product = torch.outer(vec1, vec2)
    if self.dtype is torch.bool:
        shown = self.expand(product.shape)
        product = product if alpha else torch.zeros_like(product)
        return product | shown if beta else product
    return _combined(self, product, beta, alpha).expand(product.shape)


@decomposes(aten.mv)
def mv(self: Tensor, vec: Tensor) -> Tensor:
    torch._check(
        self.dim() == 2 and vec.dim() == 1,
        lambda: f"matrix @ vector expected, got {self.dim()}, {vec.dim()}",
    )
    torch._check(
        self.shape[1] == vec.shape[0],
        lambda: f"size mismatch, got input ({self.shape[0]}x{self.shape[1]}), vec ({vec.shape[0]})",
    )
    return (self * vec).sum(1)


@decomposes(aten.dot)
def dot(self: Tensor, tensor: Tensor) -> Tensor:
    return (self * tensor).sum()


@decomposes(aten.vdot)
def vdot(self: Tensor, other: Tensor) -> Tensor:
    return (self.conj() * other).sum()


@pointwise(aten.addcmul, inplace=True)
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    return self + value * tensor1 * tensor2


@pointwise(aten.addcdiv, inplace=True)
def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    check_float_or_complex("addcdiv", tensor1, tensor2)
    return self + value * (tensor1 / tensor2)


@decomposes(aten.lerp, inplace=True)
def lerp(self: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    """From the nearer end, which keeps both ends exact."""

    def moved(start: Tensor, end: Tensor, share: Tensor | float) -> Tensor:
        if not isinstance(share, Tensor):
            near = abs(share) < 0.5
            return start + share * (end - start) if near else end - (end - start) * (1 - share)
        near = torch.abs(share) < 0.5
        return torch.where(near, start, end) + torch.where(near, share, share - 1) * (end - start)

    return widened(moved)(self, end, weight)


# ---- moments and norms ----------------------------------------------------------------------


def _count(self: Tensor, dim: list[int] | None) -> int:
    return math.prod(self.shape[d] for d in reduced_dims(self.dim(), dim))


def _square(value: Tensor) -> Tensor:
    return torch.real(value * value.conj()) if value.is_complex() else value * value


@decomposes(aten.var_mean.correction)
def var_mean(
    self: Tensor,
    dim: list[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[Tensor, Tensor]:
    check_float_or_complex("var_mean", self)
    wide = self.to(get_computation_dtype(self.dtype))
    dims = list(reduced_dims(self.dim(), dim))
    mean = torch.mean(wide, dims, keepdim=True)
    spare = max(_count(self, dims) - (1 if correction is None else correction), 0)
    total = torch.sum(_square(wide - mean), dims, keepdim=keepdim)
    var = total / spare if spare else total / torch.zeros_like(total)
    shown = mean if keepdim else mean.reshape(var.shape)
    return var.to(self.dtype.to_real()), shown.to(self.dtype)


@decomposes(aten.var.correction)
def var(
    self: Tensor,
    dim: list[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Tensor:
    return var_mean(self, dim, correction=correction, keepdim=keepdim)[0]


@decomposes(aten.std.correction)
def std(
    self: Tensor,
    dim: list[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Tensor:
    return std_mean(self, dim, correction=correction, keepdim=keepdim)[0]


@decomposes(aten.std_mean.correction)
def std_mean(
    self: Tensor,
    dim: list[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[Tensor, Tensor]:
    wide = self.to(get_computation_dtype(self.dtype))
    found, mean = torch.var_mean(wide, dim, correction=correction, keepdim=keepdim)
    return torch.sqrt(found).to(self.dtype.to_real()), mean.to(self.dtype)


@decomposes(aten.linalg_vector_norm)
def linalg_vector_norm(
    self: Tensor,
    ord: float = 2,
    dim: list[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    check_float_or_complex("linalg.vector_norm", self)
    result = (dtype or self.dtype).to_real()
    dims = list(reduced_dims(self.dim(), dim))
    size = torch.abs(self.to(get_computation_dtype(dtype or self.dtype)))
    if ord == 0:
        return (size != 0).to(result).sum(dims, keepdim)
    if abs(ord) == math.inf:
        fold = torch.amax if ord > 0 else torch.amin
        return fold(size, dims, keepdim).to(result)
    if ord == 1:
        return size.sum(dims, keepdim).to(result)
    if ord == 2:
        return torch.sqrt((size * size).sum(dims, keepdim)).to(result)
    return size.pow(ord).sum(dims, keepdim).pow(1.0 / ord).to(result)


@decomposes(aten.aminmax)
def aminmax(
    self: Tensor, *, dim: int | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    dims = [] if dim is None else [dim]
    if dim is None and keepdim and self.dim():
        dims = list(range(self.dim()))
    return torch.amin(self, dims, keepdim), torch.amax(self, dims, keepdim)


@decomposes(aten.nansum)
def nansum(
    self: Tensor,
    dim: list[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    known = torch.where(torch.isnan(self), 0, self)
    return torch.sum(known, dim, keepdim, dtype=dtype)


@decomposes(aten.logsumexp)
def logsumexp(self: Tensor, dim: list[int], keepdim: bool = False) -> Tensor:
    wide = (
        self
        if self.is_floating_point() or self.is_complex()
        else self.to(torch.get_default_dtype())
    )
    if wide.numel() == 0:
        return torch.log(torch.sum(torch.exp(wide), dim, keepdim))
    # Complex numbers are shifted by their greatest real part.
    top = torch.amax(torch.real(wide) if wide.is_complex() else wide, dim, True)
    top = torch.where(torch.abs(top) == math.inf, 0, top)
    total = torch.log(torch.sum(torch.exp(wide - top), dim, keepdim))
    return total + (top if keepdim else top.reshape(total.shape))


@decomposes(aten.dist)
def dist(self: Tensor, other: Tensor, p: float = 2) -> Tensor:
    return torch.linalg.vector_norm(self - other, p)


@decomposes(aten._euclidean_dist)
def _euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    """|a - b|^2 = |a|^2 - 2ab + |b|^2, as one product of extended rows."""
    left, right = (x.pow(2).sum(-1, True) for x in (x1, x2))
    rows = torch.cat([-2 * x1, left, torch.ones_like(left)], -1)
    columns = torch.cat([x2, torch.ones_like(right), right], -1)
    return rows.matmul(columns.mT).clamp_min(0).sqrt()


@decomposes(aten.renorm, inplace=True)
def renorm(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    torch._check(p > 0, lambda: "renorm: non-positive norm not supported")
    torch._check(maxnorm >= 0, lambda: f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    dim = dim % self.dim()
    others = [d for d in range(self.dim()) if d != dim]
    wide = self.to(get_computation_dtype(self.dtype))
    norm = torch.linalg.vector_norm(wide, p, others, keepdim=True)
    factor = torch.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1.0)
    return (self * factor).to(self.dtype).contiguous()


# ---- elementwise ----------------------------------------------------------------------------


@decomposes(aten.floor_divide)
def floor_divide(self: Tensor, other: Tensor | float) -> Tensor:
    return torch.div(self, other, rounding_mode="floor")


@decomposes(aten.rsub)
def rsub(self: Tensor, other: Tensor | float, alpha: float = 1) -> Tensor:
    if isinstance(other, Tensor):
        return torch.sub(other, self, alpha=alpha)
    return torch.add(torch.neg(self if alpha == 1 else self * alpha), other)


@pointwise(aten.frac, inplace=True)
def frac(self: Tensor) -> Tensor:
    return self - torch.trunc(self)


@decomposes(aten.heaviside, inplace=True)
def heaviside(self: Tensor, values: Tensor) -> Tensor:
    step = torch.where(self > 0, torch.ones_like(self), torch.zeros_like(self))
    return torch.where(self == 0, values, step)


@pointwise(aten.deg2rad, inplace=True, kind=KIND.INT_TO_FLOAT)
def deg2rad(self: Tensor) -> Tensor:
    return self * (math.pi / 180)


@pointwise(aten.rad2deg, inplace=True, kind=KIND.INT_TO_FLOAT)
def rad2deg(self: Tensor) -> Tensor:
    return self * (180 / math.pi)


@pointwise(aten.logaddexp)
def logaddexp(self: Tensor, other: Tensor) -> Tensor:
    top = torch.maximum(self, other)
    endless = torch.isinf(self) & (self == other)
    return torch.where(endless, self, top + torch.log1p(torch.exp(-torch.abs(self - other))))


@pointwise(aten.logaddexp2)
def logaddexp2(self: Tensor, other: Tensor) -> Tensor:
    top = torch.maximum(self, other)
    endless = torch.isinf(self) & (self == other)
    rest = torch.log1p(torch.exp2(-torch.abs(self - other))) / math.log(2)
    return torch.where(endless, self, top + rest)


def _nan_where_nan(guarded: Tensor, found: Tensor) -> Tensor:
    return torch.where(torch.isnan(guarded), math.nan, found)


@decomposes(aten.xlogy, inplace=True)
def xlogy(self: Tensor | float, other: Tensor | float) -> Tensor:
    """x * log(y), which is 0 for x = 0 whatever y (but for nan)."""
    first, second = (
        torch.full((), v, dtype=torch.get_default_dtype()) if not isinstance(v, Tensor) else v
        for v in (self, other)
    )
    return widened(
        lambda x, y: _nan_where_nan(y, torch.where(x == 0, 0, x * torch.log(y))), KIND.INT_TO_FLOAT
    )(first, second)


@pointwise(aten.sinc, inplace=True, kind=KIND.INT_TO_FLOAT)
def sinc(self: Tensor) -> Tensor:
    angle = self * math.pi
    return torch.where(self == 0, 1, torch.sin(angle) / angle)


@pointwise(aten.special_entr, kind=KIND.INT_TO_FLOAT)
def special_entr(self: Tensor) -> Tensor:
    inside = torch.where(self > 0, -self * torch.log(self), torch.where(self == 0, 0, -math.inf))
    return _nan_where_nan(self, inside)


@decomposes(aten.nan_to_num, inplace=True)
def nan_to_num(
    self: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    if not (self.is_floating_point() or self.is_complex()):
        return self.clone()
    if self.is_complex():
        parts = [nan_to_num(part, nan, posinf, neginf) for part in (self.real, self.imag)]
        return torch.complex(*parts)
    limits = torch.finfo(self.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    found = torch.where(torch.isnan(self), 0.0 if nan is None else nan, self)
    found = torch.where(self == math.inf, high, found)
    return torch.where(self == -math.inf, low, found)


@decomposes(aten.sgn, inplace=True)
def sgn(self: Tensor) -> Tensor:
    if not self.is_complex():
        return torch.sign(self)
    size = torch.abs(self)
    return torch.where(size == 0, 0, self / size)


@decomposes(aten.clamp_min, inplace=True)
def clamp_min(self: Tensor, min: Tensor | float) -> Tensor:
    return torch.clamp(self, min=min)


@decomposes(aten.clamp_max, inplace=True)
def clamp_max(self: Tensor, max: Tensor | float) -> Tensor:
    return torch.clamp(self, max=max)


@decomposes(aten.lcm)
def lcm(self: Tensor, other: Tensor) -> Tensor:
    common = torch.gcd(self, other)
    found = torch.abs(self // torch.where(common == 0, 1, common) * other)
    return torch.where(common == 0, 0, found)


@decomposes(aten.isposinf)
def isposinf(self: Tensor) -> Tensor:
    return (
        self == math.inf if self.is_floating_point() else torch.zeros_like(self, dtype=torch.bool)
    )


@decomposes(aten.isneginf)
def isneginf(self: Tensor) -> Tensor:
    return (
        self == -math.inf if self.is_floating_point() else torch.zeros_like(self, dtype=torch.bool)
    )


@decomposes(aten.count_nonzero)
def count_nonzero(self: Tensor, dim: int | list[int] | None = None) -> Tensor:
    return torch.sum(self != 0, dim)
