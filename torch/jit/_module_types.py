"""The class of a scripted module: which of the Python module's attributes become slots, constants,
submodules or methods. Modules with the same class and the same attribute types share one type."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable

import torch
from torch.jit import _types as T
from torch.jit._annotations import from_python, qualified_name
from torch.jit._classes import unique_name
from torch.jit._function import Declared, GenericSource, PythonSource, ScriptFunction
from torch.jit._sugar import Constant, GenericMethod, Ignored, Overloaded, Sugar, Unused

_SKIPPED = frozenset(
    "_parameters _buffers _modules _backward_hooks _backward_pre_hooks _forward_hooks "
    "_forward_hooks_with_kwargs _forward_hooks_always_called _forward_pre_hooks "
    "_forward_pre_hooks_with_kwargs _state_dict_hooks _state_dict_pre_hooks "
    "_load_state_dict_pre_hooks _load_state_dict_post_hooks _non_persistent_buffers_set training "
    "_is_full_backward_hook _compiled_call_impl _script_handle _script_type __constants__".split()
)


# Methods of the library's containers whose result the compiler knows.
_LISTINGS = frozenset(("items", "keys", "values"))


def _is_open(fn) -> bool:
    code = fn.__code__
    return any(n not in fn.__annotations__ for n in code.co_varnames[1 : code.co_argcount])


class ModuleType(T.ClassType):
    """The type of a scripted module; knows the Python class its methods come from."""

    def __init__(self, name: str) -> None:
        super().__init__(name, True)
        self.container = ""
        self.generics: dict[str, ScriptFunction] = {}
        self.failed: dict[str, str] = {}
        self.overloads: dict[str, list[typing.Any]] = {}
        self.instance_methods: dict[str, typing.Any] = {}

    def why_missing(self, name: str) -> str:
        why = self.failed.get(name)
        return f"({why})" if why else ""

    def make_method(self, name: str) -> ScriptFunction | Sugar | None:
        """A method of the Python class, compiled when it is first used."""
        if name in self.methods:
            return self.methods[name]
        fn = self.python_method(name)
        if fn is None or (name in _LISTINGS and self.of_library(name)):
            return None
        if isinstance(fn, bool | int | float | str | tuple) and self.of_library(name):
            return Constant(fn, T.infer(fn))
        if isinstance(fn, staticmethod):
            from torch.jit._resolve import sugar

            return sugar(fn.__func__)
        if isinstance(fn, property):
            return None
        mark = getattr(fn, "__script_mark__", None)
        if mark == "unused":
            return Unused(name, Declared(fn, self).returns)
        if mark == "ignore":
            return Ignored(fn, Declared(fn, self))
        if isinstance(fn, torch._ops.OpOverloadPacket | torch._ops.OpOverload):
            from torch.jit._resolve import sugar

            return sugar(fn)
        if not inspect.isfunction(inspect.unwrap(fn)):
            return None
        from torch.jit._resolve import overloads_of

        declared = overloads_of(fn)
        if declared:
            return self.overloaded_method(name, fn, declared)
        if name != "forward" and fn.__module__.startswith("torch.nn.") and _is_open(fn):
            return GenericMethod(fn, lambda types: self.generic_method(name, fn, types))
        return self.define_method(name, fn)

    def overloaded_method(self, name: str, fn, declared) -> Overloaded:
        """One method for each declaration, under the names that archives give them."""
        if name not in self.overloads:
            functions = self.overloads[name] = []
            for i, declaration in enumerate(declared):
                label = f"{name}__{i}"
                source = PythonSource(fn, self, declaration)
                function = ScriptFunction(label, f"{self.qualified_name}.{label}", source)
                self.add_method(label, function)
                functions.append(function)
        return Overloaded(self.overloads[name])

    def generic_method(self, name: str, fn, types: dict[str, T.Type]) -> ScriptFunction:
        """The method for these types of its open parameters."""
        key = f"{name}_{'_'.join(f'{n}_{id(t)}' for n, t in sorted(types.items()))}"
        if key not in self.generics:
            origin = GenericSource(fn, types, self)
            label = f"{name}_{len(self.generics)}"
            function = self.generics[key] = ScriptFunction(
                label, f"{self.qualified_name}.{label}", origin
            )
            self.add_method(label, function)
        return self.generics[key]

    def of_library(self, name: str) -> bool:
        """Whether a class attribute belongs to a class of torch.nn, whose methods may read it."""
        owner = next((b for b in self.python.__mro__ if name in vars(b)), None)
        return owner is not None and owner.__module__.startswith("torch.nn.")

    def define_method(self, name: str, fn) -> ScriptFunction:
        function = ScriptFunction(name, f"{self.qualified_name}.{name}", PythonSource(fn, self))
        self.add_method(name, function)
        return function

    def python_method(self, name: str):
        if name in self.instance_methods:
            return self.instance_methods[name]
        from torch.jit._module_library import method_of

        found = method_of(self, name)
        if found is not None:
            return found
        try:
            found = inspect.getattr_static(self.python, name)
        except AttributeError:
            return None
        # A descriptor may stand for a function: classes of torch.fx make theirs late.
        bound = getattr(self.python, name, None)
        return bound if inspect.isfunction(bound) and not isinstance(found, staticmethod) else found

    def make_super_method(self, name: str, caller: ScriptFunction) -> ScriptFunction | None:
        """The method of a base class that super() means inside `caller`."""
        owner = getattr(caller.origin, "fn", None)
        mro = self.python.__mro__
        start = next((i for i, c in enumerate(mro) if vars(c).get(caller.name) is owner), 0)
        for base in mro[start + 1 :]:
            if name in vars(base) and base is not torch.nn.Module:
                key = f"_super_{base.__name__}_{name}"
                if key not in self.methods:
                    self.define_method(key, vars(base)[name])
                return self.methods[key]
        return None


def _annotations_of(cls: type) -> dict[str, object]:
    out: dict[str, object] = {}
    for base in reversed(cls.__mro__):
        own = dict(vars(base).get("__annotations__", {}))
        if any(isinstance(a, str) for a in own.values()):
            import sys

            scope = {
                **vars(typing),
                "torch": torch,
                "Tensor": torch.Tensor,
                **vars(sys.modules.get(base.__module__, torch)),
            }
            for name, text in own.items():
                if isinstance(text, str):
                    try:
                        own[name] = eval(text, scope)
                    except Exception:  # an annotation that scripted code does not need
                        own[name] = None
        out.update({k: v for k, v in own.items() if v is not None})
    return out


def _is_final(annotation: object) -> bool:
    return annotation is typing.Final or typing.get_origin(annotation) is typing.Final


class Layout(typing.NamedTuple):
    """What a module's type is made from."""

    slots: list[tuple[str, T.Type, str]]
    constants: list[tuple[str, object, T.Type]]
    functions: list[tuple[str, typing.Any]]
    failed: dict[str, str]


