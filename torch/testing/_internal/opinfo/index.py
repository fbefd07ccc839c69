"""Records of the index family: gathering, scattering, masks, selections and their inverses."""

from __future__ import annotations

import numpy as np

import torch

from .core import Maker, OpInfo, call, error

_VALUES = "the size of the result depends on values"
ANY = "fibc"


def _index(*parts):
    return lambda x: x[parts]


def _gather(x, dim, index, sparse_grad=False) -> np.ndarray:
    if x.ndim == 0:
        return x.reshape(1)[index.reshape(-1)].reshape(index.shape)
    cut = tuple(slice(None) if d == dim % x.ndim else slice(n) for d, n in enumerate(index.shape))
    return np.take_along_axis(x[cut], index, dim)


def _places(index, dim) -> tuple[np.ndarray, np.ndarray]:
    """The positions a scatter along dim writes to, as a tuple of index arrays."""
    grid = list(np.indices(index.shape))
    grid[dim] = index
    return tuple(grid)


def _scatter(x, dim, index, src=None, value=None, reduce=None) -> np.ndarray:
    out = x.copy()
    src = value if src is None else src
    values = src if np.ndim(src) == 0 else src[tuple(slice(n) for n in index.shape)]
    if reduce is None:
        out[_places(index, dim)] = values
    else:
        {"add": np.add, "multiply": np.multiply}[reduce].at(out, _places(index, dim), values)
    return out


def _scatter_reduce(x, dim, index, src, reduce, include_self=True) -> np.ndarray:
    out = x.astype(float) if x.dtype.kind == "f" else x.copy()
    places = _places(index, dim)
    values = src[tuple(slice(n) for n in index.shape)]
    hit = np.zeros(x.shape, np.int64)
    np.add.at(hit, places, 1)
    if not include_self:
        neutral = {"sum": 0, "mean": 0, "prod": 1}
        extreme = values.max() if reduce == "amin" else values.min()
        out = np.where(hit > 0, neutral.get(reduce, extreme), out)
    function = {
        "sum": np.add,
        "mean": np.add,
        "prod": np.multiply,
        "amax": np.maximum,
        "amin": np.minimum,
    }[reduce]
    function.at(out, places, values)
    if reduce == "mean":
        count = np.maximum(hit + (1 if include_self else 0), 1)
        out = out / count if out.dtype.kind in "fc" else np.floor_divide(out, count)
    return out


def _index_add(x, dim, index, source, alpha=1) -> np.ndarray:
    out = x.copy()
    np.add.at(out, (slice(None),) * dim + (index,), alpha * source)
    return out


def _index_write(x, dim, index, source) -> np.ndarray:
    out = x.copy()
    out[(slice(None),) * dim + (index,)] = source
    return out


def _index_reduce(x, dim, index, source, reduce, include_self=True) -> np.ndarray:
    shape = [1] * x.ndim
    shape[dim] = -1
    wide = np.broadcast_to(index.reshape(shape), source.shape)
    names = {"prod": "prod", "mean": "mean", "amax": "amax", "amin": "amin"}
    return _scatter_reduce(x, dim, wide, source, names[reduce], include_self)


def _index_put(x, indices, values, accumulate=False) -> np.ndarray:
    out = x.copy()
    if accumulate:
        np.add.at(out, tuple(indices), values)
    else:
        out[tuple(indices)] = values
    return out


def _masked_scatter(x, mask, source) -> np.ndarray:
    out = np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape)).copy()
    mask = np.broadcast_to(mask, out.shape)
    out[mask] = source.ravel()[: mask.sum()]
    return out


def _put(x, index, source, accumulate=False) -> np.ndarray:
    out = x.copy().ravel()
    if accumulate:
        np.add.at(out, index.ravel(), source.ravel())
    else:
        out[index.ravel()] = source.ravel()
    return out.reshape(x.shape)


def _select_scatter(x, src, dim, index) -> np.ndarray:
    out = x.copy()
    out[(slice(None),) * dim + (index,)] = src
    return out


def _slice_scatter(x, src, dim=0, start=None, end=None, step=1) -> np.ndarray:
    out = x.copy()
    out[(slice(None),) * dim + (slice(start, end, step),)] = src
    return out


