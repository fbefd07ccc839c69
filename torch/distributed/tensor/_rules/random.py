"""Operators that draw random numbers. The numbers are those that one process would draw for the
whole tensor, of which each rank keeps its part: results do not depend on how a tensor is placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.tensor import _random
from torch.distributed.tensor._dtensor_spec import DTensorSpec, local_part
from torch.distributed.tensor._rules import base_name, rule
from torch.distributed.tensor._rules.pointwise import pointwise
from torch.distributed.tensor._signature import Letters, Signature, Strategy
from torch.distributed.tensor.placement_types import Replicate

if TYPE_CHECKING:
    from torch.distributed.tensor._dispatch import Call, LocalCall

_FRESH = ("rand_like", "randn_like", "randint_like")


@rule("_random")
def random(call: Call) -> Signature:
    """Elements are independent; operators that read probabilities get them whole."""
    shape = tuple(call.tensors[0].shape)
    name = base_name(call.op)
    by_element = call.op._schema.is_mutable or name in _FRESH or name == "native_dropout"
    if not by_element or any(tuple(meta.shape) != shape for meta in call.results):
        letters = Letters()
        inputs = {i: letters.dims(spec.shape) for i, spec in enumerate(call.tensors)}
        outputs = {o: letters.dims(meta.shape) for o, meta in enumerate(call.results)}
        made = Signature(inputs, outputs, letters.sizes, frozen=set(letters.sizes))
    else:
        made = pointwise(call)
        made.linear = []
    made.local = _draw
    if name in _FRESH:
        kinds = {p for p in call.tensors[0].placements if p.is_partial()}
        made.extra = [Strategy((p,), (Replicate(),)) for p in kinds]
    return made


def part_of(whole: torch.Tensor, spec: DTensorSpec) -> torch.Tensor:
    """This process's part of a tensor that it has drawn in full."""
    sizes, offsets = local_part(spec)
    for dim, (size, offset) in enumerate(zip(sizes, offsets, strict=True)):
        whole = whole.narrow(dim, offset, size)
    return whole


def _draw(local: LocalCall) -> Any:
    """Draws for the whole tensor and keeps a part; a tensor that is whole is drawn as it is."""
    spec = local.inputs[0]
    _random.agree(spec.mesh)
    if not spec.is_sharded():
        return local.op(*local.args, **local.kwargs)
    tensor = local.args[0]
    if local.op._schema.is_mutable or base_name(local.op) in _FRESH:
        whole = torch.empty(spec.shape, dtype=tensor.dtype, device=tensor.device)
        drawn = part_of(local.op(whole, *local.args[1:], **local.kwargs), spec)
        return tensor.copy_(drawn) if local.op._schema.is_mutable else drawn.contiguous()
    return _dropout(local, tensor, spec)


def _dropout(
    local: LocalCall, tensor: torch.Tensor, spec: DTensorSpec
) -> tuple[torch.Tensor, torch.Tensor]:
    p, train = local.args[1], local.args[2]
    ones = torch.ones(spec.shape, dtype=tensor.dtype, device=tensor.device)
    mask = part_of(local.op(ones, p, train)[1], spec).contiguous()
    scale = 1.0 / (1.0 - p) if p < 1 else 0.0
    return (tensor * mask * scale if train is not False else tensor), mask
