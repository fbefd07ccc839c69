"""Element-wise calls, copies and conversions of jagged nested tensors: the same call on the values.

A plain operand is brought to the shape of the values first. What it may look like follows from
broadcasting: size 1 or absent in the ragged dimension, or padded to the longest component."""

from __future__ import annotations

import torch
from torch.nested._jagged import NestedTensor, from_components
from torch.nested._registry import implements, name_of, tensors_in


def _shape_error(func, a, b):
    return RuntimeError(
        f"cannot call binary pointwise function {name_of(func)} with inputs of shapes "
        f"{_shape(a)} and {_shape(b)}"
    )


def _shape(tensor):
    return tuple(tensor.shape)


def fitting_values(func, lead, operand) -> torch.Tensor:
    """The values of an operand, in a form that broadcasts against the values of `lead`."""
    if isinstance(operand, NestedTensor):
        fits = operand._structure.symbol == lead._structure.symbol
        if not fits or operand.ndim != lead.ndim or operand._ragged_idx != lead._ragged_idx:
            raise _shape_error(func, lead, operand)
        return operand._values
    if operand.dim() == 0:
        return operand
    if operand.dim() > lead.ndim:
        raise NotImplementedError(
            f"{name_of(func)}: broadcasting a nested tensor of shape {_shape(lead)} with a plain "
            f"tensor of more dimensions, {_shape(operand)}"
        )
    return _fitting_rows(func, lead, operand)


def _fitting_rows(func, lead, plain) -> torch.Tensor:
    ragged_idx, structure = lead._ragged_idx, lead._structure
    missing = lead.ndim - plain.dim()
    batch = plain.size(0) if missing == 0 else 1
    ragged = plain.size(ragged_idx - missing) if ragged_idx >= missing else 1
    if batch == 1 and ragged == 1:
        return plain.squeeze(0) if missing == 0 else plain
    full = plain.reshape((1,) * missing + tuple(plain.shape))
    if batch not in (1, structure.batch):
        raise _shape_error(func, lead, plain)
    if ragged == 1:
        rows = full.squeeze(ragged_idx).index_select(0, structure.value_owners(lead._total))
    elif missing == 0 and ragged == structure.longest and structure.fills(lead._total):
        full = full.expand(structure.batch, *full.shape[1:]).movedim(ragged_idx, 1)
        rows = full.flatten(0, 1).index_select(0, structure.padded_rows(ragged))
    else:
        raise _shape_error(func, lead, plain)
    return rows.movedim(0, ragged_idx - 1)


def wrap_result(lead, result):
    """Tensors of a result, which are values, as nested tensors; `lead` itself for its own."""
    if isinstance(result, torch.Tensor):
        return lead if result is lead._values else lead.like(result)
    if isinstance(result, (tuple, list)):
        return type(result)([wrap_result(lead, r) for r in result])
    return result


@implements("pointwise")
def pointwise(func, *args, **kwargs) -> NestedTensor:
    """Any call that works element by element."""
    lead = next(t for t in tensors_in((*args, *kwargs.values())) if t.is_nested)
    in_place = name_of(func).endswith("_") and not name_of(func).startswith("__")
    if in_place and not args[0].is_nested:
        raise RuntimeError(
            f"{name_of(func)}(): a plain tensor cannot be changed in place by nested ones"
        )

    def convert(value) -> str | float | torch.Tensor:
        return fitting_values(func, lead, value) if isinstance(value, torch.Tensor) else value

    result = func(*map(convert, args), **{k: convert(v) for k, v in kwargs.items()})
    return wrap_result(lead, result)


@implements(
    "zeros_like",
    "ones_like",
    "empty_like",
    "full_like",
    "rand_like",
    "randn_like",
    "randint_like",
    "bernoulli",
    "dropout",
    "alpha_dropout",
    "native_dropout",
)
def on_values(func, input, *args, **kwargs) -> NestedTensor:
    """Calls with one tensor that only look at its values."""
    if kwargs.get("layout") is torch.strided:
        raise NotImplementedError(
            f"{name_of(func)}: a plain tensor like a nested one; use to_padded_tensor() first"
        )
    kwargs.pop("layout", None)
    result = func(input._values, *args, **kwargs)
    moved = _on_device(input, kwargs.get("device"))
    return wrap_result(moved, result)


