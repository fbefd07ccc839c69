"""Where tensors begin in their memory. Graphs are made for tensors of any place; what reads the
place, or counts from the start of the memory, makes the place of the input a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch._dynamo.source import TensorProperty, TensorPropertySource

if TYPE_CHECKING:
    from torch._dynamo.symbolic_convert import Frame
    from torch._dynamo.variables.base import Args

__all__ = ["fixed_place", "is_counted_from_the_start", "note_places"]

# Their numbers, or those that are not given, count from the start of the memory.
_COUNTED_FROM_THE_START = frozenset(
    {"as_strided", "as_strided_", "as_strided_copy", "as_strided_scatter"}
)


def is_counted_from_the_start(target: object) -> bool:
    """Whether what a node calls, a function or the name of a method, is such a one."""
    name = getattr(target, "_opname", getattr(target, "__name__", target))
    return isinstance(name, str) and name in _COUNTED_FROM_THE_START


def note_places(tx: Frame, target: object, args: Args) -> None:
    """The conditions for a call of a function, or of the method of that name."""
    if is_counted_from_the_start(target):
        for arg in args:
            fake = getattr(arg, "fake", None)
            if isinstance(fake, torch.Tensor):
                fixed_place(tx, fake)


def fixed_place(tx: Frame, fake: torch.Tensor) -> int:
    """The place of a tensor of the trace, which it has from now on: inputs with the same memory
    keep theirs."""
    memory = fake.untyped_storage()._cdata
    known = set(tx.out.tensor_sources)
    for item in tx.out.inputs:
        given = item.node.meta.get("example_value")
        if not isinstance(given, torch.Tensor) or item.source not in known:
            continue
        if given.untyped_storage()._cdata == memory:
            place = TensorPropertySource(item.source, TensorProperty.STORAGE_OFFSET)
            tx.out.guard(place, "EQUALS_MATCH", item.example.storage_offset())
    return int(fake.storage_offset())
