"""Modules. Their forward is run by its bytecode, with parameters and buffers as inputs of the
graph. Attributes are found as nn.Module finds them, in the dictionaries of parameters, buffers
and modules."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch._dynamo.exc import raise_error, unimplemented
from torch._dynamo.source import AttrSource, GetItemSource
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.tensor import TensorVariable
from torch._dynamo.variables.user_defined import (
    DELETED,
    UserDefinedObjectVariable,
    class_attribute,
)

if TYPE_CHECKING:
    from torch._dynamo.symbolic_convert import Frame
    from torch._guards import Source

_TABLES = ("_parameters", "_buffers", "_modules")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_base_call = torch._C._ModuleBase.__call__


class UnspecializedNNModuleVariable(UserDefinedObjectVariable):
    """A module."""

    __slots__ = ()

    @staticmethod
    def of(
        tx: Frame, value: torch.nn.Module, source: Source | None
    ) -> UnspecializedNNModuleVariable:
        """The tracker of an existing module."""
        if isinstance(value, torch._dynamo.eval_frame.OptimizedModule):
            inner = GetItemSource(AttrSource(source, "_modules"), "_orig_mod") if source else None
            return VariableTracker.build(tx, value._orig_mod, inner)
        if source is not None:
            tx.out.guard(source, "TYPE_MATCH", type(value))
        return UnspecializedNNModuleVariable(type(value), value, source)

    def own_attribute(self, tx: Frame, name: str) -> VariableTracker | None:
        found = super().own_attribute(tx, name)
        if found is not None or self.value is None:
            return found
        for table in _TABLES:
            entries = self.value.__dict__.get(table)
            stored = self.attrs.get(f"{table}/{name}")
            if stored is not None:
                return None if stored is DELETED else stored
            if entries is not None and name in entries:
                source = None
                if self.source is not None:
                    source = GetItemSource(AttrSource(self.source, table), name)
                return VariableTracker.build(tx, entries[name], source)
        return None

    def lookup(self, tx: Frame, name: str) -> VariableTracker | None:
        if name in _TABLES and self.value is not None and name not in self.attrs:
            source = AttrSource(self.source, name) if self.source is not None else None
            return VariableTracker.build(tx, self.value.__dict__[name], source)
        return super().lookup(tx, name)

    def generic_setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        if self.value is not None:
            for table in _TABLES:
                if name in (self.value.__dict__.get(table) or ()):
                    return self._set_registered(tx, table, name, value)
        if issubclass(value.python_type(), torch.nn.Module | torch.nn.Parameter):
            unimplemented(
                "registering on a module",
                f"{self!r}.{name}",
                "a parameter or module is registered in the compiled function",
            )
        super().generic_setattr(tx, name, value)

    def setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        custom = class_attribute(self.cls, "__setattr__")
        if isinstance(custom, types.FunctionType) and custom is not torch.nn.Module.__setattr__:
            super().setattr(tx, name, value)
            return
        self.generic_setattr(tx, name, value)

    def _set_registered(self, tx: Frame, table: str, name: str, value: VariableTracker) -> None:
        if table != "_buffers" or not isinstance(value, TensorVariable):
            unimplemented(
                "registering on a module", f"{self!r}.{name}", f"an entry of {table} is replaced"
            )
        entries = self.lookup(tx, table)
        entries.setitem(tx, VariableTracker.build(tx, name), value)
        self.attrs.pop(name, None)

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        raw = class_attribute(self.cls, "__call__")
        if raw is not _base_call:
            return super().call_function(tx, args, kwargs)
        return self.call_module(tx, args, kwargs)

    def call_module(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        """module(...): forward with its hooks"""
        if self.value is not None and self._has_hooks(tx):
            from torch._dynamo import polyfills

            call = VariableTracker.build(tx, polyfills.call_module_with_hooks)
            return call.call_function(tx, [self, *args], kwargs)
        return self.getattr(tx, "forward").call_function(tx, args, kwargs)

    def _has_hooks(self, tx: Frame) -> bool:
        own = self.value.__dict__
        if self.source is not None:
            for name in _HOOKS:
                if not own.get(name):
                    tx.out.guard(AttrSource(self.source, name), "SEQUENCE_LENGTH", 0)
        if any(own.get(name) for name in ("_backward_hooks", "_backward_pre_hooks")):
            unimplemented("hooks of a module", repr(self), "backward hooks of a module")
        shared = torch.nn.modules.module
        names = (
            "_global_forward_hooks",
            "_global_forward_pre_hooks",
            "_global_backward_hooks",
            "_global_backward_pre_hooks",
        )
        if any(getattr(shared, name, None) for name in names):
            unimplemented("hooks of a module", repr(self), "hooks of all modules")
        return any(own.get(name) for name in _HOOKS)

    def call_c_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__call__":
            return self.call_module(tx, args, kwargs)
        if name == "__getattr__":
            found = self.own_attribute(tx, args[0].as_python_constant())
            if found is None:
                raise_error(
                    tx,
                    AttributeError,
                    f"{self.cls.__name__!r} object has no attribute "
                    f"{args[0].as_python_constant()!r}",
                )
            return found
        return super().call_c_method(tx, name, args, kwargs)

    def truth(self, tx: Frame) -> bool | VariableTracker:
        if isinstance(class_attribute(self.cls, "__len__"), types.FunctionType):
            return super().truth(tx)
        return True

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        return super().iterate(tx)


NNModuleVariable = UnspecializedNNModuleVariable
