"""The sharding rules: for each kind of operator one function that makes the signature of a call
(see `_signature`). Operators are found by name, or by what their definition says of them: pointwise
operators and those that draw random numbers carry a tag."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

OpOverload = torch._ops.OpOverload


class Rule(NamedTuple):
    """make(call) returns the signature of a call, or one for each of several independent groups of
    its tensors; reads_floats says whether it depends on the values of floats, lists that the call
    writes to lists whose tensors may belong to different meshes."""

    make: Callable
    reads_floats: bool
    lists: bool = False


_by_name: dict[str, Rule] = {}
_handlers: dict[str, Callable] = {}
_found: dict[OpOverload, tuple[Rule | None, Callable | None]] = {}


def rule(names: str, *, reads_floats: bool = False) -> Callable:
    """Makes a function the rule of operators, named as `sum` or, for one overload,
    `sum.default`."""

    def register(make: Callable) -> Callable:
        for name in names.split():
            _by_name[name] = Rule(make, reads_floats)
        return make

    return register


def handler(names: str) -> Callable:
    """Makes a function(op, args, kwargs) what an operator does, for those without local form."""

    def register(function: Callable) -> Callable:
        for name in names.split():
            _handlers[name] = function
        return function

    return register


def base_name(op: OpOverload) -> str:
    """The name of an operator without namespace, overload and the mark of in-place forms."""
    return op._schema.name.rpartition("::")[2].rstrip("_")


def _lookup(op: OpOverload) -> tuple[Rule | None, Callable | None]:
    space, _, name = op._schema.name.rpartition("::")
    prefix = "" if space == "aten" else f"{space}::"
    keys = [f"{prefix}{name}.{op._overloadname}", prefix + name, prefix + name.rstrip("_")]
    for key in keys:
        if key in _handlers:
            return None, _handlers[key]
    for key in keys:
        if key in _by_name:
            return _by_name[key], None
    if name.startswith("_foreach_"):
        return _by_name["_foreach"], None
    if name.startswith("_fused_") and op._schema.is_mutable:
        return _by_name["_foreach"]._replace(lists=True), None
    if torch.Tag.nondeterministic_seeded in op.tags:
        return _by_name["_random"], None
    if torch.Tag.pointwise in op.tags:
        return _by_name["_pointwise"], None
    return None, None


def _entry(op: OpOverload) -> tuple[Rule | None, Callable | None]:
    found = _found.get(op)
    if found is None:
        found = _found[op] = _lookup(op)
    return found


def rule_of(op: OpOverload) -> Rule | None:
    """The rule of an operator, if it has one."""
    return _entry(op)[0]


def handler_of(op: OpOverload) -> Callable | None:
    """What an operator does in the place of a rule, if it has that."""
    return _entry(op)[1]


def set_rule(op: OpOverload, make: Callable) -> None:
    """Gives one operator a rule, in the place of the one it had."""
    _found[op] = (Rule(make, True), None)


def normal(dim: int, ndim: int) -> int:
    """A dimension counted from the front."""
    return dim + ndim if dim < 0 else dim


def listed(dims: Any, ndim: int) -> list[int]:
    """Dimensions given as a number, a list, or None for all."""
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(ndim))
    if isinstance(dims, int):
        dims = [dims]
    return [normal(dim, ndim) for dim in dims]


from torch.distributed.tensor._rules import (  # noqa: E402, F401
    handlers,
    indexing,
    lists,
    losses,
    matrix,
    norms,
    pointwise,
    random,
    reduction,
    shape,
    windows,
)
