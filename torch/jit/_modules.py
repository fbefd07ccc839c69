"""Scripted modules in Python. The object with the slots is the interpreter's; the Python module in
front of it mirrors parameters, buffers and submodules in the tables that torch.nn.Module works on.
A write to a table goes to the slot as well; writes of scripted code are mirrored after the call."""

from __future__ import annotations

import collections
import sys
import types
import typing
import weakref

import torch
from torch.jit import _types as T
from torch.jit._function import PythonSource, ScriptFunction
from torch.jit._module_types import ModuleType, add_properties, layout_of, type_of_module

_wrappers: weakref.WeakValueDictionary[typing.Any, typing.Any] = weakref.WeakValueDictionary()


# A method of a scripted module, bound to it; its documentation is that of the Python method.
class ScriptMethod(torch._C._ScriptMethodBase):
    @property
    def graph(self):
        return self._function.graph

    @property
    def inlined_graph(self):
        return self._function.inlined_graph

    @property
    def code(self) -> str:
        return self._function.code

    @property
    def code_with_constants(self):
        return self._function.code_with_constants

    @property
    def schema(self):
        return self._function.signature

    @property
    def name(self) -> str:
        return self._function.name

    @property
    def __name__(self) -> str:
        return self._function.name

    @property
    def owner(self):
        return self._self

    @property
    def __doc__(self) -> str | None:
        return getattr(getattr(self._function.origin, "fn", None), "__doc__", None)

    def graph_for(self, *args, **kwargs):
        return self._function.graph_for(*args, **kwargs)

    def _debug_flush_compilation_cache(self) -> None:
        """Code is compiled once and kept with its function."""


class _Table(dict):
    """Parameters or buffers by name; setting one sets the slot of the object."""

    def __init__(self, owner: RecursiveScriptModule, items) -> None:
        super().__init__(items)
        self._owner = weakref.ref(owner)

    def __setitem__(self, name: str, value: object) -> None:
        super().__setitem__(name, value)
        owner = self._owner()
        if owner is not None:
            owner._set_slot(name, value)

    def __reduce__(self):
        return dict, (dict(self),)


class ScriptMeta(type(torch.nn.Module)):
    """Classes derived from ScriptModule are scripted when their __init__ is done."""

    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        if isinstance(made, RecursiveScriptModule) or not isinstance(made, ScriptModule):
            return made
        from torch.jit import _state

        return script_module(made, own_methods=True) if _state._enabled else made


class ScriptModule(torch.nn.Module, metaclass=ScriptMeta):
    """The base of scripted modules. A class derived from it marks its methods with
    script_method."""

    def define(self, src: str) -> None:
        """Adds methods given as text, before the module is scripted."""
        local = dict(sys._getframe(1).f_locals)
        self.__dict__.setdefault("_defined_sources", []).append((src, local))

    def forward_magic_method(self, method_name: str, *args, **kwargs):
        """Calls a method such as __len__ that the scripted class defines."""
        method = self._method(method_name)
        if method is None:
            raise NotImplementedError(f"{self.original_name} defines no {method_name}")
        return method(*args, **kwargs)

    @property
    def graph(self):
        return self.forward.graph

    @property
    def inlined_graph(self):
        return self.forward.inlined_graph

    @property
    def code(self) -> str:
        return self.forward.code

    @property
    def code_with_constants(self):
        return self.forward.code_with_constants

    @property
    def original_name(self) -> str:
        return self._script_type.name()

    def graph_for(self, *args, **kwargs):
        return self.forward.graph_for(*args, **kwargs)

    def save(self, f, **kwargs) -> None:
        from torch.jit._serialization import save

        save(self, f, **kwargs)

    def save_to_buffer(self, **kwargs) -> bytes:
        import io

        buffer = io.BytesIO()
        self.save(buffer, **kwargs)
        return buffer.getvalue()

    def get_debug_state(self, *_args, **_kwargs):
        return self.forward._function.get_debug_state()

    @property
    def qualified_name(self) -> str:
        """The name of its type, as archives have it."""
        return self._script_type.qualified_name

    def dump_to_str(self, code: bool = True, attrs: bool = True, params: bool = True) -> str:
        """Code, attributes and parameters as text."""
        return self._c.dump_to_str(code, attrs, params)

    def dump(self, code: bool = True, attrs: bool = True, params: bool = True) -> None:
        """Prints what dump_to_str gives."""
        print(self.dump_to_str(code, attrs, params))


