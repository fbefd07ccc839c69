"""Further records of the shape family: joining, splitting, repeating, padding, triangles, grids."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from .core import SampleInput, call, error
from .shape import _BAD_EXPAND, _BAD_VIEW, _LAYOUT, _MORE_VIEWS, _VIEWS, ALL, _big, _op, _size


def _flatten(x, start_dim=0, end_dim=-1) -> np.ndarray:
    if x.ndim == 0:
        return x.reshape(1)
    end = end_dim % x.ndim
    return x.reshape(*x.shape[:start_dim], -1, *x.shape[end + 1 :])


def _tensor_split(x, parts, dim=0) -> list[np.ndarray]:
    return np.array_split(x, parts, dim)


def _chunk(x, chunks, dim=0) -> list[np.ndarray]:
    step = -(-x.shape[dim] // chunks)
    return np.split(x, range(step, x.shape[dim], step), dim)


def _repeat(x, *sizes) -> np.ndarray:
    return np.tile(x, _size(*sizes))


def _repeat_interleave(x, repeats, dim=None, output_size=None) -> np.ndarray:
    return np.repeat(x, repeats, dim)


def _diag_embed(x, offset=0, dim1=-2, dim2=-1) -> np.ndarray:
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), x.dtype)
    for i in range(x.shape[-1]):
        out[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


def _block_diag(*tensors) -> np.ndarray:
    import scipy.linalg

    return scipy.linalg.block_diag(*[np.atleast_2d(x) for x in tensors])


def _pad(x, pad, mode="constant", value=None) -> np.ndarray:
    widths = [(0, 0)] * (x.ndim - len(pad) // 2)
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)][::-1]
    names = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode == "constant":
        grown = np.pad(
            x, widths + [(max(a, 0), max(b, 0)) for a, b in pairs], constant_values=value or 0
        )
        cuts = [slice(None)] * len(widths)
        cuts += [
            slice(max(-a, 0), grown.shape[len(widths) + i] - max(-b, 0))
            for i, (a, b) in enumerate(pairs)
        ]
        return grown[tuple(cuts)]
    return np.pad(x, widths + pairs, mode=names[mode])


def _pixel_shuffle(x, r) -> np.ndarray:
    *batch, c, h, w = x.shape
    y = x.reshape(*batch, c // r**2, r, r, h, w)
    n = len(batch)
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    return y.transpose(order).reshape(*batch, c // r**2, h * r, w * r)


def _pixel_unshuffle(x, r) -> np.ndarray:
    *batch, c, h, w = x.shape
    y = x.reshape(*batch, c, h // r, r, w // r, r)
    n = len(batch)
    order = [*range(n), n, n + 2, n + 4, n + 1, n + 3]
    return y.transpose(order).reshape(*batch, c * r**2, h // r, w // r)


def _channel_shuffle(x, groups) -> np.ndarray:
    n, c, *rest = x.shape
    return x.reshape(n, groups, c // groups, *rest).swapaxes(1, 2).reshape(x.shape)


def _combinations(x, r=2, with_replacement=False) -> np.ndarray:
    import itertools

    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = [x[list(c)] for c in choose(range(len(x)), r)]
    return np.stack(rows) if rows else np.zeros((0, r), x.dtype)


def _cartesian(*tensors) -> np.ndarray:
    if len(tensors) == 1:
        return tensors[0]
    return np.stack([g.ravel() for g in np.meshgrid(*tensors, indexing="ij")], -1)


def _chunk_cat(tensors, dim, chunks) -> np.ndarray:
    """Each tensor filled with zeros to a multiple of the chunks, cut, the pieces side by side."""
    parts = []
    for x in tensors:
        rows = -(-x.shape[0] // chunks)
        filled = np.zeros((rows * chunks, *x.shape[1:]))
        filled[: x.shape[0]] = x
        parts.append(filled.reshape(chunks, -1))
    return np.concatenate(parts, 1)


def _several(function) -> Callable[..., object]:
    """A function of one list of arrays."""
    return lambda tensors, *a, **k: function([np.asarray(x) for x in tensors], *a, **k)


def _pads(t) -> list[SampleInput]:
    one, two, three = t(2, 3, 6), t(1, 2, 5, 6), t(1, 2, 4, 4, 5)
    calls = [
        call(t(2, 3), (1, 2)),
        call(t(2, 3), (1, 0, -1, 2), "constant", 2),
        call(t(0, 3), (1, 1)),
        call(t(2, 3), (-1, -1)),
    ]
    for mode in ("reflect", "replicate", "circular"):
        calls += [call(one, (2, 1), mode), call(two, (1, 2, 0, 2), mode)]
        calls += [call(three, (1, 1, 0, 1, 2, 1), mode)]
    return calls


_CAT_ERRORS = lambda t: [
    error(RuntimeError, "Sizes of tensors must match", [t(2, 3), t(2, 4)]),
    error((RuntimeError, ValueError), "non-empty list", []),
    error(IndexError, "Dimension out of range", [t(2), t(2)], 1),
]
_LIST_ERRORS = lambda t: [
    error(RuntimeError, "non-empty", []),
    error(TypeError, "must be tuple of Tensors|expected Tensor", [1, 2]),
]
_GRID_ERROR = lambda t: [error(RuntimeError, "0D or 1D", t(2, 2), t(2))]

RECORDS = [
    _op("reshape", _VIEWS["view"][0], _VIEWS["view"][1], ALL, errors=_BAD_VIEW, is_view=True),
    _op(
        "reshape_as",
        lambda t: [call(t(2, 3), t(3, 2)), call(t(4), t(2, 2))],
        lambda x, y: x.reshape(y.shape),
        is_view=True,
        big=lambda t: call(_big(t, 400, 600), _big(t, 600, 400)),
        errors=lambda t: [error(RuntimeError, "is invalid", t(2), t(3))],
    ),
    _op(
        "view_as",
        lambda t: [call(t(2, 3), t(3, 2)), call(t(4), t(2, 2))],
        lambda x, y: x.reshape(y.shape),
        is_view=True,
        skips={"layouts": _LAYOUT},
        big=lambda t: call(_big(t, 400, 600), _big(t, 600, 400)),
        errors=lambda t: [error(RuntimeError, "is invalid", t(2), t(3))],
    ),
    _op(
        "expand_as",
        lambda t: [call(t(3), t(2, 3)), call(t(), t(2))],
        lambda x, y: np.broadcast_to(x, y.shape),
        is_view=True,
        errors=lambda t: [error(RuntimeError, "must match", t(2), t(3))],
    ),
    _op(
        "broadcast_to",
        lambda t: [call(t(3), (2, t.n(3))), call(t(), (2,)), call(t(2, 1), (t.n(2), 3))],
        lambda x, s: np.broadcast_to(x, s),
        is_view=True,
        errors=_BAD_EXPAND,
    ),
    _op(
        "movedim",
        lambda t: [call(t(2, 3, 4), 0, 2), call(t(2, 3, 4), (0, 1), (1, 0))],
        np.moveaxis,
        is_view=True,
        aliases=("moveaxis",),
        errors=lambda t: [
            error(RuntimeError, "repeated|Invalid", t(2, 3), (0, 0), (0, 1)),
            error(IndexError, "Dimension out of range", t(2, 3), 0, 2),
        ],
    ),
    _op(
        "flatten",
        lambda t: [call(t(2, 3, 4)), call(t(2, 3, 4), 1), call(t(2, 3, 4), 0, 1), call(t())],
        _flatten,
        is_view=True,
        errors=lambda t: [
            error(RuntimeError, "start_dim cannot come after", t(2, 3), 1, 0),
            error(IndexError, "Dimension out of range", t(2, 3), 2),
        ],
    ),
    _op("ravel", lambda t: [call(t(2, 3)), call(t())], np.ravel, is_view=True),
    _op(
        "unflatten",
        lambda t: [call(t(2, 6), 1, (2, -1)), call(t(4), 0, (2, 2))],
        lambda x, d, s: x.reshape(*x.shape[:d], *s, *x.shape[d + 1 :]),
        is_view=True,
        big=lambda t: call(_big(t, 400, 600), 1, (20, 30)),
        errors=lambda t: [
            error(RuntimeError, "don't multiply up|unflatten", t(2, 6), 1, (4, 2)),
            error(IndexError, "Dimension out of range", t(2), 1, (2,)),
        ],
    ),
    _op(
        "contiguous",
        lambda t: [call(t(2, 3)), call(t(2, 3).mT), call(t())],
        lambda x: x,
        op=torch.Tensor.contiguous,
    ),
    _op("clone", lambda t: [call(t(2, 3)), call(t())], lambda x: x, "fibchu"),
    _op(
        "detach",
        lambda t: [call(t(2, 3)), call(t())],
        lambda x: x,
        grad_codes="",
        covers=("detach_copy", "lift", "lift_fresh", "lift_fresh_copy"),
    ),
    _op(
        "chunk",
        lambda t: [call(t(5, 2), 2), call(t(2, 6), 4, 1)],
        _chunk,
        covers=("unsafe_chunk",),
        errors=lambda t: [
            error(RuntimeError, "greater than 0", t(2), 0),
            error(RuntimeError, "at least a 1-dim|at least 1-dim", t(), 1),
        ],
    ),
    _op("unsafe_chunk", lambda t: [call(t(5, 2), 2), call(t(2, 6), 4, 1)], _chunk),
    _op(
        "unsafe_split",
        _MORE_VIEWS["split"][0],
        _MORE_VIEWS["split"][1],
        big=lambda t: call(_big(t, 600, 500), 100),
    ),
    _op(
        "tensor_split",
        lambda t: [call(t(5, 2), 2), call(t(7), 3), call(t(2, 6), (1, 4), 1)],
        _tensor_split,
        errors=lambda t: [
            error(RuntimeError, "larger than 0", t(2), 0),
            error(IndexError, "Dimension out of range", t(2), 1, 1),
        ],
    ),
    _op(
        "hsplit",
        lambda t: [call(t(2, 4), 2), call(t(4), (1, 3))],
        lambda x, s: np.hsplit(x, s),
        errors=lambda t: [
            error(RuntimeError, "at least 1|requires", t(), 1),
            error(RuntimeError, "not divisible|divide|divisible", t(2, 3), 2),
        ],
    ),
    _op(
        "vsplit",
        lambda t: [call(t(4, 2), 2), call(t(4, 2), (1, 3))],
        lambda x, s: np.vsplit(x, s),
        errors=lambda t: [error(RuntimeError, "at least 2|requires", t(2), 1)],
    ),
    _op(
        "dsplit",
        lambda t: [call(t(2, 2, 4), 2), call(t(2, 2, 4), (1, 3))],
        lambda x, s: np.dsplit(x, s),
        errors=lambda t: [error(RuntimeError, "at least 3|requires", t(2), 1)],
    ),
    _op(
        "cat",
        lambda t: [
            call([t(2, 3), t(4, 3)]),
            call([t(2, 3), t(2, 4)], 1),
            call([t(0), t(2, 3)]),
            call([t(2, 3)], -1),
        ],
        lambda ts, dim=0: np.concatenate([x for x in ts if x.shape != (0,)], dim),
        "fibchu",
        supports_out=True,
        aliases=("concat", "concatenate"),
        errors=_CAT_ERRORS,
    ),
    _op(
        "stack",
        lambda t: [call([t(2, 3), t(2, 3)]), call([t(2, 3), t(2, 3)], -1), call([t()])],
        _several(np.stack),
        "fibch",
        supports_out=True,
        covers=("_stack",),
        errors=lambda t: [
            error(RuntimeError, "equal size", [t(2), t(3)]),
            error(RuntimeError, "non-empty", []),
        ],
    ),
    _op(
        "hstack",
        lambda t: [call([t(2, 3), t(2, 4)]), call([t(2), t(3)]), call([t(), t()])],
        _several(np.hstack),
        supports_out=True,
        errors=_LIST_ERRORS,
    ),
    _op(
        "vstack",
        lambda t: [call([t(2, 3), t(4, 3)]), call([t(3), t(3)]), call([t(), t()])],
        _several(np.vstack),
        supports_out=True,
        aliases=("row_stack",),
        errors=_LIST_ERRORS,
    ),
    _op(
        "dstack",
        lambda t: [call([t(2, 3), t(2, 3)]), call([t(3), t(3)])],
        _several(np.dstack),
        supports_out=True,
        errors=_LIST_ERRORS,
    ),
    _op(
        "column_stack",
        lambda t: [call([t(3), t(3, 2)]), call([t(3), t(3)])],
        _several(np.column_stack),
        supports_out=True,
        errors=_LIST_ERRORS,
    ),
    _op(
        "block_diag",
        lambda t: [call(t(2, 3), t(1, 2)), call(t(2), t())],
        _block_diag,
        "fibc",
        errors=lambda t: [error(RuntimeError, "2 or fewer", t(2, 2, 2))],
    ),
    _op(
        "flip",
        lambda t: [call(t(2, 3), (0,)), call(t(2, 3, 4), (0, 2)), call(t(0, 3), (1,))],
        np.flip,
        "fibc",
        errors=lambda t: [
            error(RuntimeError, "appears multiple times", t(2, 3), (0, 0)),
            error(IndexError, "Dimension out of range", t(2, 3), (2,)),
        ],
    ),
    _op(
        "fliplr",
        lambda t: [call(t(2, 3))],
        np.fliplr,
        errors=lambda t: [error(RuntimeError, ">= 2-d", t(2))],
    ),
    _op(
        "flipud",
        lambda t: [call(t(2, 3)), call(t(3))],
        np.flipud,
        errors=lambda t: [error(RuntimeError, ">= 1-d", t())],
    ),
    _op(
        "roll",
        lambda t: [
            call(t(2, 3), 1, 0),
            call(t(2, 3), 2),
            call(t(2, 3), (1, -1), (0, 1)),
            call(t(0, 3), 1, 0),
        ],
        np.roll,
        errors=lambda t: [
            error(RuntimeError, "shifts and dimensions must align", t(2, 3), (1, 2), (0,)),
            error(IndexError, "Dimension out of range", t(2, 3), 1, 2),
        ],
    ),
    _op(
        "rot90",
        lambda t: [
            call(t(2, 3)),
            call(t(2, 3), 3),
            call(t(2, 3, 4), 2, (1, 2)),
            call(t(2, 3), -1, (1, 0)),
        ],
        lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims),
        errors=lambda t: [
            error(RuntimeError, "total dims >= 2", t(2)),
            error(RuntimeError, "different", t(2, 3), 1, (0, 0)),
        ],
    ),
    _op(
        "repeat",
        lambda t: [call(t(2, 3), 2, 1), call(t(3), (2, 2)), call(t(), 3), call(t(2, 3), 0, 2)],
        _repeat,
        "fibch",
        errors=lambda t: [
            error(RuntimeError, "can not be smaller", t(2, 3), 2),
            error(RuntimeError, "negative", t(2), -1),
        ],
    ),
    _op("tile", lambda t: [call(t(2, 3), (2, 1)), call(t(2, 3), (2,)), call(t(), (2,))], np.tile),
    _op(
        "repeat_interleave",
        lambda t: [
            call(t(2, 3), 2),
            call(t(2, 3), 3, 1),
            call(t(3, 2), torch.tensor([1, 0, 2], device=t.device), 0),
        ],
        _repeat_interleave,
        big=lambda t: call(_big(t, 400, 600), 2, 1),
        errors=lambda t: [
            error(RuntimeError, "non-negative|cannot be negative", t(2), -1),
            error(RuntimeError, "0-dim or 1-dim", t(2), torch.ones(2, 2).long()),
        ],
        skips={"meta": "with a tensor of counts the size of the result depends on values"},
    ),
    _op(
        "tril",
        lambda t: [call(t(3, 4)), call(t(2, 3, 3), 1), call(t(3, 3), -1)],
        np.tril,
        "fibc",
        inplace="tril_",
        supports_out=True,
        errors=lambda t: [error(RuntimeError, "at least 2 dim", t(2))],
    ),
    _op(
        "triu",
        lambda t: [call(t(3, 4)), call(t(2, 3, 3), 1), call(t(3, 3), -1)],
        np.triu,
        "fibc",
        inplace="triu_",
        supports_out=True,
        errors=lambda t: [error(RuntimeError, "at least 2 dim", t(2))],
    ),
    _op(
        "diag",
        lambda t: [call(t(3)), call(t(3), 1), call(t(3, 4)), call(t(3, 4), -1)],
        lambda x, d=0: np.diag(x, d),
        "fibc",
        supports_out=True,
        errors=lambda t: [error(RuntimeError, "1D or 2D|matrix or a vector", t(2, 2, 2))],
    ),
    _op(
        "diag_embed",
        lambda t: [call(t(2, 3)), call(t(3), 1), call(t(2, 3), -1, 0, 2)],
        _diag_embed,
        big=lambda t: call(_big(t, 30, 100)),
        errors=lambda t: [
            error(RuntimeError, "cannot be identical", t(2), 0, 0, 0),
            error(IndexError, "Dimension out of range", t(2), 0, 0, 4),
        ],
    ),
    _op(
        "diagflat",
        lambda t: [call(t(2, 2)), call(t(3), -1)],
        np.diagflat,
        big=lambda t: call(_big(t, 20, 30)),
    ),
    _op(
        "constant_pad_nd",
        lambda t: [call(t(2, 3), (1, 2)), call(t(2, 3), (1, 0, -1, 2), 2), call(t(0, 3), (1, 1))],
        lambda x, pad, value=0: _pad(x, pad, "constant", value),
        "fibc",
        errors=lambda t: [
            error(RuntimeError, "must be divisible by 2|even", t(2), (1,)),
            error(RuntimeError, "negative", t(2), (-2, -2)),
        ],
    ),
    _op(
        "nn.functional.pad",
        _pads,
        _pad,
        "fc",
        covers=(
            "_pad_enum",
            "_pad_circular",
            *[f"{mode}_pad{n}d" for mode in ("reflection", "replication") for n in (1, 2, 3)],
        ),
        errors=lambda t: [
            error(RuntimeError, "must be divisible by 2|even", t(2), (1,)),
            error(
                (RuntimeError, NotImplementedError),
                "nrecognised|nknown|not",
                t(2, 3, 4),
                (1, 1),
                "x",
            ),
            error(RuntimeError, "should be less than", t(1, 2, 3), (3, 0), "reflect"),
        ],
    ),
    _op(
        "nn.functional.pixel_shuffle",
        lambda t: [call(t(1, 4, 2, 3), 2), call(t(9, 2, 2), 3)],
        _pixel_shuffle,
        big=lambda t: call(_big(t, 2, 16, 60, 100), 2),
        errors=lambda t: [
            error(RuntimeError, "at least 3 dim", t(2, 2), 2),
            error(RuntimeError, "divisible", t(3, 2, 2), 2),
        ],
    ),
    _op(
        "nn.functional.pixel_unshuffle",
        lambda t: [call(t(1, 2, 4, 6), 2), call(t(1, 3, 3), 3)],
        _pixel_unshuffle,
        big=lambda t: call(_big(t, 2, 4, 160, 200), 2),
        errors=lambda t: [
            error(RuntimeError, "at least 3 dim", t(2, 2), 2),
            error(RuntimeError, "divisible", t(1, 3, 3), 2),
        ],
    ),
    _op(
        "nn.functional.channel_shuffle",
        lambda t: [call(t(1, 4, 2, 2), 2), call(t(2, 6, 3), 3)],
        _channel_shuffle,
        "fic",
        covers=("native_channel_shuffle",),
        errors=lambda t: [error(RuntimeError, "divisible", t(1, 3, 2, 2), 2)],
    ),
    _op("atleast_1d", lambda t: [call(t()), call(t(2, 3))], np.atleast_1d),
    _op("atleast_2d", lambda t: [call(t()), call(t(3)), call(t(2, 3, 4))], np.atleast_2d),
    _op(
        "atleast_3d",
        lambda t: [call(t()), call(t(3)), call(t(2, 3)), call(t(1, 2, 3, 1))],
        np.atleast_3d,
    ),
    _op(
        "broadcast_tensors",
        lambda t: [call(t(2, 1), t(3)), call(t(), t(2, 3), t(1, 3))],
        lambda *ts: np.broadcast_arrays(*ts),
        errors=lambda t: [error(RuntimeError, "must match", t(2), t(3))],
    ),
    _op(
        "meshgrid",
        lambda t: [
            call(t(2), t(3), indexing="ij"),
            call(t(2), t(3), indexing="xy"),
            call(t(), t(2), indexing="ij"),
        ],
        lambda *ts, indexing: list(np.meshgrid(*ts, indexing=indexing)),
        errors=_GRID_ERROR,
        big=lambda t: call(_big(t, 600), _big(t, 500), indexing="ij"),
    ),
    _op(
        "cartesian_prod",
        lambda t: [call(t(2), t(3)), call(t(3))],
        _cartesian,
        big=lambda t: call(_big(t, 600), _big(t, 500)),
        errors=lambda t: [error(RuntimeError, "1D vector", t(2, 2), t(2))],
    ),
    _op(
        "combinations",
        lambda t: [call(t(4)), call(t(4), 3), call(t(3), 2, True)],
        _combinations,
        big=lambda t: call(_big(t, 700)),
        errors=lambda t: [
            error(RuntimeError, "1D vector", t(2, 2)),
            error(RuntimeError, "non-negative", t(2), -1),
        ],
    ),
    _op(
        "real", lambda t: [call(t(2, 3)), call(t())], np.real, "fc", out_dtype="real", is_view=True
    ),
    _op(
        "imag",
        lambda t: [call(t(2, 3)), call(t())],
        np.imag,
        "c",
        out_dtype="real",
        is_view=True,
        errors=lambda t: [
            error(RuntimeError, "not implemented for tensors with non-complex", t(2).real.clone())
        ],
    ),
    _op(
        "conj",
        lambda t: [call(t(2, 3)), call(t())],
        np.conj,
        "fic",
        is_view=True,
        covers=("_conj", "_conj_copy"),
    ),
    _op("resolve_conj", lambda t: [call(t(2, 3)), call(t(2).conj())], lambda x: x, "fic"),
    _op(
        "resolve_neg",
        lambda t: [call(t(2, 3)), call(t(2))],
        lambda x: x,
        "fic",
        covers=("_neg_view", "_neg_view_copy"),
    ),
    *[
        _op(
            name,
            lambda t: [call(t(2, 3))],
            lambda x: x.T,
            op=lambda x, n=name: getattr(x, n),
            covers=covers,
            generic_errors=False,
        )
        for name, covers in [("T", ("numpy_T",)), ("mT", ())]
    ],
    *[
        _op(
            name,
            lambda t: [call(t(2, 3))],
            lambda x: x.T.conj(),
            op=lambda x, n=name: getattr(x, n),
            covers=covers,
            generic_errors=False,
        )
        for name, covers in [("mH", ("adjoint",)), ("H", ("matrix_H",))]
    ],
    _op(
        "to",
        lambda t: [
            call(t(2, 3), torch.float64),
            call(t(), torch.float64),
            call(t(2, 3), dtype=torch.float64, copy=True),
        ],
        lambda x, *a, **k: x,
        "fib",
        out_dtype=None,
        covers=("_to_copy", "type_as"),
    ),
    _op(
        "_chunk_cat",
        lambda t: [call([t(4, 2), t(6)], 0, 2), call([t(2, 3)], 0, 2)],
        _chunk_cat,
        "f",
        op=torch.ops.aten._chunk_cat,
        grad_codes="",
        generic_errors=False,
        skips={
            "layouts": "covered by cat, of which it is made",
        },
    ),
    _op(
        "nn.utils.rnn.pad_sequence",
        lambda t: [call([t(3, 2), t(2, 2)]), call([t(3), t(1)], batch_first=True)],
        lambda ts, batch_first=False: _pad_sequence(ts, batch_first),
        "f",
        aten_name="pad_sequence",
        op=lambda ts, **k: torch.nn.utils.rnn.pad_sequence(ts, **k),
    ),
    _op(
        "fill_diagonal_",
        lambda t: [call(t(3, 3), 2), call(t(5, 3), 2, True), call(t(2, 2, 2), 1)],
        lambda x, v, wrap=False: (np.fill_diagonal(x, v, wrap), x)[1],
        "fib",
        grad_codes="",
        op=lambda x, *a: x.clone().fill_diagonal_(*a),
        errors=lambda t: [
            error(RuntimeError, "larger than 1|at least 2|dim", t(2), 1),
            error(RuntimeError, "equal", t(2, 3, 2), 1),
        ],
    ),
]


def _pad_sequence(tensors, batch_first) -> np.ndarray:
    longest = max(len(x) for x in tensors)
    rows = [np.pad(x, [(0, longest - len(x))] + [(0, 0)] * (x.ndim - 1)) for x in tensors]
    return np.stack(rows, 0 if batch_first else 1)
