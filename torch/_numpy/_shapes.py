"""Functions that move, join, cut and repeat elements without computing with them."""

from __future__ import annotations

import torch
from torch._numpy import _dtypes, _ufuncs
from torch._numpy._util import (
    cast,
    normalize_axis_index,
    normalize_axis_tuple,
    on_tensors,
    promoted,
    to_array,
    to_tensor,
    typecast,
)


@on_tensors("a")
def reshape(a, newshape, order="C") -> torch.Tensor:
    if order != "C":
        raise NotImplementedError("'order' parameter is not supported.")
    return a.reshape(newshape)


@on_tensors("a")
def ravel(a, order="C") -> torch.Tensor:
    if order != "C":
        raise NotImplementedError("'order' parameter is not supported.")
    return a.reshape(-1)


@on_tensors("a")
def copy(a, order="K", subok=False) -> torch.Tensor:
    return a.clone()


@on_tensors("a")
def transpose(a, axes=None) -> torch.Tensor:
    if axes in (None, ()):
        return a.permute(tuple(reversed(range(a.dim()))))
    axes = tuple(axes)
    if len(axes) != a.dim():
        raise ValueError("axes don't match array")
    return a.permute(normalize_axis_tuple(axes, a.dim()))


@on_tensors("a")
def swapaxes(a, axis1, axis2) -> torch.Tensor:
    return a.transpose(normalize_axis_index(axis1, a.dim()), normalize_axis_index(axis2, a.dim()))


@on_tensors("a")
def moveaxis(a, source, destination) -> torch.Tensor:
    source = normalize_axis_tuple(source, a.dim(), "source")
    destination = normalize_axis_tuple(destination, a.dim(), "destination")
    if len(source) != len(destination):
        raise ValueError(
            "`source` and `destination` arguments must have the same number of elements"
        )
    return a.movedim(source, destination)


@on_tensors("a")
def rollaxis(a, axis, start=0) -> torch.Tensor:
    n = a.dim()
    axis = normalize_axis_index(axis, n)
    start = start + n if start < 0 else start
    if not 0 <= start < n + 1:
        from torch._numpy._util import AxisError

        raise AxisError(f"'start' arg requires {-n} <= start < {n + 1}, but {start} was passed in")
    if axis < start:
        start -= 1
    return a.movedim(axis, start)


