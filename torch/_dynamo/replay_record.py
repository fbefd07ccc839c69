"""A frame that could not be compiled, kept in a file so that the compilation can be run again
(`config.replay_record_enabled`, `torch._dynamo.replay`).

The file is a ZIP archive: JSON says which function of which source file was compiled and what its
arguments were, and the tensors lie beside it. It holds no code. A replay reads the function from
the program's own source, which must be there unchanged."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import io
import json
import os
import sys
import types
import zipfile
from collections.abc import Callable, Iterator

import torch
from torch._dynamo import config
from torch._dynamo.stored_graph import JSON, read_value, write_value

FORMAT = 1


def _digest(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def _name_of(code: types.CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name)


# ---- values

_SEQUENCES = (list, tuple, set, frozenset)


class _Writer:
    """Arguments as JSON. Objects are their class and their attributes; what cannot be described is
    noted as missing, since the rest may be enough to look at."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        self._seen: dict[int, int] = {}
        self._keep: list[object] = []

    def write(self, value: object) -> JSON:
        """A value as JSON."""
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
            return {"tensor": len(self.tensors) - 1}
        if type(value) in _SEQUENCES:
            return {"items": [type(value).__name__, [self.write(item) for item in value]]}
        if isinstance(value, dict) and type(value).__module__ in ("builtins", "collections"):
            rows = [[self.write(k), self.write(v)] for k, v in value.items()]
            return {"pairs": [type(value).__name__, rows]}
        if isinstance(value, types.FunctionType | type):
            return {"named": [value.__module__, value.__qualname__]}
        try:
            return {"plain": write_value(value)}
        except NotImplementedError:
            return self._object(value)

    def _object(self, value: object) -> JSON:
        known = self._seen.get(id(value))
        if known is not None:
            return {"again": known}
        state = getattr(value, "__dict__", None)
        if not isinstance(state, dict) or "<locals>" in type(value).__qualname__:
            return {"missing": repr(type(value))}
        number = self._seen[id(value)] = len(self._seen)
        self._keep.append(value)
        cls = type(value)
        attributes = {key: self.write(item) for key, item in state.items()}
        return {"object": [number, cls.__module__, cls.__qualname__, attributes]}


class _Reader:
    """Values that a _Writer wrote. Classes and functions are those of modules that are loaded: a
    file makes none be imported."""

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        self._tensors = tensors
        self._objects: dict[int, object] = {}

    def read(self, written: JSON) -> object:
        """The value of JSON."""
        (kind, content), *_ = written.items()
        if kind == "tensor":
            return self._tensors[content]
        if kind == "plain":
            return read_value(content, {})
        if kind == "items":
            items = [self.read(item) for item in content[1]]
            return next(kind for kind in _SEQUENCES if kind.__name__ == content[0])(items)
        if kind == "pairs":
            return self._pairs(*content)
        if kind == "named":
            return _find(*content)
        if kind == "again":
            return self._objects[content]
        if kind == "object":
            return self._object(*content)
        raise NotImplementedError(f"replay: a value of {content} was not recorded")

    def _pairs(self, name: str, rows: list[JSON]) -> dict:
        import collections

        made = {self.read(key): self.read(value) for key, value in rows}
        return collections.OrderedDict(made) if name == "OrderedDict" else made

    def _object(self, number: int, module: str, qualname: str, attributes: dict) -> object:
        cls = _find(module, qualname)
        if not isinstance(cls, type):
            raise ValueError(f"replay: {module}.{qualname} is no class")
        made = self._objects[number] = object.__new__(cls)
        made.__dict__.update({key: self.read(item) for key, item in attributes.items()})
        return made


def _find(module: str, qualname: str) -> object:
    found = sys.modules.get(module)
    if found is None:
        raise NotImplementedError(f"replay: import {module} before, for {qualname}")
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


# ---- files


def write(
    code: types.CodeType,
    fn_globals: dict[str, object],
    closure: tuple[types.CellType, ...] | None,
    values: dict[str, object],
) -> str:
    """Records a frame; the path of the file."""
    writer = _Writer()
    cells = [cell.cell_contents for cell in closure or ()]
    content = {
        "format": FORMAT,
        "module": str(fn_globals.get("__name__")),
        "file": os.path.abspath(code.co_filename),
        "digest": _digest(code.co_filename),
        "function": _name_of(code),
        "line": code.co_firstlineno,
        "arguments": {name: writer.write(value) for name, value in values.items()},
        "cells": [writer.write(value) for value in cells],
    }
    tensors = io.BytesIO()
    torch.save(writer.tensors, tensors)
    folder = os.path.join(config.debug_dir_root, "error_recordings")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{code.co_name}_{code.co_firstlineno}_{os.getpid()}.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("frame.json", json.dumps(content))
        archive.writestr("tensors.pt", tensors.getvalue())
    return path


def _module_of(name: str, path: str) -> types.ModuleType:
    """The module of a program: loaded already, importable, or run from its file."""
    for found in sys.modules.values():
        if os.path.abspath(getattr(found, "__file__", None) or "") == path:
            return found
    if name != "__main__" and importlib.util.find_spec(name) is not None:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location("torch_replay_main", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _function_of(content: dict[str, JSON], reader: _Reader) -> types.FunctionType:
    path = content["file"]
    if _digest(path) != content["digest"]:
        raise RuntimeError(f"replay: {path} is not what it was when the frame was recorded")
    module = _module_of(content["module"], path)
    with open(path, "rb") as file:
        whole = compile(file.read(), path, "exec", dont_inherit=True)
    for code in _codes(whole):
        if (_name_of(code), code.co_firstlineno) == (content["function"], content["line"]):
            cells = tuple(types.CellType(reader.read(value)) for value in content["cells"])
            return types.FunctionType(code, vars(module), code.co_name, None, cells)
    raise RuntimeError(f"replay: {path} has no function {content['function']}")


def _call(fn: Callable, code: types.CodeType, values: dict[str, object]) -> None:
    plain = [values[name] for name in code.co_varnames[: code.co_argcount]]
    named = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    keywords = {name: values[name] for name in named}
    rest = list(values)[code.co_argcount + code.co_kwonlyargcount :]
    if code.co_flags & inspect.CO_VARARGS:
        plain += values[rest.pop(0)]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        keywords.update(values[rest.pop(0)])
    fn(*plain, **keywords)


def replay(filename: str) -> None:
    """Compiles the recorded function again for the recorded arguments, and runs it: what was raised
    then is raised again unless the cause is gone."""
    from torch._dynamo.eval_frame import optimize

    with zipfile.ZipFile(filename) as archive:
        content = json.loads(archive.read("frame.json"))
        tensors = torch.load(io.BytesIO(archive.read("tensors.pt")), weights_only=True)
    if content["format"] != FORMAT:
        raise ValueError(f"replay: {filename} is of another version")
    reader = _Reader(tensors)
    function = _function_of(content, reader)
    values = {name: reader.read(value) for name, value in content["arguments"].items()}
    with config.patch(replay_record_enabled=False):
        _call(optimize("eager")(function), function.__code__, values)
