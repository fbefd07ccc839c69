"""Outputs that share memory with inputs or with each other: what they are, and how they are made
again from their base when the compiled function has run."""

from __future__ import annotations

import dataclasses
import operator
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, fx
from torch._functorch._aot_autograd import functional
from torch._functorch._aot_autograd.schemas import (
    OutputAliasInfo,
    OutputType,
    ViewAndMutationMeta,
)

if TYPE_CHECKING:
    from torch._functorch._aot_autograd.trace import _Run

__all__ = ["ViewStep", "alias_of", "classify_outputs", "view_chain"]


def _by_memory(run: _Run) -> dict[int, list[int]]:
    """Outputs that share memory, by that memory."""
    groups: dict[int, list[int]] = defaultdict(list)
    for i, out in enumerate(run.outputs):
        if isinstance(out, Tensor):
            memory = functional.memory_of(out)
            if memory is not None:
                groups[memory].append(i)
    return groups


def classify_outputs(run: _Run) -> tuple[list[OutputAliasInfo], list[Tensor]]:
    """What each output is, and the values that the graph must also return because several outputs
    are views of them."""
    inputs = {
        functional.memory_of(seen): i
        for i, seen in reversed(list(enumerate(run.seen)))
        if isinstance(seen, Tensor) and functional.memory_of(seen) is not None
    }
    own = {id(seen): i for i, seen in enumerate(run.seen) if isinstance(seen, Tensor)}
    groups = _by_memory(run)
    hidden = _hidden_from_autograd(run, groups, inputs)
    found: list[OutputAliasInfo] = []
    bases: list[Tensor] = []
    base_places: dict[int, int] = {}
    for i, out in enumerate(run.outputs):
        info = OutputAliasInfo(OutputType.non_alias, type(out))
        found.append(info)
        if not isinstance(out, Tensor):
            continue
        info.requires_grad = out.requires_grad
        memory = functional.memory_of(out)
        if id(out) in own:
            info.output_type, info.base_idx = OutputType.is_input, own[id(out)]
        elif memory is None or i in hidden:
            continue
        elif memory in inputs:
            info.output_type, info.base_idx = OutputType.alias_of_input, inputs[memory]
            if _made_by_custom_function(out):
                info.output_type, info.base_idx = OutputType.custom_function_view, None
        else:
            _place_in_group(run, i, info, groups[memory], bases, base_places, memory)
    return found, bases


def _hidden_from_autograd(
    run: _Run, groups: dict[int, list[int]], inputs: dict[int | None, int]
) -> set[int]:
    """Outputs that are parts of one tensor, made by one operator. Nobody may write to them where
    gradients are taken, so that nobody can tell that they share memory; unless two ordinary views
    of the same memory are returned beside them."""
    found: set[int] = set()
    for memory, places in groups.items():
        parts = {i for i in places if functional.one_of_many(run.outputs[i])}
        ordinary = len(places) - len(parts)
        if parts and ordinary <= (0 if memory in inputs else 1):
            if all(run.outputs[i].requires_grad for i in parts):
                found |= parts
                if memory not in inputs:
                    found |= set(places)
    return found


def _made_by_custom_function(out: Tensor) -> bool:
    """Whether a user's autograd.Function returned it: its gradient is not that of a view."""
    node = out.grad_fn
    return node is not None and isinstance(node, torch.autograd.function.BackwardCFunction)


def _place_in_group(
    run: _Run,
    place: int,
    info: OutputAliasInfo,
    group: list[int],
    bases: list[Tensor],
    base_places: dict[int, int],
    memory: int,
) -> None:
    """An output that shares memory with other outputs is made anew from one of them, or from their
    common base, so that writing to one is seen in the gradients of the others."""
    out = run.outputs[place]
    if len(group) == 1 or not out.requires_grad or out._base is None:
        return
    base = out._base
    for other in group:
        if run.outputs[other] is base:
            info.output_type = OutputType.alias_of_intermediate_base_is_user_output
            info.base_idx = other
            return
    if not base.requires_grad:
        return
    if memory in base_places:
        info.output_type = OutputType.alias_of_intermediate
        info.base_idx = base_places[memory]
        return
    info.output_type = OutputType.alias_of_intermediate_save_as_output
    info.base_idx = base_places[memory] = len(bases)
    bases.append(base)


# ---- making them again ----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class ViewStep:
    """A view operator as a function of its tensor; `pick` is which of several results."""

    target: torch._ops.OpOverload
    args: tuple
    kwargs: dict[str, object]
    pick: int | None = None

    def __call__(self, tensor: Tensor) -> Tensor:
        found = self.target(tensor, *self.args, **self.kwargs)
        return found if self.pick is None else found[self.pick]


def view_chain(
    run: _Run, info: OutputAliasInfo, node: object, meta: ViewAndMutationMeta
) -> list[Callable[[Tensor], Tensor]] | None:
    """The recorded view operators that lead from an output's base to it."""
    if not info.is_alias or info.output_type is OutputType.is_input:
        return None
    if not isinstance(node, fx.Node):
        return None
    start = _base_nodes(run, info, meta)
    steps: list[Callable[[Tensor], Tensor]] = []
    while node not in start:
        step = _step(node)
        if step is None:
            return None
        taken, node = step
        steps.append(taken)
    return steps[::-1]


def _base_nodes(run: _Run, info: OutputAliasInfo, meta: ViewAndMutationMeta) -> set[object]:
    if info.output_type is OutputType.alias_of_input:
        index = info.base_idx
        if meta.input_info[index].is_mutated:
            return {run.recording.node(run.updated(index))}
        return {run.input_nodes[index]}
    base = (
        run.outputs[info.base_idx]
        if (info.output_type is OutputType.alias_of_intermediate_base_is_user_output)
        else None
    )
    if base is None:
        memory = [o for o in run.outputs if isinstance(o, Tensor) and o._base is not None]
        return {run.recording.node(functional.unwrap(o._base)) for o in memory}
    return {run.recording.node(functional.unwrap(base))}


def _step(node: fx.Node) -> tuple[Callable[[Tensor], Tensor], fx.Node] | None:
    """A view operator as a function of its tensor, and the node of that tensor. None for anything
    else, and for arguments that are known when the graph runs only."""
    target, pick = node.target, None
    if target is operator.getitem:
        node, pick = node.args
        target = node.target
    if not isinstance(target, torch._ops.OpOverload) or not target.is_view:
        return None
    first, *rest = node.args
    if len(node.all_input_nodes) != 1 or first is not node.all_input_nodes[0]:
        return None
    return ViewStep(target, tuple(rest), dict(node.kwargs), pick), first


def alias_of(base: Tensor, info: OutputAliasInfo, computed: Tensor) -> Tensor:
    """An output that shares the base's memory: by the views that were recorded, else by the strides
    of what the graph computed."""
    if base.requires_grad and not info.requires_grad:
        base = base.detach()
    if info.views is not None:
        for view in info.views:
            base = view(base)
        return base
    if computed.is_complex() and not base.is_complex():
        base = torch.view_as_complex(base)
    if base.is_complex() and not computed.is_complex():
        base = torch.view_as_real(base)
    offset = computed.storage_offset()
    return base.as_strided(computed.size(), computed.stride(), offset)
