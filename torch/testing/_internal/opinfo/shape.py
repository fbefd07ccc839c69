"""Records of the shape family: views, their copying forms, joining, splitting, repeating, padding.

Most rows are one call list and the NumPy function of the same meaning, so they stand in tables:
name -> (calls, reference). Copying forms (`*_copy`) share the rows of their views."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from .core import OpInfo, call, error

ALL = "fibch"
_LAYOUT = "the result depends on the strides of the input by definition"


def _op(name, calls, ref, codes="fibc", **options) -> OpInfo:
    options.setdefault("inplace", None)
    options.setdefault("out_dtype", "same")
    return OpInfo(name, calls, ref, codes, **options)


def _size(*size) -> tuple[int, ...]:
    """The sizes of a call, given one by one or as one list."""
    return tuple(size[0]) if size and isinstance(size[0], (tuple, list)) else size


def _squeeze(x, dim=None):
    if dim is None:
        return np.squeeze(x)
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    if x.ndim == 0:
        return x
    return np.squeeze(x, tuple(d for d in dims if x.shape[d] == 1))


def _diagonal(x, offset=0, dim1=0, dim2=1) -> np.ndarray:
    return np.diagonal(x, offset, dim1, dim2)


def _unfold(x, dimension, size, step) -> np.ndarray:
    dimension %= x.ndim
    starts = range(0, x.shape[dimension] - size + 1, step)
    parts = [np.moveaxis(x.take(range(s, s + size), dimension), dimension, -1) for s in starts]
    return np.stack(parts, dimension)


def _as_strided(x, size, stride, storage_offset=0) -> np.ndarray:
    flat = np.ascontiguousarray(x).ravel()
    places = np.full(size, storage_offset)
    for d, s in enumerate(stride):
        shape = [1] * len(size)
        shape[d] = size[d]
        places = places + (np.arange(size[d]) * s).reshape(shape)
    return flat[places]


def _narrow(x, dim, start, length) -> np.ndarray:
    start += x.shape[dim] if start < 0 else 0
    return x.take(range(start, start + length), dim)


def _bad_dim(*args) -> Callable[..., object]:
    return lambda t: [error(IndexError, "Dimension out of range", t(2, 3), *args)]


_BAD_VIEW = lambda t: [
    error(RuntimeError, "is invalid for input of size", t(2, 3), (4,)),
    error(RuntimeError, "only one dimension can be inferred", t(2, 3), (-1, -1)),
]
_BAD_EXPAND = lambda t: [
    error(RuntimeError, "must match the existing size", t(2, 3), (4, 3)),
    error(RuntimeError, "must be greater or equal", t(2, 3), (3,)),
]

# ---- views: name -> (calls, reference, errors, further options) ------------------------------

_VIEWS = {
    "view": (
        lambda t: [
            call(t(2, 3, 4), (t.n(2), -1)),
            call(t(4, 3), (-1,)),
            call(t(), (1, 1)),
            call(t(0, 3), (3, 0)),
        ],
        lambda x, *s: x.reshape(_size(*s)),
        _BAD_VIEW,
        {"skips": {"layouts": _LAYOUT}},
    ),
    "expand": (
        lambda t: [
            call(t(3), (2, t.n(3))),
            call(t(2, 1), (-1, 4)),
            call(t(), (2, 3)),
            call(t(1, 0), (3, 0)),
        ],
        lambda x, *s: np.broadcast_to(
            x, [x.shape[i - len(_size(*s))] if v == -1 else v for i, v in enumerate(_size(*s))]
        ),
        _BAD_EXPAND,
        {},
    ),
    "permute": (
        lambda t: [call(t(2, 3, 4), (2, 0, 1)), call(t(2, 3), (-1, 0)), call(t(), ())],
        lambda x, dims: np.transpose(x, dims),
        lambda t: [
            error(RuntimeError, "duplicate|repeated", t(2, 3), (0, 0)),
            error(RuntimeError, "number of dimensions|does not match", t(2, 3), (0,)),
            error(IndexError, "Dimension out of range", t(2, 3), (0, 2)),
        ],
        {},
    ),
    "transpose": (
        lambda t: [call(t(2, 3, 4), 0, -1), call(t(2, 3), 0, 1), call(t(), 0, 0)],
        lambda x, a, b: np.swapaxes(x, a, b) if x.ndim else x,
        _bad_dim(0, 2),
        {"aliases": ("swapaxes", "swapdims"), "inplace": None},
    ),
    "t": (
        lambda t: [call(t(2, 3)), call(t(3)), call(t())],
        lambda x: x.T,
        lambda t: [error(RuntimeError, "<= 2", t(2, 3, 4))],
        {"inplace": None},
    ),
    "squeeze": (
        lambda t: [
            call(t(1, 3, 1)),
            call(t(1, 3), 0),
            call(t(2, 3), 1),
            call(t(1, 2, 1), (0, 2)),
            call(t()),
        ],
        _squeeze,
        _bad_dim(3),
        {},
    ),
    "unsqueeze": (
        lambda t: [call(t(2, 3), 0), call(t(2, 3), -1), call(t(), 0), call(t(0, 3), 1)],
        np.expand_dims,
        _bad_dim(4),
        {},
    ),
    "diagonal": (
        lambda t: [call(t(3, 4)), call(t(3, 4), 1), call(t(2, 3, 4), -1, 0, 2), call(t(2, 2), 5)],
        _diagonal,
        lambda t: [
            error(RuntimeError, "cannot be identical", t(2, 3), 0, 1, 1),
            error(IndexError, "Dimension out of range", t(2, 3), 0, 0, 2),
        ],
        {},
    ),
    "unfold": (
        lambda t: [call(t(2, 6), 1, 3, 2), call(t(6), 0, 2, 1), call(t(4, 2), -2, 4, 1)],
        _unfold,
        lambda t: [
            error(RuntimeError, "maximum size for tensor", t(4), 0, 5, 1),
            error(RuntimeError, "step is 0|must be > 0|step", t(4), 0, 2, 0),
            error(IndexError, "Dimension out of range", t(4), 1, 2, 1),
        ],
        {"op_method": True},
    ),
    "as_strided": (
        lambda t: [
            call(t(6), (2, 2), (2, 1)),
            call(t(3, 4), (3,), (5,)),
            call(t(6), (2, 2), (1, 1), 1),
        ],
        _as_strided,
        lambda t: [
            error(RuntimeError, "out of bounds", t(4), (5,), (1,)),
            error(RuntimeError, "mismatch|length|negative", t(4), (2,), (1, 1)),
            error(RuntimeError, "[Nn]egative", t(4), (2,), (-1,)),
        ],
        {"skips": {"layouts": _LAYOUT}},
    ),
    "alias": (
        lambda t: [call(t(2, 3)), call(t())],
        lambda x: x,
        None,
        {"op_aten": True, "generic_errors": False},
    ),
}
_MORE_VIEWS = {
    "select": (
        lambda t: [call(t(2, 3, 4), 1, 2), call(t(3), 0, -1)],
        lambda x, d, i: x.take(i, d),
        lambda t: [
            error(IndexError, "out of range", t(2, 3), 1, 3),
            error(IndexError, "0-dim|zero-dim|cannot be applied", t(), 0, 0),
            error(IndexError, "Dimension out of range", t(2, 3), 2, 0),
        ],
        {},
    ),
    "narrow": (
        lambda t: [call(t(4, 3), 0, 1, 2), call(t(4, 3), 1, -2, 2), call(t(4), 0, 4, 0)],
        _narrow,
        lambda t: [
            error((RuntimeError, IndexError), "exceeds|out of range", t(2, 3), 1, 2, 2),
            error(RuntimeError, "non-negative|exceeds", t(2, 3), 1, 0, -1),
        ],
        {},
    ),
    "split": (
        lambda t: [call(t(5, 2), 2), call(t(2, 6), 4, 1), call(t(0, 2), 1)],
        lambda x, n, dim=0: np.split(x, range(n, x.shape[dim], n), dim),
        lambda t: [
            error(IndexError, "Dimension out of range", t(2), 1, 1),
            error(RuntimeError, "non-negative|expects", t(2), -1),
        ],
        {"big": lambda t: call(_big(t, 600, 500), 100)},
    ),
    "split_with_sizes": (
        lambda t: [call(t(5, 2), (2, 3)), call(t(2, 6), (1, 2, 3), -1)],
        lambda x, n, dim=0: np.split(x, np.cumsum(n)[:-1], dim),
        lambda t: [
            error(RuntimeError, "sum exactly", t(5), (2, 2)),
            error(RuntimeError, "non-negative", t(5), (6, -1)),
        ],
        {"big": lambda t: call(_big(t, 600, 500), (100, 500))},
    ),
    "unbind": (
        lambda t: [call(t(2, 3)), call(t(2, 3, 2), 1)],
        lambda x, dim=0: list(np.moveaxis(x, dim, 0)),
        _bad_dim(2),
        {},
    ),
    "view_as_real": (
        lambda t: [call(t(2, 3)), call(t())],
        lambda x: np.stack([x.real, x.imag], -1),
        lambda t: [error(RuntimeError, "only supported for complex", t(2).real)],
        {"codes": "ch", "out_dtype": "real"},
    ),
    "view_as_complex": (
        lambda t: [call(t(3, 2)), call(t(2, 3, 2))],
        lambda x: x[..., 0] + 1j * x[..., 1],
        lambda t: [
            error(RuntimeError, "size 2", t(2, 3)),
            error(RuntimeError, "only supported|floating|dtype", t(2, 2).long()),
        ],
        {
            "codes": "d",
            "out_dtype": lambda d: d.to_complex(),
            "skips": {"layouts": _LAYOUT},
            "big": lambda t: call(_big(t, 200, 500, 2)),
        },
    ),
}


def _big(t, *shape) -> torch.Tensor:
    """A tensor of exactly this shape, whatever the Maker's scale."""
    t.scale = 1
    return t(*shape)


def _view_records():
    for name, (calls, ref, errors, options) in {**_VIEWS, **_MORE_VIEWS}.items():
        options = dict(options)
        codes = options.pop("codes", ALL if name not in ("unfold",) else "fibc")
        method = options.pop("op_method", False)
        aten = options.pop("op_aten", False)
        op = getattr(torch.Tensor, name) if method else None
        op = getattr(torch.ops.aten, name) if aten else op
        yield _op(name, calls, ref, codes, op=op, errors=errors, is_view=True, **options)
        copy = {"alias": "alias_copy"}.get(name, name + "_copy")
        if hasattr(torch, copy):
            kept = {k: v for k, v in options.items() if k in ("out_dtype", "big", "skips")}
            yield _op(copy, calls, ref, codes, errors=errors, **kept)


RECORDS = list(_view_records())