def layout_of(module: torch.nn.Module, submodule_types: dict[str, T.Type]) -> Layout:
    """Slots in the order archives have them: parameters, buffers, flags, attributes, submodules."""
    cls = type(module)
    annotations = _annotations_of(cls)
    out = Layout([], [], [], {})
    for role, table in (("parameter", module._parameters), ("buffer", module._buffers)):
        for name, value in table.items():
            kind = T.NoneT if value is None else T.Tensor
            if name in annotations and not _is_final(annotations[name]):
                wanted = _try_annotation(annotations[name])
                kind = wanted if wanted is not None and T.is_subtype(kind, wanted) else kind
            out.slots.append((name, kind, role))
    out.slots.append(("training", T.Bool, ""))
    out.slots.append(("_is_full_backward_hook", T.optional(T.Bool), ""))
    constants = set(getattr(cls, "__constants__", ())) | {
        n for n, a in annotations.items() if _is_final(a)
    }
    overridden = getattr(module, "__jit_ignored_attributes__", ())
    for name in sorted(constants):
        if name in module._parameters or name in module._buffers or name in module._modules:
            continue
        if hasattr(module, name):
            _add_constant(out, name, getattr(module, name))
    names = [*module.__dict__, *(n for n in annotations if n not in module.__dict__)]
    for name in names:
        if name in _SKIPPED or name in constants or name in overridden or not hasattr(module, name):
            continue
        if name in submodule_types or any(name == s[0] for s in out.slots):
            continue
        if name not in module.__dict__ and inspect.isfunction(inspect.getattr_static(cls, name)):
            continue  # an annotated method
        _add_attribute(out, name, inspect.getattr_static(module, name), annotations.get(name))
    for name, kind in submodule_types.items():
        out.slots.append((name, kind, "module"))
    return out


def _try_annotation(annotation: object) -> T.Type | None:
    try:
        return from_python(annotation)
    except (TypeError, RuntimeError, OSError):
        return None


def _add_constant(out: Layout, name: str, value: object) -> None:
    if isinstance(value, list):
        value = tuple(value)
    kind = T.infer(value)
    if kind is None:
        out.failed[name] = f"'{name}' is a constant of a type that scripted code cannot hold"
        return
    out.constants.append((name, value, kind))


def _add_attribute(out: Layout, name: str, value: object, annotation: object) -> None:
    if isinstance(value, torch.jit.Attribute):
        out.slots.append((name, from_python(value.type), ""))
        return
    if isinstance(value, property | staticmethod | classmethod):
        return
    if annotation is not None:
        kind = _try_annotation(annotation)
        if kind is not None:
            out.slots.append((name, kind, ""))
            return
    kind = _infer_attribute(value)
    if kind is not None:
        out.slots.append((name, kind, ""))
    elif callable(value) and not isinstance(value, type):
        out.functions.append((name, value))
    else:
        out.failed[name] = (
            f"This attribute exists on the Python module, but we failed to convert Python "
            f"type: '{type(value).__name__}' to a TorchScript type."
        )


