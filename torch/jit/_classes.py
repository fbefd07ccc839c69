"""Python classes as types of scripted code: their methods are compiled, their attributes are those
that __init__ assigns."""

from __future__ import annotations

import dataclasses
import inspect
import typing

import torch
from torch.jit import _annotations
from torch.jit import _types as T
from torch.jit._dataclasses import dataclass_methods
from torch.jit._function import (
    ClassMethodSource,
    Declared,
    PythonSource,
    ScriptFunction,
    result_of,
    script_python,
)
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
    foreign = cls.__module__ in ("collections.abc", "typing", "abc", "builtins")
    if foreign or (not _methods(cls) and not dataclasses.is_dataclass(cls)):
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
    names = {cls.__name__: cls}
    if dataclasses.is_dataclass(cls):
        methods = dataclass_methods(cls, _methods(cls))
    else:
        methods = _methods(cls)
    kind.class_attributes = {n for n, v in vars(cls).items() if not callable(v) and n[:2] != "__"}
    for name, member in inspect.getmembers_static(cls):
        if isinstance(member, staticmethod):
            kind.statics[name] = Function(script_python(member.__func__))
        elif isinstance(member, classmethod) and not hasattr(object, name):
            source = ClassMethodSource(member.__func__, kind, names)
            made = ScriptFunction(name, f"{kind.qualified_name}.{name}", source)
            kind.statics[name] = Function(made)
    for name, method in methods.items():
        mark = getattr(method, "__script_mark__", None)
        if mark == "unused":
            kind.ignored[name] = Unused(name, result_of(method))
        elif mark == "ignore":
            kind.ignored[name] = Ignored(method, Declared(method, kind))
        else:
            source = PythonSource(method, kind, None, names)
            kind.methods[name] = ScriptFunction(name, f"{kind.qualified_name}.{name}", source)
    init = kind.methods.get("__init__")
    if init is not None:
        init.ensure_compiled()
    kind.complete = True
    _add_properties(kind, cls, names)
    for name, function in list(kind.methods.items()):
        function.ensure_compiled()
        kind.add_method(name, function)


def _add_properties(kind: T.ClassType, cls: type, names: dict[str, object]) -> None:
    unused = getattr(cls, "__jit_unused_properties__", ())
    for name, member in vars(cls).items():
        if not isinstance(member, property) or name in unused:
            continue
        if getattr(member.fget, "__script_mark__", None) is not None:
            continue
        made = []
        for role, fn in (("getter", member.fget), ("setter", member.fset)):
            source = PythonSource(fn, kind, None, names) if fn is not None else None
            label = f"__{name}_{role}"
            full = f"{kind.qualified_name}.{label}"
            made.append(ScriptFunction(name, full, source) if source else None)
            if made[-1] is not None:
                kind.methods[label] = made[-1]
        kind.properties[name] = (made[0], made[1])


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