class RecursiveScriptModule(ScriptModule):
    """A scripted module."""

    _construct = False

    def __init__(self, handle, kind: T.ClassType, modules: dict[str, torch.nn.Module]) -> None:
        torch.nn.Module.__init__(self)
        write = object.__setattr__
        write(self, "_script_handle", handle)
        write(self, "_script_type", kind)
        write(self, "_versions", None)
        write(self, "_methods", {})
        tables: dict[str, dict[str, object]] = {"parameter": {}, "buffer": {}}
        for name, role in kind.roles.items():
            if role in tables and kind.attributes[name] in (
                T.Tensor,
                T.NoneT,
                T.optional(T.Tensor),
            ):
                tables[role][name] = handle.get(kind.slots[name])
        state = self.__dict__
        state["_parameters"] = _Table(self, tables["parameter"])
        state["_buffers"] = _Table(self, tables["buffer"])
        state["_modules"] = dict(modules)
        state.pop("training", None)
        if "training" in kind.slots:
            state["training"] = handle.get(kind.slots["training"])
        _wrappers[handle] = self

    def define(self, src: str) -> None:
        """Adds methods given as text."""
        from torch.jit._defined import define_methods
        from torch.jit._module_types import own_type

        frame = sys._getframe(1)
        own_type(self._script_type)
        define_methods(self._script_type, src, {**frame.f_globals, **frame.f_locals})

    # ---- slots

    def _set_slot(self, name: str, value: object) -> None:
        kind = self._script_type
        self._script_handle.set(kind.slots[name], value, kind.attributes[name].handle())

    def _refresh(self) -> None:
        """Takes over what scripted code wrote."""
        kind, handle = self._script_type, self._script_handle
        for table in (self._parameters, self._buffers):
            for name in table:
                value = handle.get(kind.slots[name])
                if value is not table[name]:
                    dict.__setitem__(table, name, value)
        if "training" in kind.slots:
            self.__dict__["training"] = handle.get(kind.slots["training"])
        for module in self._modules.values():
            if isinstance(module, RecursiveScriptModule):
                module._refresh()

    def __getattr__(self, name: str):
        state = self.__dict__
        kind = state.get("_script_type")
        if kind is None:
            raise AttributeError(name)
        for table in ("_parameters", "_buffers", "_modules"):
            if name in state[table]:
                return state[table][name]
        if name in kind.slots:
            return state["_script_handle"].get(kind.slots[name])
        method = self._method(name)
        if method is not None:
            return method
        if name in kind.constants:
            return kind.constants[name][0]
        if name in kind.properties:
            getter = kind.properties[name][0]
            getter.ensure_compiled()
            return ScriptMethod(getter, self)()
        return self._python_attribute(name)

    def _python_attribute(self, name: str):
        """Class attributes and methods that stayed Python."""
        cls = self._script_type.python
        if cls is not None:
            for base in cls.__mro__:
                if base in (torch.nn.Module, object) or name not in vars(base):
                    continue
                found = vars(base)[name]
                if hasattr(found, "__get__"):
                    return found.__get__(self, type(self))
                return found
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _method(self, name: str):
        methods = self.__dict__["_methods"]
        if name in methods:
            return methods[name]
        kind = self._script_type
        function = kind.methods.get(name)
        if not isinstance(function, ScriptFunction) or name.startswith("_super_"):
            return None
        function.ensure_compiled()
        made = ScriptMethod(function, self)
        if writes_slots(function):
            made = _Mirrored(made, self)
        methods[name] = made
        return made

    def __setattr__(self, name: str, value: object) -> None:
        kind = self.__dict__.get("_script_type")
        if kind is None:
            super().__setattr__(name, value)
            return
        if name in kind.slots:
            role = kind.roles.get(name)
            if role == "module":
                self._check_module(name, value)
                self._modules[name] = value
            self._set_slot(name, value)
            if name in self._parameters:
                dict.__setitem__(self._parameters, name, value)
            elif name in self._buffers:
                dict.__setitem__(self._buffers, name, value)
            elif name == "training":
                self.__dict__["training"] = value
            return
        if name in kind.properties and kind.properties[name][1] is not None:
            setter = kind.properties[name][1]
            setter.ensure_compiled()
            ScriptMethod(setter, self)(value)
            return
        if name in kind.constants:
            raise AttributeError(
                f"Cannot mutate TorchScript constant value: '{name}'. Value: "
                f"'{kind.constants[name][0]}'"
            )
        if name.startswith("_") or name in vars(torch.nn.Module):
            object.__setattr__(self, name, value)
            return
        if isinstance(value, torch.nn.Parameter | torch.nn.Module):
            raise RuntimeError(
                f"Cannot add a new parameter or module '{name}' to a scripted module"
            )
        object.__setattr__(self, name, value)

    def _check_module(self, name: str, value: object) -> None:
        wanted = self._script_type.attributes[name]
        if not isinstance(value, RecursiveScriptModule):
            raise RuntimeError(
                "Cannot re-assign modules in a ScriptModule with non-scripted module, tried to "
                f"replace existing module '{name}': {value}"
            )
        if not T.is_subtype(value._script_type, wanted):
            kind = "interface" if isinstance(wanted, T.InterfaceType) else "type"
            raise RuntimeError(
                f"the module '{value._script_type}' is not compatible with {kind} '{wanted}' of "
                f"the attribute '{name}'"
            )

    # ---- what programs ask

    @property
    def forward(self):
        method = self._method("forward")
        if method is None:
            raise AttributeError("forward is not defined")
        return method

    @property
    def _c(self):
        from torch.jit._c_module import CModule

        return CModule(self)

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    def __dir__(self):
        kind = self._script_type
        return sorted({*super().__dir__(), *kind.slots, *kind.methods, *kind.constants})

    def __len__(self) -> int:
        return self._special("__len__")() if self._has("__len__") else len(self._modules)

    def __iter__(self):
        if self._script_type.container == "dict":
            return iter(self._modules)
        if self._has("__iter__"):
            return self._special("__iter__")()
        if not self._script_type.container:
            raise TypeError(f"'{self.original_name}' object is not iterable")
        return iter(self._modules.values())

    def __getitem__(self, index):
        if self._script_type.container == "dict":
            return self._modules[index]
        if self._script_type.container:
            items = list(self._modules.values())
            return items[index]
        return self._special("__getitem__")(index)

    def __contains__(self, key) -> bool:
        return (
            self._special("__contains__")(key)
            if self._has("__contains__")
            else key in self._modules
        )

    def keys(self):
        return self._modules.keys()

    def items(self):
        return self._modules.items()

    def values(self):
        return self._modules.values()

    def __bool__(self) -> bool:
        return bool(self._special("__bool__")()) if self._has("__bool__") else True

    def _has(self, name: str) -> bool:
        return name in self._script_type.methods

    def _special(self, name: str):
        method = self._method(name)
        if method is None:
            raise NotImplementedError(f"{self.original_name} has no method {name}")
        return method

    def __copy__(self):
        return copy_module(self, {})

    def __deepcopy__(self, memo):
        import copy

        return copy_module(self, memo, copy.deepcopy)

    def __reduce_ex__(self, protocol):
        return _from_bytes, (self.save_to_buffer(),)

    def copy(self):
        return copy_module(self, {})

    def _apply(self, fn, recurse=True):
        return super()._apply(fn, recurse)


