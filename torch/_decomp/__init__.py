"""Operators as compositions of simpler ones, for compilers and exporters.

There are three tables: `post_autograd` for graphs that are recorded below autograd (the usual one),
`pre_autograd` for those recorded above it, and `meta` for shapes. `decompositions` fills the first;
users add their own. A table maps an operator to a function of the same arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch._ops import HigherOrderOperator, OperatorBase, OpOverload, OpOverloadPacket

__all__ = [
    "core_aten_decompositions",
    "decomposition_table",
    "get_decompositions",
    "global_decomposition_table",
    "meta_table",
    "pre_autograd_decomposition_table",
    "register_decomposition",
    "remove_decompositions",
]

Table = dict[OperatorBase, Callable]

global_decomposition_table: dict[str, Table] = {
    "post_autograd": {},
    "pre_autograd": {},
    "meta": {},
}
decomposition_table = global_decomposition_table["post_autograd"]
pre_autograd_decomposition_table = global_decomposition_table["pre_autograd"]
meta_table = global_decomposition_table["meta"]


def _table(type: str) -> Table:
    if type not in global_decomposition_table:
        raise AssertionError(
            f"expected the type of a decomposition to be one of "
            f"{', '.join(global_decomposition_table)}, got {type!r}"
        )
    return global_decomposition_table[type]


def _overloads(op: OperatorBase | OpOverloadPacket) -> list[OperatorBase]:
    """An operator, or all overloads of a name."""
    if isinstance(op, OpOverloadPacket):
        return [getattr(op, name) for name in op.overloads()]
    if isinstance(op, (OpOverload, HigherOrderOperator)):
        return [op]
    raise TypeError(f"expected an operator of torch.ops, got {op!r}")


def _each(ops: object) -> Iterable[OperatorBase | OpOverloadPacket]:
    return ops if isinstance(ops, (list, tuple, set, frozenset)) else (ops,)


def register_decomposition(
    aten_op: OperatorBase | OpOverloadPacket | Sequence[OperatorBase | OpOverloadPacket],
    registry: Table | None = None,
    *,
    type: str = "post_autograd",
    unsafe: bool = False,
) -> Callable[[Callable], Callable]:
    """A decorator that enters a function as the composition of operators. A packet stands for all
    its overloads. `unsafe` replaces an entry that exists."""
    table = _table(type) if registry is None else registry

    def register(function: Callable) -> Callable:
        for packet in _each(aten_op):
            for op in _overloads(packet):
                if op in table and not unsafe:
                    raise RuntimeError(f"duplicate registrations for {op}")
                table[op] = function
        return function

    return register


def get_decompositions(
    aten_ops: Sequence[OperatorBase | OpOverloadPacket], type: str = "post_autograd"
) -> Table:
    """The compositions known for the operators given; those that have none are left out."""
    table = _table(type)
    wanted = [op for packet in aten_ops for op in _overloads(packet)]
    return {op: table[op] for op in wanted if op in table}


def remove_decompositions(
    decompositions: dict[OperatorBase, Callable],
    aten_ops: Sequence[OperatorBase | OpOverloadPacket],
) -> None:
    """Takes operators out of a table; those that are not in it are passed over."""
    for packet in aten_ops:
        for op in _overloads(packet):
            decompositions.pop(op, None)


class _CoreTable(dict):
    """The core table as a dictionary. A composite operator that the table does not name is found
    too: its kernel is its decomposition."""

    def __missing__(self, op: OperatorBase) -> Callable:
        if isinstance(op, OpOverload) and op._can_decompose() and torch.Tag.core not in op.tags:
            return op.decompose
        raise KeyError(op)


def core_aten_decompositions() -> Mapping[OperatorBase, Callable]:
    """What brings a graph down to the core operators: every known composition of an operator that
    is not itself one of them."""
    from torch._decomp._core import kept_whole

    return _CoreTable(
        {
            op: rule
            for op, rule in decomposition_table.items()
            if not kept_whole(op) and not hasattr(rule, "_to_prims")
        }
    )


import torch._decomp.decompositions  # noqa: E402
import torch._refs  # noqa: E402