def _diagonal_scatter(x, src, offset=0, dim1=0, dim2=1) -> np.ndarray:
    out = x.copy()
    n = src.shape[-1]
    view = np.moveaxis(out, (dim1, dim2), (-2, -1))
    for i in range(n):
        view[..., i + max(-offset, 0), i + max(offset, 0)] = src[..., i]
    return out


def _as_strided_scatter(x, src, size, stride, storage_offset=0) -> np.ndarray:
    out = x.copy().ravel()
    for coordinates in np.ndindex(*size):
        out[storage_offset + sum(a * s for a, s in zip(coordinates, stride, strict=True))] = src[
            coordinates
        ]
    return out.reshape(x.shape)


def _argwhere(x) -> np.ndarray:
    return np.argwhere(x)


def _unravel(x, shape) -> tuple[np.ndarray, ...]:
    return np.unravel_index(x, shape)


def _unique_rows(t, count, high) -> torch.Tensor:
    """Distinct indices below high."""
    return t.permutation(high)[: t.n(count)]


def _scatter_index(t, *shape, high) -> torch.Tensor:
    """Indices along dimension 0 that are distinct within each column."""
    columns = [t.permutation(high)[: t.n(shape[0])] for _ in range(t.n(shape[1]))]
    return torch.stack(columns, 1)


_BAD_INDEX = (IndexError, RuntimeError)
_RANGE = "out of (range|bounds|DATA bounds)"


def _gather_errors(t):
    index = torch.zeros(2, 2, dtype=torch.int64)
    return [
        error(_BAD_INDEX, "out of bounds", t(2, 3), 1, index + 3),
        error(RuntimeError, "same number of dimensions|dimension", t(2, 3), 1, index[0]),
        error(RuntimeError, "dtype int64|int32/int64|Expected dtype", t(2, 3), 1, index.float()),
        error(IndexError, "Dimension out of range", t(2, 3), 2, index),
    ]


def _scatter_errors(t):
    index = torch.zeros(2, 2, dtype=torch.int64)
    return [
        error(_BAD_INDEX, "out of bounds", t(2, 3), 1, index + 3, t(2, 2)),
        error(
            RuntimeError,
            "number of dimensions|same number|dimension",
            t(2, 3),
            1,
            index[0],
            t(2, 2),
        ),
        error(RuntimeError, "same dtype|dtype", t(2, 3), 1, index, t(2, 2).double()),
        error(
            RuntimeError,
            "smaller|to be no larger|Expected index",
            t(2, 3),
            1,
            index.repeat(2, 1),
            t(4, 2),
        ),
    ]


def _select_errors(t):
    index = torch.tensor([0, 1])
    return [
        error(_BAD_INDEX, _RANGE, t(2, 3), 1, index + 2),
        error(IndexError, "Dimension out of range", t(2, 3), 2, index),
        error((RuntimeError, IndexError), "vector|1-D|dimension", t(2, 3), 1, index.reshape(1, 2)),
    ]


def _source_errors(t):
    index = torch.tensor([0, 1])
    return [
        error(_BAD_INDEX, _RANGE, t(2, 3), 1, index + 2, t(2, 2)),
        error((RuntimeError, IndexError), "", t(2, 3), 1, index, t(2, 3)),
        error(RuntimeError, "dtype|type", t(2, 3), 1, index, t(2, 2).double()),
    ]


