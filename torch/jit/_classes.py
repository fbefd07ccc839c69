"""Python classes as types of scripted code: their methods are compiled, their attributes are those
that __init__ assigns."""

from __future__ import annotations

import inspect
import typing

import torch
from torch.jit import _annotations
from torch.jit import _types as T
from torch.jit._function import Declared, PythonSource, ScriptFunction, script_python
from torch.jit._sugar import Function, Ignored, Unused

_names: dict[str, int] = {}


def unique_name(name: str) -> str:
    """The name, mangled when another class has it already."""
    taken = _names.get(name)
    if taken is None:
        _names[name] = 0
        return name
    _names[name] = taken + 1
    head, _, tail = name.rpartition(".")
    return unique_name(f"{head}.___torch_mangle_{_next_mangle()}.{tail}")


_mangle = [-1]


def _next_mangle() -> int:
    _mangle[0] += 1
    return _mangle[0]


def compile_class(cls: type) -> T.ClassType:
    """The type of a Python class; compiled when first asked for."""
    if getattr(cls, "__init__", None) is object.__init__ and not _methods(cls):
        raise TypeError(f"the class '{cls.__name__}' has nothing that scripted code could use")
    kind = T.ClassType(unique_name(_annotations.qualified_name(cls)))
    kind.python, kind.complete = cls, False
    _annotations._classes[cls] = kind
    try:
        _fill(kind, cls)
    except BaseException:
        _annotations._classes.pop(cls, None)
        raise
    return kind


def _methods(cls: type) -> dict[str, typing.Any]:
    out: dict[str, typing.Any] = {}
    for base in reversed(cls.__mro__):
        if base in (object, torch.nn.Module) or base.__module__ == "typing":
            continue
        if issubclass(torch.nn.Module, base):
            continue
        out.update({n: m for n, m in vars(base).items() if inspect.isfunction(m)})
    return out


def _fill(kind: T.ClassType, cls: type) -> None:
    for name, constant in vars(cls).items():
        if (
            name.startswith("__")
            or callable(constant)
            or isinstance(constant, property | staticmethod | classmethod)
        ):
            continue
        known = T.infer(constant)
        if known is not None:
            kind.constants[name] = (constant, known)
    for name, member in inspect.getmembers_static(cls):
        if isinstance(member, staticmethod):
            kind.statics[name] = Function(script_python(member.__func__))
    methods = _methods(cls)
    if "__init__" not in methods:
        raise TypeError(f"class '{cls.__name__}' has no __init__ that could be compiled")
    for name, method in methods.items():
        mark = getattr(method, "__script_mark__", None)
        if mark == "unused":
            kind.ignored[name] = Unused(name, Declared(method, kind).returns)
        elif mark == "ignore":
            kind.ignored[name] = Ignored(method, Declared(method, kind))
        else:
            function = ScriptFunction(
                name, f"{kind.qualified_name}.{name}", PythonSource(method, kind)
            )
            kind.methods[name] = function
    init = kind.methods.get("__init__")
    if init is not None:
        init.ensure_compiled()
    kind.complete = True
    for name, member in vars(cls).items():
        if isinstance(member, property) and getattr(member.fget, "__script_mark__", None) is None:
            getter = ScriptFunction(
                name, f"{kind.qualified_name}.{name}_getter", PythonSource(member.fget, kind)
            )
            setter = None
            if member.fset is not None:
                setter = ScriptFunction(
                    name, f"{kind.qualified_name}.{name}_setter", PythonSource(member.fset, kind)
                )
            kind.properties[name] = (getter, setter)
    for name, function in list(kind.methods.items()):
        function.ensure_compiled()
        kind.add_method(name, function)


def interface_of(cls: type, is_module: bool) -> T.InterfaceType:
    """The interface that a decorated class describes."""
    kind = T.InterfaceType(unique_name(_annotations.qualified_name(cls)), is_module)
    for name, method in _methods(cls).items():
        if name.startswith("__") and name != "__call__":
            continue
        function = ScriptFunction(name, f"{kind.name}.{name}", PythonSource(method, kind))
        function.declare()
        if function.returns is None:
            function.returns = T.Tensor
        kind.schemas[name] = function
    return kind
