"""Operators that change the shape: dimensions are permuted, split, merged, repeated, cut out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.distributed.tensor._rules import base_name, listed, normal, rule
from torch.distributed.tensor._signature import Dims, Letters, Signature, Strategy, reshaped

if TYPE_CHECKING:
    from torch.distributed.tensor._dispatch import Call


def _view(call: Call, made: Signature) -> Signature:
    """A shape change keeps parts of sums what they are."""
    kinds = {p for p in call.tensors[0].placements if p.is_partial()}
    made.extra = [Strategy((p,), (p,) * len(made.outputs)) for p in kinds]
    return made


@rule("view _unsafe_view reshape _reshape_alias view_copy")
def view(call: Call) -> Signature:
    """Old and new dimensions as products of common factors."""
    letters = Letters()
    before, after, frozen = reshaped(letters, call.shape("self"), call.results[0].shape)
    made = Signature({0: before}, {0: after}, letters.sizes, frozen=frozen)
    if "size" in call.arguments:
        made.sizes = {"size": 0}
    else:
        made.frozen = set(letters.sizes)
    return _view(call, made)


@rule("unflatten flatten")
def flatten(call: Call) -> Signature:
    """As a view; the sizes are the operator's own affair."""
    letters = Letters()
    before, after, frozen = reshaped(letters, call.shape("self"), call.results[0].shape)
    return _view(call, Signature({0: before}, {0: after}, letters.sizes, frozen=frozen))


@rule("t transpose permute numpy_T mT swapaxes unsqueeze squeeze movedim alias_copy swapdims")
def arrange(call: Call) -> Signature:
    """Dimensions in another order; those of length one come and go."""
    letters = Letters()
    own = letters.dims(call.shape("self"))
    name = base_name(call.op)
    ndim = len(own)
    arguments = call.arguments
    if name == "t":
        after = own[::-1]
    elif name in ("transpose", "swapaxes", "swapdims"):
        names = ("dim0", "dim1") if "dim0" in arguments else ("axis0", "axis1")
        a, b = (normal(arguments[n], ndim) for n in names)
        order = list(own)
        if own:
            order[a], order[b] = own[b], own[a]
        after = tuple(order)
    elif name == "permute":
        after = tuple(own[normal(dim, ndim)] for dim in arguments["dims"])
    elif name == "unsqueeze":
        at = normal(arguments["dim"], ndim + 1)
        after = (*own[:at], (), *own[at:])
    elif name == "squeeze":
        dims = listed(arguments.get("dim"), ndim)
        shape = call.shape("self")
        after = tuple(dim for i, dim in enumerate(own) if i not in dims or shape[i] != 1)
    else:
        raise NotImplementedError(f"{call.op}: no sharding rule for this form")
    made = _view(call, Signature({0: own}, {0: after}, letters.sizes))
    if name == "squeeze":
        # A part of one element must not lose its dimension, nor a whole one keep it.
        made.local = _squeeze_known([i for i in dims if shape[i] == 1])
    return made


def _squeeze_known(dims: list[int]):
    def run(local):
        tensor = local.args[0]
        return tensor.squeeze(dims) if not local.op._schema.is_mutable else tensor.squeeze_(dims)

    return run


@rule("expand expand_copy")
def expand(call: Call) -> Signature:
    """New and stretched dimensions are free."""
    letters = Letters()
    after = letters.dims(call.results[0].shape)
    shape = call.shape("self")
    tail = after[len(after) - len(shape) :]
    new = call.results[0].shape[len(after) - len(shape) :]
    own = tuple(
        dim if size == grown else () for dim, size, grown in zip(tail, shape, new, strict=True)
    )
    return _view(call, Signature({0: own}, {0: after}, letters.sizes, sizes={"size": 0}))


@rule("repeat tile")
def repeat(call: Call) -> Signature:
    """A dimension that is repeated is whole."""
    letters = Letters()
    own = letters.dims(call.shape("self"))
    times = call.arguments.get("repeats", call.arguments.get("dims"))
    lead = len(call.results[0].shape) - len(own)
    frozen: set[int] = set()
    after: list[tuple[int, ...]] = []
    for i, size in enumerate(call.results[0].shape):
        factor = times[i - (len(call.results[0].shape) - len(times))] if len(times) > 0 else 1
        if i >= lead and factor == 1:
            after.append(own[i - lead])
        else:
            letter = letters.new(size)
            frozen.add(letter)
            if i >= lead:
                frozen.add(own[i - lead][0])
            after.append((letter,))
    return _view(call, Signature({0: own}, {0: tuple(after)}, letters.sizes, frozen=frozen))


def _one_frozen(call: Call, dims: set[int]) -> tuple[Letters, Dims, set[int]]:
    letters = Letters()
    own = letters.dims(call.tensors[0].shape)
    return letters, own, {own[i][0] for i in dims}


def _result(letters: Letters, own: Dims, shape: tuple[int, ...], frozen: set[int]) -> Dims:
    """Letters of a result whose frozen dimensions may have another length."""
    made = []
    for dim, size in zip(own, shape, strict=True):
        if letters.sizes[dim[0]] != size:
            letter = letters.new(size)
            frozen.add(letter)
            dim = (letter,)
        made.append(dim)
    return tuple(made)


