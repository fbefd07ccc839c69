"""Nested tensors: a batch of tensors of differing sizes as one tensor.

The jagged layout, one ragged dimension, is the one to use: `nested_tensor(list,
layout=torch.jagged)`. Its sizes hold a symbol, j1, for the ragged dimension; its values are one
plain tensor. The strided layout, in which components may differ in several dimensions, has fewer
functions and computes component by component."""

from __future__ import annotations

import math

import torch
from torch.nested import _layers, _pointwise, _reduction, _shape, _strided  # noqa: F401
from torch.nested._jagged import NestedTensor, from_components
from torch.nested._structure import Structure

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


def _layout(layout, default=torch.strided) -> torch.layout:
    layout = default if layout is None else layout
    if layout not in (torch.strided, torch.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return layout


def _check_components(components) -> None:
    if not components:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    first = components[0]
    for what in ("dim", "dtype", "device"):
        seen = [c.dim() if what == "dim" else getattr(c, what) for c in components]
        if any(s != seen[0] for s in seen):
            raise RuntimeError(
                f"When constructing a nested tensor, all tensors in list must have the same {what}"
            )
    if first.dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    if any(c.is_nested for c in components):
        raise RuntimeError("Cannot construct a nested tensor from a list of nested tensors")


def nested_tensor(
    tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """A nested tensor, a leaf, with copies of the given tensors or lists as components.

    With `layout=torch.jagged` they must have equal sizes in all dimensions but one."""
    layout = _layout(layout)
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError(
            "nested_tensor(): Expected first argument to be a list or tuple, got "
            f"{type(tensor_list).__name__}"
        )
    given = list(tensor_list)
    made = [
        (t.detach() if isinstance(t, torch.Tensor) else torch.tensor(t, dtype=dtype)).to(
            dtype=dtype, device=device
        )
        for t in given
    ]
    if layout is torch.strided:
        found = _strided.from_list(made, dtype, device)
    else:
        _check_components(made)
        found = from_components(made)
        if len(made) == 1:
            found = found.clone()
    if pin_memory:
        found = found.pin_memory()
    return found.requires_grad_(True) if requires_grad else found


def _nested_view_from_buffer(
    self: torch.Tensor,
    nested_size: torch.Tensor,
    nested_strides: torch.Tensor,
    offsets: torch.Tensor,
) -> torch.Tensor:
    """A nested tensor of the strided layout on the memory of `self`, one component for each row of
    `nested_size`. The components must lie one after the other, as those of every nested tensor."""
    sizes = tuple(map(tuple, nested_size.tolist()))
    strides, starts = nested_strides.tolist(), offsets.tolist()
    expected_start = 0
    for size, stride, start in zip(sizes, strides, starts, strict=True):
        dense = [math.prod(size[k + 1 :]) for k in range(len(size))]
        if stride != dense or start != expected_start:
            raise NotImplementedError(
                "torch._nested_view_from_buffer: only contiguous components, one after the other, "
                f"are implemented; got size {size}, stride {stride}, offset {start}"
            )
        expected_start += math.prod(size)
    if self.dim() != 1 or not self.is_contiguous() or self.numel() < expected_start:
        raise RuntimeError(
            f"torch._nested_view_from_buffer: expected a contiguous buffer of {expected_start} "
            f"elements in one dimension, got {list(self.shape)}"
        )
    return _strided.StridedNestedTensor(self[:expected_start], sizes)


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """A nested tensor through which gradients reach the given tensors: a list of components, or one
    plain tensor whose first dimension becomes the batch."""
    layout = _layout(layout)
    if isinstance(ts, torch.Tensor):
        if ts.is_nested:
            if ts.layout is not layout:
                raise RuntimeError(
                    "as_nested_tensor(): Converting between nested tensor layouts is not supported"
                )
            return ts.to(dtype=dtype, device=device)
        if ts.dim() < 2:
            raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
        ts = ts.to(dtype=dtype, device=device)
        if layout is torch.jagged:
            structure = Structure.of_lengths([ts.size(1)] * ts.size(0), ts.device)
            return NestedTensor(ts.flatten(0, 1), structure)
        return _strided.from_list(list(ts.unbind()), None, None)
    if not isinstance(ts, (list, tuple)) or not all(isinstance(t, torch.Tensor) for t in ts):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of "
            "tensors "
        )
    made = [t.to(dtype=dtype, device=device) for t in ts]
    if layout is torch.strided:
        return _strided.from_list(made, dtype, device)
    _check_components(made)
    return from_components(made)


def nested_tensor_from_jagged(
    values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None
) -> NestedTensor:
    """A nested tensor on given values: a view, gradients reach the values.

    `offsets` say where components begin, `lengths` how long they are; with both, rows between
    components are left out. `jagged_dim` is the ragged dimension of the result, 1 if not given.
    `min_seqlen` and `max_seqlen` are checked against the offsets."""
    if not isinstance(values, torch.Tensor) or values.is_nested:
        raise TypeError("nested_tensor_from_jagged(): values must be a plain tensor")
    if offsets is None:
        if lengths is None:
            raise RuntimeError(
                "nested_tensor_from_jagged(): At least one of offsets or lengths is required."
            )
        if not isinstance(lengths, torch.Tensor) or lengths.dim() != 1:
            raise RuntimeError("nested_tensor_from_jagged(): lengths must be a 1D tensor")
        ends = lengths.cumsum(0)
        offsets, lengths = torch.cat([ends.new_zeros(1), ends]), None
    ragged_idx = 1 if jagged_dim is None else jagged_dim
    if not 1 <= ragged_idx <= values.dim():
        raise IndexError(
            f"nested_tensor_from_jagged(): jagged_dim {ragged_idx} is out of range for values of "
            f"{values.dim()} dimensions"
        )
    structure = Structure.of(offsets, lengths)
    structure.check_inside(values.size(ragged_idx - 1))
    for given, found, name in (
        (min_seqlen, structure.shortest, "min_seqlen"),
        (max_seqlen, structure.longest, "max_seqlen"),
    ):
        wrong = given is not None and (given > found if name == "min_seqlen" else given < found)
        if wrong:
            raise RuntimeError(
                f"nested_tensor_from_jagged(): {name}={given}, but the components have {found}"
            )
    if values.requires_grad:
        values = values.view_as(values)
    return NestedTensor(values, structure, ragged_idx)


def narrow(tensor, dim, start, length, layout=torch.strided):
    """From row b of a plain tensor the range start[b] : start[b] + length[b], as component b. With
    the jagged layout a view."""
    if not isinstance(start, (int, torch.Tensor)):
        raise RuntimeError("start must be an integer or a tensor")
    if not isinstance(length, (int, torch.Tensor)):
        raise RuntimeError("length must be an integer or a tensor")
    if _layout(layout) is torch.strided:
        if isinstance(start, torch.Tensor) or isinstance(length, torch.Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return as_nested_tensor(list(tensor.unbind()), layout=torch.strided).narrow(
            dim, start, length
        )
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    if tensor.dim() < 2:
        raise RuntimeError("narrow(): expected a tensor of at least 2 dimensions")
    batch, width = tensor.shape[:2]
    starts, lengths = (
        torch.full((batch,), number, dtype=torch.int64, device=tensor.device)
        if isinstance(number, int)
        else number.to(torch.int64).expand(batch)
        for number in (start, length)
    )
    if bool((starts < 0).any()) or bool((starts + lengths > width).any()):
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({width}).")
    first = torch.arange(batch, device=tensor.device) * width + starts
    ends = (first + lengths)[-1:] if batch else first.new_zeros(1)
    structure = Structure.of(torch.cat([first, ends]), lengths.contiguous())
    values = tensor.flatten(0, 1)
    structure.check_inside(values.size(0))
    return NestedTensor(values, structure)


def masked_select(tensor, mask) -> NestedTensor:
    """The elements of a plain tensor that a mask selects, one component for every row."""
    if tensor.layout is not torch.strided:
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}"
        )
    if mask.dtype != torch.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    selected = torch.masked_select(tensor, mask)
    full = torch.broadcast_to(mask, torch.broadcast_shapes(tensor.shape, mask.shape))
    counts = full.sum(-1).flatten()
    offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return NestedTensor(selected, Structure.of(offsets))


def to_padded_tensor(input, padding, output_size=None) -> torch.Tensor:
    """The components in one plain tensor, filled up with `padding` to the largest, or to
    `output_size`."""
    if not isinstance(input, torch.Tensor) or not input.is_nested:
        what = getattr(input, "layout", type(input).__name__)
        raise NotImplementedError(f"to_padded_tensor: not implemented for {what}; expected nested")
    return input.to_padded_tensor(padding, output_size)
