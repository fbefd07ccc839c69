"""The decompositions that graphs are traced with. Our kernels have the bits of eager operators, so
the usual table is empty; `decompositions` is what users add to, and wins over nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch._inductor import config

__all__ = [
    "decompositions",
    "fast_random_decomps",
    "inductor_decompositions",
    "register_decomposition",
    "remove_decompositions",
    "select_decomp_table",
]

Table = dict[object, Callable]
# Operators that are traced as what they are composed of. Users add to it.
decompositions: Table = {}
inductor_decompositions = decompositions


def __getattr__(name: str) -> object:
    """get_decompositions and core_aten_decompositions of torch._decomp, which takes a while to
    import."""
    if name in ("get_decompositions", "core_aten_decompositions"):
        import torch._decomp

        return getattr(torch._decomp, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def register_decomposition(ops: object) -> Callable[[Callable], Callable]:
    """Decorates a function that graphs hold instead of an operator or several."""
    many = list(ops) if isinstance(ops, (list, tuple)) else [ops]

    def register(fn: Callable) -> Callable:
        for op in many:
            packet = isinstance(op, torch._ops.OpOverloadPacket)
            for one in [getattr(op, name) for name in op.overloads()] if packet else [op]:
                decompositions[one] = fn
        fast_random_decomps.cache_clear()
        return fn

    return register


def remove_decompositions(table: Table, ops: list[object]) -> None:
    """Takes operators out of a table."""
    for op in ops:
        packet = isinstance(op, torch._ops.OpOverloadPacket)
        for one in [getattr(op, name) for name in op.overloads()] if packet else [op]:
            table.pop(one, None)


@functools.cache
def fast_random_decomps() -> Table:
    """The table for random numbers that need not be those of eager calls: the same, since ours
    are."""
    return dict(decompositions)


def select_decomp_table() -> Table:
    """The table that torch.compile traces with."""
    if config.fallback_random:
        return decompositions
    return fast_random_decomps()
