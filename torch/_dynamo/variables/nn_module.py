"""Modules. Their forward is run by its bytecode, with parameters and buffers as inputs of the
graph. Attributes are found as nn.Module finds them, in the dictionaries of parameters, buffers
and modules."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch._dynamo.exc import raise_error, unimplemented
from torch._dynamo.source import AttrSource, DictKeySource, GetItemSource
from torch._dynamo.trace_rules import handler
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import NONE, ConstantVariable
from torch._dynamo.variables.dicts import ConstDictVariable
from torch._dynamo.variables.lists import BaseListVariable, NamedTupleVariable, TupleVariable
from torch._dynamo.variables.tensor import TensorVariable
from torch._dynamo.variables.user_defined import UserDefinedObjectVariable, class_attribute
from torch.fx.graph_module import calls_forward
from torch.nn.modules.lazy import LazyModuleMixin

if TYPE_CHECKING:
    from torch._dynamo.symbolic_convert import Frame
    from torch._guards import Source

_TABLES = ("_parameters", "_buffers", "_modules")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_base_call = torch._C._ModuleBase.__call__


def _static(vt: VariableTracker) -> VariableTracker:
    """A parameter or buffer: backends may rely on its address."""
    if isinstance(vt, TensorVariable) and "tensor_dict" in vt.node.meta:
        vt.node.meta["tensor_dict"].setdefault("_dynamo_static_input_type", "unguarded")
    return vt


def _shape_of(vt: VariableTracker) -> object:
    """An argument of a lazy layer, which looks at shapes alone."""
    if isinstance(vt, TensorVariable):
        return vt.fake
    if isinstance(vt, NamedTupleVariable) and hasattr(vt.tuple_cls, "_make"):
        return vt.tuple_cls._make([_shape_of(item.realize()) for item in vt.items])
    if isinstance(vt, BaseListVariable):
        return vt.cls([_shape_of(item.realize()) for item in vt.items])
    if isinstance(vt, ConstDictVariable):
        return {k.as_python_constant(): _shape_of(v.realize()) for k, v in vt.items.values()}
    if not vt.is_python_constant():
        unimplemented("lazy layer", repr(vt), "an argument of the first call is not known whole")
    return vt.as_python_constant()


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
        if self._is_setting(name):
            value, source = self.value.__dict__[name], self._own_source(name)
            tx.out.guard(source, "CONSTANT_MATCH", value)
            return ConstantVariable(value, source)
        found = super().own_attribute(tx, name)
        if found is not None:
            return found
        for table in _TABLES:
            entries = None if self.value is None else self.value.__dict__.get(table)
            traced = self.attrs.get(table) or tx.out.known.get(id(entries))
            if isinstance(traced, ConstDictVariable) and (traced.changed or entries is None):
                found = traced.lookup(tx, ConstantVariable(name))
                if found is not None:
                    return found.realize()
            elif entries is not None and name in entries:
                source = None
                if self.source is not None:
                    source = GetItemSource(AttrSource(self.source, table), name)
                return _static(VariableTracker.build(tx, entries[name], source))
        return None

    def _is_setting(self, name: str) -> bool:
        """Whether an attribute is a number that a layer of the library is made with: strides and
        heads are worth a graph of their own, unlike the numbers by which programs count layers."""
        if self.source is None or self.value is None or name in self.attrs:
            return False
        own = self.value.__dict__
        return self.cls.__module__.startswith("torch.nn.") and type(own.get(name)) is int

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
        super().generic_setattr(tx, name, value)

    def setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        custom = class_attribute(self.cls, "__setattr__")
        if (
            custom is not torch.nn.Module.__setattr__
            or self.value is None
            or issubclass(value.python_type(), torch.nn.Module | torch.nn.Parameter)
        ):
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
        if raw is not _base_call and not calls_forward(self.cls, raw):
            return super().call_function(tx, args, kwargs)
        return self.call_module(tx, args, kwargs)

    def call_module(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        """module(...): forward with its hooks"""
        self._initialise_lazy(tx, args, kwargs)
        outer = tx.out.module_stack
        if self.source is not None:
            tx.out.enter_module(self.source.name(), self.cls)
        try:
            return self._call(tx, args, kwargs)
        finally:
            tx.out.module_stack = outer

    def _call(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        if self.value is not None and self._has_hooks(tx):
            from torch._dynamo import polyfills

            call = VariableTracker.build(tx, polyfills.call_module_with_hooks)
            before, after = (self._hooks(tx, f"_forward_{kind}") for kind in ("pre_hooks", "hooks"))
            return call.call_function(tx, [self, before, after, *args], kwargs)
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

    def _initialise_lazy(self, tx: Frame, args: Args, kwargs: Kwargs) -> None:
        """A lazy layer gets its parameters now, by the shapes of its arguments, as the first call
        would do; from then on it is another module."""
        value = self.value
        if not isinstance(value, LazyModuleMixin) or not hasattr(value, "_initialize_hook"):
            return
        shapes = [_shape_of(a) for a in args]
        named = {k: _shape_of(v) for k, v in kwargs.items()}
        value._infer_parameters(value, tuple(shapes), named)
        self.cls = type(value)
        if self.source is not None:
            tx.out.guards.pop((self.source, "TYPE_MATCH", None), None)
            tx.out.guard(self.source, "TYPE_MATCH", self.cls)

    def _hooks(self, tx: Frame, table: str) -> VariableTracker:
        """The hooks of a table, each with whether it takes keyword arguments. They are found by
        their place: the numbers under which they are kept differ between modules."""
        hooks = self.value.__dict__.get(table) or {}
        named = self.value.__dict__.get(f"{table}_with_kwargs") or {}
        base = None
        if self.source is not None and hooks:
            base = AttrSource(self.source, table)
            tx.out.guard(base, "SEQUENCE_LENGTH", len(hooks))
            names = AttrSource(self.source, f"{table}_with_kwargs")
            if named:
                tx.out.guard(names, "DICT_KEYS", dict(named))
                tx.out.guard(base, "DICT_KEYS", dict(hooks))
            else:
                tx.out.guard(names, "SEQUENCE_LENGTH", 0)
        pairs = []
        for place, (number, hook) in enumerate(hooks.items()):
            source = None if base is None else GetItemSource(base, DictKeySource(base, place))
            made = VariableTracker.build(tx, hook, source)
            pairs.append(TupleVariable([made, ConstantVariable(number in named)]))
        return TupleVariable(pairs)

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


@handler(LazyModuleMixin._infer_parameters)
def _infer_parameters(
    tx: Frame,
    self: VariableTracker,
    module: VariableTracker,
    args: VariableTracker,
    kwargs: VariableTracker = NONE,
) -> VariableTracker:
    named = {} if kwargs.is_same(NONE) else dict(tx.pairs(kwargs))
    given = {k.as_python_constant(): v.realize() for k, v in named.items()}
    module._initialise_lazy(tx, args.unpack(tx), given)
    return NONE


NNModuleVariable = UnspecializedNNModuleVariable
