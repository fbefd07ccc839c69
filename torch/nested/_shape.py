"""Views and rearrangements of jagged nested tensors.

The values have every dimension but the batch; a call on another than the ragged dimension is the
same call on the values with the number less one. The batch dimension stays in front."""

from __future__ import annotations

import torch
from torch.nested._jagged import NestedTensor, from_components
from torch.nested._registry import implements, name_of, not_implemented, wrap_dim
from torch.nested._structure import is_ragged_size


def _inner(func, input, dim, ndim=None) -> int:
    """The dimension of the values; raises for the batch and the ragged one."""
    dim = wrap_dim(dim, ndim or input.ndim)
    if dim == 0:
        raise RuntimeError(f"{name_of(func)}(): not supported for NestedTensor on dim=0")
    if dim == input._ragged_idx and ndim is None:
        raise RuntimeError(f"{name_of(func)}(): not supported for NestedTensor on ragged dim")
    return dim - 1


@implements("transpose", "swapaxes", "swapdims", "transpose_copy")
def transpose(func, input, dim0, dim1):
    """Two dimensions, neither the batch, exchanged."""
    a, b = (wrap_dim(d, input.ndim) for d in (dim0, dim1))
    if a == b:
        return input
    if 0 in (a, b):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    ragged_idx = {a: b, b: a}.get(input._ragged_idx, input._ragged_idx)
    return input.like(input._values.transpose(a - 1, b - 1), ragged_idx)


@implements("mT", "mH", "adjoint")
def matrix_transpose(func, input) -> NestedTensor:
    """The last two dimensions exchanged."""
    found = transpose(func, input, -2, -1)
    conjugate = (func if isinstance(func, str) else name_of(func)) != "mT"
    return found.conj() if conjugate and input.is_complex() else found


@implements("permute")
def permute(func, input, *dims, **kwargs) -> NestedTensor:
    """The dimensions in another order."""
    dims = kwargs.get("dims", dims[0] if len(dims) == 1 else dims)
    order = [wrap_dim(d, input.ndim) for d in dims]
    if sorted(order) != list(range(input.ndim)):
        raise RuntimeError(f"permute(): {tuple(dims)} is no order of {input.ndim} dimensions")
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    values = input._values.permute([d - 1 for d in order[1:]])
    return input.like(values, order.index(input._ragged_idx))


@implements("T", "H", "t", "numpy_T")
def reversed_dims(func, input):
    """All dimensions reversed, which moves the batch."""
    return permute(func, input, *reversed(range(input.ndim)))


@implements("movedim", "moveaxis")
def movedim(func, input, source, destination) -> NestedTensor:
    """Dimensions moved to other places."""
    one = isinstance(source, int)
    source = [wrap_dim(d, input.ndim) for d in ((source,) if one else source)]
    target = [wrap_dim(d, input.ndim) for d in ((destination,) if one else destination)]
    if len(source) != len(target):
        raise RuntimeError("movedim: source and destination must have the same number of items")
    order = [d for d in range(input.ndim) if d not in source]
    for to, dim in sorted(zip(target, source, strict=True)):
        order.insert(to, dim)
    return permute(func, input, *order)


@implements("unsqueeze")
def unsqueeze(func, input, dim) -> NestedTensor:
    """A new dimension of size 1."""
    dim = _inner(func, input, dim, input.ndim + 1)
    ragged_idx = input._ragged_idx + (dim < input._ragged_idx)
    return input.like(input._values.unsqueeze(dim), ragged_idx)


@implements("squeeze")
def squeeze(func, input, dim=None) -> NestedTensor:
    """Dimensions of size 1 taken out."""
    ragged = input._ragged_dim
    if dim is None:
        sizes = enumerate(input._values.shape)
        inner = [d for d, size in sizes if size == 1 and d != ragged]
    else:
        one = isinstance(dim, int)
        inner = sorted(_inner(func, input, d) for d in ((dim,) if one else dim))
    gone = [d for d in inner if input._values.size(d) == 1]
    return input.like(
        input._values.squeeze(gone), input._ragged_idx - sum(d < ragged for d in gone)
    )


# ---- shapes with the ragged symbol in them -------------------------------------------------------


