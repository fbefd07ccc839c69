"""Ready parametrizations: a weight split into length and direction, with largest singular value
one, or with orthonormal columns."""

from __future__ import annotations

from typing import Any as _Any

import torch
import torch.nn.functional as F
from torch.nn.init import _positive_q
from torch.nn.modules.conv import _ConvTransposeNd
from torch.nn.modules.module import Module
from torch.nn.utils import _power_iteration, parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor_of(module, name) -> torch.Tensor:
    tensor = getattr(module, name, None)
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return tensor


class _WeightNorm(Module):
    def __init__(self, dim: int = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v) -> _Any:
        return torch._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight) -> _Any:
        return torch.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name: str = "weight", dim: int | None = 0):
    """The weight as a length (original0) times a direction (original1), per slice along dim."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename_old_keys(state_dict, prefix, *_) -> None:
        # The older weight_norm kept the same two tensors under names of its own.
        for old, new in (("_g", "original0"), ("_v", "original1")):
            key = f"{prefix}{name}{old}"
            if key in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.{new}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename_old_keys)
    return module


class _SpectralNorm(Module):
    # Enough for a good start; training then follows the slowly changing weight.
    _STEPS_AT_START = 15

    def __init__(self, weight, n_power_iterations=1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{ndim}, {ndim - 1}] but got {dim})"
            )
        _power_iteration.check_count(n_power_iterations)
        self.dim, self.eps = dim % ndim, eps
        if ndim == 1:
            return  # its only singular value is its length
        self.n_power_iterations = n_power_iterations
        matrix = _power_iteration.as_matrix(weight, self.dim)
        for name, unit in zip("uv", _power_iteration.random_units(matrix, eps), strict=True):
            self.register_buffer("_" + name, unit)
        self._iterate(matrix, self._STEPS_AT_START)

    def _iterate(self, matrix, steps) -> None:
        # From the right vector to the left one first, unlike the older hook.
        _power_iteration.iterate(matrix.t(), self._v, self._u, steps, self.eps)

    def forward(self, weight) -> _Any:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = _power_iteration.as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        return _power_iteration.divided(weight, matrix, self._u, self._v)

    def right_inverse(self, value) -> _Any:
        return value


def spectral_norm(module, name: str = "weight", n_power_iterations=1, eps: float = 1e-12, dim=None):
    """The weight divided by its largest singular value, found by power iteration."""
    weight = _tensor_of(module, name)
    if dim is None:
        dim = 1 if isinstance(module, _ConvTransposeNd) else 0
    function = _SpectralNorm(weight.detach(), n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, function)


def _has_orthonormal_columns(tall) -> bool:
    columns = tall.shape[-1]
    tolerance = 10 * columns * torch.finfo(tall.dtype).eps
    unit = torch.eye(columns, dtype=tall.dtype, device=tall.device)
    return torch.allclose(tall.mH @ tall, unit.expand(*tall.shape[:-2], -1, -1), atol=tolerance)


def _completed(q) -> torch.Tensor:
    """Orthonormal columns, filled up with random ones to a square matrix."""
    rows, columns = q.shape[-2:]
    if rows == columns:
        return q.clone()
    more = q.new_empty(*q.shape[:-2], rows, rows - columns).normal_()
    return torch.cat([q, _positive_q(more - q @ (q.mH @ more))], dim=-1)


def _skew(tall) -> torch.Tensor:
    """The square skew-Hermitian matrix made of the lower triangle of a tall one."""
    lower = F.pad(tall.tril(), (0, tall.shape[-2] - tall.shape[-1]))
    return lower - lower.mH


def _exponential_map(tall) -> torch.Tensor:
    return torch.linalg.matrix_exp(_skew(tall))[..., : tall.shape[-1]]


def _cayley_map(tall) -> torch.Tensor:
    half = _skew(tall) / 2
    unit = torch.eye(half.shape[-1], dtype=half.dtype, device=half.device)
    return torch.linalg.solve(unit - half, unit + half)[..., : tall.shape[-1]]


def _householder_map(tall) -> torch.Tensor:
    """Reflectors from below the diagonal; the diagonal holds the sign of each column."""
    below = tall.tril(-1)
    reach = 2 / (1 + below.square().sum(-2))
    signs = tall.detach().diagonal(dim1=-2, dim2=-1).trunc()
    return torch.linalg.householder_product(below, reach) * signs.unsqueeze(-2)


def _householder_source(tall) -> torch.Tensor:
    """What _householder_map takes to the orthonormal factor of a matrix."""
    packed, reach = torch.geqrf(tall)
    diagonal = packed.diagonal(dim1=-2, dim2=-1)
    # A column that needs no reflection has reach 0; the map knows reflections only, and turns the
    # column round a second time by its sign.
    signs = torch.where(reach == 0, -diagonal.sgn(), diagonal.sgn())
    diagonal.copy_(signs)
    return packed


_ORTHOGONAL_MAPS = {
    "matrix_exp": _exponential_map,
    "cayley": _cayley_map,
    "householder": _householder_map,
}


class _Orthogonal(Module):
    """Wide matrices are handled as their transposes. With `base`, the map only describes the way
    from base to the weight, so that it is always used near the identity, where it is best."""

    def __init__(self, weight, orthogonal_map, use_trivialization) -> None:
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if orthogonal_map == "householder" and weight.is_complex():
            raise ValueError("The householder parametrization does not support complex tensors.")
        side = max(weight.shape[-2:])
        # Filled by right_inverse, which registration calls with the weight.
        base = weight.new_zeros(*weight.shape[:-2], side, side) if use_trivialization else None
        self.register_buffer("base", base)

    def _tall(self, matrix) -> torch.Tensor:
        return matrix.mT if self.shape[-2] < self.shape[-1] else matrix

    def forward(self, original) -> _Any:
        q = _ORTHOGONAL_MAPS[self.orthogonal_map](self._tall(original))
        return self._tall(q if self.base is None else self.base @ q)

    @torch.no_grad()
    def right_inverse(self, weight) -> _Any:
        if weight.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. "
                f"Got a tensor of shape {weight.shape}."
            )
        tall = self._tall(weight)
        if self.base is not None:
            q = tall if _has_orthonormal_columns(tall) else _positive_q(tall)
            self.base.copy_(_completed(q))
            # The point every map takes to the identity; -1 is the sign _householder_map undoes.
            start = torch.zeros_like(tall)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1)
            return self._tall(start)
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        return self._tall(_householder_source(tall))


def orthogonal(
    module, name: str = "weight", orthogonal_map=None, *, use_trivialization: bool = True
):
    """A weight with orthonormal columns, or rows where it is wider than high."""
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        complex_weight = weight.is_complex()
        orthogonal_map = "matrix_exp" if square or complex_weight else "householder"
    if orthogonal_map not in _ORTHOGONAL_MAPS:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    function = _Orthogonal(weight.detach(), orthogonal_map, use_trivialization)
    return parametrize.register_parametrization(module, name, function, unsafe=True)
