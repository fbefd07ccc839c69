"""Small values: modules, methods of builtin objects read but not called yet, super(), keys, and
the dictionary of an object."""

from __future__ import annotations

import types
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch._dynamo.exc import raise_error, raise_key_error, raise_observed, unimplemented
from torch._dynamo.source import AttrSource
from torch._dynamo.variables.base import Args, KnownObjectVariable, Kwargs, VariableTracker
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.dicts import AttributeDictVariable, ConstDictVariable, Entries
from torch._dynamo.variables.functions import UserMethodVariable
from torch._dynamo.variables.keys import IdentityKey, PartsKey
from torch._dynamo.variables.user_defined import (
    _MISSING,
    UserDefinedClassVariable,
    UserDefinedObjectVariable,
    dict_of,
    is_kept_apart,
)

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame
    from torch._guards import Source


class PythonModuleVariable(KnownObjectVariable):
    """A module."""

    __slots__ = ()

    def describe(self) -> str:
        return self.value.__name__

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        stored = tx.out.side_effects.attribute(self.value, name)
        if stored is not None:
            return stored
        tx.out.check_own_dict(vars(self.value))
        try:
            found = getattr(self.value, name)
        except AttributeError as error:
            if self.source is not None:
                tx.out.guard(self.source, "NOT_PRESENT_IN_GENERIC_DICT", name)
            raise_observed(tx, error)
        source = AttrSource(self.source, name) if self.source is not None else None
        return VariableTracker.build(tx, found, source)

    def setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        if self.source is None:
            super().setattr(tx, name, value)
        tx.out.note_own_dict(vars(self.value))
        tx.out.side_effects.set_attribute(self.value, self, name, value)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.getattr(tx, name).call_function(tx, args, kwargs)


class GetAttrVariable(VariableTracker):
    """A method that C code defines, read from an object and not called yet."""

    __slots__ = ("name", "obj")

    def __init__(self, obj: VariableTracker, name: str, source: Source | None = None) -> None:
        super().__init__(source)
        self.obj = obj
        self.name = name

    def describe(self) -> str:
        return f"{self.obj!r}.{self.name}"

    def python_type(self) -> type:
        return types.BuiltinMethodType

    def is_mutable(self) -> bool:
        return False

    def is_python_constant(self) -> bool:
        return isinstance(self.obj, UserDefinedClassVariable)

    def as_python_constant(self) -> object:
        return getattr(self.obj.as_python_constant(), self.name)

    def hash_key(self, tx: Frame) -> object:
        return PartsKey(("method", self.obj.hash_key(tx), self.name))

    def children(self) -> Iterator[VariableTracker]:
        yield self.obj

    def truth(self, tx: Frame) -> bool:
        return True

    def is_same(self, other: VariableTracker) -> bool | None:
        return None if isinstance(other, GetAttrVariable) and self.name == other.name else False

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        if name == "__self__":
            return self.obj
        if name == "__name__":
            return ConstantVariable(self.name)
        if name == "__call__":
            return self
        return super().getattr(tx, name)

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        if isinstance(self.obj, UserDefinedObjectVariable):
            return self.obj.call_c_method(tx, self.name, args, kwargs)
        return self.obj.call_method(tx, self.name, args, kwargs)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__call__":
            return self.call_function(tx, args, kwargs)
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.expr(self.obj)}.{self.name}"


class SuperVariable(VariableTracker):
    """super(cls, obj)"""

    __slots__ = ("obj", "start")

    def __init__(self, start: type, obj: VariableTracker) -> None:
        super().__init__(None)
        self.start = start
        self.obj = obj

    def python_type(self) -> type:
        return super

    def children(self) -> Iterator[VariableTracker]:
        yield self.obj

    def _find(self, name: str) -> object:
        of_class = isinstance(self.obj, UserDefinedClassVariable)
        cls = self.obj.value if of_class else self.obj.python_type()
        if of_class and not issubclass(cls, self.start):
            cls = type(self.obj.value)
        mro = cls.__mro__
        for base in mro[mro.index(self.start) + 1 :]:
            found = base.__dict__.get(name, _MISSING)
            if found is not _MISSING:
                return found
        return _MISSING

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        raw = self._find(name)
        if raw is _MISSING:
            if name == "__class__":
                return VariableTracker.build(tx, super)
            raise_error(tx, AttributeError, f"'super' object has no attribute {name!r}")
        obj = self.obj
        if isinstance(raw, types.FunctionType):
            if isinstance(obj, UserDefinedClassVariable) and issubclass(obj.value, self.start):
                return VariableTracker.build(tx, raw)
            return UserMethodVariable(VariableTracker.build(tx, raw), obj)
        if isinstance(raw, staticmethod):
            return VariableTracker.build(tx, raw.__func__)
        if isinstance(raw, classmethod):
            owner = (
                obj
                if isinstance(obj, UserDefinedClassVariable)
                else VariableTracker.build(tx, obj.python_type())
            )
            inner = raw.__func__
            return UserMethodVariable(VariableTracker.build(tx, inner), owner)
        if isinstance(raw, property):
            return VariableTracker.build(tx, raw.fget).call_function(tx, [obj], {})
        if not hasattr(type(raw), "__get__"):
            return VariableTracker.build(tx, raw)
        return SuperMethodVariable(obj, name, raw)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.getattr(tx, name).call_function(tx, args, kwargs)