def _from_bytes(data: bytes):
    import io

    return torch.jit.load(io.BytesIO(data))


class _Mirrored:
    """A method that may write slots: what it wrote is mirrored when it is done."""

    def __init__(self, method: ScriptMethod, owner: RecursiveScriptModule) -> None:
        self.method, self.owner_ref = method, weakref.ref(owner)

    def __call__(self, *args, **kwargs):
        try:
            return self.method(*args, **kwargs)
        finally:
            owner = self.owner_ref()
            if owner is not None:
                owner._refresh()

    def __getattr__(self, name: str):
        return getattr(self.method, name)


_writes: weakref.WeakKeyDictionary[typing.Any, bool] = weakref.WeakKeyDictionary()


def writes_slots(function: ScriptFunction) -> bool:
    """Whether a function, or one that it calls, sets attributes."""
    if function in _writes:
        return _writes[function]
    _writes[function] = False
    found = False
    for node in function.graph.all_nodes():
        callee = node.attrs.get("function")
        if (
            node.kind_name == "prim::SetAttr"
            or (node.kind_name == "prim::CallMethod" and callee is None)
            or node.kind_name == "prim::PythonOp"
        ):
            found = True
        elif isinstance(callee, ScriptFunction) and node.kind_name != "prim::PythonOp":
            found = found or writes_slots(callee)
    _writes[function] = found
    return found


