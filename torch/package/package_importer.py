"""Runs the code of a package and reads its objects, apart from the modules of the program."""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import inspect
import io
import linecache
import types
from collections.abc import Callable
from pathlib import Path
from typing import IO
from weakref import WeakValueDictionary

import torch
from torch.package._directory_reader import ArchiveReader, DirectoryReader, ResourceReader
from torch.package._mangling import PackageMangler, demangle
from torch.package._package_pickler import PackageUnpickler
from torch.package.file_structure_representation import Directory
from torch.package.glob_group import GlobGroup, GlobPattern
from torch.package.importer import Importer

__all__ = ["PackageImporter"]

# Modules of packages by their mangled names, for `inspect`.
_imported: WeakValueDictionary[str, types.ModuleType] = WeakValueDictionary()
_getfile = inspect.getfile


def _file_of(obj: object) -> str:
    """inspect.getfile that knows classes of packages: their modules are not in sys.modules."""
    if inspect.isclass(obj) and obj.__module__ in _imported:
        return str(_imported[obj.__module__].__file__)
    return _getfile(obj)  # type: ignore[arg-type]


inspect.getfile = _file_of  # type: ignore[assignment]


class PackageImporter(Importer):
    """Reads a package from a file, a buffer or a folder. Its modules have names of their own."""

    def __init__(
        self,
        file_or_buffer: str | Path | IO[bytes],
        module_allowed: Callable[[str], bool] = lambda module_name: True,
    ) -> None:
        self.filename = "<binary>"
        if isinstance(file_or_buffer, (str, Path)):
            self.filename = str(file_or_buffer)
        if isinstance(file_or_buffer, (str, Path)) and Path(file_or_buffer).is_dir():
            self.zip_reader: DirectoryReader | ArchiveReader = DirectoryReader(file_or_buffer)
        else:
            source = file_or_buffer
            self.zip_reader = ArchiveReader(str(source) if isinstance(source, Path) else source)
        self._mangler = PackageMangler()
        self.modules: dict[str, types.ModuleType] = {}
        self._files = set(self.zip_reader.get_all_records())
        self.extern_modules = self._read_externs()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(
                    f"package '{self.filename}' needs the external module '{name}' but that "
                    "module has been disallowed"
                )
        self._extern = set(self.extern_modules)
        # Folders of modules, those of externed modules below the package too.
        self._packages = {
            "/".join(parts[:k])
            for parts in [f.split("/") for f in self._files] + [n.split(".") for n in self._extern]
            for k in range(1, len(parts))
        }
        self.patched_builtins = builtins.__dict__.copy()
        self.patched_builtins["__import__"] = self.__import__
        self.modules["torch_package_importer"] = self  # type: ignore[assignment]
        self.storage_cache: dict[str, torch.UntypedStorage] = {}
        self._reduced: dict[object, object] = {}
        self._map_location: object = None

    def _read_externs(self) -> list[str]:
        if not self.zip_reader.has_record(".data/extern_modules"):
            raise RuntimeError(
                f"'{self.filename}' is no package: it lacks the record .data/extern_modules"
            )
        return self.zip_reader.get_record(".data/extern_modules").decode("utf-8").split()

    # ---- modules
    def import_module(self, name: str, package: str | None = None) -> types.ModuleType:
        """A module of the package, or an externed one of the program."""
        name = demangle(importlib.util.resolve_name(name, package) if package else name)
        if name in self.modules:
            return self.modules[name]
        if name in self._extern:
            module = self.modules[name] = importlib.import_module(name)
            self._attach(name, module)
            return module
        parent = name.rpartition(".")[0]
        if parent:
            held = self.import_module(parent)
            if name in self.modules:  # the parent imported it
                return self.modules[name]
            if parent in self._extern or not self._is_ours(held):
                return importlib.import_module(name)
        path = name.replace(".", "/")
        for file, is_package in ((f"{path}/__init__.py", True), (f"{path}.py", False)):
            if file in self._files:
                return self._load(name, file, is_package)
        if path in self._packages:
            return self._load(name, None, True)
        top = name.partition(".")[0]
        if top not in self._packages and top in self._extern:
            return importlib.import_module(name)
        raise ModuleNotFoundError(
            f"No module named '{name}' in self-contained archive '{self.filename}' and the module "
            "is also not in the list of allowed external modules: " + str(self.extern_modules),
            name=name,
        )

    def _is_ours(self, module: types.ModuleType) -> bool:
        return getattr(module, "__torch_package__", False) is True

    def _load(self, name: str, file: str | None, is_package: bool) -> types.ModuleType:
        mangled = self._mangler.mangle(name)
        place = f"{self._mangler.parent_name()}.{file or name.replace('.', '/')}"
        spec = importlib.machinery.ModuleSpec(mangled, self, is_package=is_package)  # type: ignore[arg-type]
        module = types.ModuleType(mangled)
        values = module.__dict__
        values.update(
            __spec__=spec,
            __loader__=self,
            __file__=place,
            __cached__=None,
            __builtins__=self.patched_builtins,
            __torch_package__=True,
            __package__=mangled if is_package else mangled.rpartition(".")[0],
        )
        if is_package:
            module.__path__ = [name.replace(".", "/")]
            spec.submodule_search_locations = module.__path__
        self.modules[name] = module
        _imported[mangled] = module
        if file is not None:
            text = self.zip_reader.get_record(file).decode("utf-8")
            lines = text.splitlines(keepends=True)
            linecache.cache[place] = (len(text), None, lines, place)
            try:
                exec(compile(text, place, "exec", dont_inherit=True), values)
            except BaseException:
                self.modules.pop(name, None)
                raise
        module = self.modules[name]
        self._attach(name, module)
        return module

    def _attach(self, name: str, module: types.ModuleType) -> None:
        """Makes a module an attribute of the package above it."""
        parent, _, last = name.rpartition(".")
        held = self.modules.get(parent)
        if held is None and parent and parent.replace(".", "/") in self._packages:
            held = self.import_module(parent)
        if held is not None and self._is_ours(held):
            setattr(held, last, module)

    def __import__(
        self,
        name: str,
        globals: dict | None = None,
        locals: dict | None = None,
        fromlist: tuple[str, ...] = (),
        level: int = 0,
    ) -> types.ModuleType:
        """The `__import__` of the code in the package."""
        if level > 0:
            package = demangle((globals or {}).get("__package__") or "")
            name = importlib.util.resolve_name("." * level + name, package)
        name = demangle(name)
        module = self.import_module(name)
        if not fromlist:
            return self.import_module(name.partition(".")[0]) if "." in name else module
        if hasattr(module, "__path__") and self._is_ours(module):
            for part in self._named(module, fromlist):
                if not hasattr(module, part):
                    try:
                        self.import_module(f"{name}.{part}")
                    except ModuleNotFoundError as error:
                        if error.name != f"{name}.{part}":
                            raise
        elif hasattr(module, "__path__"):
            return builtins.__import__(name, globals, locals, fromlist, 0)
        return module

    def _named(self, module: types.ModuleType, fromlist: tuple[str, ...]) -> list[str]:
        listed = [n for n in fromlist if n != "*"]
        return listed + list(getattr(module, "__all__", ())) if "*" in fromlist else listed

    def get_source(self, module_name: str) -> str:
        """The text of a module of the package."""
        path = demangle(module_name).replace(".", "/")
        for file in (f"{path}/__init__.py", f"{path}.py"):
            if file in self._files:
                return self.zip_reader.get_record(file).decode("utf-8")
        if path in self._packages:
            return ""
        raise ImportError(f"the package has no source of {module_name!r}")

    def get_resource_reader(self, fullname: str) -> ResourceReader | None:
        """The files beside a module, for importlib.resources."""
        folder = demangle(fullname).replace(".", "/")
        return ResourceReader(self.zip_reader, folder) if folder in self._packages else None

    def id(self) -> str:
        return self._mangler.parent_name()

    # ---- contents
    def load_binary(self, package: str, resource: str) -> bytes:
        return self.zip_reader.get_record(f"{demangle(package).replace('.', '/')}/{resource}")

    def load_text(
        self, package: str, resource: str, encoding: str = "utf-8", errors: str = "strict"
    ) -> str:
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: str, resource: str, map_location: object = None) -> object:
        """A pickled object of the package."""
        self._map_location, before = map_location, self._map_location
        try:
            data = io.BytesIO(self.load_binary(package, resource))
            found = PackageUnpickler(self, data, self._persistent).load()
        finally:
            self._map_location = before
        return found

    def _persistent(self, pid: object) -> object:
        if isinstance(pid, tuple) and pid and pid[0] == "reduce_package":
            _, key, function, arguments = pid
            if key not in self._reduced:
                self._reduced[key] = function(self, *arguments)
            return self._reduced[key]
        return self._storage(pid)

    def _storage(self, pid: object) -> object:
        from torch._serialization.locations import restore_function
        from torch._serialization.storages import check_persistent_id, typed

        if isinstance(pid, tuple) and len(pid) == 5 and type(pid[2]) is int:
            pid = (*pid[:2], str(pid[2]), *pid[3:])
        dtype, key, location, nbytes = check_persistent_id(pid, 5)
        if key not in self.storage_cache:
            data = self.zip_reader.get_record(f".data/{key}.storage")
            if len(data) != nbytes:
                raise RuntimeError(
                    f"storage {key} should have {nbytes} bytes, its record has {len(data)}"
                )
            if nbytes:
                held = torch.frombuffer(bytearray(data), dtype=torch.uint8).untyped_storage()
            else:
                held = torch.UntypedStorage(0)
            self.storage_cache[key] = restore_function(self._map_location)(held, location)
        return typed(self.storage_cache[key], dtype)

    def python_version(self) -> str | None:
        """The version of Python that wrote the package, where it says so."""
        if not self.zip_reader.has_record(".data/python_version"):
            return None
        return self.zip_reader.get_record(".data/python_version").decode("utf-8").strip()

    def file_structure(
        self, *, include: GlobPattern = "**", exclude: GlobPattern = ()
    ) -> Directory:
        """The files of the package as a tree."""
        wanted = GlobGroup(include, exclude=exclude, separator="/").matches
        return Directory.of_files(self.filename, filter(wanted, self.zip_reader.get_all_records()))