def _inner_shape(func, input, shape) -> tuple[list[int], int]:
    """The shape for the values, and where the ragged dimension is in the new shape."""
    shape = list(shape)
    where = [i for i, s in enumerate(shape) if is_ragged_size(s)]
    if where and shape[where[0]] != input._structure.symbol:
        raise _view_error(func, input, shape)
    if not where:
        # -1 is the ragged size unless another dimension needs it.
        rest = 1
        for size in input._values.shape[: input._ragged_dim]:
            rest *= size
        where = _ragged_place(shape, input, rest)
    if len(where) != 1 or not shape or where[0] == 0:
        raise _view_error(func, input, shape)
    if shape[0] not in (-1, input._structure.batch):
        raise _view_error(func, input, shape)
    sizes = shape[1:]
    sizes[where[0] - 1] = input._total
    if sizes.count(-1) > 1:
        raise _view_error(func, input, shape)
    return sizes, where[0]


def _ragged_place(shape, input, before) -> list[int]:
    """Places of a -1 before which the sizes multiply to those before the ragged dimension."""
    found, product = [], 1
    for place, size in enumerate(shape):
        if place and size == -1 and product == before:
            found.append(place)
        if place:
            product *= size
    return found[:1]


def _view_error(func, input, shape):
    return RuntimeError(
        f"{name_of(func)}(): cannot view shape {tuple(input.shape)} as {list(shape)}"
    )


def _sizes(args, kwargs, keyword="size"):
    given = kwargs.get(keyword, kwargs.get("shape", args))
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = given[0]
    return given


@implements("view", "reshape", "_unsafe_view")
def view(func, input, *args, **kwargs):
    """Other sizes around an unchanged ragged dimension."""
    given = _sizes(args, kwargs)
    if len(given) == 1 and isinstance(given[0], torch.dtype):
        return input.like(input._values.view(given[0]))
    sizes, ragged_idx = _inner_shape(func, input, given)
    if _before(input._values.shape, input._ragged_dim) != _before(sizes, ragged_idx - 1):
        raise _view_error(func, input, given)
    reshaped = getattr(input._values, "reshape" if name_of(func) == "reshape" else "view")
    return input.like(reshaped(sizes), ragged_idx)


def _before(sizes, dim) -> int:
    product = 1
    for size in sizes[:dim]:
        product *= size
    return product


@implements("view_as", "reshape_as")
def view_as(func, input, other) -> NestedTensor:
    """The sizes of another tensor."""
    return input.view(other.shape) if name_of(func) == "view_as" else input.reshape(other.shape)


@implements("expand")
def expand(func, input, *args, **kwargs) -> NestedTensor:
    """Sizes of 1 repeated without a copy."""
    given = list(_sizes(args, kwargs))
    ragged_idx = input._ragged_idx
    fits = len(given) == input.ndim and given[0] in (-1, input._structure.batch)
    if not fits or not (given[ragged_idx] == input._structure.symbol or given[ragged_idx] == -1):
        raise RuntimeError(f"expand(): cannot expand shape {tuple(input.shape)} to {given}")
    sizes = given[1:]
    sizes[ragged_idx - 1] = -1
    return input.like(input._values.expand(sizes))


@implements("expand_as")
def expand_as(func, input, other):
    """The sizes of another tensor; a plain one becomes nested."""
    if isinstance(input, NestedTensor):
        return input.expand(other.shape)
    blank = torch.zeros_like(other, dtype=input.dtype)
    return blank + input


@implements("flatten")
def flatten(func, input, start_dim=0, end_dim=-1):
    """Neighbouring dimensions as one; the ragged one is not among them."""
    start, end = (wrap_dim(d, input.ndim) for d in (start_dim, end_dim))
    if start == end:
        return input
    if start == 0:
        raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
    if start <= input._ragged_idx <= end:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    ragged_idx = input._ragged_idx - (end - start if end < input._ragged_idx else 0)
    return input.like(input._values.flatten(start - 1, end - 1), ragged_idx)


@implements("unflatten")
def unflatten(func, input, dim, sizes) -> NestedTensor:
    """One dimension as several."""
    inner = _inner(func, input, dim)
    ragged_idx = input._ragged_idx + (len(sizes) - 1 if inner < input._ragged_dim else 0)
    return input.like(input._values.unflatten(inner, sizes), ragged_idx)


@implements("repeat", "tile")
def repeat(func, input, *args, **kwargs):
    """Copies side by side, in dimensions that are neither the batch nor ragged."""
    times = list(_sizes(args, kwargs, "repeats"))
    if len(times) != input.ndim or times[0] != 1 or times[input._ragged_idx] != 1:
        raise not_implemented(f"torch.{name_of(func)} by {times}", input)
    return input.like(input._values.repeat(times[1:]))


