"""Instances of scripted classes as Python sees them."""

from __future__ import annotations

import torch
from torch.jit import _types as T

_by_name: dict[str, T.ClassType] = {}


def known_class(name: str) -> T.ClassType | None:
    """The class of scripted code with this name."""
    from torch.jit import _annotations

    for kind in _annotations._classes.values():
        if isinstance(kind, T.ClassType) and kind.qualified_name == name:
            return kind
    return _by_name.get(name)


class RecursiveScriptClass:
    """An object of a scripted class; attributes are slots, methods run in the interpreter."""

    def __init__(self, handle, kind: T.ClassType) -> None:
        object.__setattr__(self, "_script_handle", handle)
        object.__setattr__(self, "_script_type", kind)

    def __getattr__(self, name: str):
        kind = self._script_type
        if name in kind.slots:
            return self._script_handle.get(kind.slots[name])
        if name in kind.methods:
            from torch.jit._modules import ScriptMethod

            kind.methods[name].ensure_compiled()
            return ScriptMethod(kind.methods[name], self)
        if name in kind.properties:
            from torch.jit._modules import ScriptMethod

            kind.properties[name][0].ensure_compiled()
            return ScriptMethod(kind.properties[name][0], self)()
        if name in kind.constants:
            return kind.constants[name][0]
        raise AttributeError(f"'{kind.name()}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: object) -> None:
        kind = self._script_type
        if name not in kind.slots:
            raise AttributeError(f"'{kind.name()}' object has no attribute '{name}'")
        self._script_handle.set(kind.slots[name], value, kind.attributes[name].handle())

    def __eq__(self, other: object) -> bool:
        if "__eq__" in self._script_type.methods:
            return self.__getattr__("__eq__")(other)
        return (
            isinstance(other, RecursiveScriptClass) and self._script_handle == other._script_handle
        )

    def __hash__(self) -> int:
        return hash(self._script_handle)


def _forwarded(name: str):
    def method(self, *args):
        if name not in self._script_type.methods:
            raise NotImplementedError(f"'{self._script_type.name()}' has no method {name}")
        return self.__getattr__(name)(*args)

    method.__name__ = name
    return method


for _name in (
    "add sub mul truediv floordiv mod pow lt le gt ge ne neg len contains getitem setitem "
    "delitem int float bool str call iadd isub imul"
).split():
    setattr(RecursiveScriptClass, f"__{_name}__", _forwarded(f"__{_name}__"))
del RecursiveScriptClass.__bool__, RecursiveScriptClass.__ne__


def _text(self) -> str:
    if "__str__" in self._script_type.methods:
        return self.__getattr__("__str__")()
    return f"<torch.ScriptObject object of {self._script_type.qualified_name}>"


RecursiveScriptClass.__str__ = _text
RecursiveScriptClass.__repr__ = lambda self: f"<torch.ScriptObject object of {self._script_type}>"


def wrap_instance(handle: torch._C._ScriptObject):
    """The Python object of an instance; a plain handle where its class is not known."""
    kind = known_class(handle.class_name)
    return RecursiveScriptClass(handle, kind) if kind is not None else handle
