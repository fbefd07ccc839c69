"""Guards and code of a compiled frame as data, and back onto a running program. A condition on an
identity cannot be kept: what is kept says how to tell that an object of another process is the
same (the hash of a function's code, the names and the code of a class, the form of a tensor), and
the guard is then put on the object that was found there."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import sys
import types
from typing import TYPE_CHECKING

import torch
from torch._dynamo import source as kinds
from torch._dynamo import trace_rules
from torch._inductor.graph_codec import (
    Bypass,
    Damaged,
    Json,
    decode_value,
    describe_function,
    encode_value,
)

if TYPE_CHECKING:
    from torch._dynamo.guards import GuardRecord
    from torch._guards import Source

__all__ = ["Frame", "Miss", "Sources", "code_hash", "decode_object", "encode_guard",
           "encode_object", "fitted_guard"]  # fmt: skip


class Miss(Exception):
    """The running program is another one than that of the entry; the text says where."""


# ---- code, functions and classes ------------------------------------------------------------


def _constant_text(value: object) -> str:
    if isinstance(value, types.CodeType):
        return code_hash(value)
    if isinstance(value, tuple):
        return f"({','.join(map(_constant_text, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_constant_text, value)))}}}"
    return f"{type(value).__name__} {value!r}"


def code_hash(code: types.CodeType) -> str:
    """A hash that is the same in every process for the same source in the same place."""
    found = _hashes.get(code)
    if found is None:
        parts = (
            *(code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
            *(code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
            *(code.co_name, code.co_filename, code.co_firstlineno, code.co_linetable),
            getattr(code, "co_exceptiontable", b""),
        )
        text = repr(parts) + _constant_text(code.co_consts)
        found = _hashes[code] = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return found


# Equal code may have constants of other types (1 and True) only where its hash differs as well:
# Python compares constants of code with their types.
_hashes: dict[types.CodeType, str] = {}


def codes_in(code: types.CodeType) -> set[types.CodeType]:
    """A code with those of the functions that are defined in it."""
    found = {code}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= codes_in(constant)
    return found


def _function_data(fn: types.FunctionType) -> Json:
    marks = sorted(name for name in fn.__dict__ if name.startswith("_torchdynamo"))
    return [
        "function",
        code_hash(fn.__code__),
        encode_value(fn.__defaults__, {}),
        encode_value(fn.__kwdefaults__, {}),
        marks,
    ]


# Parts of a class that say nothing about what it does.
_SILENT = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __qualname__ __annotations__ __firstlineno__ "
    "__static_attributes__ __abstractmethods__ _abc_impl __parameters__ __orig_bases__".split()
)


def _member_text(value: object) -> str:
    if isinstance(value, types.FunctionType):
        return f"function {code_hash(value.__code__)}"
    if isinstance(value, (staticmethod, classmethod)):
        return f"{type(value).__name__} {_member_text(value.__func__)}"
    if isinstance(value, property):
        parts = (value.fget, value.fset, value.fdel)
        return f"property {' '.join(map(_member_text, parts))}"
    try:
        return repr(encode_value(value, {}))
    except Bypass:
        return f"object {type(value).__qualname__}"


def is_of_library(value: type | types.FunctionType) -> bool:
    """Whether a class or function belongs to torch or to the standard library and is found there
    under its name: what it is, the build says."""
    module = sys.modules.get(value.__module__ or "")
    if module is None:
        return False
    if getattr(module, "__file__", None) and not trace_rules.is_library_file(module.__file__):
        return False
    found: object = module
    for part in value.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is value and value.__module__ != "__main__"


def class_data(cls: type) -> Json:
    """A class by its name; those of the program with everything they define."""
    if is_of_library(cls):
        return ["type", cls.__module__, cls.__qualname__]
    rows = []
    for owner in cls.__mro__:
        if is_of_library(owner):
            rows.append(f"{owner.__module__}:{owner.__qualname__}")
            continue
        members = sorted((k, v) for k, v in vars(owner).items() if k not in _SILENT)
        texts = [f"{name}={_member_text(value)}" for name, value in members]
        digest = hashlib.sha256("\n".join(texts).encode("utf-8", "replace")).hexdigest()
        rows.append(f"{owner.__module__}:{owner.__qualname__}:{digest}")
    return ["class", *rows]


def identity_data(value: object) -> Json:
    """What tells that an object of another process is this one."""
    if isinstance(value, types.ModuleType):
        if sys.modules.get(value.__name__) is not value:
            raise Bypass(f"a module that is not found as {value.__name__}")
        return ["module", value.__name__]
    if isinstance(value, type):
        return class_data(value)
    if isinstance(value, types.FunctionType) and not is_of_library(value):
        return _function_data(value)
    if callable(value):
        return ["name", describe_function(value)]
    return ["value", encode_value(value, {})]


_MARKS = ("_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices", "_dynamo_static_indices",
          "_dynamo_unbacked_indices", "_dynamo_strict_unbacked_indices",
          "_dynamo_dynamic_range")  # fmt: skip


def tensor_data(value: torch.Tensor) -> Json:
    """What of a tensor a trace depends on, but for its sizes and strides."""
    marks = [[name, sorted(map(str, vars(value)[name]))] for name in _MARKS if name in vars(value)]
    return [
        class_data(type(value)),
        str(value.dtype),
        str(value.device),
        str(value.layout),
        value.requires_grad,
        torch._C._dispatch_keys(value).raw_repr(),
        value.dim(),
        marks,
    ]


# ---- places in the running program ----------------------------------------------------------

_KINDS = {
    kind.__name__: kind
    for kind in (
        *(kinds.LocalSource, kinds.GlobalSource, kinds.ClosureSource, kinds.AttrSource),
        *(kinds.GetItemSource, kinds.TypeSource, kinds.ClassDictSource, kinds.DictKeySource),
        *(kinds.WeakRefCallSource, kinds.TensorPropertySource, kinds.GradSource),
    )
}
_ALIAS = "__import_"


class Sources:
    """Sources as rows, each after those it is built on."""

    def __init__(self) -> None:
        self.rows: list[Json] = []
        self._places: dict[Source, int] = {}

    def place(self, source: Source) -> int:
        """The row of a source."""
        found = self._places.get(source)
        if found is None:
            fields = [self._field(getattr(source, f.name)) for f in dataclasses.fields(source)]
            name = type(source).__name__
            if _KINDS.get(name) is not type(source):
                raise Bypass(f"a value found by {name}")
            if name == "GlobalSource" and source.global_name.startswith(("__globals_", "_tensor_")):
                raise Bypass("a value that the trace put among the globals")
            found = self._places[source] = len(self.rows)
            self.rows.append([name, *fields])
        return found

    def _field(self, value: object) -> Json:
        if isinstance(value, torch._guards.Source):
            return {"#": self.place(value)}
        if isinstance(value, kinds.TensorProperty):
            return {"p": value.value}
        return encode_value(value, {})


def _field_of(data: Json, before: list[Source]) -> object:
    if isinstance(data, dict) and "#" in data:
        place = data["#"]
        if type(place) is not int or not 0 <= place < len(before):
            raise Damaged("a source that is not there")
        return before[place]
    if isinstance(data, dict) and "p" in data:
        return kinds.TensorProperty(data["p"])
    return decode_value(data, ())


def sources_of(rows: list[Json]) -> list[Source]:
    """The sources of rows. Raises Damaged."""
    found: list[Source] = []
    for name, *fields in rows:
        if name not in _KINDS:
            raise Damaged(f"no source {name!r}")
        found.append(_KINDS[name](*[_field_of(field, found) for field in fields]))
    return found


class Frame:
    """The running program as a frame sees it."""

    def __init__(
        self,
        code: types.CodeType,
        fn_globals: dict[str, object],
        closure: tuple[types.CellType, ...] | None,
        values: dict[str, object],
    ) -> None:
        self.code = code
        self.globals = fn_globals
        self.locals = {**values, **dict(zip(code.co_freevars, closure or (), strict=True))}
        self._known: dict[Source, object] = {}

    def value(self, source: Source) -> object:
        """What is found at a source. Raises Miss."""
        if source in self._known:
            return self._known[source]
        try:
            found = self._known[source] = self._read(source)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise Miss(f"nothing at {source.name()}") from error
        return found

    def _read(self, source: Source) -> object:
        if isinstance(source, kinds.LocalSource):
            return self.locals[source.local_name]
        if isinstance(source, kinds.ClosureSource):
            return self.locals[source.cell_name]
        if isinstance(source, kinds.GlobalSource):
            return self.globals[source.global_name]
        base = self.value(source.base)
        if isinstance(source, kinds.AttrSource):
            for part in source.member.split("."):
                base = getattr(base, part)
            return base
        if isinstance(source, kinds.GetItemSource):
            if isinstance(source.index, kinds.DictKeySource):
                return list(dict.values(base))[source.index.index]
            return dict.__getitem__(base, source.index) if isinstance(base, dict) else (
                base[source.index]
            )  # fmt: skip
        if isinstance(source, kinds.TypeSource):
            return type(base)
        if isinstance(source, kinds.ClassDictSource):
            return base.__mro__[source.place].__dict__[source.member]
        if isinstance(source, kinds.DictKeySource):
            return list(dict.keys(base))[source.index]
        if isinstance(source, kinds.WeakRefCallSource):
            return base()
        found = getattr(base, source.prop.method_name())()
        return found if source.idx is None else found[source.idx]

    def import_aliases(self, aliases: dict[str, str]) -> None:
        """Names of modules that the trace of another process put among the globals."""
        for name, module in aliases.items():
            if module not in sys.modules:
                raise Miss(f"{module} is not imported")
            self.globals.setdefault(str(name), sys.modules[module])


def aliases_in(rows: list[Json], fn_globals: dict[str, object]) -> dict[str, str]:
    """The modules that sources find by names of the tracer's own."""
    names = [row[1] for row in rows if row[0] == "GlobalSource" and row[1].startswith(_ALIAS)]
    return {name: fn_globals[name].__name__ for name in names}


