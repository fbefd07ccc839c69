"""The class of nested tensors with the jagged layout.

The components lie one after the other in a plain tensor of values, along the ragged dimension; the
structure says where each begins. What the table of `_registry` has for a call is written with
operators on the values."""

from __future__ import annotations

import torch
from torch.nested import _registry
from torch.nested._base import NestedBase
from torch.nested._structure import Structure

_to_padded = torch.ops.aten._jagged_to_padded_dense_forward.default
_to_jagged = torch.ops.aten._padded_dense_to_jagged_forward.default


def _held_by_double(number) -> bool:
    """Whether a padding survives the way through a double: large integers would change."""
    return isinstance(number, float) or abs(number) < 2**53


class NestedTensor(NestedBase):
    """A batch of tensors that differ in the size of one dimension, as one tensor."""

    @staticmethod
    def __new__(
        cls, values, offsets, ragged_idx=1, *, lengths=None, _ragged_idx=None
    ) -> NestedTensor:
        """`offsets` is a Structure or, with `lengths`, the tensors that it is made of."""
        structure = offsets if isinstance(offsets, Structure) else Structure.of(offsets, lengths)
        ragged_idx = ragged_idx if _ragged_idx is None else _ragged_idx
        batch = structure.batch
        sizes = list(values.shape)
        # The ragged dimension has no size: code that looks past the class finds nothing there.
        sizes[ragged_idx - 1] = 0
        made = torch.Tensor._make_wrapper_subclass(
            cls, (batch, *sizes), dtype=values.dtype, device=values.device, layout=torch.jagged
        )
        made._values = values
        made._structure = structure
        made._ragged_idx = ragged_idx
        return made

    def like(self, values, ragged_idx=None) -> NestedTensor:
        """Other values with the same structure."""
        return NestedTensor(values, self._structure, ragged_idx or self._ragged_idx)

    # ---- the parts

    def values(self) -> torch.Tensor:
        """The values of all components, one after the other; a view."""
        return self._values.view_as(self._values) if self._values.requires_grad else self._values

    def offsets(self) -> torch.Tensor:
        """Where each component begins along the ragged dimension, and where the last one ends."""
        return self._structure.offsets

    def lengths(self) -> torch.Tensor | None:
        """The lengths of the components, or None where the offsets say it."""
        return self._structure.lengths

    _offsets = property(lambda self: self._structure.offsets)
    _lengths = property(lambda self: self._structure.lengths)
    _max_seqlen = property(lambda self: self._structure.longest)
    _min_seqlen = property(lambda self: self._structure.shortest)

    _max_seqlen_tensor = property(lambda self: torch.empty(self._structure.longest, 0))
    _min_seqlen_tensor = property(lambda self: torch.empty(self._structure.shortest, 0))
    _metadata_cache = property(
        lambda self: {
            "min_seqlen": self._structure.shortest,
            "max_seqlen": self._structure.longest,
        }
    )

    def _get_max_seqlen(self):
        return self._structure.longest

    def _get_min_seqlen(self):
        return self._structure.shortest

    @property
    def _ragged_dim(self) -> int:
        """The dimension of the values that is ragged."""
        return self._ragged_idx - 1

    @property
    def _total(self) -> int:
        return self._values.size(self._ragged_dim)

    # ---- geometry

    layout = property(lambda self: torch.jagged)
    ndim = property(lambda self: self._values.dim() + 1)

    def dim(self) -> int:
        """The number of dimensions, the batch included."""
        return self._values.dim() + 1

    ndimension = dim

    @property
    def shape(self) -> torch.Size:
        """The sizes, with a symbol for the ragged dimension."""
        sizes = list(self._values.shape)
        sizes[self._ragged_dim] = self._structure.symbol
        return torch.Size([self._structure.batch, *sizes])

    def size(self, dim=None):
        """All sizes, or the one of a dimension."""
        return self.shape if dim is None else self.shape[_registry.wrap_dim(dim, self.ndim)]

    def stride(self, dim=None):
        """The strides of the values; the batch's is a multiple of the ragged size."""
        strides = self._values.stride()
        # Moving on by one component skips its rows.
        batch = self._structure.symbol * strides[self._ragged_dim]
        found = (batch, *strides)
        return found if dim is None else found[_registry.wrap_dim(dim, self.ndim)]

    def storage_offset(self):
        """That of the values."""
        return self._values.storage_offset()

    def numel(self) -> int:
        """The number of elements of the components."""
        inner = self._values.numel()
        return inner if self._total == 0 else inner // self._total * sum(self._structure.seqlens)

    nelement = numel

    def __len__(self) -> int:
        return self._structure.batch

    def __iter__(self):
        return iter(self.unbind())

    def is_contiguous(self, memory_format=torch.contiguous_format) -> bool:
        """Whether the components follow each other in memory, without gaps."""
        return (
            self._ragged_idx == 1
            and self._values.is_contiguous(memory_format=memory_format)
            and self._structure.fills(self._total)
        )

    def is_same_size(self, other) -> bool:
        """Whether the other one has the same sizes."""
        return self.shape == other.shape

    def _parts(self):
        return self._values, self._structure.offsets

    # ---- the components

    def _components(self, values=None) -> list[torch.Tensor]:
        values = self._values if values is None else values
        dim = self._ragged_dim
        return [values.narrow(dim, start, length) for start, length in self._structure.bounds]

    def unbind(self, dim=0) -> tuple[torch.Tensor, ...]:
        """The components, as views."""
        if _registry.wrap_dim(dim, self.ndim) != 0:
            raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
        if self._structure.fills(self._total):
            return self._values.split(self._structure.seqlens, self._ragged_dim)
        return tuple(self._components())

    def _packed(self) -> torch.Tensor:
        """The values without what lies between components."""
        if self._structure.fills(self._total):
            return self._values
        return self._values.index_select(self._ragged_dim, self._structure.rows())

    def _compact(self) -> NestedTensor:
        """The same components without gaps between them."""
        if self._structure.fills(self._total):
            return self
        return NestedTensor(self._packed(), self._structure.compact(), self._ragged_idx)

    def contiguous(self, memory_format=torch.contiguous_format) -> NestedTensor:
        """The same components one after the other in memory."""
        packed = self._compact()
        values = packed._values.contiguous()
        return packed if values is packed._values else packed.like(values)

    # ---- padded form

    def to_padded_tensor(self, padding, output_size=None) -> torch.Tensor:
        """A plain tensor in which every component is filled up to the longest with `padding`."""
        width = self._structure.longest
        if output_size is not None:
            output_size = tuple(output_size)
            if len(output_size) != self.ndim:
                raise RuntimeError(
                    f"to_padded_tensor(): output_size must have {self.ndim} items, got "
                    f"{output_size}"
                )
            width = output_size[self._ragged_idx]
        return self._padded(padding, width)

    def _padded(self, padding, width=None):
        structure = self._structure
        width = structure.longest if width is None else width
        rows = self._packed().movedim(self._ragged_dim, 0)
        if rows.is_cpu and _held_by_double(padding):
            offsets = structure.dense_offsets()
            filled = _to_padded(rows, [offsets], [width], float(padding))
            return filled.movedim(1, self._ragged_idx)
        inside = max(width, structure.longest)
        room = rows.new_full((structure.batch * inside, *rows.shape[1:]), padding)
        filled = room.index_copy(0, structure.padded_rows(inside), rows)
        filled = filled.unflatten(0, (structure.batch, inside)).narrow(1, 0, width)
        return filled.movedim(1, self._ragged_idx)

    def _from_padded(self, padded, ragged_idx=None) -> NestedTensor:
        """The rows of a padded tensor as a nested one of this (compact) structure."""
        dim = ragged_idx or self._ragged_idx
        moved = padded.movedim(dim, 1)
        if moved.is_cpu:
            offsets = self._structure.dense_offsets()
            picked = _to_jagged(moved, [offsets], sum(self._structure.seqlens))
        else:
            rows = self._structure.padded_rows(moved.size(1))
            picked = moved.flatten(0, 1).index_select(0, rows)
        return NestedTensor(picked.movedim(0, dim - 1), self._structure, dim)

    # ---- printing and copying

    def __repr__(self, *, tensor_contents=None) -> str:
        sizes = ", ".join(map(str, self.shape))
        text = f"NestedTensor(size=({sizes}), offsets={self._structure.offsets}"
        if self.grad_fn is not None:
            text += f", grad_fn={self.grad_fn}"
        elif self.requires_grad:
            text += ", requires_grad=True"
        return f"{text}, contiguous={self.is_contiguous()})"

    __str__ = __repr__

    def __reduce_ex__(self, protocol):
        parts = self._structure.offsets, self._structure.lengths, self._ragged_idx
        values = self._values if self._values.is_leaf else self._values.detach()
        return torch._utils._rebuild_jagged_tensor, (values, *parts, self.requires_grad)


def from_components(components, ragged_idx=None, structure=None) -> NestedTensor:
    """The components, plain tensors of the same sizes but one, as a nested tensor. Gradients flow
    back to them."""
    if ragged_idx is None:
        ragged_idx = ragged_idx_of(components)
    dim = ragged_idx - 1
    if structure is None:
        lengths = [c.size(dim) for c in components]
        structure = Structure.of_lengths(lengths, components[0].device)
    return NestedTensor(torch.cat(list(components), dim), structure, ragged_idx)


def ragged_idx_of(components) -> int:
    """The one dimension, counted with the batch, in which the components differ; 1 if none."""
    first = components[0].shape
    differ = {
        index
        for c in components
        for index, (a, b) in enumerate(zip(first, c.shape, strict=False))
        if a != b
    }
    if len(differ) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note "
            "that the jagged layout only allows for a single ragged dimension. For example: "
            "(B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    return differ.pop() + 1 if differ else 1
