"""Archives of scripted programs: reading. The data is read by the data-only unpickler, the code by
the script compiler; neither runs anything of the archive outside of the interpreter."""

from __future__ import annotations

import os
import typing

import torch
from torch._serialization.errors import CheckpointError, refused
from torch._serialization.locations import restore_function
from torch._serialization.safe_table import SafeTable
from torch._serialization.safe_unpickler import SafeUnpickler, room_for, steps_for
from torch._serialization.storages import ZipStorages
from torch._serialization.zip_reader import ZipArchive
from torch.jit import _types as T
from torch.jit._archive_code import ArchiveCode
from torch.jit._modules import RecursiveScriptModule, call_hooks
from torch.jit.frontend import NotSupportedError

_MOST_ELEMENTS = 50_000_000  # of one container, those of containers inside of it included
_LISTS = ("build_intlist", "build_tensorlist", "build_doublelist", "build_boollist")


class ArchiveObject:
    """An object of a class of the archive, before the class is compiled."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: object = None


class _ClassName:
    def __init__(self, name: str) -> None:
        self.name = name


class _Tables(SafeTable):
    """The globals of an archive: those of checkpoints, its own classes, and the list makers."""

    def __init__(self, constants=()) -> None:
        super().__init__()
        self.constants = constants

    def find(self, module: str, name: str):
        full = f"{module}.{name}"
        if full.startswith("__torch__"):
            return _ClassName(full)
        if module == "torch.jit._pickle":
            if name in _LISTS or name in ("restore_type_tag", "build_tensor_from_id"):
                return _ClassName(name)
            raise refused(f"Unsupported global: GLOBAL {full}")
        return super().find(module, name)

    def call(self, function, args):
        if not isinstance(function, _ClassName):
            return super().call(function, args)
        if function.name in _LISTS:
            if len(args) != 1 or type(args[0]) is not list:
                raise refused(f"{function.name} takes a list")
            return args[0]
        if function.name == "restore_type_tag":
            if len(args) != 2:
                raise refused("restore_type_tag takes a value and a type")
            return args[0]
        if function.name.startswith("__torch__"):
            # A member of an enumeration, or a tuple with names.
            made = ArchiveObject(function.name)
            made.state = args
            return made
        raise refused(f"{function.name} cannot be called")

    def cost(self, function, args) -> int:
        return 0 if isinstance(function, _ClassName) else super().cost(function, args)

    def new(self, cls, args):
        if not isinstance(cls, _ClassName):
            return super().new(cls, args)
        made = ArchiveObject(cls.name)
        made.state = args
        return made

    def build(self, target, state):
        if isinstance(target, ArchiveObject):
            target.state = state
            return target
        return super().build(target, state)


class _ArchivePickle(SafeUnpickler):
    """A member of an enumeration is its class called with the value, without a tuple around it."""

    def _args(self):
        if self._stack and type(self._stack[-1]) is not tuple:
            below = self._stack[-2] if len(self._stack) > 1 else None
            if isinstance(below, _ClassName) and below.name.startswith("__torch__"):
                return (self._pop(),)
        return super()._args()


class _Prefixed:
    """Storages of constants.pkl are records under another name."""

    def __init__(self, archive: ZipArchive, prefix: str) -> None:
        self._archive, self._prefix = archive, prefix

    def __getattr__(self, name: str):
        return getattr(self._archive, name)

    def record(self, name: str):
        return self._archive.record(self._prefix + name.removeprefix("data"))

    def read_into(self, name: str, target) -> None:
        self._archive.read_into(self._prefix + name.removeprefix("data"), target)


def _unpickle(archive: ZipArchive, name: str, storages, size: int):
    data = archive.read(name)
    steps, room = steps_for(size), room_for(len(data), size)
    return _ArchivePickle(data, _Tables(), storages.load, 0, "utf-8", room, steps).load()


def load(f, map_location=None, _extra_files=None):
    """Reads an archive from a path or file."""
    from torch.serialization import _open_source

    if isinstance(f, str | os.PathLike):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
    source = _open_source(f)
    try:
        return _load(source, map_location, _extra_files)
    except RecursionError:
        raise RuntimeError("the archive is nested too deeply") from None
    except NotSupportedError as e:
        raise RuntimeError(str(e)) from None
    except (CheckpointError, RuntimeError, MemoryError):
        raise
    except (
        KeyError,
        IndexError,
        TypeError,
        ValueError,
        AttributeError,
        SyntaxError,
        OverflowError,
        AssertionError,
    ) as e:
        raise RuntimeError(f"the archive is damaged: {type(e).__name__}: {e}") from e
    finally:
        source.close()


def _load(source, map_location, extra):
    archive = ZipArchive(source)
    if "data.pkl" not in archive.records or "constants.pkl" not in archive.records:
        raise RuntimeError(
            "PytorchStreamReader failed locating file constants.pkl: file not found. The "
            "file is not a TorchScript archive"
        )
    if isinstance(map_location, str):
        map_location = torch.device(map_location)
    restore = restore_function(map_location)
    constants = _unpickle(
        archive, "constants.pkl", ZipStorages(_Prefixed(archive, "constants"), restore), source.size
    )
    if not isinstance(constants, tuple | list):
        raise RuntimeError("the constants of the archive are not a list")

    def read(path: str) -> str | None:
        return archive.read(path).decode("utf-8") if path in archive.records else None

    code = ArchiveCode(read, constants)
    root = _unpickle(archive, "data.pkl", ZipStorages(archive, restore), source.size)
    made = Instances(code).module(root)
    if extra is not None:
        for name in list(extra):
            if f"extra/{name}" in archive.records:
                extra[name] = archive.read(f"extra/{name}")
    return made


class Instances:
    """Turns the objects of an archive's data into modules and values."""

    def __init__(self, code: ArchiveCode) -> None:
        self.code = code
        self.made: dict[int, typing.Any] = {}
        self.sizes: dict[int, int] = {}
        self.classes: dict[int, T.ClassType] = {}

    def module(self, root: object) -> RecursiveScriptModule:
        made = self.value(root)
        if not isinstance(made, RecursiveScriptModule):
            raise RuntimeError("the archive does not hold a module")
        for module in made.modules():
            kind = module._script_type
            for function in (*kind.methods.values(), *kind.pre_hooks, *kind.hooks):
                function.ensure_compiled()
        # Calls through interfaces name no class: every object of the archive may be meant.
        for kind in self.classes.values():
            for function in kind.methods.values():
                function.ensure_compiled()
        return made

    def value(self, thing: object):
        """The Python form of a piece of data."""
        if isinstance(thing, ArchiveObject):
            known = self.made.get(id(thing))
            if known is None:
                known = self.made[id(thing)] = self.instance(thing)
            return known
        if not isinstance(thing, list | tuple | dict):
            return thing
        known = self.made.get(id(thing))
        if known is None:
            known = self.made[id(thing)] = self.container(thing)
        return known

    def container(self, thing: list | tuple | dict):
        """A list, tuple or dictionary. One that stands in many places is converted once, but a
        program sees its elements in each: a short pickle could hold a tuple of 2**30 leaves."""
        items = [*thing.keys(), *thing.values()] if isinstance(thing, dict) else thing
        # A container inside itself has no size yet, and its conversion ends as a RecursionError.
        made = [self.value(v) for v in items]
        self.sizes[id(thing)] = 1 + sum(self.sizes.get(id(v), 1) for v in items)
        if self.sizes[id(thing)] > _MOST_ELEMENTS:
            raise RuntimeError("the data of the archive repeats its containers too often")
        if isinstance(thing, dict):
            return dict(zip(made[: len(thing)], made[len(thing) :], strict=True))
        return made if isinstance(thing, list) else tuple(made)

    def instance(self, thing: ArchiveObject):
        kind = self.code.type_named(thing.name)
        if isinstance(kind, T.CustomClassType):
            return torch._C._script_object_from_state(thing.name, self.value(thing.state))
        if kind is None:
            raise RuntimeError(f"the archive has no class {thing.name}")
        if isinstance(kind, T.EnumType):
            return kind.python(thing.state[0])
        if isinstance(kind, T.TupleType):
            return tuple(self.value(v) for v in thing.state)
        if not isinstance(kind, T.ClassType):
            raise RuntimeError(f"{thing.name} of the archive is not a class")
        self.classes[id(kind)] = kind
        handle = torch._C._script_object(kind.info)
        if "__setstate__" in kind.methods:
            return self.restored(kind, handle, thing)
        if not isinstance(thing.state, dict):
            raise RuntimeError(f"the state of {thing.name} is not a dictionary")
        modules = {}
        for name, slot in kind.slots.items():
            if name not in thing.state:
                raise RuntimeError(f"the object of {thing.name} has no attribute {name}")
            value = self.value(thing.state[name])
            if isinstance(value, RecursiveScriptModule):
                modules[name] = value
            handle.set(slot, value, kind.attributes[name].handle())
        return self.wrapped(kind, handle, modules)

    def restored(self, kind: T.ClassType, handle, thing: ArchiveObject):
        from torch.jit._modules import ScriptMethod

        function = kind.methods["__setstate__"]
        function.ensure_compiled()
        ScriptMethod(function, handle)(self.value(thing.state))
        return self.wrapped(kind, handle, {})

    def wrapped(self, kind: T.ClassType, handle, modules):
        if not kind.is_module:
            from torch.jit._script_class import RecursiveScriptClass

            return RecursiveScriptClass(handle, kind)
        for name, role in kind.roles.items():
            if role == "parameter" and kind.attributes[name] is T.Tensor:
                value = handle.get(kind.slots[name])
                if not isinstance(value, torch.nn.Parameter):
                    grad = value.requires_grad
                    handle.set(
                        kind.slots[name],
                        torch.nn.Parameter(value.detach(), grad),
                        T.Tensor.handle(),
                    )
        made = RecursiveScriptModule.__new__(RecursiveScriptModule)
        RecursiveScriptModule.__init__(made, handle, kind, modules)
        call_hooks(made, kind)
        return made


def save(m, f, _extra_files=None) -> None:
    """Writes an archive of a scripted module or function."""
    from torch.jit._archive_writer import write

    write(m, f, _extra_files)