@implements("repeat_interleave")
def repeat_interleave(func, input, repeats, dim=None, **kwargs) -> NestedTensor:
    """Elements repeated along a dimension."""
    if dim is None:
        raise not_implemented("torch.repeat_interleave without a dimension", input)
    return input.like(func(input._values, repeats, dim=_inner(func, input, dim), **kwargs))


# ---- parts ---------------------------------------------------------------------------------------


@implements("select", "select_copy")
def select(func, input, dim, index):
    """A component, or one place of another dimension."""
    if wrap_dim(dim, input.ndim) == 0:
        return _component(input, index)
    inner = _inner(func, input, dim)
    ragged_idx = input._ragged_idx - (inner < input._ragged_dim)
    return input.like(input._values.select(inner, index), ragged_idx)


def _component(input, index) -> torch.Tensor:
    batch = input._structure.batch
    if not -batch <= index < batch:
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {batch}")
    start, length = input._structure.bounds[index]
    return input._values.narrow(input._ragged_dim, start, length)


@implements("narrow", "slice", "narrow_copy")
def narrow(func, input, dim, *args, **kwargs) -> NestedTensor:
    """A range of a dimension."""
    return input.like(func(input._values, _inner(func, input, dim), *args, **kwargs))


@implements("chunk", "split", "split_with_sizes", "tensor_split")
def split(func, input, sections, dim=0, **kwargs) -> tuple[NestedTensor, ...]:
    """Pieces along a dimension; whole components along the batch."""
    where = wrap_dim(kwargs.pop("dim", dim), input.ndim)
    if where == 0 and name_of(func) == "chunk":
        parts = torch.arange(input._structure.batch).chunk(sections)
        return tuple(_pick(input, part.tolist()) for part in parts)
    inner = _inner(func, input, where)
    return tuple(input.like(part) for part in func(input._values, sections, inner))


def _pick(input, indices) -> NestedTensor:
    """Some of the components as a nested tensor."""
    parts = input.unbind()
    return from_components([parts[i] for i in indices], input._ragged_idx)


@implements("unbind", "unbind_copy")
def unbind(func, input, dim=0):
    """The components."""
    return input.unbind(dim)


@implements("index_select")
def index_select(func, input, dim, index):
    """Places of a dimension by number; components along the batch."""
    if wrap_dim(dim, input.ndim) == 0:
        return _pick(input, index.tolist())
    return input.like(input._values.index_select(_inner(func, input, dim), index))


@implements("gather", "take_along_dim")
def gather(func, input, dim, index, **kwargs):
    """Elements by their number along a dimension that is not ragged."""
    if (
        not isinstance(index, NestedTensor)
        or index.shape[: input._ragged_idx + 1] != (input.shape[: input._ragged_idx + 1])
    ):
        raise RuntimeError(f"{name_of(func)}(): the index must be nested like the input")
    if name_of(func) == "take_along_dim":
        return input.like(torch.take_along_dim(input._values, index._values, dim))
    return input.like(func(input._values, _inner(func, input, dim), index._values, **kwargs))


@implements("cat", "concat", "concatenate")
def cat(func, tensors, dim=0, **kwargs) -> NestedTensor:
    """Nested tensors of one structure side by side; along the batch, all components."""
    lead = next(t for t in tensors if t.is_nested)
    if wrap_dim(dim, lead.ndim) == 0:
        if not all(t.is_nested and t._ragged_idx == lead._ragged_idx for t in tensors):
            raise RuntimeError("cat(): along the batch all tensors must be nested alike")
        return from_components([c for t in tensors for c in t.unbind()], lead._ragged_idx)
    inner = _inner(func, lead, dim)
    return lead.like(torch.cat(_same_structure(func, lead, tensors), inner))


@implements("stack")
def stack(func, tensors, dim=0) -> NestedTensor:
    """Nested tensors of one structure along a new dimension."""
    lead = tensors[0]
    dim = wrap_dim(dim, lead.ndim + 1)
    if dim in (0, lead._ragged_idx):
        where = "dim=0" if dim == 0 else "ragged dim"
        raise RuntimeError(f"stack(): not supported for NestedTensor on {where}")
    values = torch.stack(_same_structure(func, lead, tensors), dim - 1)
    return lead.like(values, lead._ragged_idx + (dim < lead._ragged_idx))


