"""Indexed reads and writes, and the gradients of views: a gradient of a part is written into zeros
of the whole."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch._decomp._register import decomposes
from torch._prims_common import canonicalize_dim

aten = torch.ops.aten


@decomposes(aten.select_backward)
def select_backward(grad_output: Tensor, input_sizes: list[int], dim: int, index: int) -> Tensor:
    return torch.select_scatter(grad_output.new_zeros(input_sizes), grad_output, dim, index)


@decomposes(aten.slice_backward)
def slice_backward(
    grad_output: Tensor, input_sizes: list[int], dim: int, start: int, end: int, step: int
) -> Tensor:
    whole = grad_output.new_zeros(input_sizes)
    return torch.slice_scatter(whole, grad_output, dim, start, end, step)


@decomposes(aten.diagonal_backward)
def diagonal_backward(
    grad_output: Tensor, input_sizes: list[int], offset: int, dim1: int, dim2: int
) -> Tensor:
    whole = grad_output.new_zeros(input_sizes)
    return torch.diagonal_scatter(whole, grad_output, offset, dim1, dim2)


@decomposes(aten.unfold_backward)
def unfold_backward(
    grad: Tensor, input_size: list[int], dimension: int, size: int, step: int
) -> Tensor:
    if not input_size:
        return torch.squeeze(grad, 0)
    dim = canonicalize_dim(len(input_size), dimension)
    places = torch.arange(input_size[dim], device=grad.device).unfold(0, size, step).flatten()
    windows = grad.movedim(-1, dim + 1).flatten(dim, dim + 1)
    return grad.new_zeros(input_size).index_add(dim, places, windows)


def _position(dim: int, index: Tensor) -> list[Tensor | None]:
    """The index list that takes `index` at one dimension and all of the ones before it."""
    return [None] * dim + [index]


def _flat_index(self: Tensor, dim: int, index: Tensor) -> tuple[int, Tensor]:
    torch._check(
        index.dim() <= 1,
        lambda: f"Index should have dimension 1 or 0 (got {index.dim()})",
    )
    return canonicalize_dim(self.dim(), dim), torch.atleast_1d(index)


@decomposes(aten.index_add, inplace=True)
def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    dim, index = _flat_index(self, dim, index)
    added = source if alpha == 1 else source * alpha
    if self.dim() == 0:
        return index_add(self.unsqueeze(0), 0, index, added.reshape(-1)).squeeze(0)
    return torch.ops.aten.index_put(self, _position(dim, index), added, True)


def _copied(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    dim, index = _flat_index(self, dim, index)
    if self.dim() == 0:
        return _copied(self.unsqueeze(0), 0, index, source.reshape(-1)).squeeze(0)
    return torch.ops.aten.index_put(self, _position(dim, index), source)


index_copy = decomposes(aten.index_copy)(_copied)


@decomposes(aten.index_copy_)
def index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    return self.copy_(_copied(self, dim, index, source))


def _filled(self: Tensor, dim: int, index: Tensor, value: Tensor | float) -> Tensor:
    dim, index = _flat_index(self, dim, index)
    if self.dim() == 0:
        return _filled(self.unsqueeze(0), 0, index, value).squeeze(0)
    if isinstance(value, Tensor):
        torch._check(
            value.dim() == 0,
            lambda: (
                f"Only supports 0-dimensional value tensor. Got a tensor with {value.dim()} "
                "dimensions."
            ),
        )
        value = value.to(self.dtype)
    else:
        value = torch.full((), value, dtype=self.dtype, device=self.device)
    return torch.ops.aten.index_put(self, _position(dim, index), value)


index_fill = decomposes(aten.index_fill, inplace=True)(_filled)


@decomposes(aten.index_select)
def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    dim, index = _flat_index(self, dim, index)
    if self.dim() == 0:
        return self.expand(index.shape[0]).clone().reshape(())
    return torch.ops.aten.index(self, _position(dim, index))


@decomposes(aten.take)
def take(self: Tensor, index: Tensor) -> Tensor:
    return self.reshape(-1)[index]


@decomposes(aten._unsafe_index.Tensor)
def _unsafe_index(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    return torch.ops.aten.index(self, indices)


@decomposes(aten._unsafe_index_put)
def _unsafe_index_put(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    return torch.ops.aten.index_put(self, indices, values, accumulate)


def _inside(self: Tensor, mask: Tensor, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Indices that are valid everywhere: where the mask is off they are replaced by zero."""
    return [None if i is None else torch.where(mask, i, 0) for i in indices]