class SuperMethodVariable(GetAttrVariable):
    """A method of a C base class, found by super()."""

    __slots__ = ("raw",)

    def __init__(self, obj: VariableTracker, name: str, raw: object) -> None:
        super().__init__(obj, name)
        self.raw = raw

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        return tx.call_c_base(self.obj, self.name, self.raw, args, kwargs)

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.const(self.raw)}.__get__({cg.expr(self.obj)})"


class InstanceDictVariable(AttributeDictVariable):
    """obj.__dict__, one for an object."""

    __slots__ = ("obj",)

    def __init__(self, items: Entries, obj: UserDefinedObjectVariable) -> None:
        super().__init__(items)
        self.obj = obj

    @staticmethod
    def of(tx: Frame, obj: UserDefinedObjectVariable) -> InstanceDictVariable:
        """The dictionary of an object."""
        if obj.source is not None:
            tx.out.guard(AttrSource(obj.source, "__dict__"), "DICT_KEYS", dict(obj.value.__dict__))
        return InstanceDictVariable(dict_of(tx, obj).items, obj)

    def setitem(self, tx: Frame, key: VariableTracker, value: VariableTracker) -> None:
        name = self.name_of(key)
        if is_kept_apart(self.obj.cls, name):
            unimplemented("dictionary of an object", name, "the class has a slot of that name")
        self.obj.store(tx, name, value)

    def delete(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        found = self.lookup(tx, key)
        if found is None:
            raise_key_error(tx, key)
        self.obj.remove(tx, self.name_of(key))
        return found

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name in ("clear", "popitem", "move_to_end", "__ior__"):
            unimplemented("dictionary of an object", name, "it is changed as a whole")
        if name == "copy":
            return ConstDictVariable(dict(self.items))
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.expr(self.obj)}.__dict__"


class UnknownVariable(VariableTracker):
    """A value that the trace cannot look into. It may be passed on; any use breaks the graph."""

    __slots__ = ("cls", "value")

    def __init__(self, value: object, source: Source | None = None) -> None:
        super().__init__(source)
        self.value = value
        self.cls = type(value)

    def describe(self) -> str:
        return self.cls.__qualname__

    def python_type(self) -> type:
        return self.cls

    def hash_key(self, tx: Frame) -> object:
        return IdentityKey(self)

    def reconstruct(self, cg: Codegen) -> str:
        return cg.const(self.value)


class WeakRefVariable(VariableTracker):
    """A weak reference. The trace keeps what it refers to alive, so that it is there."""

    __slots__ = ("referent",)

    def __init__(self, referent: VariableTracker, source: Source | None = None) -> None:
        super().__init__(source)
        self.referent = referent

    def python_type(self) -> type:
        return weakref.ReferenceType

    def is_mutable(self) -> bool:
        return False

    def truth(self, tx: Frame) -> bool:
        return True

    def children(self) -> Iterator[VariableTracker]:
        yield self.referent

    def hash_key(self, tx: Frame) -> object:
        return PartsKey(("weak reference", self.referent.realize().hash_key(tx)))

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.referent.realize()

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.const(weakref.ref)}({cg.expr(self.referent)})"


class NewCellMark(VariableTracker):
    """The mark of an unbound local on the stack."""

    __slots__ = ()


UNBOUND = NewCellMark()


class TypingVariable(KnownObjectVariable):
    """A form of typing, such as List[int]."""

    __slots__ = ()

    def getitem(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        return TypingVariable(self.value[key.as_python_constant()])

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        try:
            return VariableTracker.build(tx, getattr(self.value, name))
        except AttributeError as error:
            raise_observed(tx, error)

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        origin = getattr(self.value, "__origin__", None)
        if isinstance(origin, type):
            return VariableTracker.build(tx, origin).call_function(tx, args, kwargs)
        return super().call_function(tx, args, kwargs)
