"""Records of the interpolate family: resampling on a regular grid and at given points, against
sums over the source pixels with the weights of the definition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from .core import Maker, OpInfo, SampleInput, call, error

TOL = {torch.float16: (2e-2, 2e-2), torch.bfloat16: (1e-1, 1e-1), torch.float32: (1e-4, 1e-4)}
F = torch.nn.functional


def _cubic(d, a=-0.75) -> np.ndarray:
    d = np.abs(d)
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _triangle(d) -> np.ndarray | np.generic:
    return np.maximum(0.0, 1 - np.abs(d))


def _positions(size, out, align, scale) -> np.ndarray:
    positions = np.arange(out)
    if align:
        return positions * ((size - 1) / (out - 1) if out > 1 else 0.0)
    ratio = 1 / scale if scale is not None else size / out
    return (positions + 0.5) * ratio - 0.5


def _matrix(size, out, mode, align=False, scale=None, antialias=False) -> np.ndarray:
    """The out x size matrix that resamples one dimension."""
    rows = np.arange(out)
    if mode in ("nearest", "nearest-exact"):
        ratio = 1 / scale if scale is not None else size / out
        shift = 0.5 if mode == "nearest-exact" else 0.0
        chosen = np.minimum(np.floor((rows + shift) * ratio).astype(int), size - 1)
        return np.eye(size)[chosen]
    weight, reach = (_cubic, 2) if mode == "bicubic" else (_triangle, 1)
    where = _positions(size, out, align, scale)
    if antialias:
        return _antialiased(size, out, where, mode, scale)
    if mode != "bicubic":
        where = np.clip(where, 0, None)
    matrix = np.zeros((out, size))
    for i, x in enumerate(where):
        for k in range(int(np.floor(x)) - reach + 1, int(np.floor(x)) + reach + 1):
            matrix[i, min(max(k, 0), size - 1)] += weight(x - k)
    return matrix


def _antialiased(size, out, where, mode, scale) -> np.ndarray:
    ratio = max(1 / scale if scale is not None else size / out, 1.0)
    weight = (lambda d: _cubic(d, -0.5)) if mode == "bicubic" else _triangle
    matrix = weight((np.arange(size)[None] - where[:, None]) / ratio)
    return matrix / matrix.sum(1, keepdims=True)


def _interpolate(
    x, size=None, scale_factor=None, mode="nearest", align_corners=None, antialias=False
) -> np.ndarray:
    for axis in range(2, x.ndim):
        if size is not None:
            out, scale = (size[axis - 2] if isinstance(size, (tuple, list)) else size), None
        else:
            scale = scale_factor[axis - 2] if isinstance(scale_factor, tuple) else scale_factor
            out = int(np.floor(x.shape[axis] * scale))
        m = _matrix(x.shape[axis], out, mode, bool(align_corners), scale, antialias)
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ m.T, -1, axis)
    return x


_SHAPES = {1: (1, 2, 5), 2: (1, 2, 3, 4), 3: (1, 1, 2, 3, 2)}
_LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
_BIG = {1: (10, 20, 1000), 2: (2, 4, 100, 150), 3: (1, 4, 20, 40, 50)}


def _grown(n) -> tuple[int, ...]:
    return tuple(s + 2 for s in _SHAPES[n][2:])


def _mode_samples(n, mode) -> Callable[..., object]:
    def samples(t) -> list[SampleInput]:
        shape = _SHAPES[n]
        calls = [
            call(t(*shape), _grown(n), mode=mode),
            call(t(*shape), scale_factor=2.0, mode=mode),
            call(t(*shape), tuple(max(s - 1, 1) for s in shape[2:]), mode=mode),
        ]
        if "linear" in mode or mode == "bicubic":
            calls.append(call(t(*shape), _grown(n), mode=mode, align_corners=True))
        if mode in ("bilinear", "bicubic"):
            calls.append(call(t(1, 1, 5, 6), (3, 4), mode=mode, antialias=True))
        return calls

    return samples


def _interpolation(n, mode) -> OpInfo:
    tag = {"nearest-exact": "_upsample_nearest_exact", "bicubic": "upsample_bicubic"}.get(
        mode, "upsample_" + mode
    )
    covers = [f"{tag}{n}d"]
    if mode in ("bilinear", "bicubic"):
        covers.append(f"_upsample_{mode}2d_aa")
    return OpInfo(
        "nn.functional.interpolate",
        _mode_samples(n, mode),
        _interpolate,
        "f",
        variant_test_name=f"{mode}{n}d",
        aten_name=covers[0],
        out_dtype="same",
        tolerances=TOL,
        covers=tuple(covers),
        big=lambda t: call(_plain(t)(*_BIG[n]), scale_factor=1.5, mode=mode),
        errors=lambda t: [
            error(ValueError, "either size or scale_factor", t(*_SHAPES[n])),
            error(ValueError, "only one of size or scale_factor", t(*_SHAPES[n]), 3, 2.0),
            error((NotImplementedError, ValueError), "", t(2, 3), 3, mode=mode),
        ],
    )


def _unnormalise(x, size, align) -> np.generic:
    return (x + 1) / 2 * (size - 1) if align else ((x + 1) * size - 1) / 2


def _grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False) -> np.ndarray:
    n, c = x.shape[:2]
    spatial, dims = x.shape[2:], x.ndim - 2
    out = np.zeros((n, c, *grid.shape[1:-1]))
    for cell in np.ndindex(n, *grid.shape[1:-1]):
        point = [
            _unnormalise(grid[cell][dims - 1 - d], spatial[d], align_corners) for d in range(dims)
        ]
        if padding_mode == "border":
            point = [np.clip(p, 0, s - 1) for p, s in zip(point, spatial, strict=True)]
        out[(cell[0], slice(None), *cell[1:])] = _sample(x[cell[0]], point, mode)
    return out


def _sample(image, point, mode) -> np.ndarray:
    total = np.zeros(image.shape[0])
    base = [int(np.floor(p)) for p in point]
    corners = np.ndindex(*(2,) * len(point)) if mode == "bilinear" else [(0,) * len(point)]
    if mode == "nearest":
        base = [int(np.rint(p)) for p in point]
    for corner in corners:
        k = [b + c for b, c in zip(base, corner, strict=True)]
        if not all(0 <= i < s for i, s in zip(k, image.shape[1:], strict=True)):
            continue
        weight = 1.0
        if mode == "bilinear":
            for p, i in zip(point, k, strict=True):
                weight *= 1 - abs(p - i)
        total += weight * image[(slice(None), *k)]
    return total


def _grids(t) -> list[SampleInput]:
    plane = lambda: t(1, 3, 2, 2, low=-1.2, high=1.2)
    return [
        call(t(1, 2, 3, 4), plane(), align_corners=False),
        call(t(1, 2, 3, 4), plane(), align_corners=True),
        call(t(1, 2, 3, 4), plane(), "nearest", align_corners=False),
        call(t(1, 1, 3, 4), plane(), "bilinear", "border", align_corners=False),
        call(t(1, 1, 2, 3, 2), t(1, 2, 2, 1, 3, low=-1.1, high=1.1), align_corners=False),
    ]


def _raw_grid(name) -> OpInfo:
    def ref(x, grid, mode, padding, align) -> np.ndarray:
        modes, paddings = ("bilinear", "nearest"), ("zeros", "border")
        return _grid_sample(x, grid, modes[mode], paddings[padding], align)

    dims = int(name[-2])
    shape, points = (
        ((1, 2, 3, 4), (1, 2, 2, 2)) if dims == 2 else ((1, 1, 2, 3, 2), (1, 2, 1, 2, 3))
    )
    return OpInfo(
        name,
        lambda t: [call(t(*shape), t(*points, low=-1.1, high=1.1), 0, 0, False)],
        ref,
        "d",
        tolerances=TOL,
        big=lambda t: call(
            _plain(t)(*(2, 3, *(20,) * dims)),
            t(*(2, *(60 if dims == 2 else 15,) * dims, dims), low=-1.0, high=1.0),
            0,
            0,
            False,
        ),
        errors=lambda t: [error(RuntimeError, "", t(2, 3), t(2, 3), 0, 0, False)],
        covers=("_grid_sampler_2d_cpu_fallback", "grid_sampler"),
    )


def _affine(theta, size, align_corners=False) -> np.ndarray:
    axes = []
    for s in size[2:]:
        steps = np.linspace(-1, 1, s)
        axes.append(steps if align_corners else steps * (s - 1) / s)
    mesh = np.meshgrid(*axes, indexing="ij")
    points = np.stack([*mesh[::-1], np.ones_like(mesh[0])], -1)
    return np.einsum("...k,njk->n...j", points, theta)


def _plain(t) -> Maker:
    t.scale = 1
    return t


RECORDS = [
    *[
        _interpolation(n, mode)
        for n in (1, 2, 3)
        for mode in ("nearest", "nearest-exact", _LINEAR[n])
    ],
    _interpolation(2, "bicubic"),
    OpInfo(
        "nn.functional.upsample_nearest",
        lambda t: [call(t(1, 2, 3, 4), (5, 6)), call(t(1, 2, 3), scale_factor=2)],
        lambda x, size=None, scale_factor=None: _interpolate(x, size, scale_factor),
        "f",
        aten_name="upsample_nearest2d",
        tolerances=TOL,
        big=lambda t: call(_plain(t)(2, 4, 100, 150), scale_factor=2),
    ),
    OpInfo(
        "nn.functional.upsample_bilinear",
        lambda t: [call(t(1, 2, 3, 4), (5, 6)), call(t(1, 1, 3, 4), scale_factor=2)],
        lambda x, size=None, scale_factor=None: _interpolate(
            x, size, scale_factor, "bilinear", align_corners=True
        ),
        "f",
        aten_name="upsample_bilinear2d",
        tolerances=TOL,
        big=lambda t: call(_plain(t)(2, 4, 100, 150), scale_factor=2),
    ),
    OpInfo(
        "nn.functional.grid_sample",
        _grids,
        _grid_sample,
        "d",
        aten_name="grid_sampler",
        tolerances=TOL,
        big=lambda t: call(_plain(t)(2, 3, 60, 60), t(2, 80, 90, 2, low=-1.0, high=1.0)),
        errors=lambda t: [
            error((RuntimeError, ValueError), "", t(1, 1, 2, 2), t(1, 2, 2, 3)),
            error((RuntimeError, ValueError), "", t(1, 1, 2, 2), t(2, 2, 2, 2)),
            error(ValueError, "mode", t(1, 1, 2, 2), t(1, 2, 2, 2), "x"),
        ],
    ),
    _raw_grid("grid_sampler_2d"),
    _raw_grid("grid_sampler_3d"),
    OpInfo(
        "nn.functional.affine_grid",
        lambda t: [call(t(1, 2, 3), (1, 1, 3, 4)), call(t(2, 3, 4), (2, 1, 2, 3, 2), True)],
        _affine,
        "d",
        aten_name="affine_grid_generator",
        tolerances=TOL,
        big=lambda t: call(_plain(t)(4, 2, 3), (4, 1, 200, 200)),
        errors=lambda t: [
            error((RuntimeError, ValueError, NotImplementedError), "", t(1, 2, 3), (1, 1, 3)),
            error((RuntimeError, ValueError), "", t(1, 2, 2), (1, 1, 3, 4)),
        ],
    ),
]
