"""torch.vmap for the trace: the same wrapping of inputs and outputs, over containers that the trace
knows, with the calls that open and close a level as calls of the graph."""

from __future__ import annotations

import torch
from torch._C import _functorch as _F
from torch._functorch import vmap as eager


def _is_container(value: object) -> bool:
    return isinstance(value, (tuple, list, dict))


def _rebuilt(like: object, items: list) -> object:
    if isinstance(like, dict):
        return dict(zip(like.keys(), items, strict=True))
    if isinstance(like, list):
        return items
    if hasattr(like, "_fields"):
        return type(like)(*items)
    return tuple(items)


def _parts(value: object) -> list:
    return list(value.values()) if isinstance(value, dict) else list(value)


def _dims_of(dims: object, value: object, call: str) -> list:
    """The dims that belong to the parts of a container."""
    count = len(value)
    if dims is None or isinstance(dims, int):
        return [dims] * count
    if not _is_container(dims) or len(dims) != count:
        raise ValueError(
            f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has "
            f"structure {dims} but inputs has another."
        )
    return _parts(dims)


def _sizes(call: str, value: object, dims: object, found: list) -> None:
    """Adds the length of every mapped dimension."""
    if _is_container(value):
        parts = _parts(value)
        own = _dims_of(dims, value, call)
        for i in range(len(parts)):
            _sizes(call, parts[i], own[i], found)
    else:
        dim = eager._checked_dim(call, value, dims)
        if dim is not None:
            found.append(value.size(dim))


def _wrapped(value: object, dims: object, level: int) -> object:
    if _is_container(value):
        parts = _parts(value)
        own = _dims_of(dims, value, "vmap")
        return _rebuilt(value, [_wrapped(parts[i], own[i], level) for i in range(len(parts))])
    if dims is None:
        return value
    return _F._add_batch_dim(value, dims % value.dim(), level)


def _unwrapped(name: str, value: object, dims: object, level: int, size: int) -> object:
    if _is_container(value):
        parts = _parts(value)
        if dims is None or isinstance(dims, int):
            own = [dims] * len(parts)
        else:
            own = _parts(dims)
            if len(own) != len(parts):
                raise ValueError(
                    f"vmap({name}, ..., out_dims={dims})(<inputs>): out_dims is not compatible "
                    "with the structure of `outputs`."
                )
        items = [_unwrapped(name, parts[i], own[i], level, size) for i in range(len(parts))]
        return _rebuilt(value, items)
    if isinstance(dims, tuple) and len(dims) == 1:
        dims = dims[0]
    return eager._maybe_remove_batch_dim(name, value, level, size, dims)


def _narrowed(value: object, dims: object, start: int, length: int) -> object:
    """The part of every mapped dimension that belongs to a chunk."""
    if _is_container(value):
        parts = _parts(value)
        own = _dims_of(dims, value, "vmap")
        return _rebuilt(
            value, [_narrowed(parts[i], own[i], start, length) for i in range(len(parts))]
        )
    return value if dims is None else value.narrow(dims, start, length)


def _joined(chunks: list, dims: object) -> object:
    """Results of chunks put together along their batch dimensions."""
    first = chunks[0]
    if _is_container(first):
        parts = [_parts(chunk) for chunk in chunks]
        own = [dims] * len(first) if dims is None or isinstance(dims, int) else _parts(dims)
        return _rebuilt(
            first, [_joined([part[i] for part in parts], own[i]) for i in range(len(first))]
        )
    if isinstance(dims, tuple) and len(dims) == 1:
        dims = dims[0]
    return first if dims is None else torch.cat(chunks, dims)


def vmap_impl(
    func: object,
    in_dims: object,
    out_dims: object,
    randomness: str,
    chunk_size: int | None,
    *args: object,
    **kwargs: object,
) -> object:
    """Applies `func` to the batch in `args`."""
    name = eager._get_name(func)
    call = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    found: list = []
    _sizes(call, args, in_dims, found)
    if not found:
        raise ValueError("vmap: at least one input must have a batch dimension, got in_dims=None")
    for size in found:
        if size != found[0]:
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got "
                f"sizes {found} for the mapped dimension"
            )
    if chunk_size is not None and chunk_size < found[0]:
        if randomness == "same":
            torch._dynamo.graph_break("vmap by chunks that draw the same numbers")
        chunks = []
        for start in range(0, found[0], chunk_size):
            part = _narrowed(args, in_dims, start, min(chunk_size, found[0] - start))
            chunks.append(vmap_impl(func, in_dims, out_dims, randomness, None, *part, **kwargs))
        return _joined(chunks, out_dims)
    level = _F._vmap_increment_nesting(found[0], randomness)
    try:
        outputs = func(*_wrapped(args, in_dims, level), **kwargs)
        return _unwrapped(name, outputs, out_dims, level, found[0])
    finally:
        _F._vmap_decrement_nesting()


SUBSTITUTES = {eager.vmap_impl: vmap_impl}