@rule(
    "slice narrow constant_pad_nd tril triu _slice_copy reflection_pad1d repeat_interleave.self_int"
)
def keep(call: Call) -> Signature:
    """Dimensions whose length changes are whole; of a matrix's triangle both are."""
    letters = Letters()
    own = letters.dims(call.shape("self"))
    frozen: set[int] = set()
    if base_name(call.op) in ("tril", "triu"):
        frozen = {dim[0] for dim in own[-2:]}
    for dim, size in zip(own, call.results[0].shape, strict=True):
        if letters.sizes[dim[0]] != size:
            frozen.add(dim[0])
    if base_name(call.op) == "slice" and call.arguments.get("step", 1) not in (1, None):
        frozen.add(own[normal(call.arguments["dim"], len(own))][0])
    after = _result(letters, own, call.results[0].shape, frozen)
    made = Signature({0: own}, {0: after}, letters.sizes, frozen=frozen)
    if base_name(call.op) != "constant_pad_nd" or call.arguments.get("value") in (0, None):
        _view(call, made)
    return made


@rule("split split_with_sizes chunk tensor_split unsafe_split unsafe_chunk unsafe_split_with_sizes")
def split(call: Call) -> Signature:
    """The dimension is whole, and so it is in every result."""
    ndim = len(call.shape("self"))
    at = normal(call.arguments["dim"], ndim)
    letters, own, frozen = _one_frozen(call, {at})
    outputs = {o: _result(letters, own, meta.shape, frozen) for o, meta in enumerate(call.results)}
    return _view(call, Signature({0: own}, outputs, letters.sizes, frozen=frozen))


@rule("select unbind diagonal")
def drop(call: Call) -> Signature:
    """A dimension that is whole disappears."""
    ndim = len(call.shape("self"))
    if base_name(call.op) == "diagonal":
        gone = {normal(call.arguments[n], ndim) for n in ("dim1", "dim2")}
    else:
        gone = {normal(call.arguments["dim"], ndim)}
    letters, own, frozen = _one_frozen(call, gone)
    rest = tuple(dim for i, dim in enumerate(own) if i not in gone)
    outputs = {}
    for o, meta in enumerate(call.results):
        new = letters.dims(meta.shape[len(rest) :])
        frozen.update(dim[0] for dim in new)
        outputs[o] = (*rest, *new)
    return _view(call, Signature({0: own}, outputs, letters.sizes, frozen=frozen))


@rule("select_backward slice_backward diagonal_backward")
def drop_backward(call: Call) -> Signature:
    """The gradient of a part: zeros around it, so the dimension is whole."""
    letters = Letters()
    whole = letters.dims(call.results[0].shape)
    ndim = len(whole)
    names = ("dim1", "dim2") if "dim1" in call.arguments else ("dim",)
    dims = {normal(call.arguments[name], ndim) for name in names}
    frozen = {whole[i][0] for i in dims}
    rest = [dim for i, dim in enumerate(whole) if i not in dims]
    shape = call.tensors[0].shape
    if len(shape) == ndim:
        own = _result(letters, whole, shape, frozen)
    else:
        new = letters.dims(shape[len(rest) :])
        frozen.update(dim[0] for dim in new)
        own = (*rest, *new)
    made = Signature({0: own}, {0: whole}, letters.sizes, frozen=frozen)
    made.sizes = {"input_sizes": 0}
    return _view(call, made)


@rule("cat concat concatenate stack")
def join(call: Call) -> Signature:
    """Tensors joined along a dimension, which is whole."""
    letters = Letters()
    result = list(letters.dims(call.results[0].shape))
    at = normal(call.arguments["dim"], len(result))
    letters_at = result[at][0]
    frozen = {letters_at}
    inputs: dict[int, Dims] = {}
    for i, spec in enumerate(call.tensors):
        if base_name(call.op) == "stack":
            inputs[i] = tuple(result[:at] + result[at + 1 :])
        elif len(spec.shape) != len(result):
            # An old rule: a tensor without elements may have any shape.
            inputs[i] = tuple(() for _ in spec.shape)
        else:
            letter = letters.new(spec.shape[at])
            frozen.add(letter)
            inputs[i] = (*result[:at], (letter,), *result[at + 1 :])
    made = Signature(inputs, {0: tuple(result)}, letters.sizes, frozen=frozen)
    kinds = {p for p in call.tensors[0].placements if p.is_partial()}
    made.extra = [Strategy((p,) * len(inputs), (p,)) for p in kinds]
    return made


@rule("view_as_complex view_as_real _view_as_complex_copy view_as_real_copy")
def pairs(call: Call) -> Signature:
    """A last dimension of two, real and imaginary part, disappears or comes: it is whole."""
    letters = Letters()
    splits = call.op._schema.name.endswith(("real", "real_copy"))
    whole = letters.dims(call.results[0].shape if splits else call.shape("self"))
    before, after = (whole[:-1], whole) if splits else (whole, whole[:-1])
    made = Signature({0: before}, {0: after}, letters.sizes, frozen={whole[-1][0]})
    return _view(call, made)


@rule("as_strided as_strided_scatter view.dtype unfold_backward")
def opaque(call: Call) -> Signature:
    """Strides speak of the whole tensor's memory: all is whole."""
    letters = Letters()
    inputs = {i: letters.dims(spec.shape) for i, spec in enumerate(call.tensors)}
    outputs = {o: letters.dims(meta.shape) for o, meta in enumerate(call.results)}
    return Signature(inputs, outputs, letters.sizes, frozen=set(letters.sizes))
