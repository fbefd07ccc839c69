"""Tables and indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.tensor._dtensor_spec import local_part
from torch.distributed.tensor._rules import normal, rule
from torch.distributed.tensor._signature import Dims, Letters, Signature, broadcast_dims

if TYPE_CHECKING:
    from torch.distributed.tensor._dispatch import Call, LocalCall


@rule("embedding")
def embedding(call: Call) -> Signature:
    """`vd, i* -> i* d`. A table that is cut by rows looks up its own rows and gives zeros for the
    others, which is a part of a sum."""
    letters = Letters()
    table = letters.dims(call.shape("weight"))
    index = letters.dims(call.shape("indices"))
    return Signature(
        {0: table, 1: index},
        {0: (*index, table[1])},
        letters.sizes,
        reduces={table[0][0]: "sum"},
        local=_look_up,
    )


def _look_up(local: LocalCall) -> torch.Tensor:
    table, index = local.args[:2]
    spec = local.inputs[0]
    if not any(p.is_shard(0) for p in spec.placements):
        return local.op(*local.args, **local.kwargs)
    (rows, *_), (begin, *_) = local_part(spec)
    own = index - begin
    foreign = (own < 0) | (own >= rows)
    if not rows:
        return table.new_zeros((*index.shape, table.size(1)))
    found = local.op(table, own.masked_fill(foreign, 0))
    return found.masked_fill_(foreign.unsqueeze(-1), 0)


@rule("embedding_dense_backward")
def embedding_backward(call: Call) -> Signature:
    """`i* d, i* -> vd`: each part of the batch has a part of the sum."""
    letters = Letters()
    index = letters.dims(call.shape("indices"))
    table = letters.dims(call.results[0].shape)
    sums = {dim[0]: "sum" for dim in index}
    return Signature(
        {0: (*index, table[1]), 1: index},
        {0: table},
        letters.sizes,
        reduces=sums,
        frozen={table[0][0]},
        linear=[(frozenset([0]), ("sum",))],
    )


@rule("index_select index_add index_copy index_fill")
def index_select(call: Call) -> Signature:
    """Along a dimension that is whole."""
    letters = Letters()
    own = letters.dims(call.shape("self"))
    at = normal(call.arguments["dim"], len(own)) if own else 0
    frozen = {own[at][0]} if own else set()
    picked = letters.new(call.tensors[call.at("index")].tensor_meta.shape.numel())
    inputs = {0: own}
    index = ((picked,),) if len(call.shape("index")) else ()
    inputs[call.at("index")] = index
    change = call.op._schema.name.rpartition("::")[2].rstrip("_") != "index_select"
    if change:
        frozen.add(picked)
    if call.at("source") >= 0:
        inputs[call.at("source")] = (*own[:at], (picked,), *own[at + 1 :])
    if call.at("value") >= 0:
        inputs[call.at("value")] = ()
    result = own if change else (*own[:at], (picked,), *own[at + 1 :])
    return Signature(dict(sorted(inputs.items())), {0: result}, letters.sizes, frozen=frozen)


@rule("gather scatter scatter_add scatter_reduce take_along_dim gather_backward")
def gather(call: Call) -> Signature:
    """Along a dimension that is whole; others are free where all tensors have the same length."""
    letters = Letters()
    own = letters.dims(call.shape("self"))
    at = normal(call.arguments["dim"], len(own)) if own else 0
    frozen = {own[at][0]} if own else set()

    def like(shape: tuple[int, ...]) -> Dims:
        made = []
        for i, size in enumerate(shape):
            if i == at or size != letters.sizes[own[i][0]]:
                if i != at:
                    frozen.add(own[i][0])
                letter = letters.new(size)
                frozen.add(letter)
                made.append((letter,))
            else:
                made.append(own[i])
        return tuple(made)

    inputs = {0: own}
    for i, spec in enumerate(call.tensors[1:], 1):
        inputs[i] = like(spec.shape)
    written = call.op._schema.name.rpartition("::")[2].rstrip("_") != "gather"
    result = own if written else like(call.results[0].shape)
    if not written and result:
        # The index and the result have one length.
        letter = inputs[1][at][0]
        result = (*result[:at], (letter,), *result[at + 1 :])
        frozen.discard(letter)
    return Signature(inputs, {0: result}, letters.sizes, frozen=frozen)


@rule("index.Tensor _unsafe_index")
def index(call: Call) -> Signature:
    """Dimensions with an index are whole; the rest and the indices' own dimensions are free."""
    letters, own, picked, others, place = _indexed(call)
    spread = [spec.shape for spec in call.tensors[1:]]
    inputs = {0: own}
    for i, shape in enumerate(spread, 1):
        inputs[i] = broadcast_dims(letters, picked, shape)
    result = (*others[:place], *picked, *others[place:])
    frozen = {dim[0] for dim in own if dim not in others}
    return Signature(inputs, {0: result}, letters.sizes, frozen=frozen)


@rule("index_put _index_put_impl _unsafe_index_put")
def index_put(call: Call) -> Signature:
    """As reading by index; the indices are whole, because any part of the tensor may be meant."""
    letters, own, picked, others, place = _indexed(call, -1)
    inputs = {0: own}
    for i in range(1, len(call.tensors) - 1):
        inputs[i] = broadcast_dims(letters, picked, call.tensors[i].shape)
    result = (*others[:place], *picked, *others[place:])
    inputs[len(call.tensors) - 1] = broadcast_dims(letters, result, call.tensors[-1].shape)
    frozen = {dim[0] for dim in own if dim not in others} | {dim[0] for dim in picked}
    return Signature(inputs, {0: own}, letters.sizes, frozen=frozen)


def _indexed(call: Call, end: int | None = None) -> tuple[Letters, Dims, Dims, Dims, int]:
    """Letters of the tensor and of the broadcast indices, the dimensions without index, and where
    among these the indices' dimensions come."""
    letters = Letters()
    own = letters.dims(call.shape("self"))
    given: list[Any] = call.arguments["indices"]
    has = [i for i, one in enumerate(given) if one is not None]
    shapes = [tuple(spec.shape) for spec in call.tensors[1:end]]
    if any(spec.tensor_meta.dtype in (torch.bool, torch.uint8) for spec in call.tensors[1:end]):
        raise NotImplementedError(f"{call.op}: masks of distributed tensors have no fixed length")
    picked = letters.dims(torch.broadcast_shapes(*shapes))
    others = tuple(dim for i, dim in enumerate(own) if i not in has)
    together = has == list(range(has[0], has[0] + len(has)))
    return letters, own, picked, others, has[0] if together else 0