@on_tensors("a")
def squeeze(a, axis=None) -> torch.Tensor:
    if axis is None:
        return a.squeeze()
    axes = normalize_axis_tuple(axis, a.dim(), "axis")
    if any(a.shape[d] != 1 for d in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return a.squeeze(axes) if axes else a


@on_tensors("a")
def expand_dims(a, axis) -> torch.Tensor:
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = normalize_axis_tuple(axis, a.dim() + count)
    sizes = iter(a.shape)
    return a.reshape([1 if d in axes else next(sizes) for d in range(a.dim() + count)])


@on_tensors("m")
def flip(m, axis=None) -> torch.Tensor:
    axes = range(m.dim()) if axis is None else normalize_axis_tuple(axis, m.dim())
    return torch.flip(m, tuple(axes))


@on_tensors("m")
def flipud(m) -> torch.Tensor:
    return torch.flipud(m)


@on_tensors("m")
def fliplr(m) -> torch.Tensor:
    return torch.fliplr(m)


@on_tensors("m")
def rot90(m, k=1, axes=(0, 1)) -> torch.Tensor:
    first, second = normalize_axis_tuple(axes, m.dim(), allow_duplicate=True)
    if first == second:
        raise ValueError("Axes must be different")
    return torch.rot90(m, k, (first, second))


@on_tensors("a")
def roll(a, shift, axis=None) -> torch.Tensor:
    if axis is None:
        return torch.roll(a.reshape(-1), int(shift)).reshape(a.shape)
    axes = normalize_axis_tuple(axis, a.dim(), allow_duplicate=True)
    steps = to_tensor(shift).expand(len(axes)).tolist()
    return torch.roll(a, tuple(steps), axes)


@on_tensors("a")
def repeat(a, repeats, axis=None) -> torch.Tensor:
    if axis is None:
        a, axis = a.reshape(-1), 0
    return torch.repeat_interleave(a, to_tensor(repeats), normalize_axis_index(axis, a.dim()))


@on_tensors("A")
def tile(A, reps) -> torch.Tensor:
    return torch.tile(A, (reps,) if isinstance(reps, int) else tuple(reps))


@on_tensors("a")
def resize(a, new_shape=None) -> torch.Tensor:
    """The elements again and again until the shape is full."""
    shape = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape or ())
    if any(s < 0 for s in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    total = 1
    for s in shape:
        total *= s
    flat = a.reshape(-1)
    if total == 0 or flat.numel() == 0:
        return a.new_zeros(shape)
    return flat.repeat(-(-total // flat.numel()))[:total].reshape(shape)


# ---- joining -------------------------------------------------------------------------------------
def _joined(tensors: list[torch.Tensor], dtype: torch.dtype | None, casting: str) -> list:
    if not tensors:
        raise ValueError("need at least one array to concatenate")
    if dtype is None:
        return promoted(tensors)
    return [typecast(t, dtype, casting) for t in tensors]


def _kind_of_out(out: object, dtype: object, name: str) -> object:
    """The dtype that arrays are joined in: that of `out`, or the one asked for."""
    if out is not None and dtype is not None:
        raise TypeError(
            f"{name}() only takes `out` or `dtype` as an argument, but both were provided."
        )
    return dtype if out is None else out.dtype  # type: ignore[attr-defined]


def concatenate(
    ar_tuple: object,
    axis: int | None = 0,
    out: object = None,
    dtype: object = None,
    casting: str = "same_kind",
) -> object:
    kind = _kind_of_out(out, dtype, "concatenate")
    return _concatenated(ar_tuple, axis, out, kind, casting)


@on_tensors(many=("ar_tuple",))
def _concatenated(ar_tuple, axis, out, dtype, casting) -> torch.Tensor:
    parts = _joined(ar_tuple, dtype, casting)
    if axis is None:
        return torch.cat([p.reshape(-1) for p in parts])
    if any(p.dim() == 0 for p in parts):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    if any(p.dim() != parts[0].dim() for p in parts):
        raise ValueError("all the input arrays must have the same number of dimensions")
    axis = normalize_axis_index(axis, parts[0].dim())
    try:
        return torch.cat(parts, axis)
    except RuntimeError as error:
        raise ValueError(
            "all the input array dimensions except for the concatenation axis must match exactly"
        ) from error


def stack(
    arrays: object,
    axis: int = 0,
    out: object = None,
    *,
    dtype: object = None,
    casting: str = "same_kind",
) -> object:
    return _stacked(arrays, axis, out, _kind_of_out(out, dtype, "stack"), casting)


@on_tensors(many=("arrays",))
def _stacked(arrays, axis, out, dtype, casting) -> torch.Tensor:
    if not arrays:
        raise ValueError("need at least one array to stack")
    parts = _joined(arrays, dtype, casting)
    if any(p.shape != parts[0].shape for p in parts):
        raise ValueError("all input arrays must have the same shape")
    return torch.stack(parts, normalize_axis_index(axis, parts[0].dim() + 1))


@on_tensors(many=("tup",))
def vstack(tup, *, dtype=None, casting="same_kind") -> torch.Tensor:
    return _cat(_joined(tup, dtype, casting), torch.atleast_2d, 0)


row_stack = vstack


@on_tensors(many=("tup",))
def hstack(tup, *, dtype=None, casting="same_kind") -> torch.Tensor:
    parts = _joined(tup, dtype, casting)
    return _cat(parts, torch.atleast_1d, 0 if parts[0].dim() < 2 else 1)


@on_tensors(many=("tup",))
def dstack(tup, *, dtype=None, casting="same_kind") -> torch.Tensor:
    return _cat(_joined(tup, dtype, casting), _three, 2)


@on_tensors(many=("tup",))
def column_stack(tup, *, dtype=None, casting="same_kind") -> torch.Tensor:
    parts = _joined(tup, dtype, casting)
    return _cat(parts, lambda t: t.reshape(-1, 1) if t.dim() < 2 else t, 1)


def _cat(parts: list, shaped: object, axis: int) -> torch.Tensor:
    try:
        return torch.cat([shaped(p) for p in parts], axis)  # type: ignore[operator]
    except RuntimeError as error:
        raise ValueError(str(error)) from error


def _three(t: torch.Tensor) -> torch.Tensor:
    return torch.atleast_3d(t)


@on_tensors("arr", "values")
def append(arr, values, axis=None) -> torch.Tensor:
    if axis is None:
        arr, values, axis = arr.reshape(-1), values.reshape(-1), 0
    return torch.cat(promoted([arr, values]), axis)


@on_tensors(many=("arys",))
def atleast_1d(*arys) -> object:
    found = [torch.atleast_1d(a) for a in arys]
    return found[0] if len(found) == 1 else found


@on_tensors(many=("arys",))
def atleast_2d(*arys) -> object:
    found = [torch.atleast_2d(a) for a in arys]
    return found[0] if len(found) == 1 else found


@on_tensors(many=("arys",))
def atleast_3d(*arys) -> object:
    found = [torch.atleast_3d(a) for a in arys]
    return found[0] if len(found) == 1 else found


# ---- cutting -------------------------------------------------------------------------------------
def _cut(a: torch.Tensor, sections: object, axis: int, strict: bool) -> tuple:
    axis = normalize_axis_index(axis, a.dim())
    if isinstance(sections, int):
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.")
        if strict and a.shape[axis] % sections != 0:
            raise ValueError("array split does not result in an equal division")
        return torch.tensor_split(a, sections, axis)
    return torch.tensor_split(a, tuple(to_tensor(sections).tolist()), axis)


@on_tensors("ary")
def array_split(ary, indices_or_sections, axis=0) -> list:
    return list(_cut(ary, indices_or_sections, axis, False))


@on_tensors("ary")
def split(ary, indices_or_sections, axis=0) -> list:
    return list(_cut(ary, indices_or_sections, axis, True))


@on_tensors("ary")
def hsplit(ary, indices_or_sections) -> list:
    if ary.dim() == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return list(_cut(ary, indices_or_sections, 1 if ary.dim() > 1 else 0, True))


@on_tensors("ary")
def vsplit(ary, indices_or_sections) -> list:
    if ary.dim() < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return list(_cut(ary, indices_or_sections, 0, True))


@on_tensors("ary")
def dsplit(ary, indices_or_sections) -> list:
    if ary.dim() < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return list(_cut(ary, indices_or_sections, 2, True))


# ---- broadcasting --------------------------------------------------------------------------------
@on_tensors("array")
def broadcast_to(array, shape, subok=False) -> torch.Tensor:
    return array.broadcast_to((shape,) if isinstance(shape, int) else tuple(shape))


@on_tensors(many=("args",))
def broadcast_arrays(*args) -> list:
    return list(torch.broadcast_tensors(*args))


def broadcast_shapes(*args: object) -> tuple[int, ...]:
    return tuple(torch.broadcast_shapes(*args))


# ---- diagonals -----------------------------------------------------------------------------------
@on_tensors("a")
def diagonal(a, offset=0, axis1=0, axis2=1) -> torch.Tensor:
    first, second = (normalize_axis_index(d, a.dim()) for d in (axis1, axis2))
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    return torch.diagonal(a, offset, first, second)


@on_tensors("v")
def diag(v, k=0) -> torch.Tensor:
    if v.dim() not in (1, 2):
        raise ValueError("Input must be 1- or 2-d.")
    return torch.diag(v, k)


@on_tensors("v")
def diagflat(v, k=0) -> torch.Tensor:
    return torch.diagflat(v, k)


def fill_diagonal(a: object, val: object, wrap: bool = False) -> object:
    """Writes `val` to the diagonal of an array in place."""
    target = to_tensor(a)
    if target.dim() < 2:
        raise ValueError("array must be at least 2-d")
    value = to_tensor(val).to(target.dtype)
    if value.numel() == 0:
        return a
    if target.dim() == 2:
        rows, columns = target.shape
        last = rows * columns if wrap else min(rows, columns) * columns
        places = torch.arange(0, last, columns + 1)
    else:
        if any(s != target.shape[0] for s in target.shape):
            raise ValueError("All dimensions of input must be of equal length")
        step = sum(target.shape[0] ** d for d in range(target.dim()))
        places = torch.arange(0, target.numel(), step)
    count = places.numel()
    flat = value.reshape(-1)
    values = flat.repeat(-(-count // flat.numel()))[:count]
    index = torch.unravel_index(places, tuple(target.shape))
    target[index] = values
    return to_array(target)


# ---- shape facts ---------------------------------------------------------------------------------
@on_tensors("a")
def shape(a) -> tuple:
    return tuple(a.shape)


@on_tensors("a")
def ndim(a) -> int:
    return a.dim()


@on_tensors("a")
def size(a, axis=None) -> int:
    return a.numel() if axis is None else a.shape[axis]


# ---- picking and writing -------------------------------------------------------------------------
def _wrapped(index: torch.Tensor, count: int, mode: str) -> torch.Tensor:
    if mode == "wrap":
        return index % max(count, 1)
    if mode == "clip":
        return index.clamp(0, max(count - 1, 0))
    if mode != "raise":
        raise NotImplementedError(f"mode={mode!r}")
    if index.numel() and (int(index.max()) >= count or int(index.min()) < -count):
        raise IndexError(f"index out of bounds for axis of size {count}")
    return torch.where(index < 0, index + count, index)


@on_tensors("a", "indices")
def take(a, indices, axis=None, out=None, mode="raise") -> torch.Tensor:
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = normalize_axis_index(axis, a.dim())
    index = _wrapped(indices.to(torch.int64), a.shape[axis], mode)
    picked = torch.index_select(a, axis, index.reshape(-1))
    return picked.reshape(a.shape[:axis] + index.shape + a.shape[axis + 1 :])


def put(a: object, indices: object, values: object, mode: str = "raise") -> None:
    """Writes values to places of the flattened array, in place."""
    target, new = to_tensor(a), to_tensor(values).to(to_tensor(a).dtype).reshape(-1)
    index = _wrapped(to_tensor(indices).to(torch.int64).reshape(-1), target.numel(), mode)
    if index.numel() and new.numel():
        new = new.repeat(-(-index.numel() // new.numel()))[: index.numel()]
        target[torch.unravel_index(index, tuple(target.shape))] = new


@on_tensors("arr", "indices")
def take_along_axis(arr, indices, axis) -> torch.Tensor:
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    axis = normalize_axis_index(axis, arr.dim())
    if indices.dim() != arr.dim():
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    if _dtypes.category(indices.dtype) != 1:
        raise IndexError("`indices` must be an integer array")
    return torch.take_along_dim(arr, indices.to(torch.int64), axis)


def put_along_axis(arr: object, indices: object, values: object, axis: int | None) -> None:
    """Writes values to places along an axis, in place."""
    target, index = to_tensor(arr), to_tensor(indices).to(torch.int64)
    if axis is None:
        target, axis = target.view(-1), 0
    axis = normalize_axis_index(axis, target.dim())
    new = to_tensor(values).to(target.dtype)
    shape = list(target.shape)
    shape[axis] = index.shape[axis]
    target.scatter_(axis, index.broadcast_to(shape), new.broadcast_to(shape))


@on_tensors("a", many=("choices",))
def choose(a, choices, out=None, mode="raise") -> torch.Tensor:
    parts = promoted(choices)
    parts = list(torch.broadcast_tensors(a, *parts))
    index = _wrapped(parts[0].to(torch.int64), len(parts) - 1, mode)
    return torch.gather(torch.stack(parts[1:]), 0, index.unsqueeze(0)).squeeze(0)


def copyto(dst: object, src: object, casting: str = "same_kind", where: object = True) -> None:
    """Writes an array to another in place."""
    if where is not True:
        raise NotImplementedError("'where' parameter is not supported.")
    target = to_tensor(dst)
    target.copy_(typecast(to_tensor(src), target.dtype, casting))


@on_tensors("condition")
def where(condition, x=None, y=None) -> object:
    if (x is None) != (y is None):
        raise ValueError("either both or neither of x and y should be given")
    truth = condition != 0 if condition.dtype != torch.bool else condition
    if x is None:
        return torch.where(truth)
    # Numbers of Python are weak here as in operators.
    x, y = _ufuncs.operands(x, y)
    return torch.where(truth, x, y)


@on_tensors("a")
def nonzero(a) -> tuple:
    if a.dim() == 0:
        a = a.reshape(1)
    return torch.nonzero(a, as_tuple=True)


@on_tensors("a")
def flatnonzero(a) -> torch.Tensor:
    return torch.nonzero(a.reshape(-1), as_tuple=True)[0]


@on_tensors("a")
def argwhere(a) -> torch.Tensor:
    return torch.argwhere(a)


@on_tensors("array")
def pad(array, pad_width, mode="constant", **kwargs) -> torch.Tensor:
    if mode != "constant":
        raise NotImplementedError(f"pad with mode {mode!r}")
    widths = to_tensor(pad_width).broadcast_to((array.dim(), 2)).tolist()
    value = kwargs.get("constant_values", 0)
    kind = _dtypes.dtype(array.dtype).type
    filler = cast(to_tensor(value), kind.torch_dtype)
    flat = [int(w) for pair in reversed(widths) for w in pair]
    if filler.numel() == 1:
        return torch.nn.functional.pad(array, flat, value=filler.item())
    ends = filler.broadcast_to((array.dim(), 2))
    for d, (before, after) in enumerate(widths):
        sizes = list(array.shape)
        parts = []
        for count, end in ((before, ends[d, 0]), (after, ends[d, 1])):
            sizes[d] = int(count)
            parts.append(end.expand(sizes))
        array = torch.cat([parts[0], array, parts[1]], d)
    return array
