"""register_sharding: rules for operators by users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.tensor import _dispatch, _rules
from torch.distributed.tensor._signature import Letters, Signature, Strategy
from torch.distributed.tensor.placement_types import Placement, Replicate

if TYPE_CHECKING:
    from torch.distributed.tensor._dispatch import Call

OpOverload = torch._ops.OpOverload


def register_sharding(op: OpOverload | Sequence[OpOverload]) -> Callable:
    """Makes a function the rule of operators. It gets the call's arguments, tensors as specs, and
    returns pairs of placements along one mesh dimension: those of the outputs, and those of all
    arguments, None for what is no tensor."""

    def register(rule: Callable) -> Callable:
        for one in [op] if isinstance(op, OpOverload) else op:
            _rules.set_rule(one, lambda call, rule=rule: _signature(call, rule))
        _dispatch.clear_plans()
        return rule

    return register


def _signature(call: Call, rule: Callable) -> Signature:
    names = [argument.name for argument in call.op._schema.arguments]
    given = [call.arguments[name] for name in names if not _keyword(call, name)]
    while given and given[-1] is None and len(given) > len(call.positions):
        given.pop()
    named = {name: call.arguments[name] for name in names if _keyword(call, name)}
    made = []
    for outputs, inputs in rule(*given, **named):
        flat = [p for p in _flat(inputs) if isinstance(p, Placement)]
        outs = tuple(p for p in _flat(outputs) if isinstance(p, Placement))
        made.append(Strategy(tuple(flat), outs))
    letters = Letters()
    ins = {i: letters.dims(spec.shape) for i, spec in enumerate(call.tensors)}
    outs = {o: letters.dims(meta.shape) for o, meta in enumerate(call.results)}
    whole = Strategy((Replicate(),) * len(ins), (Replicate(),) * len(outs))
    extra = [one for one in made if one != whole]
    return Signature(ins, outs, letters.sizes, frozen=set(letters.sizes), extra=extra)


def _keyword(call: Call, name: str) -> bool:
    return any(a.name == name and a.kwarg_only for a in call.op._schema.arguments)


def _flat(values: Any) -> list[Any]:
    if isinstance(values, (list, tuple)):
        return [one for value in values for one in _flat(value)]
    return [values]
