"""Nested tensors with the strided layout: components may differ in every dimension.

The elements lie in one buffer, component after component. Element-wise calls act on the buffer;
other calls run for each component. The jagged layout is the one to use where one ragged dimension
is enough."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch.nested._base import NestedBase
from torch.nested._registry import (
    implements_strided,
    name_of,
    not_implemented,
    tensors_in,
    wrap_dim,
)


class StridedNestedTensor(NestedBase):
    """A batch of tensors with the same number of dimensions."""

    @staticmethod
    def __new__(cls, values, sizes) -> StridedNestedTensor:
        inner = (0,) * (len(sizes[0]) if sizes else 0)
        # For C++, which has to refuse both layouts in some places, they are one.
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            (len(sizes), *inner),
            dtype=values.dtype,
            device=values.device,
            layout=torch.jagged,
        )
        made._values = values
        made._sizes = sizes
        return made

    layout = property(lambda self: torch.strided)

    def like(self, values) -> StridedNestedTensor:
        """Other values of the same sizes."""
        return StridedNestedTensor(values, self._sizes)

    def _set_sizes(self, sizes) -> None:
        """The sizes of a tensor whose file has now been read; they must use up the buffer."""
        elements = sum(map(math.prod, sizes))
        if any(n < 0 for size in sizes for n in size) or elements != self._values.numel():
            raise RuntimeError(
                f"the components of a nested tensor have {elements} elements, its buffer has "
                f"{self._values.numel()}"
            )
        self._sizes = tuple(map(tuple, sizes))

    def _parts(self):
        return (self._values,)

    def _packed(self):
        return self._values

    def values(self) -> torch.Tensor:
        """The buffer: the elements of all components in one dimension."""
        return self._values.view_as(self._values) if self._values.requires_grad else self._values

    def dim(self) -> int:
        """The number of dimensions, the batch included."""
        return 1 + (len(self._sizes[0]) if self._sizes else 0)

    ndimension = dim
    ndim = property(dim)

    def numel(self) -> int:
        """The number of elements of all components."""
        return sum(map(math.prod, self._sizes))

    nelement = numel

    @property
    def shape(self):
        """Not defined: the components have no common shape."""
        raise RuntimeError(
            "NestedTensorImpl doesn't support sizes: a nested tensor of the strided layout has no "
            "shape; ask size(dim) for dimensions in which all components agree"
        )

    def size(self, dim=None):
        """The size of a dimension in which all components agree."""
        if dim is None:
            return self.shape
        dim = wrap_dim(dim, self.ndim)
        if dim == 0:
            return len(self._sizes)
        found = {size[dim - 1] for size in self._sizes}
        if len(found) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return found.pop()

    def stride(self, dim=None):
        """Not defined."""
        raise RuntimeError(
            "NestedTensorImpl doesn't support strides: a nested tensor of the strided layout has "
            "those of its components"
        )

    def storage_offset(self):
        """That of the buffer."""
        return self._values.storage_offset()

    def is_contiguous(self, memory_format=torch.contiguous_format) -> bool:
        """Always: results are laid out one component after the other."""
        return True

    def contiguous(self, memory_format=torch.contiguous_format):
        """The tensor itself."""
        return self

    def is_same_size(self, other) -> bool:
        """Whether all components have the same sizes."""
        return isinstance(other, StridedNestedTensor) and self._sizes == other._sizes

    def __len__(self) -> int:
        return len(self._sizes)

    def __iter__(self):
        return iter(self.unbind())

    def unbind(self, dim=0) -> tuple[torch.Tensor, ...]:
        """The components, as views."""
        if dim != 0:
            raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
        lengths = [math.prod(size) for size in self._sizes]
        pieces = self._values.split(lengths) if lengths else ()
        return tuple(p.view(size) for p, size in zip(pieces, self._sizes, strict=True))

    def to_padded_tensor(self, padding, output_size=None) -> torch.Tensor:
        """A plain tensor with every component filled up to the largest size in each dimension."""
        if not self._sizes or self._values.numel() == 0:
            raise RuntimeError(
                "to_padded_tensor(): at least one constituent tensor should have non-zero numel"
            )
        largest = [max(sizes) for sizes in zip(*self._sizes, strict=True)]
        if output_size is not None:
            wanted = list(output_size)
            if len(wanted) != self.ndim:
                raise RuntimeError(
                    f"to_padded_tensor(): output_size must have {self.ndim} items, got {wanted}"
                )
            if wanted[0] < len(self) or any(
                w < m for w, m in zip(wanted[1:], largest, strict=True)
            ):
                raise RuntimeError(
                    "Value in output_size is less than NestedTensor padded size. Truncation is "
                    "not supported."
                )
            largest = wanted[1:]
        rows = []
        for part in self.unbind():
            gaps = zip(reversed(largest), reversed(part.shape), strict=True)
            rows.append(F.pad(part, [n for m, s in gaps for n in (0, m - s)], value=padding))
        missing = (output_size[0] if output_size is not None else len(rows)) - len(rows)
        rows += [torch.full_like(rows[0], padding)] * missing
        return torch.stack(rows)

    def _nested_tensor_size(self) -> torch.Tensor:
        return torch.tensor(self._sizes, dtype=torch.int64).reshape(len(self), self.ndim - 1)

    def _nested_tensor_strides(self) -> torch.Tensor:
        found = [
            [math.prod(size[i + 1 :]) for i in range(len(size))] for size in map(list, self._sizes)
        ]
        return torch.tensor(found, dtype=torch.int64).reshape(len(self), self.ndim - 1)

    def _nested_tensor_storage_offsets(self) -> torch.Tensor:
        lengths = torch.tensor([math.prod(size) for size in self._sizes], dtype=torch.int64)
        return lengths.cumsum(0) - lengths

    def __repr__(self, *, tensor_contents=None) -> str:
        texts = []
        for part in self.detach().unbind():
            shown = part.requires_grad_() if self.requires_grad else part
            texts.append("\n".join(f"  {line}" for line in repr(shown).splitlines()))
        end = ""
        if self.grad_fn is not None:
            end = f", grad_fn=<{type(self.grad_fn).__name__}>"
        elif self.requires_grad:
            end = ", requires_grad=True"
        return "nested_tensor([\n" + ",\n".join(texts) + f"\n]{end})"

    __str__ = __repr__

    def __reduce_ex__(self, protocol):
        values = self._values if self._values.is_leaf else self._values.detach()
        if self.requires_grad:  # of which the form that PyTorch reads says nothing
            parts = values, self._nested_tensor_size(), True
            return torch._utils._rebuild_strided_nested_tensor, parts
        layout = self._nested_tensor_strides(), self._nested_tensor_storage_offsets()
        return torch._utils._rebuild_nested_tensor, (values, self._nested_tensor_size(), *layout)


def from_list(components, dtype=None, device=None) -> StridedNestedTensor:
    """The components as a nested tensor; gradients flow back to them."""
    if not components:
        return StridedNestedTensor(torch.empty(0, dtype=dtype, device=device), ())
    for index in range(1, len(components)):
        before, dims = components[index - 1].dim(), components[index].dim()
        if before != dims:
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{dims} for Tensor at index {index} and dimension {before} for Tensor at index "
                f"{index - 1}."
            )
    buffer = torch.cat([c.reshape(-1).to(components[0].dtype) for c in components])
    return StridedNestedTensor(buffer, tuple(tuple(c.shape) for c in components))


# ---- calls ---------------------------------------------------------------------------------------


def _lead(args, kwargs) -> StridedNestedTensor:
    return next(t for t in tensors_in((*args, *kwargs.values())) if t.is_nested)


def _of_component(operand, lead, index):
    """What the component `index` sees of an operand."""
    if not isinstance(operand, torch.Tensor):
        return operand
    if operand.is_nested:
        return operand.unbind()[index]
    if operand.dim() == lead.ndim:
        return operand[index if operand.size(0) > 1 else 0]
    return operand


@implements_strided("pointwise")
def pointwise(func, *args, **kwargs) -> StridedNestedTensor:
    """Element-wise calls: on the buffer, or for each component if a plain tensor takes part."""
    lead = _lead(args, kwargs)
    tensors = [t for t in tensors_in((*args, *kwargs.values())) if t.is_nested or t.dim() > 0]
    if any(t.is_nested and t._sizes != lead._sizes for t in tensors):
        raise RuntimeError(
            f"{name_of(func)} does not support broadcasting when given a NestedTensor"
        )
    if all(t.is_nested for t in tensors):

        def plain(value) -> object:
            return value._values if isinstance(value, StridedNestedTensor) else value

        found = func(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})
        return lead if found is lead._values else lead.like(found)
    if name_of(func).endswith("_"):
        raise not_implemented(f"{name_of(func)} with a plain tensor", lead)
    return each(func, *args, **kwargs)


@implements_strided("linear", "matmul", "bmm", "rms_norm", "layer_norm")
def each(func, *args, **kwargs) -> StridedNestedTensor:
    """The call for each component."""
    lead = _lead(args, kwargs)
    if any(t.is_nested and len(t) != len(lead) for t in tensors_in((*args, *kwargs.values()))):
        raise RuntimeError(f"{name_of(func)}(): the nested tensors differ in their batch")
    if name_of(func) == "bmm":
        func = torch.matmul
    parts = [
        func(
            *(_of_component(a, lead, i) for a in args),
            **{k: _of_component(v, lead, i) for k, v in kwargs.items()},
        )
        for i in range(len(lead))
    ]
    return from_list(parts, lead.dtype, lead.device)


@implements_strided("embedding")
def embedding(func, input, weight, *args, **kwargs):
    """Rows of the weight by number."""
    return from_list([func(c, weight, *args, **kwargs) for c in input.unbind()])


def _narrow_batch(input, start, length) -> StridedNestedTensor:
    """Components start .. start + length, as a view of the buffer."""
    start = start + len(input) if start < 0 else start
    if not 0 <= start <= start + length <= len(input):
        raise RuntimeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({len(input)})."
        )
    before = sum(map(math.prod, input._sizes[:start]))
    sizes = input._sizes[start : start + length]
    return StridedNestedTensor(input._values.narrow(0, before, sum(map(math.prod, sizes))), sizes)


def _batch_error(name) -> str:
    """Why a call along the batch is refused."""
    if name in ("softmax", "log_softmax"):
        return f"{name}(): Cannot apply softmax across nested dimension 0"
    if name in ("sum", "mean", "prod"):
        return f"{name}(): NestedTensor can only be reduced across the last dimensions, not dim=0"
    if name in ("transpose", "swapaxes", "swapdims"):
        return f"{name}(): Nested tensor dimension 0 cannot be transposed"
    if name == "squeeze":
        return "For nested tensors, squeezing dimension 0 is not supported at the moment"
    return f"{name}(): not supported for NestedTensor on dim=0"


@implements_strided(
    *"sum mean prod amax amin any all softmax log_softmax cumsum cumprod unsqueeze squeeze flip "
    "argmax argmin logsumexp var std transpose swapaxes swapdims narrow unflatten".split()
)
def along(func, input, *args, **kwargs):
    """Calls with dimensions as first arguments: those of each component; without, of all."""
    keyword = next((k for k in ("dim", "dims") if k in kwargs), None)
    count = 2 if name_of(func) in ("transpose", "swapaxes", "swapdims") else 1
    if keyword is None and not args:
        if name_of(func) == "squeeze":
            return from_list([c.squeeze() for c in input.unbind()])
        return func(input._values, **kwargs)
    if name_of(func) == "narrow" and wrap_dim(kwargs.get("dim", *args[:1]), input.ndim) == 0:
        return _narrow_batch(input, *args[1:], **{k: v for k, v in kwargs.items() if k != "dim"})
    extra = 1 if name_of(func) == "unsqueeze" else 0

    def inner(dim):
        if isinstance(dim, (tuple, list)):
            return [inner(d) for d in dim]
        found = wrap_dim(dim, input.ndim + extra)
        if found == 0:
            raise RuntimeError(_batch_error(name_of(func)))
        return found - 1

    if keyword is not None:
        kwargs[keyword] = inner(kwargs[keyword])
    else:
        args = (*map(inner, args[:count]), *args[count:])
    return from_list([func(c, *args, **kwargs) for c in input.unbind()])


@implements_strided("max", "min")
def extremum(func, input, *args, **kwargs):
    """The extremum of all elements."""
    if args or kwargs:
        raise not_implemented(f"torch.{name_of(func)} along a dimension", input)
    return func(input._values)


@implements_strided("view", "reshape")
def view(func, input, *shape) -> StridedNestedTensor:
    """Other sizes; -1 stands for the old size of the component in that dimension."""
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if not shape:
        raise RuntimeError("shape '[]' is invalid for a nested tensor")
    if shape[0] not in (-1, len(input)):
        raise RuntimeError(
            f"{name_of(func)}(): For now nested view cannot change the implicit batch dimension"
        )
    parts = []
    for part in input.unbind():
        wanted = list(shape[1:])
        for i, size in enumerate(wanted):
            if size == -1 and wanted.count(-1) > 1:
                wanted[i] = part.size(i)
        parts.append(part.reshape(wanted))
    return from_list(parts)


@implements_strided("select", "__getitem__")
def select(func, input, *args) -> torch.Tensor | StridedNestedTensor:
    """A component by its number."""
    dim, key = (0, args[0]) if name_of(func) == "__getitem__" else args
    if key is Ellipsis:
        return input
    if name_of(func) == "select" and wrap_dim(dim, input.ndim) != 0:
        inner = wrap_dim(dim, input.ndim) - 1
        return from_list([c.select(inner, key) for c in input.unbind()])
    first = key[0] if isinstance(key, tuple) else key
    if dim != 0 or not isinstance(first, int):
        raise not_implemented("indexing other than by the number of a component", input)
    if not -len(input) <= first < len(input):
        raise IndexError(f"index {first} is out of bounds for dimension 0 with size {len(input)}")
    part = input.unbind()[first]
    return part[key[1:]] if isinstance(key, tuple) and len(key) > 1 else part


@implements_strided("chunk")
def chunk(func, input, chunks, dim=0) -> tuple[StridedNestedTensor, ...]:
    """Pieces along a dimension."""
    inner = wrap_dim(dim, input.ndim)
    if inner == 0:
        raise RuntimeError("chunk(): not supported for NestedTensor on dim=0")
    pieces = zip(*(c.chunk(chunks, inner - 1) for c in input.unbind()), strict=True)
    return tuple(from_list(list(p)) for p in pieces)


@implements_strided("split_with_sizes", "split")
def split(func, input, sizes, dim=0) -> tuple[StridedNestedTensor, ...]:
    """Pieces of given sizes along a dimension of the components."""
    inner = wrap_dim(dim, input.ndim) - 1
    if inner < 0:
        raise RuntimeError(f"{name_of(func)}(): not supported for NestedTensor on dim=0")
    total = {size[inner] for size in input._sizes}
    if not isinstance(sizes, int) and total != {sum(sizes)}:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {max(total, default=0)} (input"
            f" tensor's size at dimension {dim}), but got split_sizes={list(sizes)}"
        )
    pieces = zip(*(c.split(sizes, inner) for c in input.unbind()), strict=True)
    return tuple(from_list(list(p)) for p in pieces)


@implements_strided("cat", "concat")
def cat(func, tensors, dim=0) -> StridedNestedTensor:
    """Along the batch the components of all, one after the other; else each component with those
    of the same number."""
    if not all(t.is_nested for t in tensors):
        raise RuntimeError("cat(): expected each tensor in given list to be nested")
    inner = wrap_dim(dim, tensors[0].ndim) - 1
    if inner < 0:
        return from_list([c for t in tensors for c in t.unbind()])
    rest = {(len(t), *((*size[:inner], *size[inner + 1 :]) for size in t._sizes)) for t in tensors}
    if len(rest) != 1:
        raise RuntimeError(
            "cat(): expected all nested tensors to have matching ragged structures outside of the "
            "concatenated dim"
        )
    rows = zip(*(t.unbind() for t in tensors), strict=True)
    return from_list([torch.cat(row, inner) for row in rows])


@implements_strided("fill_")
def fill_(func, input, value) -> StridedNestedTensor:
    """One value for all elements."""
    if isinstance(value, torch.Tensor) and value.dim() != 0:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.dim()} "
            "dimensions."
        )
    input._values.fill_(value)
    return input


@implements_strided("_fused_sdp_choice")
def fused_sdp_choice(func, query, key, value, *args, **kwargs) -> int:
    """Components are attended to one by one, by the plain formula."""
    return torch.nn.attention.SDPBackend.MATH.value


@implements_strided("_native_multi_head_attention")
def native_multi_head_attention(func, query, key, value, *args, **kwargs):
    """Attention within every component; weights are padded with zeros to the longest one."""
    names = ("embed_dim", "num_head", "qkv_weight", "qkv_bias", "proj_weight", "proj_bias", "mask")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if given.get("mask") is not None:
        raise not_implemented("_native_multi_head_attention with a mask", query)
    done = [
        func(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), *args, **kwargs)
        for q, k, v in zip(query.unbind(), key.unbind(), value.unbind(), strict=True)
    ]
    weights = [w for _, w in done if w is not None]
    rows = max((w.shape[-2] for w in weights), default=0)
    columns = max((w.shape[-1] for w in weights), default=0)
    padded = [F.pad(w, (0, columns - w.shape[-1], 0, rows - w.shape[-2])) for w in weights]
    return from_list([o.squeeze(0) for o, _ in done]), torch.cat(padded) if padded else None


@implements_strided("scaled_dot_product_attention")
def scaled_dot_product_attention(func, query, key, value, **options):
    """Attention within each component."""
    parts = zip(query.unbind(), key.unbind(), value.unbind(), strict=True)
    return from_list([F.scaled_dot_product_attention(*p, **options) for p in parts])


@implements_strided(
    *"clone alias zeros_like ones_like empty_like full_like rand_like randn_like to _to_copy cpu "
    "cuda float double half bfloat16 int long short char byte bool pin_memory type_as dropout "
    "cfloat cdouble randint_like".split()
)
def on_values(func, input, *args, **kwargs) -> StridedNestedTensor:
    """Calls that act on the buffer."""
    args = [a._values if isinstance(a, StridedNestedTensor) else a for a in args]
    found = func(input._values, *args, **kwargs)
    return input if found is input._values else input.like(found)


@implements_strided("copy_")
def copy_(func, input, src, non_blocking=False):
    """Overwrites the components with those of another nested tensor of equal sizes."""
    if not input.is_same_size(src):
        raise RuntimeError(
            "copy_ only supports tensors that are the same size for Nested implementations"
        )
    input._values.copy_(src._values, non_blocking)
    return input


@implements_strided("equal")
def equal(func, input, other) -> bool:
    """Whether both have the same components."""
    return input.is_same_size(other) and torch.equal(input._values, other._values)


@implements_strided("detach")
def detach(func, input):
    """The same values without history."""
    return input.detach()


# ---- from padded tensors -------------------------------------------------------------------------


def _nested_tensor_from_mask_left_aligned(t, mask) -> bool:
    """Whether each row of the mask is True up to a place and False from there on."""
    return bool((mask[:, 1:] <= mask[:, :-1]).all())


def _nested_tensor_from_mask(t, mask, mask_check=True) -> StridedNestedTensor:
    """The components t[i, : number of True in mask[i]]."""
    if mask.dtype != torch.bool:
        raise RuntimeError(f"Expected mask to be of ScalarType Bool, but got {mask.dtype} instead.")
    if t.dim() != 3 or mask.dim() != 2 or t.shape[:2] != mask.shape:
        raise RuntimeError(
            "Expected a tensor of 3 dimensions and a mask of its first two, but got "
            f"{tuple(t.shape)} and {tuple(mask.shape)}"
        )
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Expected mask to be left-aligned: True before False in each row")
    lengths = mask.sum(1).tolist()
    return from_list([row[:length] for row, length in zip(t, lengths, strict=True)])


def _nested_from_padded(
    padded, cpu_nested_shape_example, fuse_transform_0213=False
) -> StridedNestedTensor:
    """The components of a padded tensor, of the sizes in the rows of an integer tensor. With
    `fuse_transform_0213` the padded tensor has heads as its second dimension, which become a part
    of the components' last."""
    sizes = cpu_nested_shape_example.tolist()
    if fuse_transform_0213:
        if padded.dim() != 4:
            raise RuntimeError(f"Expected a padded tensor of 4 dimensions, got {padded.dim()}")
        padded = padded.permute(0, 2, 1, 3).flatten(2)
    if len(sizes) != len(padded) or any(len(size) != padded.dim() - 1 for size in sizes):
        raise RuntimeError(
            f"a padded tensor of sizes {tuple(padded.shape)} does not hold components of {sizes}"
        )
    rows = zip(padded, sizes, strict=True)
    return from_list([row[tuple(slice(n) for n in size)] for row, size in rows])


def _nested_from_padded_and_nested_example(padded, nt_example) -> StridedNestedTensor:
    """The components of a padded tensor, of the sizes that those of the example have."""
    if padded.dim() != nt_example.ndim or len(padded) != len(nt_example):
        raise RuntimeError(
            f"a padded tensor of sizes {tuple(padded.shape)} does not hold {len(nt_example)} "
            f"components of {nt_example.ndim - 1} dimensions"
        )
    rows = zip(padded, nt_example._sizes, strict=True)
    return from_list([row[tuple(slice(n) for n in size)] for row, size in rows])
