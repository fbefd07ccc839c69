"""Nested tensors taken apart and put together. torch.nested holds the classes: the strided layout
keeps sizes for each component, the jagged one offsets along one ragged dimension."""

import torch
from torch import Tensor
from torch._composed_ops.registry import composed, declare


def _strided(self: Tensor, operator: str) -> Tensor:
    if not self.is_nested or self.layout is not torch.strided:
        raise _not_nested(self, operator, "strided")
    return self


def _jagged(self: Tensor, operator: str) -> Tensor:
    if not self.is_nested or self.layout is not torch.jagged:
        raise _not_nested(self, operator, "jagged")
    return self


def _not_nested(self: Tensor, operator: str, layout: str) -> NotImplementedError:
    kind = f"nested tensor of layout {self.layout}" if self.is_nested else "plain tensor"
    return NotImplementedError(
        f"Could not run 'aten::{operator}' with a {kind} of {self.dtype} on {self.device}: it "
        f"takes a nested tensor with layout torch.{layout}"
    )


# ---- parts of the strided layout
@composed("_nested_tensor_size(Tensor self) -> Tensor", out="out")
def _nested_tensor_size(self: Tensor) -> Tensor:
    return _strided(self, "_nested_tensor_size")._nested_tensor_size()


@composed("_nested_tensor_strides(Tensor self) -> Tensor", out="out")
def _nested_tensor_strides(self: Tensor) -> Tensor:
    return _strided(self, "_nested_tensor_strides")._nested_tensor_strides()


@composed("_nested_tensor_storage_offsets(Tensor self) -> Tensor", out="out")
def _nested_tensor_storage_offsets(self: Tensor) -> Tensor:
    return _strided(self, "_nested_tensor_storage_offsets")._nested_tensor_storage_offsets()


@composed("_nested_compute_contiguous_strides_offsets(Tensor nested_size) -> (Tensor, Tensor)")
def _nested_compute_contiguous_strides_offsets(nested_size: Tensor) -> tuple[Tensor, Tensor]:
    inner = nested_size[:, 1:].flip(1).cumprod(1).flip(1)
    strides = torch.cat([inner, torch.ones_like(nested_size[:, :1])], 1)
    elements = nested_size.prod(1)
    return strides, elements.cumsum(0) - elements


# ---- the strided layout from plain tensors
def _of_sizes(padded: Tensor, sizes: list[list[int]]) -> Tensor:
    """The corner of each row of a padded tensor, as the components."""
    if padded.size(0) != len(sizes):
        raise RuntimeError(
            f"expected a padded tensor with {len(sizes)} rows, got size {list(padded.shape)}"
        )
    corners = [row[tuple(map(slice, size))] for row, size in zip(padded, sizes, strict=True)]
    return torch.nested.as_nested_tensor(corners, layout=torch.strided)


@composed(
    "_nested_from_padded(Tensor padded, Tensor cpu_nested_shape_example, "
    "bool fuse_transform_0213=False) -> Tensor"
)
def _nested_from_padded(
    padded: Tensor, cpu_nested_shape_example: Tensor, fuse_transform_0213: bool = False
) -> Tensor:
    """With fuse_transform_0213 the padded tensor has heads before rows, and they are joined."""
    if fuse_transform_0213:
        padded = padded.transpose(1, 2).flatten(2)
    return _of_sizes(padded, cpu_nested_shape_example.tolist())


@composed("_nested_from_padded_and_nested_example(Tensor padded, Tensor nt_example) -> Tensor")
def _nested_from_padded_and_nested_example(padded: Tensor, nt_example: Tensor) -> Tensor:
    return _of_sizes(padded, torch.ops.aten._nested_tensor_size(nt_example).tolist())


@composed("_nested_tensor_from_mask_left_aligned(Tensor t, Tensor mask) -> bool")
def _nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    places = torch.arange(mask.size(1), device=mask.device)
    return torch.equal(mask, places < mask.sum(1, keepdim=True))


@composed("_nested_tensor_from_mask(Tensor t, Tensor mask, bool mask_check=True) -> Tensor")
def _nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> Tensor:
    if mask.dtype != torch.bool:
        raise RuntimeError(f"Expected mask to be of ScalarType Bool, but got {mask.dtype}")
    if mask.dim() != 2 or t.dim() != 3 or mask.shape != t.shape[:2]:
        raise RuntimeError(
            f"expected rows of size (N, L, D) and a mask of size (N, L), got {list(t.shape)} and "
            f"{list(mask.shape)}"
        )
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    return _of_sizes(t, [[length, t.size(2)] for length in mask.sum(1).tolist()])


