"""Conditions on the memory of inputs that a graph writes to. A graph is made for the inputs of its
trace: where a write to one is seen through another, it reads what was written; where none is, a
later call must not come with inputs that overlap, or it would read what was there before."""

from __future__ import annotations

import functools
import weakref
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch._C._dynamo.guards import share_elements
from torch._subclasses.fake_tensor import FakeTensor

if TYPE_CHECKING:
    from torch._dynamo.guards import GuardBuilder
    from torch._dynamo.output_graph import GraphInput
    from torch._guards import Source

__all__ = ["SharedMemory", "conditions"]


def conditions(
    inputs: Sequence[GraphInput], tensors: Sequence[Source]
) -> tuple[list[list[Source]], SharedMemory | None]:
    """Groups of inputs of which no two may have an element in common; where a written one has one
    in common with another, the form of that. Only `tensors` of the program are looked at, not those
    that the code makes of arrays."""
    known = set(tensors)
    rows = [
        (item.source, item.example, _is_written(item))
        for item in inputs
        if item.source in known and _counts(item)
    ]
    if not any(written for _, _, written in rows):
        return [], None
    by_storage: dict[int, list[tuple[Source, Tensor, bool]]] = defaultdict(list)
    for row in rows:
        by_storage[row[1].untyped_storage()._cdata].append(row)
    written = [source for source, _, is_written in rows if is_written]
    others: list[list[Source]] = [[]]
    for group in by_storage.values():
        if _is_seen_elsewhere(group):
            return [], SharedMemory(rows)
        for number, members in enumerate(_classes(group)):
            if number == len(others):
                others.append([])
            others[number] += members
    groups = [written + found for found in others]
    return [group for group in groups if len(group) > 1], None


def _counts(item: GraphInput) -> bool:
    """Whether an input is a tensor with memory. Parameters that are only read are taken to be
    their module's own."""
    value = item.example
    if not isinstance(value, Tensor) or isinstance(value, FakeTensor):
        return False
    if torch._C._is_fake(value) or value.layout is not torch.strided:
        return False
    if torch.utils._python_dispatch.is_traceable_wrapper_subclass(value):
        return False
    return _is_written(item) or not isinstance(value, torch.nn.Parameter)


def _is_written(item: GraphInput) -> bool:
    """Whether the trace wrote to an input: what stands for it begins with version 0, and so does
    its `.data`, which counts by itself."""
    users = (n for n in item.node.users if n.target is getattr and n.args[1] == "data")
    return any(_version(node) > 0 for node in (item.node, *users))


def _version(node: torch.fx.Node) -> int:
    fake = node.meta.get("example_value")
    return fake._version if isinstance(fake, Tensor) and not fake.is_inference() else 0


def _is_seen_elsewhere(group: list[tuple[Source, Tensor, bool]]) -> bool:
    return any(
        share_elements(value, other)
        for i, (_, value, written) in enumerate(group)
        for k, (_, other, _) in enumerate(group)
        if written and i != k
    )


def _classes(group: list[tuple[Source, Tensor, bool]]) -> list[list[Source]]:
    """The inputs of one storage that are only read, in lists of such that do not overlap."""
    found: list[list[tuple[Source, Tensor]]] = []
    for source, value, written in group:
        if written:
            continue
        free = (c for c in found if not any(share_elements(value, other) for _, other in c))
        members = next(free, None)
        if members is None:
            found.append(members := [])
        members.append((source, value))
    return [[source for source, _ in members] for members in found]


class SharedMemory:
    """How inputs shared memory in a trace that wrote to it. The graph makes them from one tensor,
    so that a later call has to come with the same views of as large a tensor."""

    def __init__(self, rows: Sequence[tuple[Source, Tensor, bool]]) -> None:
        self.sources = [source for source, _, _ in rows]
        self.form = _form([value for _, value, _ in rows])
        self.seen: list[weakref.ref | None] = [None] * len(rows)

    def install(self, builder: GuardBuilder) -> None:
        """Adds the condition to a tree."""
        names = ", ".join(source.name() for source in self.sources)
        text = f"({names}) share memory as they did"
        for place, source in enumerate(self.sources):
            note = functools.partial(self._note, place)
            builder.manager(source).add_lambda_guard(note, [text])
        builder.root.add_epilogue_lambda_guard(self._holds, [text])
        builder.texts.append(text)

    def _note(self, place: int, value: object) -> bool:
        if not isinstance(value, Tensor):
            return False
        self.seen[place] = weakref.ref(value)
        return True

    def _holds(self, frame: object) -> bool:
        values = [None if seen is None else seen() for seen in self.seen]
        self.seen = [None] * len(values)
        return all(value is not None for value in values) and _form(values) == self.form


def _form(values: Sequence[Tensor]) -> list:
    """By input: the first of its storage, and where several show one, what of it each shows and of
    which tensor it is a view."""
    storages = [value.untyped_storage()._cdata for value in values]
    roots = [value if value._base is None else value._base for value in values]
    form: list = []
    for value, storage, root in zip(values, storages, roots, strict=True):
        row: list = [storages.index(storage)]
        if storages.count(storage) > 1:
            first_of_root = next(i for i, other in enumerate(roots) if other is root)
            row += [first_of_root, value.untyped_storage().nbytes()]
            row += [(t.size(), t.stride(), t.storage_offset()) for t in (value, root)]
        form.append(row)
    return form
