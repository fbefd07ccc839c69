"""Operators on lists of tensors: optimizers and their helpers. The n-th tensors of all lists belong
together; each such group is a pointwise call of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.tensor._rules import base_name, rule
from torch.distributed.tensor._rules.pointwise import linear_in
from torch.distributed.tensor._signature import Letters, Signature, broadcast_dims
from torch.distributed.tensor.placement_types import _NormPartial

if TYPE_CHECKING:
    from torch.distributed.tensor._dispatch import Call, LocalCall


@rule("_foreach", reads_floats=True)
def foreach(call: Call) -> list[Signature]:
    """One signature for each place of the lists; single tensors are numbers for all of them."""
    name = base_name(call.op)
    lists, shared = _columns(call)
    found = []
    short = name.removeprefix("_foreach_") if name.startswith("_foreach_") else ""
    numbers = any(
        isinstance(value, (int, float)) or (isinstance(value, list) and _is_numbers(value))
        for key, value in call.arguments.items()
        if key in ("scalar", "scalars")
    )
    for n, members in enumerate(lists):
        letters = Letters()
        dims = letters.dims(call.tensors[members[0]].shape)
        inputs = {i: broadcast_dims(letters, dims, call.tensors[i].shape) for i in members}
        made = Signature(inputs, {}, letters.sizes)
        if n < len(call.results):
            made.outputs = {n: () if short == "norm" else dims}
        if short == "norm":
            made.reduces = dict.fromkeys(letters.sizes, _norm(call))
        else:
            made.linear = linear_in(short, members, numbers)
        found.append(made)
    if shared:
        found.append(Signature(dict.fromkeys(shared, ()), {}, {}))
    return found


def _is_numbers(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(value, (int, float)) for value in values)


def _norm(call: Call) -> Any:
    order = call.arguments.get("ord", 2)
    joined = _NormPartial.of(float(order))
    return joined if joined.reduce_op == "sum" else f"nonempty:{joined.reduce_op}"


def _columns(call: Call) -> tuple[list[list[int]], list[int]]:
    """The tensors that belong together, and those that belong to all."""
    lists = [
        call.positions[name]
        for name, value in call.arguments.items()
        if isinstance(value, list) and name in call.positions
    ]
    longest = max(len(one) for one in lists)
    columns = [[one[n] for one in lists if n < len(one)] for n in range(longest)]
    inside = {i for one in lists for i in one}
    return columns, [i for i in range(len(call.tensors)) if i not in inside]


@rule("_amp_foreach_non_finite_check_and_unscale")
def unscale(call: Call) -> list[Signature]:
    """Each rank looks at its parts; what one finds all know."""
    found = foreach(call)
    found[0].local = _unscale
    return found


def _unscale(local: LocalCall) -> None:
    from torch.distributed import _functional_collectives as functional

    local.op(*local.args, **local.kwargs)
    seen: torch.Tensor = local.args[1]
    mesh = local.inputs[0].mesh
    for dim in range(mesh.ndim):
        seen.copy_(functional.all_reduce(seen, "max", (mesh, dim)))


# ---- lists of tensors of several meshes
def groups(cls: type, tensors: Any) -> list[list[int]]:
    """The places of a list's tensors by mesh; plain tensors are a group of their own."""
    found: dict[Any, list[int]] = {}
    for n, tensor in enumerate(tensors):
        found.setdefault(tensor._spec.mesh if isinstance(tensor, cls) else None, []).append(n)
    return list(found.values())


def _picked(value: Any, members: list[int], length: int) -> Any:
    if isinstance(value, (list, tuple)) and len(value) == length:
        return [value[n] for n in members]
    return value


def columns(args: tuple, members: list[int]) -> list[Any]:
    """Arguments with the given places of each list."""
    return [_picked(value, members, len(args[0])) for value in args]


def named(kwargs: dict[str, Any], args: tuple, members: list[int]) -> dict[str, Any]:
    """The same of arguments by name."""
    return {name: _picked(value, members, len(args[0])) for name, value in kwargs.items()}