# ---- conditions -----------------------------------------------------------------------------

_BY_VALUE = ("CONSTANT_MATCH", "EQUALS_MATCH", "SEQUENCE_LENGTH", "NOT_PRESENT_IN_GENERIC_DICT",
             "PRESENT_IN_GENERIC_DICT", "NO_ATTRIBUTE", "NOT_NAN")  # fmt: skip


def encode_guard(record: GuardRecord, sources: Sources) -> Json:
    """A condition as [kind, source, data]."""
    kind, value = record.kind, record.value
    place = sources.place(record.source)
    if kind in _BY_VALUE:
        return [kind, place, encode_value(value, {})]
    if kind in ("TYPE_MATCH", "ID_MATCH", "FUNCTION_MATCH"):
        return [kind, place, identity_data(value)]
    if kind == "TENSOR_MATCH":
        tensor, sizes, strides = value
        return [kind, place, [tensor_data(tensor), list(sizes), list(strides)]]
    if kind == "DICT_KEYS":
        keys = list(dict.keys(value)) if isinstance(value, dict) else list(value)
        return [kind, place, encode_value(keys, {})]
    if kind == "OBJECT_ALIASING":
        return [kind, place, sources.place(value)]
    raise Bypass(f"a condition {kind}")


def _same_steps(wanted: list, found: tuple[int, ...]) -> bool:
    return len(wanted) == len(found) and all(
        w is None or w == f for w, f in zip(wanted, found, strict=True)
    )


