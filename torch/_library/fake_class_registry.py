"""Stand-ins of C++ class objects for tracing. A class of `torch::class_` may hold tensors and alter
them, so a trace must not run its methods on the real object. `register_fake_class` names a Python
class that plays the same part on fake tensors; it is made from what the real object's
`__obj_flatten__` gives. A fake mode keeps one stand-in per object, so that what one call writes
the next one reads, and the real object stays as it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch._library.utils import parse_namespace

__all__ = [
    "FakeClassRegistry",
    "FakeScriptObject",
    "FakeScriptMethod",
    "HasStaticMethodFromReal",
    "deregister_fake_class",
    "find_fake_class",
    "global_fake_class_registry",
    "has_fake_class",
    "maybe_to_fake_obj",
    "maybe_unwrap_fake_script_object",
    "register_fake_class",
]

log = logging.getLogger(__name__)
_FROM_REAL = "__obj_unflatten__"
_PREFIX = "__torch__.torch.classes."


class HasStaticMethodFromReal(Protocol):
    """What a stand-in class has: the way to make it from a flattened real object."""

    @classmethod
    def __obj_unflatten__(cls, flattened: object) -> HasStaticMethodFromReal: ...


class FakeClassRegistry:
    """The stand-in classes by the full names of the classes that they stand for."""

    def __init__(self) -> None:
        self._classes: dict[str, type] = {}

    def has_impl(self, full_qualname: str) -> bool:
        """Whether a class of that name has a stand-in."""
        return full_qualname in self._classes

    def get_impl(self, full_qualname: str) -> type:
        """The stand-in. Raises where there is none."""
        if full_qualname not in self._classes:
            short = full_qualname.removeprefix(_PREFIX).replace(".", "::")
            raise RuntimeError(
                f"ScriptObject of {full_qualname} has no fake class: register one with "
                f'torch._library.register_fake_class("{short}")'
            )
        return self._classes[full_qualname]

    def register(self, full_qualname: str, fake_class: type) -> None:
        """Takes a stand-in, also in place of another one."""
        if full_qualname in self._classes:
            log.warning(
                "the fake class of %s is replaced by %s", full_qualname, fake_class.__name__
            )
        self._classes[full_qualname] = fake_class

    def deregister(self, full_qualname: str) -> type | None:
        """Takes a registration back; gives the class that was registered."""
        return self._classes.pop(full_qualname, None)

    def clear(self) -> None:
        """Takes all registrations back."""
        self._classes.clear()


global_fake_class_registry = FakeClassRegistry()


class FakeScriptObject:
    """A stand-in, with the name of the class that it stands for and the real object."""

    def __init__(self, wrapped_obj: object, script_class_name: str, x: object) -> None:
        object.__setattr__(self, "wrapped_obj", wrapped_obj)
        object.__setattr__(self, "script_class_name", script_class_name)
        object.__setattr__(self, "real_obj", x)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("wrapped_obj", "script_class_name", "real_obj"):
            raise AttributeError(name)
        value = getattr(self.wrapped_obj, name)
        if callable(value):
            return FakeScriptMethod(self, name, _schema(self.real_obj, name), value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"a stand-in of {self.script_class_name} has no fields to set (tried {name!r})"
        )

    def __repr__(self) -> str:
        return f"FakeScriptObject({self.script_class_name})"


class FakeScriptMethod:
    """A bound method of a stand-in."""

    def __init__(
        self, self_fake_obj: object, method_name: str, schema: object, call: Callable[..., Any]
    ) -> None:
        self.self_fake_obj, self.method_name = self_fake_obj, method_name
        self.schema, self._call = schema, call

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._call(*args, **kwargs)


def _schema(real: object, name: str) -> object:
    return getattr(getattr(real, name, None), "schema", None)


def _full_name(qualname: str) -> str:
    namespace, name = parse_namespace(qualname)
    return f"{_PREFIX}{namespace}.{name}"


def register_fake_class(
    qualname: str, fake_class: type | None = None
) -> Callable[[type], type] | type:
    """Registers the stand-in of the C++ class "namespace::name"."""

    def register(given: type) -> type:
        name = _full_name(qualname)
        # Asking for the class raises where no library has brought it.
        getattr(getattr(torch.classes, qualname.partition("::")[0]), qualname.partition("::")[2])
        found = _declared(given, _FROM_REAL)
        if not isinstance(found, (classmethod, staticmethod)):
            missing = (
                f"{given.__name__} does not define a classmethod {_FROM_REAL}"
                if found is None
                else f"{given.__name__}.{_FROM_REAL} is not a classmethod"
            )
            raise RuntimeError(
                f"{missing}: it makes the stand-in of {qualname} from what the real object's "
                "__obj_flatten__ gives"
            )
        global_fake_class_registry.register(name, given)
        return given

    return register if fake_class is None else register(fake_class)


def _declared(given: type, name: str) -> object:
    for base in given.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return None


def deregister_fake_class(qualname: str) -> type | None:
    """Takes a registration back; gives the class that was registered."""
    return global_fake_class_registry.deregister(_full_name(qualname))


def has_fake_class(full_qualname: str) -> bool:
    """Whether the class of a full name (__torch__.torch.classes.ns.name) has a stand-in."""
    return global_fake_class_registry.has_impl(full_qualname)


def find_fake_class(full_qualname: str) -> type | None:
    known = global_fake_class_registry
    return known.get_impl(full_qualname) if known.has_impl(full_qualname) else None


def maybe_to_fake_obj(fake_mode: Any, x: Any) -> Any:
    """The stand-in of an object, or the object itself where `tracing_mode` of it says "real"."""
    if isinstance(x, FakeScriptObject) or fake_mode is None:
        return x
    if hasattr(x, "tracing_mode") and x.tracing_mode() == "real":
        return x
    known = fake_mode.__dict__.setdefault("_fake_script_objects", {})
    key = x._identity()
    if key not in known:
        known[key] = _make(fake_mode, x)
    return known[key]


def _make(fake_mode: Any, x: Any) -> FakeScriptObject:
    name = x._type().qualified_name()
    fake_class = global_fake_class_registry.get_impl(name)
    if not x._has_method("__obj_flatten__"):
        raise RuntimeError(f"{name} has no __obj_flatten__, from which its stand-in is made")
    flat = _fakified(fake_mode, x.__obj_flatten__())
    return FakeScriptObject(getattr(fake_class, _FROM_REAL)(flat), name, x)


def _fakified(fake_mode: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return fake_mode.from_tensor(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_fakified(fake_mode, entry) for entry in value)
    if isinstance(value, dict):
        return {key: _fakified(fake_mode, entry) for key, entry in value.items()}
    if isinstance(value, torch._C.ScriptObject):
        return maybe_to_fake_obj(fake_mode, value)
    return value


def maybe_unwrap_fake_script_object(obj: Any) -> Any:
    """The real object of a stand-in, or what was given."""
    return obj.real_obj if isinstance(obj, FakeScriptObject) else obj
