"""Resizing and sampling of torch.nn.functional: a file of their own as their rules are many. Each
function decides which operator is meant and with which sizes or factors."""

import math
import warnings

import torch
from torch import _C, _VF
from torch.nn import _conv_pool
from torch.overrides import (
    has_torch_function_unary,
    has_torch_function_variadic,
    redirect,
)

__all__ = [
    "GRID_SAMPLE_INTERPOLATION_MODES",
    "GRID_SAMPLE_PADDING_MODES",
    "affine_grid",
    "grid_sample",
    "interpolate",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}

# The operator by mode and number of dimensions; the modes whose result has no place to align.
_NEAREST = {
    "nearest": {
        3: "upsample_nearest1d",
        4: "upsample_nearest2d",
        5: "upsample_nearest3d",
    },
    "nearest-exact": {
        3: "_upsample_nearest_exact1d",
        4: "_upsample_nearest_exact2d",
        5: "_upsample_nearest_exact3d",
    },
}
_ALIGNED = {
    "linear": {3: "upsample_linear1d"},
    "bilinear": {4: "upsample_bilinear2d"},
    "trilinear": {5: "upsample_trilinear3d"},
    "bicubic": {4: "upsample_bicubic2d"},
}
_ANTIALIASED = {
    "bilinear": "_upsample_bilinear2d_aa",
    "bicubic": "_upsample_bicubic2d_aa",
    "lanczos": "_upsample_lanczos2d_aa",
}
_AREA = {
    3: _conv_pool.adaptive_avg_pool1d,
    4: _conv_pool.adaptive_avg_pool2d,
    5: _conv_pool.adaptive_avg_pool3d,
}


def _sizes_or_factors(input, size, scale_factor):
    """The two as lists with a value for each spatial dimension; one of them is None."""
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    spatial = list(input.shape[2:])
    if size is not None:
        if not isinstance(size, (list, tuple)):
            return [size] * dims, None
        if len(size) != dims:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input "
                f"with spatial dimensions of {spatial} and output size of {size}. Please provide "
                "input tensor in (N, C, d1, d2, ...,dK) format and output size in "
                "(o1, o2, ...,oK) format."
            )
        if not all(isinstance(x, (int, torch.SymInt, torch.Tensor)) for x in size):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or "
                f"Tuple[int, int, int], but got size with types {[type(x) for x in size]}"
            )
        return list(size), None
    if not isinstance(scale_factor, (list, tuple)):
        return None, [scale_factor] * dims
    if len(scale_factor) != dims:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input "
            f"with spatial dimensions of {spatial} and scale_factor of shape {scale_factor}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in "
            "(s1, s2, ...,sK) format."
        )
    return None, list(scale_factor)


def _wrong_mode(input, mode):
    """The error for a mode that this number of dimensions does not have."""
    dims = input.dim()
    wanted = {"linear": 3, "bilinear": 4, "trilinear": 5}.get(mode)
    if dims in (3, 4, 5) and wanted is not None:
        return NotImplementedError(f"Got {dims}D input, but {mode} mode needs {wanted}D input")
    return NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {dims}D) for the modes: "
        "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact "
        f"(got {mode})"
    )


def interpolate(
    input: torch.Tensor,
    size=None,
    scale_factor=None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> torch.Tensor:
    """Resizes the spatial dimensions to `size`, or by `scale_factor`."""
    if has_torch_function_unary(input):
        return redirect(interpolate, locals())
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | "
                "bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    sizes, factors = _sizes_or_factors(input, size, scale_factor)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if factors is not None and (recompute_scale_factor or mode == "area"):
        spatial = input.shape[2:]
        sizes = [math.floor(float(n * f)) for n, f in zip(spatial, factors, strict=True)]
        factors = None
    if antialias and not (mode in _ANTIALIASED and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires "
            "a 4-D tensor as input"
        )
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    dims = input.dim()
    if antialias:
        return getattr(_C._nn, _ANTIALIASED[mode])(input, sizes, align_corners, factors)
    if dims in _NEAREST.get(mode, ()):
        return getattr(_C._nn, _NEAREST[mode][dims])(input, sizes, factors)
    if dims in _ALIGNED.get(mode, ()):
        return getattr(_C._nn, _ALIGNED[mode][dims])(input, sizes, align_corners, factors)
    if mode == "area" and dims in _AREA:
        return _AREA[dims](input, sizes)
    raise _wrong_mode(input, mode)


def _deprecated(name) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=3,
    )


def upsample(
    input: torch.Tensor,
    size=None,
    scale_factor=None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> torch.Tensor:
    """The old name of interpolate."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: torch.Tensor, size=None, scale_factor=None) -> torch.Tensor:
    """interpolate with mode="nearest"."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: torch.Tensor, size=None, scale_factor=None) -> torch.Tensor:
    """interpolate with mode="bilinear" and aligned corners."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_ALIGNMENT_WARNING = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
    "Please specify align_corners=True if the old behavior is desired. See the documentation of "
    "grid_sample for details."
)


def grid_sample(
    input: torch.Tensor,
    grid: torch.Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> torch.Tensor:
    """input at the places of grid, whose coordinates run from -1 to 1."""
    if has_torch_function_variadic(input, grid):
        return redirect(grid_sample, locals())
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(_ALIGNMENT_WARNING, stacklevel=2)
        align_corners = False
    return _VF.grid_sampler(
        input,
        grid,
        GRID_SAMPLE_INTERPOLATION_MODES[mode],
        GRID_SAMPLE_PADDING_MODES[padding_mode],
        align_corners,
    )


def affine_grid(theta: torch.Tensor, size, align_corners: bool | None = None) -> torch.Tensor:
    """The places to which the affine maps theta send the pixels of images of this size."""
    if has_torch_function_unary(theta):
        return redirect(affine_grid, locals())
    if align_corners is None:
        warnings.warn(_ALIGNMENT_WARNING, stacklevel=2)
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    dims = len(size) - 2
    if theta.dim() != 3 or theta.shape[-2] != dims or theta.shape[-1] != dims + 1:
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size "
            f"{size}. Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return _VF.affine_grid_generator(theta, size, align_corners)
