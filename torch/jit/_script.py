"""torch.jit.script: from a Python object to its compiled form."""

from __future__ import annotations

import builtins
import enum
import inspect
import sys

import torch
from torch.jit._function import ScriptFunction, script_python
from torch.jit._ir import Graph


def script(obj):
    """Compiles a function, module, class, or a container of values."""
    from torch.jit import _state
    from torch.jit._modules import RecursiveScriptModule, ScriptMethod, script_module

    if not _state._enabled:
        return obj
    if isinstance(obj, ScriptFunction | RecursiveScriptModule | ScriptMethod):
        return obj
    if isinstance(obj, torch.nn.Module):
        return script_module(obj)
    if isinstance(obj, dict | list | tuple):
        return obj
    if isinstance(obj, type):
        return _script_class(obj)
    original = getattr(obj, "__script_if_tracing__", obj)
    if inspect.isfunction(original) or hasattr(original, "__wrapped__"):
        return _script_function(original)
    if inspect.ismethod(original):
        return _script_function(original.__func__)
    if getattr(type(obj), "__script_class__", False) or hasattr(type(obj), "__init__"):
        return _script_instance(obj)
    raise RuntimeError(f"torch.jit.script cannot compile an object of type {type(obj)}")


def _script_function(fn) -> ScriptFunction:
    from torch.jit._resolve import overloads_of

    if overloads_of(fn):
        raise RuntimeError(
            f"Function {fn.__qualname__} cannot be directly compiled because it is overloaded. It "
            f"must "
            "be used in a context of a function where its inputs can determine which overload to "
            "call."
        )
    function = script_python(inspect.unwrap(fn) if hasattr(fn, "__wrapped__") else fn)
    function.ensure_compiled()
    function.__doc__ = fn.__doc__
    function.__module__ = fn.__module__
    function.__qualname__ = fn.__qualname__
    function._torchdynamo_inline = fn
    return function


def _script_class(cls: type):
    from torch.jit._annotations import type_of_class

    if issubclass(cls, torch.nn.Module):
        raise RuntimeError(
            f"Type '{cls}' cannot be compiled since it inherits from nn.Module, consider passing "
            f"an "
            "instance instead"
        )
    if issubclass(cls, enum.Enum) or hasattr(cls, "_fields"):
        return cls
    if len(cls.mro()) > 2 and object in cls.mro()[:-1] is None:
        raise RuntimeError(
            "TorchScript classes does not support inheritance yet. Please directly inherit "
            "from 'object'."
        )
    type_of_class(cls)
    cls.__script_class__ = True
    return cls


def _script_instance(obj):
    from torch.jit._annotations import type_of_class
    from torch.jit._script_class import RecursiveScriptClass

    kind = type_of_class(type(obj))
    type(obj).__script_class__ = True
    handle = torch._C._script_object(kind.info)
    for name, slot in kind.slots.items():
        handle.set(slot, getattr(obj, name), kind.attributes[name].handle())
    return RecursiveScriptClass(handle, kind)


class CompilationUnit:
    """Functions compiled from a text."""

    def __init__(self, lang: str = "", _frames_up: int = 0) -> None:
        self._functions: dict[str, ScriptFunction] = {}
        self._optimized = True
        if lang:
            frame = sys._getframe(1 + _frames_up)
            self._scope = {**vars(builtins), "torch": torch, **frame.f_globals, **frame.f_locals}
            self.define(lang)

    def define(self, lang: str, rcb=None, _frames_up: int = 0) -> None:
        """Adds the functions of a text."""
        from torch.jit._defined import functions_in

        scope = dict(getattr(self, "_scope", None) or {**vars(builtins), "torch": torch})
        import math

        scope.setdefault("math", math)
        made = functions_in(lang, scope, "__torch__.")
        for function in made:
            function.origin.scope[function.name] = function
        for function in made:
            function.ensure_compiled()
            self._functions[function.name] = function

    def __getattr__(self, name: str) -> ScriptFunction:
        try:
            return self.__dict__["_functions"][name]
        except KeyError:
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'") from None

    def find_function(self, name: str) -> ScriptFunction | None:
        """The function of that name, or None."""
        return self._functions.get(name)

    def create_function(
        self, qualified_name: str, graph: Graph, should_mangle: bool = False
    ) -> ScriptFunction:
        """Adds a function that runs a graph; with should_mangle, under a name that is free."""
        from torch.jit._native_names import _create_function_from_graph

        name, number = qualified_name, 0
        while should_mangle and name in self._functions:
            name, number = f"{qualified_name}_{number}", number + 1
        made = self._functions[name] = _create_function_from_graph(name, graph)
        return made

    def drop_all_functions(self) -> None:
        """Forgets every function; one that a program holds stays what it is."""
        self._functions.clear()

    def set_optimized(self, optimized: bool) -> None:
        """Kept for programs that ask; code is optimized when it is compiled."""
        self._optimized = bool(optimized)

    def get_class(self, name: str):
        """The type of the class with this qualified name, or None."""
        from torch.jit._script_class import known_class

        return known_class(name)

    def get_interface(self, name: str):
        """The type of the interface with this qualified name, or None."""
        from torch.jit._types import InterfaceType

        return InterfaceType.by_name.get(name)

    def get_functions(self) -> list[ScriptFunction]:
        return list(self._functions.values())
