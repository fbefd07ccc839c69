"""vmap: a function of one sample applied to a batch of them at once.

Inputs are wrapped so that they hide their batch dimension, the function runs once, and its outputs
are unwrapped. How operators treat wrapped tensors is C++ (aten/src/ATen/functorch).
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import Any

import torch
from torch._C import _functorch as _F
from torch.utils._pytree import (
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_map_,
    tree_unflatten,
)

__all__ = ["chunk_vmap", "in_dims_t", "out_dims_t", "restore_vmap", "vmap"]

Tensor = torch.Tensor
_add_batch_dim = _F._add_batch_dim
_remove_batch_dim = _F._remove_batch_dim

in_dims_t = int | tuple
out_dims_t = int | tuple


def _get_name(func):
    if hasattr(func, "__name__"):
        return func.__name__
    if isinstance(func, functools.partial):
        return f"functools.partial({_get_name(func.func)}, ...)"
    return repr(func)


def _check_arguments(randomness, chunk_size) -> None:
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if chunk_size is not None and not (chunk_size == "auto" or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")


# ---- inputs --------------------------------------------------------------------------------


def _flat_in_dims(func, in_dims, args, spec):
    """One batch dimension or None for each leaf of the arguments."""
    call = f"vmap({_get_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)) or isinstance(in_dims, bool):
        raise ValueError(
            f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_get_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or "
            "you are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    dims = _broadcast_to_and_flatten(in_dims, spec, is_leaf=lambda d: d is None)
    if dims is None:
        raise ValueError(
            f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has "
            f"structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    return dims, call


def _checked_dim(call, leaf, dim):
    if dim is None:
        return None
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise ValueError(
            f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension "
            "or None."
        )
    if not isinstance(leaf, torch.Tensor):
        raise ValueError(
            f"{call}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We "
            "cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    if not -leaf.dim() <= dim < leaf.dim():
        raise ValueError(
            f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality"
            f" {leaf.dim()} so expected in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
        )
    return dim % leaf.dim()


def _process_batched_inputs(in_dims, args, func):
    """(batch size, the batch dimensions of the flat arguments, these, their structure). This and
    the two below may be replaced by libraries whose containers have a batch dimension of their
    own, so they are always called by their global names."""
    flat, spec = tree_flatten(args)
    dims, call = _flat_in_dims(func, in_dims, args, spec)
    dims = [_checked_dim(call, leaf, dim) for leaf, dim in zip(flat, dims, strict=True)]
    sizes = [leaf.size(d) for leaf, d in zip(flat, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: at least one input must have a batch dimension, got in_dims=None")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0], dims, flat, spec


def _create_batched_inputs(dims, flat, level, spec):
    wrapped = [
        leaf if dim is None else _F._add_batch_dim(leaf, dim, level)
        for leaf, dim in zip(flat, dims, strict=True)
    ]
    return tree_unflatten(wrapped, spec)


# ---- outputs -------------------------------------------------------------------------------


def _flat_out_dims(func, out_dims, spec):
    whole = f"vmap({_get_name(func)}, ..., out_dims={out_dims})(<inputs>)"
    if isinstance(out_dims, int) and not isinstance(out_dims, bool):
        return [out_dims] * spec.num_leaves
    if isinstance(out_dims, tuple) and len(out_dims) == 1 and spec.is_leaf():
        out_dims = out_dims[0]
    dims = _broadcast_to_and_flatten(out_dims, spec, is_leaf=lambda d: d is None)
    if dims is None:
        raise ValueError(
            f"{whole}: out_dims is not compatible with the structure of `outputs`. out_dims has "
            f"structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return dims


def _maybe_remove_batch_dim(name, output, level, size, dim):
    if isinstance(output, torch.Tensor):
        if dim is None:
            if _F.is_batchedtensor(output) and _F.maybe_get_level(output) == level:
                raise ValueError(
                    f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is "
                    "None"
                )
            return output
        return _F._remove_batch_dim(output, level, size, dim)
    if dim is None:
        return output
    raise ValueError(
        f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)}. Did you "
        "mean to set out_dims= to None for output?"
    )


def _unwrap_batched(outputs, out_dims, level, size, func):
    flat, spec = tree_flatten(outputs)
    for output in flat:
        if not isinstance(output, torch.Tensor) and out_dims == 0:
            _maybe_remove_batch_dim(_get_name(func), output, level, size, 0)
    dims = _flat_out_dims(func, out_dims, spec)
    name = _get_name(func)
    pairs = zip(flat, dims, strict=True)
    return tree_unflatten(
        [_maybe_remove_batch_dim(name, output, level, size, dim) for output, dim in pairs], spec
    )


# ---- the transform -------------------------------------------------------------------------


@contextmanager
def vmap_increment_nesting(batch_size, randomness) -> Any:
    """A vmap level for the duration of a block; gives its number."""
    level = _F._vmap_increment_nesting(batch_size, randomness)
    try:
        yield level
    finally:
        _F._vmap_decrement_nesting()


def _flat_vmap(func, size, flat, dims, spec, out_dims, randomness, kwargs):
    with vmap_increment_nesting(size, randomness) as level:
        args = _create_batched_inputs(dims, flat, level, spec)
        return _unwrap_batched(func(*args, **kwargs), out_dims, level, size, func)


def _chunks(size, flat, dims, chunk_size):
    """The flat arguments of each chunk, with its size."""
    for start in range(0, size, chunk_size):
        length = min(chunk_size, size - start)
        yield (
            length,
            [
                leaf if dim is None else leaf.narrow(dim, start, length)
                for leaf, dim in zip(flat, dims, strict=True)
            ],
        )


def _joined(func, parts, out_dims):
    """Outputs of chunks put together along their batch dimensions."""
    flats = [tree_flatten(part) for part in parts]
    spec = flats[0][1]
    dims = _flat_out_dims(func, out_dims, spec)
    joined = [
        items[0] if dim is None else torch.cat(items, dim)
        for dim, items in zip(dims, zip(*(flat for flat, _ in flats), strict=True), strict=True)
    ]
    return tree_unflatten(joined, spec)


def _chunked_vmap(func, size, flat, dims, spec, out_dims, randomness, chunk_size, kwargs):
    generator = torch.default_generator
    state = generator.get_state() if randomness == "same" else None
    parts = []
    for length, chunk in _chunks(size, flat, dims, chunk_size):
        if state is not None:
            generator.set_state(state)
        parts.append(_flat_vmap(func, length, chunk, dims, spec, out_dims, randomness, kwargs))
    return _joined(func, parts, out_dims)


def vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs) -> Any:
    """Applies `func` to the batch in `args`."""
    size, dims, flat, spec = _process_batched_inputs(in_dims, args, func)
    if chunk_size is not None and chunk_size < size:
        return _chunked_vmap(func, size, flat, dims, spec, out_dims, randomness, chunk_size, kwargs)
    return _flat_vmap(func, size, flat, dims, spec, out_dims, randomness, kwargs)


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None) -> Any:
    """A function that maps `func`, written for one sample, over a dimension of its inputs.

    `in_dims` says for each input which dimension that is (None: the same for all samples),
    `out_dims` where it stands in the outputs. Keyword arguments are the same for all samples.
    `randomness` says whether random operators refuse ("error"), draw one set of numbers for all
    ("same") or one for each ("different"). With `chunk_size`, so many samples at a time.
    """
    _check_arguments(randomness, chunk_size)

    @functools.wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def wrapped(*args, **kwargs):
        return vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs)

    return wrapped


def unwrap_tree(tree, level) -> Any:
    """A tree in which tensors of the level are replaced by (values, their batch dimensions)."""
    dims = []

    def unwrap(leaf):
        if not isinstance(leaf, torch.Tensor):
            dims.append(None)
            return leaf
        batched = _F.is_batchedtensor(leaf) and _F.maybe_get_level(leaf) == level
        dims.append(_F.maybe_get_bdim(leaf) if batched else None)
        return _F.get_unwrapped(leaf) if batched else leaf

    flat, spec = tree_flatten(tree)
    values = [unwrap(leaf) for leaf in flat]
    return tree_unflatten(values, spec), tree_unflatten(dims, spec)


def map_tensors_(func, tree) -> Any:
    """Calls `func` on every tensor of a tree."""
    tree_map_(lambda t: func(t) if isinstance(t, torch.Tensor) else None, tree)


def chunk_vmap(func, in_dims=0, out_dims=0, randomness="error", chunks=2) -> Any:
    """vmap that treats the batch in so many parts, one after the other."""
    _check_arguments(randomness, None)
    if chunks == 1:
        return vmap(func, in_dims, out_dims, randomness)

    @functools.wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def wrapped(*args, **kwargs):
        size, _, _, _ = _process_batched_inputs(in_dims, args, func)
        length = max(1, -(-size // chunks))
        return vmap_impl(func, in_dims, out_dims, randomness, length, *args, **kwargs)

    return wrapped


def restore_vmap(func, in_dims, batch_size, randomness) -> Any:
    """A function like vmap(func) that leaves each output where its batch is: it gives the outputs
    and, in the same structure, the dimension of the batch, None for what has none."""

    def wrapped(*args, **kwargs):
        flat, spec = tree_flatten(args)
        dims = _broadcast_to_and_flatten(in_dims, spec, is_leaf=lambda d: d is None)
        with vmap_increment_nesting(batch_size, randomness) as level:
            outputs = func(*_create_batched_inputs(dims, flat, level, spec), **kwargs)
            flat_outputs, out_spec = tree_flatten(outputs)
            pairs = [_taken_apart(output, level) for output in flat_outputs]
        values = tree_unflatten([value for value, _ in pairs], out_spec)
        return values, tree_unflatten([dim for _, dim in pairs], out_spec)

    return wrapped


def _taken_apart(output, level):
    """The value of a batched tensor of the level and its batch dimension."""
    if isinstance(output, torch.Tensor) and _F.is_batchedtensor(output):
        if _F.maybe_get_level(output) == level:
            return _F.get_unwrapped(output), _F.maybe_get_bdim(output)
    return output, None
