"""Shapes: views and joins by the operators that make them. What a program passes as separate
numbers may also come as one sequence."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch._prims_common import canonicalize_dim

__all__ = [
    "atleast_1d",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "cat",
    "clone",
    "contiguous",
    "empty",
    "expand",
    "flatten",
    "flip",
    "full",
    "movedim",
    "narrow",
    "ones",
    "permute",
    "repeat",
    "reshape",
    "squeeze",
    "to",
    "unsqueeze",
    "view",
    "zeros",
]


def _sizes(given: tuple[int | Sequence[int], ...]) -> list[int]:
    """Numbers given one by one or as one sequence."""
    if len(given) == 1 and isinstance(given[0], Sequence):
        return list(given[0])
    return list(given)


def reshape(a: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """The elements in another shape; a view where the strides allow it."""
    return torch.reshape(a, _sizes(shape))


def view(a: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """The elements in another shape, without a copy."""
    return a.view(_sizes(shape))


def permute(a: Tensor, *dims: int | Sequence[int]) -> Tensor:
    """The dimensions in another order."""
    return torch.ops.prims.transpose(a, [canonicalize_dim(a.dim(), d) for d in _sizes(dims)])


def expand(a: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """Dimensions of length 1 repeated without a copy."""
    return a.expand(_sizes(shape))


def repeat(a: Tensor, *counts: int | Sequence[int]) -> Tensor:
    """Copies side by side."""
    return a.repeat(_sizes(counts))


def broadcast_shapes(*shapes: Sequence[int]) -> torch.Size:
    """The shape that all shapes expand to."""
    return torch.broadcast_shapes(*shapes)


def broadcast_tensors(*tensors: Tensor) -> list[Tensor]:
    """All tensors in their common shape."""
    shape = torch.broadcast_shapes(*(t.shape for t in tensors))
    return [expand(t, shape) for t in tensors]


def broadcast_to(a: Tensor, size: Sequence[int]) -> Tensor:
    """The tensor expanded to a shape."""
    return expand(a, size)


def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Tensors without dimensions get one."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], Sequence) else tensors
    found = tuple(t if t.dim() else unsqueeze(t, 0) for t in given)
    return found if len(found) > 1 else found[0]


def squeeze(a: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Without dimensions of length 1."""
    if dim is None:
        dims = range(a.dim())
    else:
        dims = [dim] if isinstance(dim, int) else dim
    places = {canonicalize_dim(a.dim(), d) for d in dims}
    return torch.ops.prims.squeeze(a, sorted(d for d in places if a.dim() and a.shape[d] == 1))


def unsqueeze(a: Tensor, dim: int) -> Tensor:
    """With a dimension of length 1."""
    from torch._prims import expand_dims

    place = canonicalize_dim(a.dim() + 1, dim)
    return expand_dims(a, [place], a.dim() + 1)


def ones(*size: int | Sequence[int], **options) -> Tensor:
    """A tensor of ones."""
    return torch.ops.aten.full(_sizes(size), 1, **_made_like(options))


def zeros(*size: int | Sequence[int], **options) -> Tensor:
    """A tensor of zeros."""
    return torch.ops.aten.full(_sizes(size), 0, **_made_like(options))


def _made_like(options: dict[str, object]) -> dict[str, object]:
    """Options of a factory with the default dtype written out."""
    given = {k: v for k, v in options.items() if k != "requires_grad"}
    return {**given, "dtype": options.get("dtype") or torch.get_default_dtype()}


cat = torch.cat
clone = torch.clone
empty = torch.empty
flatten = torch.flatten
flip = torch.flip
full = torch.full
movedim = torch.movedim
narrow = torch.narrow
to = torch.Tensor.to


def contiguous(
    a: Tensor, *, memory_format: torch.memory_format = torch.contiguous_format
) -> Tensor:
    """The tensor itself if its memory is in order, else a copy that is."""
    if a.is_contiguous(memory_format=memory_format):
        return a
    return torch.clone(a, memory_format=memory_format)