def wrap_handle(handle):
    """The Python object of an interpreter's object."""
    found = _wrappers.get(handle)
    if found is not None:
        return found
    from torch.jit._script_class import wrap_instance

    return wrap_instance(handle)


torch._C._set_script_wrapper(wrap_handle)


# ---- making scripted modules


def script_module(
    module: torch.nn.Module, own_methods: bool = False, memo=None
) -> RecursiveScriptModule:
    """The scripted form of a Python module and its submodules."""
    if isinstance(module, RecursiveScriptModule):
        return module
    memo = {} if memo is None else memo
    made = _instantiate(module, own_methods, memo)
    return made


def _instantiate(module: torch.nn.Module, own_methods: bool, memo) -> RecursiveScriptModule:
    if id(module) in memo:
        return memo[id(module)][0]
    given = module
    if hasattr(module, "__prepare_scriptable__"):
        module = module.__prepare_scriptable__()
        if isinstance(module, RecursiveScriptModule):
            return module
    submodules: dict[str, torch.nn.Module] = {}
    if "_modules" not in module.__dict__:
        raise RuntimeError(
            f"'{type(module).__name__}' has not been initialized, did you forget to call "
            "'super().__init__()'?"
        )
    ignored = getattr(module, "__jit_ignored_attributes__", ())
    for name, sub in module._modules.items():
        if sub is not None and name not in ignored:
            submodules[name] = (
                sub if isinstance(sub, RecursiveScriptModule) else _instantiate(sub, False, memo)
            )
    types = {n: s._script_type for n, s in submodules.items()}
    annotated = _interfaces(type(module))
    types.update({n: annotated[n] for n in types if n in annotated})
    layout = layout_of(module, types)
    for name, sub in module._modules.items():
        if sub is None:
            layout.slots.append((name, T.NoneT, ""))
    kind, new = type_of_module(module, layout)
    handle = torch._C._script_object(kind.info)
    made = RecursiveScriptModule.__new__(RecursiveScriptModule)
    memo[id(given)] = (made, given)
    for name, attribute_type, role in layout.slots:
        value = submodules[name] if role == "module" else getattr(module, name, None)
        if role == "module":
            value = submodules[name]._script_handle
        elif isinstance(value, torch.jit.Attribute):
            value = value.value
        elif getattr(type(value), "__script_class__", False) and not hasattr(
            value, "_script_handle"
        ):
            pass
        handle.set(kind.slots[name], value, attribute_type.handle())
    RecursiveScriptModule.__init__(made, handle, kind, submodules)
    if new:
        add_properties(kind)
        _add_hooks(kind, module)
    _compile_methods(kind, module, own_methods)
    _copy_python_parts(made, module)
    call_hooks(made, kind)
    return made


def call_hooks(made: RecursiveScriptModule, kind: ModuleType) -> None:
    """Calls of the module from Python run its compiled hooks, too."""
    object.__setattr__(made, "_forward_pre_hooks", collections.OrderedDict())
    object.__setattr__(made, "_forward_hooks", collections.OrderedDict())
    for hook in kind.pre_hooks:
        made.register_forward_pre_hook(lambda m, args, h=hook: ScriptMethod(h, m)(args))
    for hook in kind.hooks:
        made.register_forward_hook(lambda m, args, out, h=hook: ScriptMethod(h, m)(args, out))


