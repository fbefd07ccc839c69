"""Inputs that share memory. As long as nothing is written to it, each can be traced by itself. When
a function writes to memory that several inputs see, they are replaced by one input, and made from
it as views inside the graph."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch._C._dynamo.guards import share_elements
from torch._functorch import config
from torch._functorch._aot_autograd import functional
from torch._functorch._aot_autograd.schemas import ViewAndMutationMeta
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

__all__ = ["MergePlan", "plan_merges"]


@dataclasses.dataclass
class _View:
    """An argument that is made from another: `source` counts the new arguments. A whole one is the
    argument itself."""

    source: int
    geometry: tuple[torch.Size, tuple[int, ...], int] | None = None


class MergePlan:
    """How arguments are merged, and what the traced function returns besides its outputs."""

    def __init__(self, views: list[_View], groups: list[list[int]], separate: list[int]) -> None:
        self.views = views
        self.groups = groups
        self.separate = separate
        self.returned_inputs: dict[int, int] = {}  # output -> original argument
        self.graph_id = 0
        self.reshaped: list[int] = []  # arguments whose shape the function changed

    def merge(self, args: Sequence[object]) -> list[object]:
        """The new arguments: bases first, then those that are on their own."""
        return [
            *(_base_of([args[i] for i in g]) for g in self.groups),
            *(args[i] for i in self.separate),
        ]

    def wrap(self, fn: Callable[..., Sequence[object]]) -> Callable[..., list[object]]:
        """The function of the new arguments."""

        def merged(*args: object) -> list[object]:
            originals = [self._made(view, args) for view in self.views]
            own = {id(t): i for i, t in enumerate(originals) if isinstance(t, Tensor)}
            outputs = list(fn(*originals))
            self.returned_inputs = {
                j: own[id(o)]
                for j, o in enumerate(outputs)
                if isinstance(o, Tensor) and id(o) in own and self.views[own[id(o)]].geometry
            }
            self.reshaped = [
                i
                for i, t in enumerate(originals)
                if self.views[i].geometry and torch._functionalize_has_metadata_mutation(t)
            ]
            self._kept = originals
            return [*outputs, *(originals[i] for i in self.reshaped)]

        return merged

    def _made(self, view: _View, args: Sequence[object]) -> object:
        base = args[view.source]
        return base if view.geometry is None else base.as_strided(*view.geometry)

    def runtime(
        self, call: Callable[[list[object]], list[object]]
    ) -> Callable[[list[object]], list[object]]:
        """The function of the original arguments."""
        extra = len(self.reshaped)

        def check(args: Sequence[object]) -> None:
            firsts: dict[int, int] = {}
            for i, view in enumerate(self.views):
                if view.geometry is None:
                    first = firsts.setdefault(view.source, i)
                    if args[first] is not args[i]:
                        raise AssertionError(
                            f"At compilation time, graph {self.graph_id} was compiled under the "
                            f"assumption that input {i} would be a duplicate of input {first}, but "
                            "at runtime this was not the case.  This indicates a guard bug in "
                            "AOTAutograd or Dynamo, please file a bug to PyTorch."
                        )

        def run(args: list[object]) -> list[object]:
            originals = list(args)
            args.clear()
            if config.debug_assert:
                check(originals)
            outputs = call(self.merge(originals))
            if extra:
                for index, shaped in zip(self.reshaped, outputs[-extra:], strict=True):
                    target = originals[index]
                    target.as_strided_(shaped.size(), shaped.stride(), shaped.storage_offset())
                del outputs[-extra:]
            for place, index in self.returned_inputs.items():
                outputs[place] = originals[index]
            return outputs

        run._boxed_call = True
        return run


def _root(t: Tensor) -> Tensor:
    return t if t._base is None else t._base


def _base_of(group: Sequence[Tensor]) -> Tensor:
    """A tensor that all of a group are views of: their common base, else their whole storage."""
    roots = {id(_root(t)): _root(t) for t in group}
    if len(roots) == 1:
        return next(iter(roots.values()))
    first = group[0]
    length = first.untyped_storage().nbytes() // first.element_size()
    with torch.no_grad():
        return torch.empty(0, dtype=first.dtype, device=first.device).set_(
            first.untyped_storage(), 0, (length,), (1,)
        )


def plan_merges(args: Sequence[object], meta: ViewAndMutationMeta) -> MergePlan | None:
    """How to merge inputs that a function writes to through one of them; None where there is
    nothing to merge."""
    tensors = {i: a for i, a in enumerate(args) if isinstance(a, Tensor)}
    by_memory: dict[int, list[int]] = defaultdict(list)
    for i, t in tensors.items():
        memory = functional.memory_of(t)
        if memory is not None:
            by_memory[memory].append(i)
    same: dict[int, int] = {}  # duplicate -> first
    groups: list[list[int]] = []
    for places in by_memory.values():
        _group(places, tensors, meta, same, groups)
    if not same and not groups:
        return None
    _refuse_subclasses(tensors, groups)
    merged = {i for g in groups for i in g}
    separate = [i for i in range(len(args)) if i not in merged and i not in same]
    source = {i: len(groups) + k for k, i in enumerate(separate)}
    views = []
    for i, arg in enumerate(args):
        first = same.get(i, i)
        if first in source:
            views.append(_View(source[first]))
        else:
            number = next(k for k, g in enumerate(groups) if first in g)
            geometry = (arg.size(), arg.stride(), arg.storage_offset())
            views.append(_View(number, geometry))
    return MergePlan(views, groups, separate)


def _group(
    places: list[int],
    tensors: dict[int, Tensor],
    meta: ViewAndMutationMeta,
    same: dict[int, int],
    groups: list[list[int]],
) -> None:
    """Sorts the inputs of one storage into duplicates and groups that overlap."""
    written = {i for i in places if meta.input_info[i].mutates_data}
    reshaped = {i for i in places if meta.input_info[i].is_mutated}
    firsts: dict[int, int] = {}
    for i in places:
        firsts.setdefault(id(tensors[i]), i)
    twice = {i: firsts[id(tensors[i])] for i in places if firsts[id(tensors[i])] != i}
    touched = {firsts[id(tensors[i])] for i in reshaped}
    same.update({i: first for i, first in twice.items() if first in touched})
    left = [i for i in places if i not in same]
    hit = {same.get(i, i) for i in written}
    group = {
        i
        for i in left
        for j in left
        if i != j and (i in hit or j in hit) and share_elements(tensors[i], tensors[j])
    }
    if group:
        groups.append(sorted(group))


def _refuse_subclasses(tensors: dict[int, Tensor], groups: list[list[int]]) -> None:
    for group in groups:
        if any(is_traceable_wrapper_subclass(tensors[i]) for i in group):
            raise RuntimeError(
                "Encountered aliased inputs that are mutated in the graph, but at least one input "
                "is a tensor subclass. This is not supported today."
            )