def _infer_attribute(value: object) -> T.Type | None:
    if isinstance(value, list | dict) and not value:
        return None  # of what, nobody says
    try:
        kind = T.infer(value)
    except (TypeError, RuntimeError, OSError):
        return None
    if kind is None and (getattr(type(value), "__script_class__", False) or _is_own_class(value)):
        return _try_annotation(type(value))
    # The fields of a named tuple are tensors where nobody says otherwise, but this value may be of
    # another opinion: such a tuple stays in Python.
    for field in getattr(kind, "open_fields", ()):
        if T.infer(getattr(value, field)) is not T.Tensor:
            return None
    return kind


def _is_own_class(value: object) -> bool:
    """Whether the value is an object of a class that a program wrote in Python."""
    cls = type(value)
    top = cls.__module__.partition(".")[0]
    return (
        cls.__flags__ & _HEAP_TYPE != 0
        and top not in ("torch", "numpy", *sys.stdlib_module_names)
        and not isinstance(value, type | torch.nn.Module | Callable)
        and any(inspect.isfunction(m) for m in vars(cls).values())
    )


_HEAP_TYPE = 1 << 9


_shared: dict[tuple[object, ...], ModuleType] = {}
_CONTAINERS = {
    "ModuleList": "list",
    "Sequential": "list",
    "ModuleDict": "dict",
    "ParameterList": "list",
    "ParameterDict": "dict",
}


def type_of_module(module: torch.nn.Module, layout: Layout) -> tuple[ModuleType, bool]:
    """The type of a module, and whether it is new."""
    cls = type(module)
    hooks = (tuple(module._forward_pre_hooks.values()), tuple(module._forward_hooks.values()))
    instance = {
        n: f for n, f in module.__dict__.items() if inspect.isfunction(f) or inspect.ismethod(f)
    }
    try:
        key = (
            cls,
            tuple(layout.slots),
            tuple((n, repr(v), t) for n, v, t in layout.constants),
            tuple((n, id(f)) for n, f in layout.functions),
            hooks,
            tuple((n, id(f)) for n, f in instance.items()),
        )
        known = _shared.get(key)
    except TypeError:
        key, known = None, None
    bound = any(map(inspect.ismethod, instance.values()))
    if known is not None and not bound:
        return known, False
    kind = ModuleType(unique_name(qualified_name(cls)))
    kind.python = cls
    for base in cls.__mro__:
        if base.__module__ == "torch.nn.modules.container" and base.__name__ in _CONTAINERS:
            kind.container = _CONTAINERS[base.__name__]
    for name, slot_type, role in layout.slots:
        kind.add_attribute(name, slot_type, role)
    for name, value, constant_type in layout.constants:
        kind.constants[name] = (value, constant_type)
    kind.failed.update(layout.failed)
    _add_functions(kind, layout)
    if key is not None and not bound:
        _shared[key] = kind
        kind.kept = instance  # so that no other function gets their identity
    return kind, True


def own_type(kind: T.ClassType) -> None:
    """Modules made later do not share this type: it is about to get methods of its own."""
    for key, known in list(_shared.items()):
        if known is kind:
            del _shared[key]


def _add_functions(kind: ModuleType, layout: Layout) -> None:
    from torch.jit._resolve import sugar

    for name, fn in layout.functions:
        if inspect.ismethod(fn):
            kind.instance_methods[name] = fn.__func__
            continue
        try:
            kind.statics[name] = sugar(fn)
        except (RuntimeError, TypeError, OSError) as e:
            kind.failed[name] = str(e)


def add_properties(kind: ModuleType) -> None:
    """Properties of the Python class become getters and setters."""
    unused = set(getattr(kind.python, "__jit_unused_properties__", ()))
    for name, member in inspect.getmembers_static(kind.python):
        if not isinstance(member, property) or name in unused or name in vars(torch.nn.Module):
            continue
        if name in vars(torch.jit.ScriptModule):
            continue
        if kind.of_library(name):
            continue
        if getattr(member.fget, "__script_mark__", None) is not None:
            continue
        getter = ScriptFunction(
            name, f"{kind.qualified_name}.__{name}_getter", PythonSource(member.fget, kind)
        )
        setter = None
        if member.fset is not None:
            setter = ScriptFunction(
                name, f"{kind.qualified_name}.__{name}_setter", PythonSource(member.fset, kind)
            )
        kind.properties[name] = (getter, setter)
        kind.add_method(f"__{name}_getter", getter)
        if setter is not None:
            kind.add_method(f"__{name}_setter", setter)


__all__ = ["Layout", "ModuleType", "add_properties", "layout_of", "own_type", "type_of_module"]