@decomposes(aten._unsafe_masked_index)
def _unsafe_masked_index(
    self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: float
) -> Tensor:
    if self.numel() == 0:
        return torch.ops.aten.index(self, [None if i is None else mask for i in indices][:1])
    found = torch.ops.aten._unsafe_index(self, _inside(self, mask, indices))
    return found.masked_fill(~mask, fill)


@decomposes(aten._unsafe_masked_index_put_accumulate)
def _unsafe_masked_index_put_accumulate(
    self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor
) -> Tensor:
    if self.numel() == 0:
        return self.clone()
    kept = values.masked_fill(~mask, 0)
    return torch.ops.aten._unsafe_index_put(self, _inside(self, mask, indices), kept, True)


@decomposes(aten.embedding)
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    torch._check(weight.dim() == 2, lambda: "'weight' must be 2-D")
    if indices.dim() < 2:
        found = weight.index_select(0, indices)
        return found.squeeze(0) if indices.dim() == 0 else found
    return weight[indices]


@decomposes(aten.embedding_dense_backward)
def embedding_dense_backward(
    grad_output: Tensor,
    indices: Tensor,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Tensor:
    grad, indices = grad_output, indices.to(torch.int64)
    if scale_grad_by_freq:
        ones = torch.ones_like(indices)
        seen = indices.new_zeros((num_weights,)).index_put([indices], ones, accumulate=True)
        grad = grad / seen[indices].unsqueeze(-1)
    padding = (indices == padding_idx).unsqueeze(-1)
    rows = grad.masked_fill(padding, 0)
    table = grad_output.new_zeros((num_weights, grad_output.shape[-1]))
    return table.index_put([indices], rows, accumulate=True)


@decomposes(aten.masked_fill, inplace=True)
def masked_fill(self: Tensor, mask: Tensor, value: Tensor | float) -> Tensor:
    if isinstance(value, Tensor):
        torch._check(
            value.dim() == 0,
            lambda: (
                "only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.dim()} dimension"
            ),
        )
        value = value.to(self.device, self.dtype)
    else:
        value = torch.full((), value, dtype=self.dtype, device=self.device)
    return torch.where(mask, value, self)


@decomposes(aten.masked_scatter)
def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The k-th true place takes the k-th element of the source."""
    self, mask = torch.broadcast_tensors(self, mask)
    order = mask.reshape(-1).cumsum(0) - 1
    if source.numel() == 0:
        return self.clone()
    place = torch.clamp(order, 0, source.numel() - 1)
    taken = source.reshape(-1)[place].reshape(self.shape)
    return torch.where(mask, taken, self)


@decomposes(aten.trace)
def trace(self: Tensor) -> Tensor:
    torch._check(
        self.dim() == 2, lambda: f"expected a matrix, but got tensor with dim {self.dim()}"
    )
    return torch.sum(torch.diagonal(self, 0, 0, 1))


@decomposes(aten.isin.Tensor_Tensor)
def isin(
    elements: Tensor, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    if test_elements.numel() == 0:
        return torch.full(elements.shape, invert, dtype=torch.bool, device=elements.device)
    found = (elements.unsqueeze(-1) == test_elements.reshape(-1)).any(-1)
    return ~found if invert else found


@decomposes(aten.isin.Tensor_Scalar)
def isin_scalar(
    elements: Tensor, test_element: float, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    return torch.ne(elements, test_element) if invert else torch.eq(elements, test_element)


@decomposes(aten.isin.Scalar_Tensor)
def isin_of_scalar(
    element: float, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    found = (test_elements.reshape(-1) == element).any()
    return ~found if invert else found
