"""Objects and classes of the program. Attributes are found as CPython finds them: a walk along the
method resolution order, descriptors, the instance's own dictionary, `__getattr__`. What the trace
changes on an object is kept beside it and written to the object after the graph."""

from __future__ import annotations

import collections
import functools
import logging
import operator
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch._dynamo import trace_rules
from torch._dynamo.exc import (
    ObservedException,
    raise_error,
    raise_observed,
    unimplemented,
)
from torch._dynamo.polyfills import own_class
from torch._dynamo.source import AttrSource, GetItemSource, TypeSource
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import NONE, ConstantVariable
from torch._dynamo.variables.dicts import ConstDictVariable
from torch._dynamo.variables.functions import (
    BaseUserFunctionVariable,
    CachedFunctionVariable,
    DeferredCallVariable,
    UserFunctionVariable,
    UserMethodVariable,
)
from torch._dynamo.variables.keys import IdentityKey, ObjectKey
from torch._dynamo.variables.lists import DequeVariable
from torch._dynamo.variables.tensor import SymNodeVariable
from torch.fx.graph_module import _Method

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame
    from torch._dynamo.variables.misc import InstanceDictVariable
    from torch._guards import Source

_MISSING = object()
# In place of a value of a class that is guarded where the trace read it.
OWNED = object()
# Flags of classes that a program can change: on the heap, and not fixed.
_HEAP, _HEAP_OR_FIXED = 1 << 9, 1 << 9 | 1 << 8
DELETED = ConstantVariable(_MISSING)
_C_METHODS = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.BuiltinFunctionType,
    types.MethodWrapperType,
)


# By class, what the trace that is under way found under names.
class_reads: dict[type, dict[str, object]] | None = None


def class_attribute(cls: type, name: str) -> object:
    """What the class or one of its bases has under the name, unbound; _MISSING without."""
    found: object = _MISSING
    for base in cls.__mro__:
        found = base.__dict__.get(name, _MISSING)
        if found is not _MISSING:
            break
    if class_reads is not None and cls.__flags__ & _HEAP_OR_FIXED == _HEAP:
        class_reads.setdefault(cls, {}).setdefault(name, found)
    # The forward of a graph is compiled when it is asked for.
    return found.__get__(None, cls) if type(found) is _Method else found


def c_base(cls: type) -> type:
    """The class in C that a class derives from, or the class itself. Modules in C have classes on
    the heap too; those have a __new__ of their own."""
    return next(c for c in cls.__mro__ if not c.__flags__ & _HEAP or _is_new_in_c(c))


def _is_new_in_c(cls: type) -> bool:
    return isinstance(cls.__dict__.get("__new__"), types.BuiltinFunctionType)


def rows_of_reads(reads: dict[type, dict[str, object]]) -> list[tuple[type, tuple, tuple]]:
    """What was read of the program's classes, as the guard on them wants it."""
    rows = []
    for cls, found in reads.items():
        if str(cls.__module__).split(".")[0] == "torch":
            continue
        kinds = [
            value if value is _MISSING or hasattr(type(value), "__get__") else OWNED
            for value in found.values()
        ]
        rows.append((cls, tuple(found), tuple(kinds)))
    return rows