def _on_device(nested, device):
    """A tensor that lends its structure on a device."""
    structure = nested._structure.to(nested.device if device is None else device)
    if structure is nested._structure:
        return nested
    return NestedTensor(nested._values, structure, nested._ragged_idx)


@implements("clone", "alias")
def clone(func, input, **kwargs) -> NestedTensor:
    """Copies of the values; the structure is shared."""
    return input.like(func(input._values, **kwargs))


@implements(
    *"to _to_copy cpu cuda float double half bfloat16 int long short char byte bool cfloat cdouble "
    "chalf type_as".split()
)
def convert(func, input, *args, **kwargs):
    """Conversions of dtype and device."""
    if not isinstance(input, NestedTensor):
        return func(input, *_plain(args), **kwargs)
    values = func(input._values, *_plain(args), **kwargs)
    if values is input._values:
        return input
    structure = input._structure.to(values.device)
    return NestedTensor(values, structure, input._ragged_idx)


def _plain(args):
    return [a._values if isinstance(a, NestedTensor) else a for a in args]


@implements("pin_memory")
def pin_memory(func, input, device=None):
    """The values in pinned memory."""
    return input.like(input._values.pin_memory())


@implements("copy_")
def copy_(func, input, src, non_blocking=False):
    """Overwrites the components with those of another nested tensor of equal lengths."""
    if not isinstance(input, NestedTensor) or not isinstance(src, NestedTensor):
        raise ValueError("copy_(): expected self and src to be nested tensors of the jagged layout")
    if src.ndim != input.ndim or src._structure.seqlens != input._structure.seqlens:
        raise RuntimeError(
            "copy_(): the components must have equal sizes, got lengths "
            f"{input._structure.seqlens} and {src._structure.seqlens}"
        )
    for to, source in zip(input.unbind(), src.unbind(), strict=True):
        if to.shape != source.shape:
            raise RuntimeError(
                f"copy_(): components of sizes {_shape(to)} and {_shape(source)} do not match"
            )
    if input._structure.bounds == src._structure.bounds and input._total == src._total:
        input._values.copy_(src._values, non_blocking)
        return input
    for to, source in zip(input._components(), src._components(), strict=True):
        to.copy_(source, non_blocking)
    return input


@implements("new_empty", "new_zeros", "new_ones", "new_full", "new_tensor", "new_empty_strided")
def new_plain(func, input, *args, **kwargs):
    """Plain tensors of this one's dtype and device."""
    return func(input._values, *args, **kwargs)


@implements("result_type")
def result_type(func, *args, **kwargs) -> torch.dtype:
    """The dtype of a computation with both."""
    return func(*_plain(args), **kwargs)


@implements("equal")
def equal(func, input, other):
    """Whether both have the same components."""
    if not (input.is_nested and other.is_nested) or input.ndim != other.ndim:
        return False
    if input._ragged_idx != other._ragged_idx:
        return False
    if input._structure.seqlens != other._structure.seqlens:
        return False
    return torch.equal(input._packed(), other._packed())


@implements("allclose")
def allclose(func, input, other, *args, **kwargs):
    """Whether all elements are close."""
    a, b = input._compact(), other
    if isinstance(b, NestedTensor):
        b = b._compact()
        if b._structure.seqlens != a._structure.seqlens or b.ndim != a.ndim:
            raise _shape_error(func, input, other)
        return func(a._values, b._values, *args, **kwargs)
    return func(a._values, fitting_values(func, a, b), *args, **kwargs)


@implements("one_hot")
def one_hot(func, input, num_classes=-1):
    """A new last dimension with a one at the class."""
    return input.like(func(input._values, num_classes))


@implements("detach", "detach_copy")
def detach(func, input):
    """The same values without history."""
    return input.detach()


@implements("values", "_nested_get_values")
def values(func, input):
    """The values."""
    return input.values()


@implements("to_padded_tensor", "nested_to_padded_tensor")
def to_padded_tensor(func, input, padding, output_size=None) -> torch.Tensor:
    """The padded form."""
    return input.to_padded_tensor(padding, output_size)


@implements("masked_select")
def masked_select(func, input, mask):
    """The selected elements of every component, as a nested tensor of two dimensions."""
    chosen = fitting_values(func, input, mask)
    picked = [
        torch.masked_select(c, m)
        for c, m in zip(
            input._components(), input._components(chosen.expand_as(input._values)), strict=True
        )
    ]
    return from_components(picked, 1)