RECORDS = [
    OpInfo(
        "gather",
        lambda t: [
            call(t(3, 4), 1, t.index(3, 2, high=4)),
            call(t(3, 4), 0, t.index(2, 4, high=3)),
            call(t(2, 3, 2), -1, t.index(2, 3, 5, high=2)),
            call(t(), 0, t.index(high=1)),
        ],
        _gather,
        ANY,
        out_dtype="same",
        supports_out=True,
        inplace=None,
        errors=_gather_errors,
        covers=("gather_backward",),
    ),
    OpInfo(
        "scatter",
        lambda t: [
            call(t(4, 3), 0, _scatter_index(t, 2, 3, high=4), t(2, 3)),
            call(t(4, 3), 0, _scatter_index(t, 2, 3, high=4), 2),
        ],
        _scatter,
        ANY,
        out_dtype="same",
        supports_out=True,
        errors=_scatter_errors,
        skips={"expanded": "expanded indices are not distinct: the last writer is unspecified"},
    ),
    OpInfo(
        "scatter",
        lambda t: [
            call(t(4, 3), 0, t.index(4, 3, high=4), t(4, 3), reduce=r) for r in ("add", "multiply")
        ],
        _scatter,
        "fi",
        variant_test_name="reduce",
        out_dtype="same",
        supports_out=True,
        grad_codes="",
        tolerances={torch.float16: (2e-2, 1e-2), torch.bfloat16: (9e-2, 6e-2)},
        errors=lambda t: [
            error(
                RuntimeError,
                "reduce argument must be",
                t(2),
                0,
                torch.tensor([0]),
                t(1),
                reduce="x",
            )
        ],
    ),
    OpInfo(
        "scatter_add",
        lambda t: [
            call(t(4, 3), 0, t.index(5, 3, high=4), t(5, 3)),
            call(t(2, 4), 1, t.index(2, 3, high=4), t(2, 3)),
        ],
        lambda x, d, i, s: _scatter(x, d, i, s, reduce="add"),
        "fic",
        out_dtype="same",
        supports_out=True,
        errors=_scatter_errors,
        tolerances={torch.float16: (1e-2, 1e-2), torch.bfloat16: (8e-2, 6e-2)},
    ),
    OpInfo(
        "scatter_reduce",
        lambda t: [
            call(t(4, 3), 0, t.index(5, 3, high=4), t(5, 3), r, include_self=s)
            for r in ("sum", "prod", "mean", "amax", "amin")
            for s in (True, False)
        ],
        _scatter_reduce,
        "fi",
        out_dtype="same",
        supports_out=True,
        tolerances={torch.float16: (2e-2, 2e-2), torch.bfloat16: (9e-2, 9e-2)},
        errors=lambda t: [
            error(RuntimeError, "reduce argument must be", t(2), 0, torch.tensor([0]), t(1), "x"),
            error(_BAD_INDEX, "out of bounds", t(2), 0, torch.tensor([2]), t(1), "sum"),
        ],
    ),
    OpInfo(
        "index_select",
        lambda t: [
            call(t(3, 4), 1, t.index(5, high=4)),
            call(t(2, 3, 2), 0, t.index(3, high=2)),
            call(t(3, 4), 0, t.index(0, high=3)),
            call(t(3, 4), -1, t.index(2, high=4, dtype=torch.int32)),
        ],
        lambda x, d, i: np.take(x, i, d),
        ANY,
        out_dtype="same",
        supports_out=True,
        errors=_select_errors,
        covers=("index_select_backward",),
    ),
    OpInfo(
        "index_add",
        lambda t: [
            call(t(3, 4), 1, t.index(5, high=4), t(3, 5)),
            call(t(3, 4), 0, t.index(2, high=3), t(2, 4), alpha=2),
        ],
        _index_add,
        "fic",
        out_dtype="same",
        supports_out=True,
        errors=_source_errors,
        tolerances={torch.float16: (1e-2, 1e-2), torch.bfloat16: (8e-2, 6e-2)},
    ),
    OpInfo(
        "index_copy",
        lambda t: [
            call(t(3, 4), 1, _unique_rows(t, 2, 4), t(3, 2)),
            call(t(3, 4), 0, _unique_rows(t, 3, 3), t(3, 4)),
        ],
        _index_write,
        ANY,
        out_dtype="same",
        supports_out=True,
        errors=_source_errors,
        skips={"expanded": "expanded indices are not distinct: the last writer is unspecified"},
    ),
    OpInfo(
        "index_fill",
        lambda t: [
            call(t(3, 4), 1, t.index(2, high=4), 2),
            call(t(3, 4), 0, t.index(2, high=3), t()),
        ],
        _index_write,
        ANY,
        out_dtype="same",
        errors=lambda t: [
            error(_BAD_INDEX, _RANGE, t(2, 3), 1, torch.tensor([3]), 1),
            error(IndexError, "Dimension out of range", t(2, 3), 2, torch.tensor([0]), 1),
            error(RuntimeError, "0-dimension", t(2, 3), 1, torch.tensor([0]), t(2)),
        ],
    ),
    OpInfo(
        "index_reduce",
        lambda t: [
            call(t(3, 4), 1, t.index(5, high=4), t(3, 5), r, include_self=s)
            for r in ("prod", "mean", "amax", "amin")
            for s in (True, False)
        ],
        _index_reduce,
        "fi",
        out_dtype="same",
        supports_out=True,
        tolerances={torch.float16: (2e-2, 2e-2), torch.bfloat16: (9e-2, 9e-2)},
        errors=lambda t: [
            error(RuntimeError, "reduce|Expected", t(3), 0, torch.tensor([0]), t(1), "x"),
            error(_BAD_INDEX, _RANGE, t(3), 0, torch.tensor([3]), t(1), "mean"),
        ],
    ),
    OpInfo(
        "index_put",
        lambda t: [
            call(t(3, 4), (_unique_rows(t, 2, 3),), t(2, 4)),
            call(t(3, 4), (t.index(3, high=3), t.index(3, high=4)), t(3), True),
        ],
        _index_put,
        ANY,
        out_dtype="same",
        inplace="index_put_",
        skips={"expanded": "expanded indices are not distinct: the last writer is unspecified"},
        covers=("_index_put_impl_", "_unsafe_index_put"),
        errors=lambda t: [
            error(IndexError, "out of bounds", t(3), (torch.tensor([3]),), t(1)),
            error(
                (RuntimeError, IndexError),
                "shape mismatch|cannot be broadcast|must match",
                t(3),
                (torch.tensor([0, 1]),),
                t(3),
            ),
            error(IndexError, "too many indices", t(3), (torch.tensor([0]),) * 2, t(1)),
        ],
    ),
    OpInfo(
        "__getitem__",
        lambda t: [
            call(t(3, 4), 1),
            call(t(3, 4), (slice(1, 3), 2)),
            call(t(3, 4), t.index(2, high=3)),
            call(t(3, 4), (Ellipsis, None, -1)),
            call(t(3, 4), t.mask(3, 4)),
        ],
        lambda x, i: x[i],
        ANY,
        op=lambda x, i: x[i],
        aten_name="index",
        inplace=None,
        covers=("_unsafe_index", "slice"),
        out_dtype="same",
        generic_errors=False,
        big=lambda t: call(_plain(t)(600, 500), (t.index(400, high=600), t.index(400, high=500))),
        skips={"meta": "a mask's result has a size that depends on values"},
        errors=lambda t: [
            error(IndexError, "out of (range|bounds)", t(3), 3),
            error(IndexError, "too many indices", t(3), (0, 0)),
            error((TypeError, IndexError), "", t(3), "x"),
        ],
    ),
    OpInfo(
        "masked_fill",
        lambda t: [
            call(t(3, 4), t.mask(3, 4), 2),
            call(t(3, 4), t.mask(4), t()),
            call(t(), t.mask(), 1),
        ],
        lambda x, m, v: np.where(m, v, x),
        ANY,
        out_dtype="same",
        errors=lambda t: [
            error(RuntimeError, "must match", t(2), torch.ones(3).bool(), 1),
            error(RuntimeError, "bool", t(2), torch.ones(2), 1),
            error(RuntimeError, "0-dimension", t(2), torch.ones(2).bool(), t(2)),
        ],
    ),
    OpInfo(
        "masked_scatter",
        lambda t: [call(t(3, 4), t.mask(3, 4), t(3, 4)), call(t(3, 4), t.mask(4), t(3, 4))],
        _masked_scatter,
        ANY,
        out_dtype="same",
        covers=("masked_scatter_backward",),
        errors=lambda t: [
            error(
                RuntimeError, "source has fewer|ones|number of", t(3), torch.ones(3).bool(), t(2)
            ),
            error(RuntimeError, "bool", t(3), torch.ones(3), t(3)),
        ],
    ),
    OpInfo(
        "masked_select",
        lambda t: [call(t(3, 4), t.mask(3, 4)), call(t(3, 4), t.mask(4)), call(t(), t.mask())],
        lambda x, m: np.broadcast_arrays(x, m)[0][np.broadcast_arrays(x, m)[1]],
        ANY,
        out_dtype="same",
        supports_out=True,
        skips={"meta": _VALUES},
        covers=("masked_select_backward",),
        errors=lambda t: [
            error(RuntimeError, "must match", t(2), torch.ones(3).bool()),
            error(RuntimeError, "[Bb]ool", t(2), torch.ones(2)),
        ],
    ),
    OpInfo(
        "nonzero",
        lambda t: [call(t(3, 4)), call(t()), call(t(0, 3))],
        lambda x: np.stack(np.nonzero(x), 1) if x.ndim else np.zeros((int(x != 0), 0)),
        ANY,
        out_dtype="int64",
        supports_out=True,
        grad_codes="",
        skips={"meta": _VALUES},
        covers=("nonzero_numpy",),
    ),
    OpInfo(
        "nonzero_static",
        lambda t: [call(t(3, 4), size=5), call(t(6), size=9, fill_value=-2)],
        None,
        ANY,
        grad_codes="",
        check=lambda s, r: _check_nonzero_static(s, r),
        errors=lambda t: [error(RuntimeError, "non-negative|negative|size", t(2), size=-1)],
        big=lambda t: call(_plain(t)(600, 500), size=1000),
    ),
    OpInfo(
        "argwhere",
        lambda t: [call(t(3, 4)), call(t(5))],
        _argwhere,
        ANY,
        out_dtype="int64",
        grad_codes="",
        skips={"meta": _VALUES},
    ),
    OpInfo(
        "where",
        lambda t: [
            call(t.mask(3, 4), t(3, 4), t(3, 4)),
            call(t.mask(4), t(3, 1), t()),
            call(t.mask(0, 3), t(3), t(0, 3)),
        ],
        np.where,
        ANY,
        out_dtype=None,
        supports_out=True,
        errors=lambda t: [
            error(RuntimeError, "must match", t(2) > 0, t(3), t(3)),
            error(RuntimeError, "bool", t(2), t(2), t(2)),
        ],
    ),
    OpInfo(
        "take",
        lambda t: [
            call(t(3, 4), t.index(5, high=12)),
            call(t(3, 4), t.index(2, 2, high=12)),
            call(t(), t.index(high=1)),
        ],
        lambda x, i: np.take(x, i),
        ANY,
        out_dtype="same",
        supports_out=True,
        big=lambda t: call(_plain(t)(600, 500), t.index(600, 500, high=300000)),
        errors=lambda t: [
            error(IndexError, _RANGE, t(3), torch.tensor([3])),
            error(RuntimeError, "[Ll]ong|int64", t(3), t(2)),
        ],
    ),
    OpInfo(
        "take_along_dim",
        lambda t: [call(t(3, 4), t.index(3, 2, high=4), 1), call(t(3, 4), t.index(5, high=12))],
        lambda x, i, dim=None: np.take_along_axis(x.ravel() if dim is None else x, i, dim or 0),
        ANY,
        out_dtype="same",
        supports_out=True,
        big=lambda t: call(_plain(t)(600, 500), t.index(600, 400, high=500), 1),
        errors=lambda t: [
            error(RuntimeError, "same number of dim", t(3, 2), torch.tensor([0]), 0),
            error(RuntimeError, "long|int64", t(3), t(2), 0),
        ],
    ),
    OpInfo(
        "put",
        lambda t: [
            call(t(3, 4), _unique_rows(t, 3, 12), t(3)),
            call(t(3, 4), t.index(4, high=12), t(4), True),
        ],
        _put,
        ANY,
        op=lambda *a: torch.Tensor.put(*a) if hasattr(torch.Tensor, "put") else torch.put(*a),
        out_dtype="same",
        inplace="put_",
        skips={"expanded": "expanded indices are not distinct: the last writer is unspecified"},
        big=lambda t: call(_plain(t)(600, 500), t.permutation(300000), t(600, 500)),
        errors=lambda t: [
            error(IndexError, _RANGE, t(3), torch.tensor([3]), t(1)),
            error(
                (RuntimeError, IndexError),
                "same number of elements|same size",
                t(3),
                torch.tensor([0]),
                t(2),
            ),
            error(RuntimeError, "dtype|type", t(3), torch.tensor([0]), t(1).double()),
        ],
    ),
    OpInfo(
        "select_scatter",
        lambda t: [call(t(3, 4), t(4), 0, 1), call(t(3, 4), t(3), 1, -1)],
        _select_scatter,
        ANY,
        out_dtype="same",
        errors=lambda t: [
            error(RuntimeError, "size", t(3, 4), t(3), 0, 1),
            error(IndexError, "out of range", t(3, 4), t(4), 0, 3),
        ],
    ),
    OpInfo(
        "slice_scatter",
        lambda t: [call(t(6, 3), t(2, 3), 0, 1, 3), call(t(2, 6), t(2, 3), 1, 0, 6, 2)],
        _slice_scatter,
        ANY,
        out_dtype="same",
        big=lambda t: call(_plain(t)(600, 500), t(300, 500), 0, 100, 400),
        errors=lambda t: [error(RuntimeError, "size", t(3, 4), t(3, 4), 0, 1)],
    ),
    OpInfo(
        "diagonal_scatter",
        lambda t: [call(t(3, 4), t(3)), call(t(3, 4), t(2), -1)],
        _diagonal_scatter,
        ANY,
        out_dtype="same",
        big=lambda t: call(_plain(t)(500, 500), t(500)),
        errors=lambda t: [error(RuntimeError, "size", t(3, 4), t(4))],
    ),
    OpInfo(
        "as_strided_scatter",
        lambda t: [call(t(3, 4), t(2, 2), (2, 2), (4, 1)), call(t(8), t(3), (3,), (2,), 1)],
        _as_strided_scatter,
        ANY,
        out_dtype="same",
        big=lambda t: call(_plain(t)(600, 500), t(300, 500), (300, 500), (500, 1)),
        skips={"layouts": "the result depends on the strides of the input by definition"},
        errors=lambda t: [error(RuntimeError, "", t(4), t(5), (5,), (1,))],
    ),
    OpInfo(
        "unravel_index",
        lambda t: [call(t.index(3, high=12), (3, 4)), call(t.index(2, 2, high=24), (2, 3, 4))],
        _unravel,
        "l",
        op=torch.unravel_index,
        aten_name="",
        grad_codes="",
        big=lambda t: call(t.index(300000, high=12), (3, 4)),
        errors=lambda t: [
            error((ValueError, RuntimeError), "", torch.tensor([1]), (-1,)),
            error((TypeError, RuntimeError), "", torch.tensor([1.5]), (2,)),
        ],
    ),
    OpInfo(
        "_unsafe_masked_index",
        lambda t: [call(t(4, 3), t.mask(2), [t.index(2, high=4), t.index(2, high=3)], 1)],
        lambda x, m, i, f: np.where(m, x[tuple(i)], f),
        "fi",
        op=torch.ops.aten._unsafe_masked_index,
        generic_errors=False,
    ),
    OpInfo(
        "_unsafe_masked_index_put_accumulate",
        lambda t: [call(t(4, 3), t.mask(2), [t.index(2, high=4), t.index(2, high=3)], t(2))],
        lambda x, m, i, v: _index_put(x, i, np.where(m, v, 0), True),
        "fi",
        op=torch.ops.aten._unsafe_masked_index_put_accumulate,
        generic_errors=False,
    ),
]


def _plain(t) -> Maker:
    """The Maker without scaling, for samples that name their sizes."""
    t.scale = 1
    return t


def _check_nonzero_static(sample, result) -> None:
    size = sample.kwargs["size"]
    assert result.shape == (size, sample.input.dim())
    found = torch.nonzero(sample.input)[:size]
    assert torch.equal(result[: len(found)], found)
    assert bool((result[len(found) :] == sample.kwargs.get("fill_value", -1)).all())