@composed(
    "_nested_tensor_from_tensor_list(Tensor[] list, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor"
)
def _nested_tensor_from_tensor_list(
    list: list[Tensor],
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:
    made = torch.nested.as_nested_tensor(list, dtype, device, torch.strided)
    return made.pin_memory() if pin_memory else made


_BUFFER = "self, Tensor nested_size, Tensor nested_strides, Tensor offsets"


@composed(f"_nested_view_from_buffer(Tensor(a) {_BUFFER}) -> Tensor(a)")
def _nested_view_from_buffer(
    self: Tensor, nested_size: Tensor, nested_strides: Tensor, offsets: Tensor
) -> Tensor:
    return torch._nested_view_from_buffer(self, nested_size, nested_strides, offsets)


@composed(f"_nested_view_from_buffer_copy(Tensor {_BUFFER}) -> Tensor")
def _nested_view_from_buffer_copy(
    self: Tensor, nested_size: Tensor, nested_strides: Tensor, offsets: Tensor
) -> Tensor:
    return torch._nested_view_from_buffer(self.clone(), nested_size, nested_strides, offsets)


# Their results are nested: nothing writes those into a tensor of the caller.
declare(
    "_nested_from_padded.out(Tensor padded, Tensor cpu_nested_shape_example, "
    "bool fuse_transform_0213=False, *, Tensor(a!) out) -> Tensor(a!)",
    "_nested_from_padded_and_nested_example.out(Tensor padded, Tensor nt_example, *, "
    "Tensor(a!) out) -> Tensor(a!)",
    "_nested_tensor_from_mask.out(Tensor t, Tensor mask, bool mask_check=True, *, "
    "Tensor(a!) out) -> Tensor(a!)",
    "_nested_tensor_from_tensor_list.out(Tensor[] list, ScalarType? dtype=None, "
    "Layout? layout=None, Device? device=None, bool? pin_memory=None, *, Tensor(a!) out) "
    "-> Tensor(a!)",
    f"_nested_view_from_buffer_copy.out(Tensor {_BUFFER}, *, Tensor(a!) out) -> Tensor(a!)",
    "_nested_view_from_jagged_copy.out(Tensor self, Tensor offsets, Tensor dummy, "
    "Tensor? lengths=None, int ragged_idx=1, Tensor? min_seqlen=None, Tensor? max_seqlen=None, *, "
    "Tensor(a!) out) -> Tensor(a!)",
)


# ---- computing with the strided layout
@composed("_nested_tensor_softmax_with_shape(Tensor self, Tensor query) -> Tensor")
def _nested_tensor_softmax_with_shape(self: Tensor, query: Tensor) -> Tensor:
    """Of padded scores (batch, heads, rows, rows): each component has as many rows and columns as
    the first size of its query says; the rest is zero."""
    result = torch.zeros_like(self)
    for i, size in enumerate(torch.ops.aten._nested_tensor_size(query).tolist()):
        n = size[0]
        result[i, :, :n, :n] = self[i, :, :n, :n].softmax(-1)
    return result


@composed(
    "_nested_select_backward(Tensor grad_output, Tensor self, int dim, SymInt index) -> Tensor"
)
def _nested_select_backward(grad_output: Tensor, self: Tensor, dim: int, index: int) -> Tensor:
    parts = [torch.zeros_like(part) for part in _strided(self, "_nested_select_backward").unbind()]
    if dim % self.dim() == 0:
        parts[index] = grad_output.clone()
    else:
        inner = dim % self.dim() - 1
        for part, grad in zip(parts, grad_output.unbind(), strict=True):
            part.select(inner, index).copy_(grad)
    return torch.nested.as_nested_tensor(parts, layout=torch.strided)


@composed(
    "_nested_sum_backward(Tensor grad, Tensor self, int[1]? dim, bool keepdim=False) -> Tensor"
)
def _nested_sum_backward(
    grad: Tensor, self: Tensor, dim: list[int] | None, keepdim: bool = False
) -> Tensor:
    inner = sorted(d % self.dim() - 1 for d in dim or [])
    if not inner or inner[0] < 0:
        raise NotImplementedError(
            f"aten::_nested_sum_backward: not implemented for dim={dim} of a nested tensor of "
            f"{self.dtype} on {self.device}: sums run inside of the components"
        )
    parts = []
    for given, like in zip(grad.unbind(), self.unbind(), strict=True):
        for d in [] if keepdim else inner:
            given = given.unsqueeze(d)
        parts.append(given.expand_as(like))
    return torch.nested.as_nested_tensor(parts, layout=torch.strided)


# ---- the jagged layout
@composed("_nested_get_values(Tensor(a) self) -> Tensor(a)")
def _nested_get_values(self: Tensor) -> Tensor:
    return _jagged(self, "_nested_get_values").values()


@composed("_nested_get_values_copy(Tensor self) -> Tensor", out="out")
def _nested_get_values_copy(self: Tensor) -> Tensor:
    return _jagged(self, "_nested_get_values_copy").values().clone()


@composed("_nested_get_offsets(Tensor self) -> Tensor")
def _nested_get_offsets(self: Tensor) -> Tensor:
    return _jagged(self, "_nested_get_offsets").offsets()


@composed("_nested_get_lengths(Tensor self) -> Tensor")
def _nested_get_lengths(self: Tensor) -> Tensor | None:
    return _jagged(self, "_nested_get_lengths").lengths()


@composed("_nested_get_ragged_idx(Tensor self) -> int")
def _nested_get_ragged_idx(self: Tensor) -> int:
    return _jagged(self, "_nested_get_ragged_idx")._ragged_idx


@composed("_nested_get_min_seqlen(Tensor self) -> Tensor")
def _nested_get_min_seqlen(self: Tensor) -> Tensor:
    return _jagged(self, "_nested_get_min_seqlen")._min_seqlen_tensor


@composed("_nested_get_max_seqlen(Tensor self) -> Tensor")
def _nested_get_max_seqlen(self: Tensor) -> Tensor:
    return _jagged(self, "_nested_get_max_seqlen")._max_seqlen_tensor


@composed("_nested_get_jagged_dummy(Tensor any) -> Tensor")
def _nested_get_jagged_dummy(any: Tensor) -> Tensor:
    """A nested tensor of the same kind: it only makes others known as nested to the dispatcher."""
    _jagged(any, "_nested_get_jagged_dummy")
    return torch.nested.nested_tensor_from_jagged(torch.zeros(3, 3), torch.tensor([0, 2, 3]))


def _length(bound: Tensor | None) -> int | None:
    """A bound of lengths is handed over as the size of an empty tensor."""
    return None if bound is None else bound.size(0)


_JAGGED = (
    "self, Tensor offsets, Tensor dummy, Tensor? lengths=None, int ragged_idx=1, "
    "Tensor? min_seqlen=None, Tensor? max_seqlen=None"
)


@composed(f"_nested_view_from_jagged(Tensor(a) {_JAGGED}) -> Tensor(a)")
def _nested_view_from_jagged(
    self: Tensor,
    offsets: Tensor,
    dummy: Tensor,
    lengths: Tensor | None = None,
    ragged_idx: int = 1,
    min_seqlen: Tensor | None = None,
    max_seqlen: Tensor | None = None,
) -> Tensor:
    return torch.nested.nested_tensor_from_jagged(
        self, offsets, lengths, ragged_idx, _length(min_seqlen), _length(max_seqlen)
    )


@composed(f"_nested_view_from_jagged_copy(Tensor {_JAGGED}) -> Tensor")
def _nested_view_from_jagged_copy(self: Tensor, *args: object, **kwargs: object) -> Tensor:
    return _nested_view_from_jagged(self.clone(), *args, **kwargs)


@composed(
    "_nested_from_padded_tensor(Tensor padded, Tensor offsets, Tensor dummy, int ragged_idx=1, "
    "Tensor? min_seqlen=None, Tensor? max_seqlen=None, SymInt? sum_S=None) -> Tensor"
)
def _nested_from_padded_tensor(
    padded: Tensor,
    offsets: Tensor,
    dummy: Tensor,
    ragged_idx: int = 1,
    min_seqlen: Tensor | None = None,
    max_seqlen: Tensor | None = None,
    sum_S: int | None = None,
) -> Tensor:
    lengths = offsets.diff().tolist()
    rows = [row.narrow(ragged_idx - 1, 0, n) for row, n in zip(padded, lengths, strict=True)]
    values = torch.cat(rows, ragged_idx - 1)
    if sum_S is not None and sum_S != sum(lengths):
        raise RuntimeError(f"sum_S is {sum_S}, but the lengths of the components are {lengths}")
    return torch.nested.nested_tensor_from_jagged(
        values, offsets, None, ragged_idx, _length(min_seqlen), _length(max_seqlen)
    )
