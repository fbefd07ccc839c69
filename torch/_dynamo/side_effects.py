"""What the traced program changes outside of itself: lists, dictionaries, attributes, cells,
globals. Changes are made on trackers while tracing and written to the running program's
objects after the graph, each object once, in the order in which they were first changed."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

import torch
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.user_defined import (
    DELETED,
    UserDefinedObjectVariable,
    is_behind_descriptor,
)

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.variables.functions import CellVariable
    from torch._dynamo.variables.hooks import RemovableHandleVariable


class SideEffects:
    """The changes of one trace."""

    def __init__(self) -> None:
        self.changes = 0
        # Existing objects that were changed, in order.
        self.changed: dict[int, VariableTracker] = {}
        # Attributes of classes, functions, modules and tensors: object, its tracker, the values.
        self.attrs: dict[int, tuple[object, VariableTracker, dict[str, VariableTracker]]] = {}
        self.cells: dict[int, CellVariable] = {}
        self.globals: dict[int, tuple[dict[str, object], dict[str, VariableTracker]]] = {}
        # Hooks that were registered on inputs.
        self.hooks: list[RemovableHandleVariable] = []
        # Calls to be made after the graph: function and arguments.
        self.calls: list[tuple[object, list[VariableTracker], dict[str, VariableTracker]]] = []

    def count(self) -> int:
        """How many changes were made so far."""
        return self.changes

    def is_empty(self) -> bool:
        """Whether nothing was changed."""
        return not (
            self.changed
            or self.attrs
            or self.cells
            or self.globals
            or self.calls
            or any(not handle.removed for handle in self.hooks)
        )

    def names(self) -> list[str]:
        """What was changed, by its place in the program."""
        found = [*self.changed.values(), *[vt for _, vt, _ in self.attrs.values()]]
        names = [vt.source.name() for vt in found if vt.source is not None]
        names += [f"cell {cell.name}" for cell in self.cells.values()]
        names += [f"G[{name!r}]" for _, changed in self.globals.values() for name in changed]
        return names

    def note(self, vt: VariableTracker) -> None:
        """An existing object is about to change."""
        self.changes += 1
        self.changed.setdefault(id(vt), vt)

    def note_cell(self, cell: CellVariable) -> None:
        """A cell of the running program is about to change."""
        self.changes += 1
        self.cells.setdefault(id(cell), cell)

    def add_hook(self, handle: RemovableHandleVariable) -> None:
        """A hook is registered on a tensor of the running program."""
        self.changes += 1
        self.hooks.append(handle)

    def attribute(self, obj: object, name: str) -> VariableTracker | None:
        """What the trace stored under an attribute of an object, if it did."""
        if not self.attrs:
            return None
        found = self.attrs.get(id(obj))
        return None if found is None else found[2].get(name)

    def class_attribute(self, cls: type, name: str) -> VariableTracker | None:
        """What the trace stored under a name of a class or of the base that has it."""
        if self.attrs:
            for base in cls.__mro__:
                found = self.attribute(base, name)
                if found is not None or name in base.__dict__:
                    return found
        return None

    def set_attribute(
        self, obj: object, vt: VariableTracker, name: str, value: VariableTracker
    ) -> None:
        """Stores an attribute of an object that has no tracker with attributes of its own."""
        self.changes += 1
        self.attrs.setdefault(id(obj), (obj, vt, {}))[2][name] = value

    def global_value(self, names: dict[str, object], name: str) -> VariableTracker | None:
        """What the trace stored in a global variable, if it did."""
        if not self.globals:
            return None
        found = self.globals.get(id(names))
        return None if found is None else found[1].get(name)

    def set_global(self, names: dict[str, object], name: str, value: VariableTracker) -> None:
        """Stores a global variable."""
        self.changes += 1
        self.globals.setdefault(id(names), (names, {}))[1][name] = value

    # ---- code

    def write(self, cg: Codegen) -> None:
        """Emits the code that makes the changes."""
        for handle in self.hooks:
            if not handle.removed:
                cg.expr(handle)
        for vt in list(self.changed.values()):
            self._write_object(cg, vt)
        for _, vt, values in self.attrs.values():
            target = cg.expr(vt)
            for name, value in values.items():
                if value is DELETED:
                    cg.effect(f"del {target}.{name}")
                else:
                    cg.effect(f"{target}.{name} = {cg.expr(value)}")
        for cell in self.cells.values():
            if cell.contents is None:
                cg.effect(f"del {cg.expr(cell)}.cell_contents")
            else:
                cg.effect(f"{cg.expr(cell)}.cell_contents = {cg.expr(cell.contents)}")
        for names, values in self.globals.values():
            target = cg.const(names)
            for name, value in values.items():
                if value is DELETED:  # maybe one that the trace itself had stored
                    cg.effect(f"{target}.pop({name!r}, None)")
                else:
                    cg.effect(f"{target}[{name!r}] = {cg.expr(value)}")
        for fn, args, kwargs in self.calls:
            given = [cg.expr(a) for a in args]
            given += [f"{name}={cg.expr(value)}" for name, value in kwargs.items()]
            cg.effect(f"{cg.const(fn)}({', '.join(given)})")

    def _write_object(self, cg: Codegen, vt: VariableTracker) -> None:
        target = cg.expr(vt)
        if not isinstance(vt, UserDefinedObjectVariable):
            vt.write_back(cg, target)
            return
        if vt.contents is not None and vt.contents.changed:
            vt.contents.write_back(cg, target)
        setter = cg.const(_own_setattr(vt.cls))
        for name, value in vt.attrs.items():
            hidden = is_behind_descriptor(vt.cls, name)
            if value is DELETED or name in vt.stored_again:
                deleted = f"del {target}.__dict__[{name!r}]"
                plain = f"object.__delattr__({target}, {name!r})"
                cg.effect(deleted if hidden else plain)
            if value is DELETED:
                continue
            if hidden or (
                isinstance(vt.value, torch.nn.Module)
                and not isinstance(vt.value.__dict__.get(name), types.MappingProxyType)
            ):
                cg.effect(f"{target}.__dict__[{name!r}] = {cg.expr(value)}")
            else:
                cg.effect(f"{setter}({target}, {name!r}, {cg.expr(value)})")


def _own_setattr(cls: type) -> object:
    """What sets attributes of objects of a class where no code of the program takes part."""
    return next(
        base.__dict__["__setattr__"]
        for base in cls.__mro__
        if not isinstance(base.__dict__.get("__setattr__", _own_setattr), types.FunctionType)
    )