def _interfaces(cls: type) -> dict[str, T.Type]:
    from torch.jit._module_types import _annotations_of

    out = {}
    for name, annotation in _annotations_of(cls).items():
        found = getattr(annotation, "__script_interface__", None)
        if found is not None:
            out[name] = found
    return out


def _copy_python_parts(made: RecursiveScriptModule, module: torch.nn.Module) -> None:
    for name, value in module.__dict__.items():
        if (
            name not in made.__dict__
            and not isinstance(getattr(type(made), name, None), property)
            and name not in made._script_type.slots
            and name not in (made._script_type.constants)
            and not name.startswith("__")
        ):
            object.__setattr__(made, name, value)
    object.__setattr__(made, "_non_persistent_buffers_set", set(module._non_persistent_buffers_set))


def _add_hooks(kind: ModuleType, module: torch.nn.Module) -> None:
    for target, hooks in (
        (kind.pre_hooks, module._forward_pre_hooks),
        (kind.hooks, module._forward_hooks),
    ):
        for hook in hooks.values():
            target.append(_hook_function(kind, hook))


def _hook_function(kind: ModuleType, hook: types.FunctionType) -> ScriptFunction:
    """The compiled form of a hook, one for all places where the module has it."""
    name = hook.__name__
    for known in (*kind.pre_hooks, *kind.hooks):
        if known.name == name:
            if known.origin.fn is hook:
                return known
            raise RuntimeError(
                f"two hooks of {kind.qualified_name} are functions of the name {name!r}; hooks of "
                "scripted modules need different names"
            )
    return ScriptFunction(name, f"{kind.qualified_name}.{name}", PythonSource(hook, kind))


def _compile_methods(kind: ModuleType, module: torch.nn.Module, own_methods: bool) -> None:
    from torch.jit._defined import add_defined

    add_defined(kind, module)
    if own_methods:
        names = [
            n
            for n in dir(type(module))
            if getattr(getattr(type(module), n, None), "__script_mark__", None) == "method"
        ]
    else:
        names = ["forward"] if _has_forward(kind) else []
    names += [
        n
        for n in dir(type(module))
        if getattr(getattr(type(module), n, None), "__script_mark__", None) == "export"
        and n not in names
    ]
    for name in names:
        found = kind.make_method(name)
        if isinstance(found, ScriptFunction):
            found.ensure_compiled()
    for name in ("forward", *names):
        found = kind.methods.get(name)
        if isinstance(found, ScriptFunction):
            found.ensure_compiled()
    for getter, setter in kind.properties.values():
        getter.ensure_compiled()
        if setter is not None:
            setter.ensure_compiled()
    for hook in (*kind.pre_hooks, *kind.hooks):
        hook.ensure_compiled()


def _has_forward(kind: ModuleType) -> bool:
    owner = next((b for b in kind.python.__mro__ if "forward" in vars(b)), None)
    if owner is None or owner is torch.nn.Module:
        return False
    # Containers define forward only to say that they have none.
    return owner.__module__ != "torch.nn.modules.container" or owner is torch.nn.Sequential


def copy_module(module: RecursiveScriptModule, memo, copy_value=None) -> RecursiveScriptModule:
    """A module of the same type with slots of its own; values are copied by `copy_value`."""
    if id(module) in memo:
        return memo[id(module)]
    kind = module._script_type
    handle = torch._C._script_object(kind.info)
    subs = {
        n: copy_module(s, memo, copy_value) if copy_value else s for n, s in module._modules.items()
    }
    for name, slot in kind.slots.items():
        if name in subs:
            value = subs[name]._script_handle
        else:
            value = module._script_handle.get(slot)
            if copy_value is not None:
                value = copy_value(value, memo)
        handle.set(slot, value, kind.attributes[name].handle())
    made = RecursiveScriptModule.__new__(RecursiveScriptModule)
    RecursiveScriptModule.__init__(made, handle, kind, subs)
    call_hooks(made, kind)
    memo[id(module)] = made
    return made