def fitted_guard(
    row: Json, sources: list[Source], frame: Frame, known: dict[int, Json]
) -> tuple[Source, str, object]:
    """The condition for the objects of the running program. Raises Miss where they are others.
    `known` keeps what was found out about classes."""
    kind, place, data = row
    source = sources[place]
    if kind in _BY_VALUE or kind == "DICT_KEYS":
        return source, kind, decode_value(data, ())
    if kind == "OBJECT_ALIASING":
        return source, kind, sources[data]
    value = frame.value(source)
    if kind == "TENSOR_MATCH":
        form, sizes, strides = data
        if not isinstance(value, torch.Tensor) or tensor_data(value) != form:
            raise Miss(f"another tensor at {source.name()}")
        if not _same_steps(sizes, value.shape) or not _same_steps(strides, value.stride()):
            raise Miss(f"other sizes at {source.name()}")
        return source, kind, (value, sizes, strides)
    if kind == "TYPE_MATCH":
        value = type(value)
    elif kind not in ("ID_MATCH", "FUNCTION_MATCH"):
        raise Damaged(f"no condition {kind!r}")
    found = known.get(id(value))
    if found is None:
        try:
            found = known[id(value)] = identity_data(value)
        except Bypass as reason:
            raise Miss(str(reason)) from reason
    if found != data:
        raise Miss(f"another object at {source.name()}")
    return source, kind, value


# ---- objects that the code refers to --------------------------------------------------------


def encode_object(value: object) -> Json:
    """A function, class or constant by what finds it again."""
    if isinstance(value, (type, types.FunctionType)) and is_of_library(value):
        if value.__module__.partition(".")[0] not in _ROOTS:
            raise Bypass(f"{value} in the code")
        return ["type", value.__module__, value.__qualname__]
    if value is types.FunctionType or value is types.CellType:
        return ["type", "types", "FunctionType" if value is types.FunctionType else "CellType"]
    if callable(value):
        name = describe_function(value)
        if ":" not in name:
            raise Bypass(f"{value} in the code")
        return ["name", name]
    return ["value", encode_value(value, {})]


# Where the objects that code refers to may come from.
_ROOTS = frozenset("torch builtins types math operator _operator collections functools".split())


def _of_library(module: str, name: str) -> object:
    """An object of torch or of the standard library by its name."""
    if module.partition(".")[0] not in _ROOTS:
        raise Damaged(f"{module} is no part of the library")
    found: object = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def decode_object(data: Json) -> object:
    """The object of data. Raises Damaged."""
    kind, *rest = data
    try:
        if kind == "value":
            return decode_value(rest[0], ())
        if kind == "type":
            found = _of_library(str(rest[0]), str(rest[1]))
        elif kind == "name":
            module, _, name = str(rest[0]).partition(":")
            found = _of_library(module, name)
        else:
            raise Damaged(f"no object {kind!r}")
    except (AttributeError, ImportError, IndexError, ValueError) as error:
        raise Damaged(f"{type(error).__name__}: {error}") from error
    if not callable(found):
        raise Damaged(f"{rest} is no function")
    return found