def _same_structure(func, lead, tensors) -> list[torch.Tensor]:
    found = []
    for t in tensors:
        same = t.is_nested and t._ragged_idx == lead._ragged_idx and t.ndim == lead.ndim
        if not same or t._structure.bounds != lead._structure.bounds:
            raise RuntimeError(
                f"{name_of(func)}(): expected nested tensors of the same structure, got shapes "
                f"{tuple(lead.shape)} and {tuple(t.shape)}"
            )
        found.append(t._values)
    return found


# ---- indexing ------------------------------------------------------------------------------------


def _whole_key(key, ndim):
    """The key as a list without an ellipsis, one item for every dimension and new dimension."""
    key = list(key) if isinstance(key, tuple) else [key]
    used = sum(item is not None and item is not Ellipsis for item in key)
    if used > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    ellipsis = next((i for i, item in enumerate(key) if item is Ellipsis), len(key))
    return key[:ellipsis] + [slice(None)] * (ndim - used) + key[ellipsis + 1 :]


def _is_all(item) -> bool:
    return isinstance(item, slice) and item == slice(None)


@implements("__getitem__")
def getitem(func, input, key) -> torch.Tensor | NestedTensor:
    """Components by number, a range of them, and any indexing of the other dimensions."""
    if not isinstance(input, NestedTensor):
        raise NotImplementedError("indexing a plain tensor by a nested one")
    key = _whole_key(key, input.ndim)
    if any(isinstance(item, NestedTensor) for item in key):
        raise not_implemented("indexing by a nested tensor; use masked_select()", input)
    first, rest = key[0], key[1:]
    if first is None:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    if isinstance(first, torch.Tensor) and first.dim() == 0 and first.dtype != torch.bool:
        first = int(first)
    if isinstance(first, int) and not isinstance(first, bool):
        component = _component(input, first)
        return component if all(map(_is_all, rest)) else component[tuple(rest)]
    if not _is_all(first):
        numbers = torch.arange(input._structure.batch)[first]
        if numbers.dim() != 1:
            raise not_implemented("indexing the batch by an index of several dimensions", input)
        input = _pick(input, numbers.tolist())
    return input if all(map(_is_all, rest)) else _index_values(func, input, rest)


def _index_values(func, input, key) -> NestedTensor:
    """values[key], with the ragged dimension followed to its new place."""
    dim, ragged_dim, advanced = 0, None, 0
    new_dim = 0
    for item in key:
        if item is None:
            new_dim += 1
            continue
        if dim == input._ragged_dim:
            if not _is_all(item):
                what = "slice" if isinstance(item, slice) else "select"
                raise RuntimeError(f"{what}(): not supported for NestedTensor on ragged dim")
            ragged_dim = new_dim
        advanced += isinstance(item, (torch.Tensor, list))
        dim += 1
        new_dim += not isinstance(item, int)
    odd = [i for i in key if isinstance(i, torch.Tensor) and (i.dim() != 1 or i.is_nested)]
    if odd or advanced > 1:
        raise not_implemented("indexing by several or multi-dimensional indices", input)
    return input.like(input._values[tuple(key)], ragged_dim + 1)


@implements("__setitem__")
def setitem(func, input, key, value) -> None:
    """Overwrites what the key selects."""
    part = getitem(func, input, key)
    if not isinstance(value, torch.Tensor):
        part.fill_(value)
    elif part.is_nested and not value.is_nested:
        part.copy_(part.detach() * 0 + value)
    else:
        part.copy_(value)


@implements("index_put", "index_put_")
def index_put(func, input, indices, values, accumulate=False):
    """Writes single elements: an index per dimension, places within the component in the ragged
    one."""
    if len(indices) <= input._ragged_idx or input._ragged_idx != 1:
        raise not_implemented("index_put with fewer indices than the ragged dimension", input)
    starts = input._structure.offsets[:-1].to(torch.int64)[indices[0]]
    inside = (indices[1] < input._structure.sizes_tensor()[indices[0]]).all()
    if not bool(inside) or bool((indices[1] < 0).any()):
        raise IndexError("index_put(): an index lies outside its component")
    rows = (starts + indices[1], *indices[2:])
    result = func(input._values, rows, values, accumulate)
    return input if name_of(func) == "index_put_" else input.like(result)