class UserDefinedClassVariable(VariableTracker):
    """A class."""

    __slots__ = ("value",)

    def __init__(self, value: type, source: Source | None = None) -> None:
        super().__init__(source)
        self.value = value

    def describe(self) -> str:
        return self.value.__qualname__

    def python_type(self) -> type:
        return type(self.value)

    def is_mutable(self) -> bool:
        return False

    def is_python_constant(self) -> bool:
        return True

    def as_python_constant(self) -> object:
        return self.value

    def as_proxy(self) -> object:
        return self.value

    def hash_key(self, tx: Frame) -> object:
        return self.value

    def truth(self, tx: Frame) -> bool:
        if type(self.value).__dict__.get("__bool__") or type(self.value).__dict__.get("__len__"):
            return bool(self.value)
        return True

    def reconstruct(self, cg: Codegen) -> str:
        return cg.const(self.value)

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        import enum

        if isinstance(self.value, enum.EnumMeta):
            return iter([VariableTracker.build(tx, member) for member in self.value])
        found = class_attribute(type(self.value), "__iter__")
        if found is not _MISSING:
            call = VariableTracker.build(tx, found)
            return tx.make_iterator(call.call_function(tx, [self], {})).iterate(tx)
        raise_error(tx, TypeError, "'type' object is not iterable")

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        stored = tx.out.side_effects.class_attribute(self.value, name)
        if stored is not None:
            if stored is DELETED:
                raise_error(tx, AttributeError, name)
            return stored
        if name == "__class__":
            return VariableTracker.build(tx, type(self.value))
        source = AttrSource(self.source, name) if self.source is not None else None
        meta = class_attribute(type(self.value), name)
        if isinstance(meta, property) and type(self.value) is not type:
            return VariableTracker.build(tx, meta.fget).call_function(tx, [self], {})
        raw = class_attribute(self.value, name)
        if raw is not _MISSING and name not in ("__dict__", "__doc__"):
            return self._bind(tx, name, raw, source)
        if isinstance(meta, types.FunctionType):
            return UserMethodVariable(VariableTracker.build(tx, meta), self)
        try:
            found = getattr(self.value, name)
        except Exception as error:
            raise_observed(tx, error)
        if isinstance(found, types.BuiltinMethodType | types.MethodWrapperType):
            from torch._dynamo.variables.misc import GetAttrVariable

            return GetAttrVariable(self, name)
        return VariableTracker.build(tx, found, source)

    def _bind(self, tx: Frame, name: str, raw: object, source: Source | None) -> VariableTracker:
        if isinstance(raw, staticmethod):
            return VariableTracker.build(tx, raw.__func__, source)
        if isinstance(raw, classmethod):
            inner = raw.__func__
            if isinstance(inner, types.FunctionType):
                function = VariableTracker.build(tx, inner)
                return UserMethodVariable(function, self, source)
        if isinstance(raw, (types.FunctionType, type, *_C_METHODS)):
            return VariableTracker.build(tx, raw, source)
        getter = class_attribute(type(raw), "__get__")
        if isinstance(getter, types.FunctionType) and not isinstance(raw, types.FunctionType):
            holder = VariableTracker.build(tx, raw)
            return VariableTracker.build(tx, getter).call_function(tx, [holder, NONE, self], {})
        try:
            found = getattr(self.value, name)
        except Exception as error:
            raise_observed(tx, error)
        if isinstance(found, types.BuiltinMethodType) and found.__self__ is self.value:
            from torch._dynamo.variables.misc import GetAttrVariable

            return GetAttrVariable(self, name)
        return VariableTracker.build(tx, found, source)

    def setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        meta = class_attribute(type(self.value), "__setattr__")
        if isinstance(meta, types.FunctionType) or self.source is None:
            unimplemented("attribute of a class", f"{self!r}.{name}", "it cannot be set here")
        if isinstance(class_attribute(self.value, name), property):
            unimplemented("attribute of a class", f"{self!r}.{name}", "it replaces a property")
        tx.out.side_effects.set_attribute(self.value, self, name, value)

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        return tx.construct(self, args, kwargs)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        return tx.call_class_method(self, name, args, kwargs)

    def getitem(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        import enum

        if isinstance(self.value, enum.EnumMeta) or key.is_python_constant():
            try:
                return VariableTracker.build(tx, self.value[key.as_python_constant()])
            except Exception as error:
                raise_observed(tx, error)
        return super().getitem(tx, key)


class UserDefinedObjectVariable(VariableTracker):
    """An object of a class written in Python. `value` is the running program's object, None for one
    that the trace made; `attrs` holds what the trace stored; `contents` is the builtin container
    that it also is, where its class derives from one."""

    __slots__ = ("attrs", "cls", "contents", "init_args", "own_dict", "stored_again", "value")

    def __init__(
        self,
        cls: type,
        value: object = None,
        source: Source | None = None,
        contents: VariableTracker | None = None,
    ) -> None:
        super().__init__(source)
        self.cls = cls
        self.value = value
        self.attrs: dict[str, VariableTracker] = {}
        self.contents = contents
        # Attributes of the running program's object that were deleted and are there again.
        self.stored_again: set[str] = set()
        # What __new__ needs to make the object again, besides the class.
        self.init_args: Args = []
        # Its __dict__, once somebody asked for it.
        self.own_dict: InstanceDictVariable | None = None

    def hold(self, tx: Frame, contents: VariableTracker) -> None:
        """Notes the builtin container. Views and iterators of it are those of the object."""
        self.contents = contents
        tx.out.holders[id(contents)] = self

    def describe(self) -> str:
        return self.cls.__qualname__

    def python_type(self) -> type:
        return self.cls

    def children(self) -> Iterator[VariableTracker]:
        if self.value is None:
            yield from self.init_args
            for vt in self.attrs.values():
                if vt is not DELETED:
                    yield vt
            if self.contents is not None:
                yield from self.contents.children()

    def is_python_constant(self) -> bool:
        return self._frozen_constant() is not None

    def _frozen_constant(self) -> object | None:
        # An object without state of its own that callers only pass on.
        return None

    # ---- attributes

    def own_attribute(self, tx: Frame, name: str) -> VariableTracker | None:
        """What the instance's own dictionary or slots have."""
        found = self.attrs.get(name)
        if found is not None:
            return None if found is DELETED else found.realize()
        if self.value is None:
            return None
        own = instance_dict(self.value)
        if own is not None and name in own:
            return VariableTracker.build(tx, own[name], self._own_source(name))
        return None

    def _own_source(self, name: str) -> Source | None:
        if self.source is None:
            return None
        custom = (class_attribute(self.cls, n) for n in ("__getattr__", "__getattribute__"))
        if hasattr(type(class_attribute(self.cls, name)), "__get__") or any(
            isinstance(function, types.FunctionType) for function in custom
        ):
            # A descriptor or method of the class stands behind it, which no guard may run.
            return GetItemSource(AttrSource(self.source, "__dict__"), name)
        return AttrSource(self.source, name)

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        custom = class_attribute(self.cls, "__getattribute__")
        if isinstance(custom, types.FunctionType):
            function = VariableTracker.build(tx, custom)
            return function.call_function(tx, [self, ConstantVariable(name)], {})
        return self.generic_getattr(tx, name)

    def generic_getattr(self, tx: Frame, name: str) -> VariableTracker:
        """object.__getattribute__ and then __getattr__"""
        try:
            found = self.lookup(tx, name)
        except ObservedException as error:
            # A property that raises AttributeError leads to __getattr__ too.
            if not issubclass(error.value.python_type(), AttributeError):
                raise
            fallback = class_attribute(self.cls, "__getattr__")
            if not isinstance(fallback, types.FunctionType):
                raise
            found = None
        if found is not None:
            return found
        fallback = class_attribute(self.cls, "__getattr__")
        if isinstance(fallback, types.FunctionType):
            self.guard_absent(tx, name)
            function = VariableTracker.build(tx, fallback)
            return function.call_function(tx, [self, ConstantVariable(name)], {})
        self.guard_absent(tx, name)
        raise_error(tx, AttributeError, f"{self.cls.__name__!r} object has no attribute {name!r}")

    def guard_absent(self, tx: Frame, name: str) -> None:
        """The running program's object must not get such an attribute of its own."""
        if self.source is None or self.value is None or name in self.attrs:
            return
        if instance_dict(self.value) is not None:
            tx.out.guard(self.source, "NOT_PRESENT_IN_GENERIC_DICT", name)

    def lookup(self, tx: Frame, name: str) -> VariableTracker | None:
        """object.__getattribute__; None where there is no such attribute."""
        raw = class_attribute(self.cls, name)
        if raw is not _MISSING and is_data_descriptor(raw):
            return self._from_data_descriptor(tx, name, raw)
        own = self.own_attribute(tx, name)
        if own is not None:
            return own
        if name == "__class__":
            return self.class_tracker(tx)
        stored = tx.out.side_effects.class_attribute(self.cls, name)
        if stored is not None:
            function = isinstance(stored, BaseUserFunctionVariable)
            return UserMethodVariable(stored, self) if function else stored
        if raw is _MISSING:
            return None
        self.guard_absent(tx, name)
        return self.bind(tx, name, raw)

    def _from_data_descriptor(self, tx: Frame, name: str, raw: object) -> VariableTracker | None:
        if isinstance(raw, property):
            if raw.fget is None:
                text = f"property {name!r} of {self.cls.__qualname__!r} object has no getter"
                raise_error(tx, AttributeError, text)
            getter = VariableTracker.build(tx, raw.fget)
            return getter.call_function(tx, [self], {})
        if isinstance(raw, types.MemberDescriptorType):
            return self._slot(tx, name)
        if isinstance(raw, types.GetSetDescriptorType):
            return self._getset(tx, name, raw)
        if isinstance(raw, collections._tuplegetter):
            return self.contents.item(raw.__reduce__()[1][0])
        getter = class_attribute(type(raw), "__get__")
        if isinstance(getter, types.FunctionType):
            holder = self._class_value(tx, name, raw)
            owner = VariableTracker.build(tx, self.cls)
            return VariableTracker.build(tx, getter).call_function(tx, [holder, self, owner], {})
        unimplemented(
            "descriptor", f"{self!r}.{name}: {raw!r}", "Dynamo does not know this descriptor"
        )

    def _class_value(self, tx: Frame, name: str, raw: object) -> VariableTracker:
        """An attribute of the class as it stands in the class's dictionary."""
        from torch._dynamo.source import ClassDictSource

        source = self._class_source(tx)
        if source is not None:
            source = ClassDictSource(source, name, _owner(self.cls, name))
        return VariableTracker.build(tx, raw, source)

    def _class_source(self, tx: Frame) -> Source | None:
        if self.source is not None:
            return TypeSource(self.source)
        return tx.out.class_sources.get(self.cls)

    def class_tracker(self, tx: Frame) -> VariableTracker:
        """type(obj). The guards of the object or of its class say which one it is."""
        source = self._class_source(tx)
        if source is None:
            return VariableTracker.build(tx, self.cls)
        return UserDefinedClassVariable(self.cls, source)

    def _slot(self, tx: Frame, name: str) -> VariableTracker | None:
        found = self.attrs.get(name)
        if found is not None:
            return None if found is DELETED else found.realize()
        if self.value is None:
            return None
        try:
            value = class_attribute(self.cls, name).__get__(self.value, self.cls)
        except AttributeError:
            self._guard_unset(tx, name)
            return None
        return VariableTracker.build(
            tx, value, AttrSource(self.source, name) if self.source is not None else None
        )

    def _guard_unset(self, tx: Frame, name: str) -> None:
        """A slot without a value."""
        if self.source is None:
            return
        if class_attribute(self.cls, "__getattr__") is not _MISSING:
            unimplemented(
                "attribute",
                f"{self!r}.{name}",
                "a slot without a value, in place of which the class computes one",
            )
        tx.out.guard(self.source, "NO_ATTRIBUTE", name)

    def _getset(self, tx: Frame, name: str, raw: object) -> VariableTracker | None:
        if name == "__dict__":
            return self.dict_view(tx)
        if name == "__weakref__":
            return NONE
        if name == "__class__":
            return self.class_tracker(tx)
        if self.contents is not None:
            return self.contents.getattr(tx, name)
        if self.value is not None and self.source is not None and name not in self.attrs:
            # The guards read it again.
            return VariableTracker.build(
                tx, getattr(self.value, name), AttrSource(self.source, name)
            )
        unimplemented("attribute", f"{self!r}.{name}", "an attribute implemented in C")

    def dict_view(self, tx: Frame) -> VariableTracker:
        """obj.__dict__"""
        from torch._dynamo.variables.misc import InstanceDictVariable

        if self.own_dict is None:
            self.own_dict = InstanceDictVariable.of(tx, self)
        return self.own_dict

    def bind(self, tx: Frame, name: str, raw: object) -> VariableTracker:
        """A class attribute, as reading it from an instance gives it."""
        if isinstance(raw, types.FunctionType):
            source = self._guard_class_attribute(tx, name, raw)
            return UserMethodVariable(UserFunctionVariable(raw, source), self)
        if isinstance(raw, staticmethod):
            return VariableTracker.build(tx, raw.__func__)
        if isinstance(raw, classmethod):
            owner = VariableTracker.build(tx, self.cls)
            inner = raw.__func__
            if isinstance(inner, types.FunctionType):
                return UserMethodVariable(VariableTracker.build(tx, inner), owner)
            return owner.getattr(tx, name)
        if isinstance(raw, _C_METHODS):
            from torch._dynamo.variables.misc import GetAttrVariable

            return GetAttrVariable(self, name)
        if isinstance(raw, functools._lru_cache_wrapper):
            return self._cached_method(name, raw)
        if type(raw) is functools.cached_property and raw.attrname is not None:
            # Its lock keeps threads apart; a trace is alone.
            value = VariableTracker.build(tx, raw.func).call_function(tx, [self], {})
            self.store(tx, raw.attrname, value)
            return value
        getter = class_attribute(type(raw), "__get__")
        if getter is _MISSING:
            return self._class_value(tx, name, raw)
        if isinstance(getter, types.FunctionType):
            holder = self._class_value(tx, name, raw)
            owner = VariableTracker.build(tx, self.cls)
            return VariableTracker.build(tx, getter).call_function(tx, [holder, self, owner], {})
        unimplemented("descriptor", f"{self!r}.{name}", f"an unknown descriptor {type(raw)}")

    def _cached_method(self, name: str, raw: functools._lru_cache_wrapper) -> VariableTracker:
        """A method that keeps its results. Its function is traced; a logger's is called after the
        graph, since what it keeps is which messages were written."""
        if isinstance(self.value, logging.Logger):
            return DeferredCallVariable(getattr(self.value, name))
        if not isinstance(raw.__wrapped__, types.FunctionType):
            unimplemented("descriptor", f"{self!r}.{name}", "a cache of a function of C code")
        return UserMethodVariable(CachedFunctionVariable(raw), self)

    def _guard_class_attribute(
        self, tx: Frame, name: str, raw: types.FunctionType
    ) -> Source | None:
        if trace_rules.is_library_file(raw.__code__.co_filename):
            return None
        if self.source is None:
            return class_function_source(tx, self.cls, name, raw)
        from torch._dynamo.source import ClassDictSource

        source = ClassDictSource(TypeSource(self.source), name, _owner(self.cls, name))
        tx.out.guard(source, "ID_MATCH", raw)
        return source

    def setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        custom = class_attribute(self.cls, "__setattr__")
        if isinstance(custom, types.FunctionType):
            function = VariableTracker.build(tx, custom)
            function.call_function(tx, [self, ConstantVariable(name), value], {})
            return
        self.generic_setattr(tx, name, value)

    def generic_setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        """object.__setattr__"""
        raw = class_attribute(self.cls, name)
        if isinstance(raw, property):
            if raw.fset is None:
                raise_error(
                    tx,
                    AttributeError,
                    f"property {name!r} of {self.cls.__qualname__!r} object has no setter",
                )
            VariableTracker.build(tx, raw.fset).call_function(tx, [self, value], {})
            return
        if raw is not _MISSING:
            setter = class_attribute(type(raw), "__set__")
            if isinstance(setter, types.FunctionType):
                holder = self._class_value(tx, name, raw)
                VariableTracker.build(tx, setter).call_function(tx, [holder, self, value], {})
                return
            if isinstance(raw, types.GetSetDescriptorType):
                unimplemented("setattr", f"{self!r}.{name}", "an attribute implemented in C")
        # Without a dictionary there are slots alone, unless C code says otherwise.
        plain = class_attribute(self.cls, "__setattr__") is object.__setattr__
        slot = isinstance(raw, types.MemberDescriptorType)
        if plain and not slot and not self.cls.__dictoffset__:
            text = f"attribute {name!r} is read-only"
            if raw is _MISSING:
                text = f"has no attribute {name!r}"
            raise_error(tx, AttributeError, f"{self.cls.__name__!r} object {text}")
        self.store(tx, name, value)

    def store(self, tx: Frame, name: str, value: VariableTracker) -> None:
        """Puts a value into the instance."""
        tx.mutate(self)
        if self.attrs.get(name) is DELETED and value is not DELETED:
            # It comes after the attributes that were there meanwhile.
            del self.attrs[name]
            self.stored_again.add(name)
        self.attrs[name] = value
        if self.own_dict is None or is_kept_apart(self.cls, name):
            return
        if value is DELETED:
            self.own_dict.items.pop(name, None)
        else:
            self.own_dict.note(name, value)

    def delattr(self, tx: Frame, name: str) -> None:
        custom = class_attribute(self.cls, "__delattr__")
        if isinstance(custom, types.FunctionType):
            function = VariableTracker.build(tx, custom)
            function.call_function(tx, [self, ConstantVariable(name)], {})
            return
        self.generic_delattr(tx, name)

    def generic_delattr(self, tx: Frame, name: str) -> None:
        """object.__delattr__"""
        raw = class_attribute(self.cls, name)
        if isinstance(raw, property):
            if raw.fdel is None:
                text = f"property {name!r} of {self.cls.__qualname__!r} object has no deleter"
                raise_error(tx, AttributeError, text)
            VariableTracker.build(tx, raw.fdel).call_function(tx, [self], {})
            return
        deleter = class_attribute(type(raw), "__delete__")
        if isinstance(deleter, types.FunctionType):
            holder = self._class_value(tx, name, raw)
            VariableTracker.build(tx, deleter).call_function(tx, [holder, self], {})
            return
        if isinstance(raw, types.MemberDescriptorType):
            if self._slot(tx, name) is None:
                raise_error(tx, AttributeError, name)
        elif self.own_attribute(tx, name) is None:
            self.guard_absent(tx, name)
            text = f"{self.cls.__name__!r} object has no attribute {name!r}"
            raise_error(tx, AttributeError, text)
        self.remove(tx, name)

    def remove(self, tx: Frame, name: str) -> None:
        """Takes a value out of the instance, which has it."""
        existed = self._existed(tx, name)
        self.store(tx, name, DELETED)
        if not existed:
            del self.attrs[name]

    def _existed(self, tx: Frame, name: str) -> bool:
        """Whether the running program's object has such an attribute, which becomes a guard."""
        if self.value is None:
            return False
        own = instance_dict(self.value)
        raw = class_attribute(self.cls, name)
        if own is None or isinstance(raw, types.MemberDescriptorType):
            return hasattr(self.value, name)
        if self.source is not None:
            kind = "PRESENT_IN_GENERIC_DICT" if name in own else "NOT_PRESENT_IN_GENERIC_DICT"
            tx.out.guard(self.source, kind, name)
        return name in own

    # ---- the other slots

    def special(self, tx: Frame, name: str) -> VariableTracker | None:
        """A special method as operators look for it: on the class alone."""
        raw = class_attribute(self.cls, name)
        if raw is _MISSING or raw is None:
            return None
        if isinstance(raw, _C_METHODS) and self.contents is None:
            if raw is not getattr(object, name, None):
                unimplemented("method of a C class", f"{self!r}.{name}", "it is implemented in C")
            return None
        return self.bind(tx, name, raw)

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        found = self.special(tx, "__call__")
        if found is None:
            self._refuse_call(tx)
        return found.call_function(tx, args, kwargs)

    def _refuse_call(self, tx: Frame) -> None:
        if callable(self.value):
            trace_rules.refuse(self.value)
        raise_error(tx, TypeError, f"{self.cls.__name__!r} object is not callable")

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.getattr(tx, name).call_function(tx, args, kwargs)

    def call_c_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        """A method that a base class in C defines."""
        if name == "__init__" and class_attribute(self.cls, name) is object.__init__:
            return NONE
        if name == "__getattribute__":
            return self.generic_getattr(tx, args[0].as_python_constant())
        if name == "__setattr__":
            self.generic_setattr(tx, args[0].as_python_constant(), args[1])
            return NONE
        if name == "__delattr__":
            self.generic_delattr(tx, args[0].as_python_constant())
            return NONE
        if name in ("__eq__", "__ne__") and class_attribute(self.cls, name) is getattr(
            object, name
        ):
            return ConstantVariable((self is args[0]) == (name == "__eq__"))
        if name == "__hash__" and self.contents is None:
            unimplemented("hash", f"hash({self!r})", "the address of an object is not known")
        if name == "__getitem__" and isinstance(self.contents, ConstDictVariable):
            absent = class_attribute(self.cls, "__missing__")
            if isinstance(absent, types.FunctionType) and len(args) == 1:
                if self.contents.lookup(tx, args[0]) is None:
                    return self.bind(tx, "__missing__", absent).call_function(tx, args, {})
        if self.contents is not None:
            return self.call_contents(tx, name, args, kwargs)
        unimplemented(
            "method of a C class",
            f"{self!r}.{name}",
            f"`{name}` of {self.cls.__qualname__} is implemented in C",
        )

    def call_contents(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        """A method of the builtin container that the object also is."""
        function = own_class.for_class(self.cls, self.contents.python_type(), name)
        if function is not None:
            return VariableTracker.build(tx, function).call_function(tx, [self, *args], kwargs)
        tx.mutate_contents(self, name)
        result = self.contents.call_method(tx, name, args, kwargs)
        if name == "__repr__" and isinstance(self.contents, DequeVariable):
            # Lists and dictionaries are shown without their class.
            text = result.as_python_constant().removeprefix("deque")
            return ConstantVariable(self.cls.__name__ + text)
        return self if result is self.contents else result

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        raw = class_attribute(self.cls, "__iter__")
        if isinstance(raw, types.FunctionType):
            return tx.iterate_result(self.bind(tx, "__iter__", raw).call_function(tx, [], {}))
        if self.contents is not None:
            return self.contents.iterate(tx)
        if class_attribute(self.cls, "__getitem__") is not _MISSING:
            return tx.iterate_by_index(self)
        raise_error(tx, TypeError, f"{self.cls.__name__!r} object is not iterable")

    def getitem(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        found = self.special(tx, "__getitem__")
        if found is None:
            raise_error(tx, TypeError, f"{self.cls.__name__!r} object is not subscriptable")
        return found.call_function(tx, [key], {})

    def setitem(self, tx: Frame, key: VariableTracker, value: VariableTracker) -> None:
        found = self.special(tx, "__setitem__")
        if found is None:
            raise_error(
                tx,
                TypeError,
                f"{self.cls.__name__!r} object does not support item assignment",
            )
        found.call_function(tx, [key, value], {})

    def truth(self, tx: Frame) -> bool | VariableTracker:
        found = self.special(tx, "__bool__")
        if found is None:
            if self.special(tx, "__len__") is None:
                return True
            result = self.length(tx)
            return bool(result.value) if type(result) is ConstantVariable else result
        result = found.call_function(tx, [], {})
        if not result.is_python_constant():
            return result
        value = result.as_python_constant()
        if not isinstance(value, bool):
            kind = type(value).__name__
            raise_error(tx, TypeError, f"__bool__ should return bool, returned {kind}")
        return value

    def length(self, tx: Frame) -> VariableTracker:
        """len(obj)"""
        found = self.special(tx, "__len__")
        if found is None:
            raise_error(tx, TypeError, f"object of type {self.cls.__name__!r} has no len()")
        result = found.call_function(tx, [], {}).realize()
        if not isinstance(result, SymNodeVariable) or result.python_type() is not int:
            result = ConstantVariable(tx.as_integer(result))
        if tx.truth(tx.binary(operator.lt, result, ConstantVariable(0))):
            raise_error(tx, ValueError, "__len__() should return >= 0")
        return result

    def hash_key(self, tx: Frame) -> object:
        raw = class_attribute(self.cls, "__hash__")
        if raw is None:
            raise_error(tx, TypeError, f"unhashable type: {self.cls.__name__!r}")
        if isinstance(raw, types.FunctionType):
            function = self.bind(tx, "__hash__", raw)
            code, changed = tx.with_effects(lambda: function.call_function(tx, [], {}).realize())
            if changed:
                # Tables of the trace and of the code after it call this at other times.
                unimplemented("hash", repr(self), "its `__hash__` changes something")
            if not issubclass(code.python_type(), int):
                raise_error(tx, TypeError, "__hash__ method should return an integer")
            return ObjectKey(tx, self, int(code.as_python_constant()))
        if self.contents is not None:
            return self.contents.hash_key(tx)
        if raw is not object.__hash__:
            unimplemented("hash", repr(self), "its class in C compares by value")
        if self.source is not None:
            tx.out.compared.add(self.cls)
        return IdentityKey(self)

    def reconstruct(self, cg: Codegen) -> str:
        if self.value is not None and self.source is None:
            return cg.const(self.value)
        return cg.new_object(self)


def class_function_source(
    tx: Frame, cls: type, name: str, raw: types.FunctionType
) -> Source | None:
    """Where the running program finds a function of a class of which the trace makes an object.
    Only what the function keeps, its cells and default values, needs that."""
    base = tx.out.class_sources.get(cls)
    if base is None or not (raw.__closure__ or raw.__defaults__ or raw.__kwdefaults__):
        return None
    from torch._dynamo.source import ClassDictSource

    return ClassDictSource(base, name, _owner(cls, name))


def is_behind_descriptor(cls: type, name: str) -> bool:
    """Whether an attribute in the dictionary of an object lies behind a descriptor of its class,
    which setting it would call."""
    raw = class_attribute(cls, name)
    setters = (class_attribute(type(raw), method) for method in ("__set__", "__delete__"))
    return isinstance(raw, property) or any(isinstance(s, types.FunctionType) for s in setters)


def is_data_descriptor(raw: object) -> bool:
    """Whether a class attribute comes before the instance's own."""
    kind = type(raw)
    return hasattr(kind, "__get__") and (hasattr(kind, "__set__") or hasattr(kind, "__delete__"))


def instance_dict(value: object) -> dict[str, object] | None:
    """The object's own dictionary, whatever its class says."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def _owner(cls: type, name: str) -> int:
    """Which class along the method resolution order has the attribute."""
    for index, base in enumerate(cls.__mro__):
        if name in base.__dict__:
            return index
    return 0


def is_kept_apart(cls: type, name: str) -> bool:
    """Whether objects of a class keep what has the name outside of their __dict__."""
    kinds = types.MemberDescriptorType | types.GetSetDescriptorType
    return isinstance(class_attribute(cls, name), kinds)


def dict_of(tx: Frame, obj: UserDefinedObjectVariable) -> ConstDictVariable:
    """A copy of obj.__dict__ as the trace sees it."""
    pairs = []
    own = instance_dict(obj.value) if obj.value is not None else None
    for name in own or ():
        if obj.attrs.get(name) is not DELETED and name not in obj.stored_again:
            pairs.append((ConstantVariable(name), obj.own_attribute(tx, name)))
    known = {k.as_python_constant() for k, _ in pairs}
    pairs += [
        (ConstantVariable(n), v.realize())
        for n, v in obj.attrs.items()
        if n not in known and v is not DELETED and not is_kept_apart(obj.cls, n)
    ]
    return ConstDictVariable.of(tx, pairs)
