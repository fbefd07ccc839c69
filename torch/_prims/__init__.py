"""The operators that others can be written with, `torch.ops.prims`: no broadcasting, no promotion
of dtypes. Each is defined from one line, its schema, and one line that says what it computes; both
tables are below. They are operators like any other, so that a graph may hold them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import torch
import torch._prims_common as utils
from torch import Tensor
from torch.library import Library

__all__ = ["utils"]

_library = Library("prims", "DEF")


def _define(schema: str, kernel: Callable, *tags: torch.Tag) -> None:
    name = schema.partition("(")[0]
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag, *tags))
    _library.impl(name, kernel, "CompositeExplicitAutograd")
    globals()[name] = getattr(torch.ops.prims, name)
    __all__.append(name)


def _cbrt(a: Tensor) -> Tensor:
    wide = a if a.is_floating_point() else a.to(torch.get_default_dtype())
    root = torch.sign(wide) * torch.pow(torch.abs(wide), 1.0 / 3.0)
    # One step of Newton's iteration makes up for the rounding of 1/3.
    return torch.where(root == 0, root, root - (root * root * root - wide) / (3 * root * root))


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    exact = a.is_floating_point() or a.is_complex()
    return torch.div(a, b, rounding_mode=None if exact else "trunc")


# name = function of torch, where it is not the function of the same name
_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    **{
        name: getattr(torch, name)
        for name in (
            "abs acos acosh asin asinh atan atanh bitwise_not ceil conj_physical cos cosh digamma "
            "erf erfc exp exp2 expm1 floor isfinite lgamma log log10 log1p log2 neg "
            "reciprocal round rsqrt sign signbit sin sinh sqrt tan tanh trunc"
        ).split()
    },
    "bessel_i0": torch.i0,
    "bessel_i0e": torch.special.i0e,
    "bessel_i1": torch.special.i1,
    "bessel_i1e": torch.special.i1e,
    "bessel_j0": torch.special.bessel_j0,
    "bessel_j1": torch.special.bessel_j1,
    "cbrt": _cbrt,
    "erf_inv": torch.erfinv,
    "erfcx": torch.special.erfcx,
    "imag": lambda a: torch.imag(a).clone(),
    "ndtri": torch.special.ndtri,
    "real": lambda a: torch.real(a).clone(),
    "spherical_bessel_j0": torch.special.spherical_bessel_j0,
}
for _name, _function in _UNARY.items():
    _define(f"{_name}(Tensor self) -> Tensor", _function, torch.Tag.pointwise)

_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    **{
        name: getattr(torch, name)
        for name in (
            "add atan2 bitwise_and bitwise_or bitwise_xor copysign eq fmax fmin fmod gcd ge gt "
            "hypot igamma igammac le lt maximum minimum mul ne nextafter pow remainder sub"
        ).split()
    },
    "div": _quotient,
    "shift_left": torch.bitwise_left_shift,
    "shift_right_arithmetic": torch.bitwise_right_shift,
    "zeta": torch.special.zeta,
}
for _name, _function in _BINARY.items():
    _define(f"{_name}(Tensor self, Tensor other) -> Tensor", _function, torch.Tag.pointwise)

# ---- views and shapes -----------------------------------------------------------------------


def _broadcast_in_dim(
    a: Tensor, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Tensor:
    """Dimension i of `a` becomes dimension broadcast_dimensions[i] of the shape."""
    dims = list(broadcast_dimensions)
    if a.dim() != len(dims) or any(x >= y for x, y in itertools.pairwise(dims)):
        raise AssertionError(f"expected {a.dim()} rising dimensions, got {dims}")
    placed = [1] * len(shape)
    for length, dim in zip(a.shape, dims, strict=True):
        placed[dim] = length
    return a.reshape(placed).expand(shape) if a.is_contiguous() else _spaced(a, dims, shape)


def _spaced(a: Tensor, dims: Sequence[int], shape: Sequence[int]) -> Tensor:
    for dim in range(len(shape)):
        if dim not in dims:
            a = a.unsqueeze(dim)
    return a.expand(shape)


def _collapsed_shape(a: Tensor, start: int, end: int) -> list[int]:
    """The shape with dimensions start to end (both included) as one."""
    rank = max(a.dim(), 1)
    if not 0 <= start < rank or not 0 <= end < rank or end < start:
        raise AssertionError(f"expected 0 <= start <= end < {rank}, got {start} and {end}")
    shape = list(a.shape) or [1]
    return [*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]]


def _copied_as(a: Tensor, shape: Sequence[int]) -> Tensor:
    """A copy of the elements in another shape, which is no view of anything."""
    return torch._unsafe_view(a.clone(memory_format=torch.contiguous_format), shape)


def _collapse_view(a: Tensor, start: int, end: int) -> Tensor:
    shape = _collapsed_shape(a, start, end)
    try:
        return a.view(shape)
    except RuntimeError as error:
        raise ValueError(
            "Attempting to view a collapsed tensor, but no such view exists!"
        ) from error


def _slice(
    a: Tensor, start: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None
) -> Tensor:
    steps = [1] * a.dim() if strides is None else strides
    return a[tuple(slice(*bounds) for bounds in zip(start, end, steps, strict=True))]


def _split_dim(a: Tensor, dim: int, outer_length: int) -> Tensor:
    if a.shape[dim] % outer_length:
        raise ValueError(
            f"Attempting to split dimension of length {a.shape[dim]}, but outer length of "
            f"{outer_length} divides it with a remainder!"
        )
    return a.view([*a.shape[:dim], outer_length, a.shape[dim] // outer_length, *a.shape[dim + 1 :]])


_VIEWS: dict[str, Callable] = {
    "as_strided(Tensor(a) a, SymInt[] size, SymInt[] stride, SymInt storage_offset) -> Tensor(a)": (
        torch.as_strided
    ),
    "broadcast_in_dim(Tensor(a) a, SymInt[] shape, int[] broadcast_dimensions) -> Tensor(a)": (
        _broadcast_in_dim
    ),
    "collapse_view(Tensor(a) a, int start, int end) -> Tensor(a)": _collapse_view,
    "conj(Tensor(a) a) -> Tensor(a)": torch.conj,
    "slice(Tensor(a) a, SymInt[] start_indices, SymInt[] limit_indices, SymInt[]? strides=None) "
    "-> Tensor(a)": _slice,
    "split_dim(Tensor(a) a, int dim, SymInt outer_length) -> Tensor(a)": _split_dim,
    "squeeze(Tensor(a) a, int[] dimensions) -> Tensor(a)": torch.squeeze,
    "transpose(Tensor(a) a, int[] permutation) -> Tensor(a)": torch.permute,
    "view_of(Tensor(a) a) -> Tensor(a)": lambda a: a.view_as(a),
    "view_element_type(Tensor(a) a, ScalarType dtype) -> Tensor(a)": lambda a, dtype: a.view(dtype),
}
for _schema, _function in _VIEWS.items():
    _define(_schema, _function)


def expand_dims(a: Tensor, dimensions: Sequence[int], ndim: int | None = None) -> Tensor:
    """New dimensions of length 1 at the given places."""
    rank = a.dim() + len(dimensions) if ndim is None else ndim
    places = utils.canonicalize_dims(rank, dimensions)
    if len(set(places)) != len(places):
        raise ValueError(f"Received duplicate dimensions to expand in {tuple(dimensions)}")
    shape = [1 if d in places else None for d in range(rank)]
    lengths = iter(a.shape)
    kept = [d for d, n in enumerate(shape) if n is None]
    return torch.ops.prims.broadcast_in_dim(
        a, [next(lengths) if n is None else 1 for n in shape], kept
    )


# ---- everything else ------------------------------------------------------------------------


def _iota(
    length: int,
    *,
    start: int,
    step: int,
    dtype: torch.dtype,
    device: torch.device,
    requires_grad: bool,
) -> Tensor:
    return torch.arange(length, dtype=dtype, device=device) * step + start


def _filled_full(
    shape: Sequence[int],
    fill_value: float,
    *,
    dtype: torch.dtype,
    device: torch.device,
    requires_grad: bool,
) -> Tensor:
    return torch.full(shape, fill_value, dtype=dtype, device=device)


def _filled_like(
    a: Tensor,
    fill_value: float,
    *,
    dtype: torch.dtype,
    device: torch.device,
    requires_grad: bool,
) -> Tensor:
    return torch.full_like(a, fill_value, dtype=dtype, device=device)


def _empty_strided(
    shape: Sequence[int],
    strides: Sequence[int],
    *,
    dtype: torch.dtype,
    device: torch.device,
    requires_grad: bool,
) -> Tensor:
    return torch.empty_strided(shape, strides, dtype=dtype, device=device)


def _empty_permuted(
    shape: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dtype: torch.dtype,
    device: torch.device,
    requires_grad: bool,
) -> Tensor:
    return torch.empty_permuted(shape, physical_layout, dtype=dtype, device=device)


def _scalar_tensor(
    s: float, *, dtype: torch.dtype | None = None, device: torch.device | None = None
) -> Tensor:
    return torch.scalar_tensor(s, dtype=dtype, device=device)


def _normal(
    shape: Sequence[int],
    *,
    mean: float,
    std: float,
    dtype: torch.dtype,
    device: torch.device,
    requires_grad: bool,
    generator: torch.Generator | None = None,
) -> Tensor:
    out = torch.empty(shape, dtype=dtype, device=device)
    return out.normal_(mean, std, generator=generator)


def _reduction(function: Callable) -> Callable:
    def kernel(
        inp: Tensor, dims: Sequence[int] | None, *, output_dtype: torch.dtype | None = None
    ) -> Tensor:
        found = function(inp, list(range(inp.dim())) if dims is None else list(dims))
        return found if output_dtype is None else found.to(output_dtype)

    return kernel


def _product(inp: Tensor, dims: Sequence[int]) -> Tensor:
    for dim in sorted(dims, reverse=True):
        inp = inp.prod(dim)
    return inp


def _variance(
    inp: Tensor,
    dims: Sequence[int] | None,
    correction: float = 1,
    *,
    output_dtype: torch.dtype | None = None,
) -> Tensor:
    found = torch.var(inp, None if dims is None else list(dims), correction=correction)
    return found if output_dtype is None else found.to(output_dtype)


_MADE = "ScalarType dtype, Device device, bool requires_grad) -> Tensor"
_FOLDED = "(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor"
_OTHERS: dict[str, Callable] = {
    "cat(Tensor[] tensors, int dim) -> Tensor": torch.cat,
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor": lambda a, **k: torch.clone(
        a, memory_format=k.get("memory_format") or torch.preserve_format
    ),
    "collapse(Tensor a, int start, int end) -> Tensor": lambda a, start, end: _copied_as(
        a, _collapsed_shape(a, start, end)
    ),
    "convert_element_type(Tensor a, ScalarType dtype) -> Tensor": lambda a, dtype: a.to(
        dtype, copy=True
    ),
    "copy_strided(Tensor a, SymInt[] stride) -> Tensor": lambda a, stride: torch.empty_strided(
        a.shape, stride, dtype=a.dtype, device=a.device
    ).copy_(a),
    "copy_to(Tensor(a!) a, Tensor b) -> Tensor(a!)": lambda a, b: a.copy_(b),
    "device_put(Tensor a, Device device, bool non_blocking=False) -> Tensor": (
        lambda a, device, non_blocking=False: a.to(device, non_blocking=non_blocking, copy=True)
    ),
    "fma(Tensor a, Tensor b, Tensor c) -> Tensor": lambda a, b, c: torch.addcmul(c, a, b),
    "frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)": torch.frexp,
    "item(Tensor a) -> Scalar": lambda a: a.item(),
    "iota(SymInt length, *, SymInt start, SymInt step, " + _MADE: _iota,
    "full(SymInt[] shape, Scalar fill_value, *, " + _MADE: _filled_full,
    "full_like(Tensor a, Scalar fill_value, *, " + _MADE: _filled_like,
    "empty_strided(SymInt[] shape, SymInt[] strides, *, " + _MADE: _empty_strided,
    "empty_permuted(SymInt[] shape, int[] physical_layout, *, " + _MADE: _empty_permuted,
    "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Device? device=None) -> Tensor": (
        _scalar_tensor
    ),
    "maximum_value(ScalarType dtype) -> Scalar": lambda dtype: _limit(dtype, "max"),
    "minimum_value(ScalarType dtype) -> Scalar": lambda dtype: _limit(dtype, "min"),
    "reshape(Tensor a, SymInt[] shape) -> Tensor": lambda a, shape: _copied_as(a, shape),
    "resize(Tensor(a!) a, SymInt[] shape) -> Tensor(a!)": lambda a, shape: a.resize_(shape),
    "rev(Tensor a, int[] dims) -> Tensor": torch.flip,
    "where(Tensor pred, Tensor a, Tensor b) -> Tensor": torch.where,
    "svd(Tensor A, *, bool full_matrices) -> (Tensor U, Tensor S, Tensor Vh)": lambda A, **k: (
        torch.linalg.svd(A, full_matrices=k["full_matrices"])
    ),
    "sum" + _FOLDED: _reduction(torch.sum),
    "prod" + _FOLDED: _reduction(_product),
    "amax" + _FOLDED: _reduction(torch.amax),
    "amin" + _FOLDED: _reduction(torch.amin),
    "var(Tensor inp, int[]? dims, float? correction=1, *, ScalarType? output_dtype=None) "
    "-> Tensor": _variance,
    "fft_r2c(Tensor self, *, int[] dim, bool onesided) -> Tensor": lambda a, *, dim, onesided: (
        torch._fft_r2c(a, list(dim), 0, onesided)
    ),
    "fft_c2c(Tensor self, *, int[] dim, bool forward) -> Tensor": lambda a, *, dim, forward: (
        torch._fft_c2c(a, list(dim), 0, forward)
    ),
    "fft_c2r(Tensor self, *, int[] dim, SymInt last_dim_size) -> Tensor": (
        lambda a, *, dim, last_dim_size: torch._fft_c2r(a, list(dim), 0, last_dim_size)
    ),
}


def _limit(dtype: torch.dtype, end: str) -> bool | int | float:
    """The greatest or least value of a dtype."""
    if dtype is torch.bool:
        return end == "max"
    if dtype.is_floating_point:
        return math.inf if end == "max" else -math.inf
    return getattr(torch.iinfo(dtype), end)


for _schema, _function in _OTHERS.items():
    _define(_schema, _function)
_define(
    "normal(SymInt[] shape, *, Scalar mean, Scalar std, ScalarType dtype, Device device, "
    "bool requires_grad, Generator? generator=None) -> Tensor",
    _normal,
    torch.Tag.nondeterministic_seeded,
)

from torch._prims import rng_prims  # noqa: E402, F401
