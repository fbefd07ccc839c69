"""Writes code, pickled objects and files into one archive that runs by itself.

Saving something finds the modules it needs; each is handled by the first pattern that matches it:
interned (its source is saved), externed (the reader's environment has it), mocked (left out; using
it raises) or denied. What no pattern handles is an error at the end, with all such modules in one
message."""

from __future__ import annotations

import dataclasses
import importlib.machinery
import io
import linecache
import platform
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, TYPE_CHECKING

from torch.package import _mock
from torch.package._digraph import DiGraph
from torch.package._mangling import demangle, is_mangled
from torch.package._package_pickler import PackagePickler, checksum
from torch.package.find_file_dependencies import find_files_source_depends_on
from torch.package.glob_group import GlobGroup, GlobPattern
from torch.package.importer import Importer, OrderedImporter, sys_importer
from torch.utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from torch._serialization.plain_pickle import StorageCollector

__all__ = ["EmptyMatchError", "PackageExporter", "PackagingError", "PackagingErrorReason"]

ActionHook = Callable[["PackageExporter", str], None]


class _ModuleProviderAction(Enum):
    """What happens to a module that the package needs."""

    INTERN = 1
    EXTERN = 2
    MOCK = 3
    DENY = 4
    REPACKAGED_MOCK_MODULE = 5
    SKIP = 6


class PackagingErrorReason(Enum):
    """Why a module cannot be packaged."""

    IS_EXTENSION_MODULE = (
        "Module is a C extension module. torch.package supports Python modules only."
    )
    NO_DUNDER_FILE = "Module had no __file__ defined."
    SOURCE_FILE_NOT_FOUND = "Module had a __file__, but we could not find it in your filesystem."
    DEPENDENCY_RESOLUTION_FAILED = "Dependency resolution failed."
    NO_ACTION = "Module did not match against any action pattern. Extern, mock, or intern it."
    DENIED = "Module was denied by a pattern."
    MOCKED_BUT_STILL_USED = (
        "Module was mocked out, but is still being used in the package. Please intern or extern "
        "the mocked modules if objects are supposed to be in the package."
    )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}>"


class EmptyMatchError(Exception):
    """A pattern with allow_empty=False matched no module."""


class PackagingError(Exception):
    """Modules that the package needs cannot be part of it."""

    def __init__(self, dependency_graph: DiGraph, debug: bool = False) -> None:
        broken: dict[PackagingErrorReason, list[str]] = {}
        for name, attributes in dependency_graph.nodes.items():
            reason = attributes.get("error")
            if reason is not None:
                broken.setdefault(reason, []).append(name)  # type: ignore[arg-type]
        lines = [""]
        for reason, names in broken.items():
            lines.append(f"* {reason.value}")
            for name in names:
                lines.append(f"    {name}")
                context = dependency_graph.nodes[name].get("error_context")
                if context is not None:
                    lines.append(f"      Context: {context}")
                if debug:
                    way = " -> ".join(str(n) for n in dependency_graph.first_path(name))
                    lines.append(f"      needed by: {way}")
        lines.append("")
        if not debug:
            lines.append(
                "Set debug=True when invoking PackageExporter for a visualization of where broken "
                "modules are coming from!\n"
            )
        super().__init__("\n".join(lines))
        self.dependency_graph = dependency_graph
        self.debug = debug


@dataclasses.dataclass
class _Pattern:
    glob: GlobGroup
    action: _ModuleProviderAction
    allow_empty: bool
    was_matched: bool = False


# Modules that every package has: the importer itself, and what mocked modules are made of.
_OF_PACKAGES = {
    "torch_package_importer": _ModuleProviderAction.SKIP,
    "_mock": _ModuleProviderAction.REPACKAGED_MOCK_MODULE,
}


def _is_of_environment(name: str) -> bool:
    """Modules that every reader has: torch and the standard library."""
    top = name.partition(".")[0]
    return top == "torch" or top in sys.stdlib_module_names or top in sys.builtin_module_names


class PackageExporter:
    """Writes a package. Use it in a `with` block, or call `close`."""

    importer: Importer

    def __init__(
        self,
        f: str | Path | IO[bytes],
        importer: Importer | list[Importer] | tuple[Importer, ...] = sys_importer,
        debug: bool = False,
    ) -> None:
        self.debug = debug
        self.buffer = f if not isinstance(f, (str, Path)) else None
        name = "archive" if self.buffer is not None else Path(f).stem  # type: ignore[arg-type]
        self._folder = name
        target = str(f) if self.buffer is None else f
        self._zip = zipfile.ZipFile(target, "w", zipfile.ZIP_STORED)  # type: ignore[arg-type]
        self._written: dict[str, None] = {}
        self._digest = b""
        self.dependency_graph = DiGraph()
        self.patterns: list[_Pattern] = []
        self._hooks: dict[_ModuleProviderAction, OrderedDict] = {
            action: OrderedDict() for action in _ModuleProviderAction
        }
        if isinstance(importer, Importer):
            self.importer = importer
        else:
            self.importer = OrderedImporter(*importer)
        self._unique_id = 0
        # Objects that reduce themselves, held so that their identities stay theirs.
        self._reduced: dict[int, object] = {}
        self._collector: StorageCollector | None = None

    # ---- patterns
    def _add(
        self, action: _ModuleProviderAction, include: GlobPattern, exclude: GlobPattern, empty: bool
    ) -> None:
        self.patterns.append(_Pattern(GlobGroup(include, exclude=exclude), action, empty))

    def intern(
        self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True
    ) -> None:
        """Saves the source of matching modules."""
        self._add(_ModuleProviderAction.INTERN, include, exclude, allow_empty)

    def extern(
        self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True
    ) -> None:
        """Takes matching modules from the environment of the reader."""
        self._add(_ModuleProviderAction.EXTERN, include, exclude, allow_empty)

    def mock(
        self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True
    ) -> None:
        """Leaves matching modules out; their names can be imported, not used."""
        self._add(_ModuleProviderAction.MOCK, include, exclude, allow_empty)

    def deny(self, include: GlobPattern, *, exclude: GlobPattern = ()) -> None:
        """Makes it an error to need a matching module."""
        self._add(_ModuleProviderAction.DENY, include, exclude, True)

    def _register(self, action: _ModuleProviderAction, hook: ActionHook) -> RemovableHandle:
        handle = RemovableHandle(self._hooks[action])
        self._hooks[action][handle.id] = hook
        return handle

    def register_extern_hook(self, hook: ActionHook) -> RemovableHandle:
        return self._register(_ModuleProviderAction.EXTERN, hook)

    def register_mock_hook(self, hook: ActionHook) -> RemovableHandle:
        return self._register(_ModuleProviderAction.MOCK, hook)

    def register_intern_hook(self, hook: ActionHook) -> RemovableHandle:
        return self._register(_ModuleProviderAction.INTERN, hook)

    # ---- what is saved
    def save_source_file(
        self, module_name: str, file_or_directory: str, dependencies: bool = True
    ) -> None:
        """Saves a file, or a folder of files, as a module."""
        path = Path(file_or_directory)
        if not path.is_dir():
            is_package = path.name == "__init__.py"
            self.save_source_string(module_name, path.read_text(), is_package, dependencies)
            return
        for file in sorted(path.rglob("*.py")):
            parts = [module_name, *file.relative_to(path).with_suffix("").parts]
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            self.save_source_string(name, file.read_text(), is_package, dependencies)

    def save_source_string(
        self, module_name: str, src: str, is_package: bool = False, dependencies: bool = True
    ) -> None:
        """Saves text as the source of a module."""
        self.dependency_graph.add_node(
            module_name,
            source=src,
            is_package=is_package,
            provided=True,
            action=_ModuleProviderAction.INTERN,
        )
        if dependencies:
            self._follow(module_name, src, is_package)

    def save_module(self, module_name: str, dependencies: bool = True) -> None:
        """Saves a module, found by the importer."""
        if not isinstance(module_name, str):
            raise TypeError(
                "save_module() expects a string input, did you perhaps mean to pass `__name__`?"
            )
        self.dependency_graph.add_node(
            module_name, provided=True, action=_ModuleProviderAction.INTERN
        )
        self._intern(module_name, dependencies)

    def save_text(self, package: str, resource: str, text: str) -> None:
        self.save_binary(package, resource, text.encode("utf-8"))

    def save_binary(self, package: str, resource: str, binary: bytes) -> None:
        self._write(f"{package.replace('.', '/')}/{resource}", binary)

    def save_pickle(
        self,
        package: str,
        resource: str,
        obj: object,
        dependencies: bool = True,
        pickle_protocol: int = 3,
    ) -> None:
        """Saves a pickled object, its tensors as records of their own."""
        if pickle_protocol not in (3, 4):
            raise AssertionError("torch.package only supports pickle protocols 3 and 4")
        file = f"{package.replace('.', '/')}/{resource}"
        buffer = io.BytesIO()
        pickler = PackagePickler(self.importer, buffer, pickle_protocol)
        pickler.persistent_id = self._persistent_id  # type: ignore[method-assign]
        pickler.dump(obj)
        if dependencies:
            self._follow_pickle(f"{package}.{resource}", pickler)
        self._write(file, buffer.getvalue())

    def _follow_pickle(self, node: str, pickler: PackagePickler) -> None:
        self.dependency_graph.add_node(
            node, action=_ModuleProviderAction.SKIP, provided=True, is_pickle=True
        )
        for module, name in pickler.globals:
            if name and module:
                self.dependency_graph.add_edge(node, module)
                self.add_dependency(module)
                found = self.dependency_graph.nodes[module]
                if found.get("action") == _ModuleProviderAction.MOCK:
                    found["error"] = PackagingErrorReason.MOCKED_BUT_STILL_USED
                    found["error_context"] = (
                        f"Object '{name}' from module '{module}' was mocked out during packaging "
                        f"but is being used in resource - {node}."
                    )

    def _persistent_id(self, obj: object) -> object:
        from torch._serialization.plain_pickle import StorageCollector
        from torch._serialization.sources import host_bytes

        if hasattr(type(obj), "__reduce_package__"):
            if id(obj) in self._reduced:
                return ("reduce_package", id(obj), None, None)
            function, arguments = obj.__reduce_package__(self)  # type: ignore[attr-defined]
            self._reduced[id(obj)] = obj
            return ("reduce_package", id(obj), function, arguments)
        if self._collector is None:
            self._collector = StorageCollector()
        found = self._collector.persistent_id(obj)
        if found is None:
            return None
        kind, cls, key, location, numel = found  # type: ignore[misc]
        record = f".data/{key}.storage"
        if record not in self._written:
            held = self._collector.by_key[key][0].cpu()
            self._write(record, bytes(host_bytes(held)))
        return (kind, cls, int(key), location, numel)

    def get_unique_id(self) -> str:
        """A number that this exporter gave to nothing else."""
        self._unique_id += 1
        return str(self._unique_id - 1)

    # ---- dependencies
    def _follow(self, module_name: str, src: str, is_package: bool) -> None:
        package = module_name if is_package else module_name.rpartition(".")[0]
        try:
            found = find_files_source_depends_on(src, package)
        except Exception as error:
            self.dependency_graph.add_node(
                module_name,
                error=PackagingErrorReason.DEPENDENCY_RESOLUTION_FAILED,
                error_context=str(error),
            )
            return
        for module, name in found:
            self._depend(module_name, module)
            if name is not None and name != "*" and self._is_module(f"{module}.{name}"):
                self._depend(module_name, f"{module}.{name}")

    def _depend(self, source: str, target: str) -> None:
        self.dependency_graph.add_edge(source, target)
        self.add_dependency(target)

    def _is_module(self, name: str) -> bool:
        parent, _, last = name.rpartition(".")
        if _is_of_environment(name):
            return False
        try:
            held = getattr(self.importer.import_module(parent), last, None)
            if held is not None and not isinstance(held, ModuleType):
                return False
            self.importer.import_module(name)
        except Exception:
            return False
        return True

    def add_dependency(self, module_name: str, dependencies: bool = True) -> None:
        """Handles a module by the first pattern that matches it."""
        graph = self.dependency_graph
        if graph.nodes.get(module_name, {}).get("provided"):
            return
        action = self._action_for(module_name)
        if action is None:
            graph.add_node(module_name, error=PackagingErrorReason.NO_ACTION)
            return
        denied = action == _ModuleProviderAction.DENY
        graph.add_node(
            module_name,
            action=action,
            provided=True,
            **({"error": PackagingErrorReason.DENIED} if denied else {}),
        )
        if action == _ModuleProviderAction.INTERN:
            self._intern(module_name, dependencies)

    def _action_for(self, module_name: str) -> _ModuleProviderAction | None:
        if module_name in _OF_PACKAGES:
            return _OF_PACKAGES[module_name]
        if _is_of_environment(module_name):
            return _ModuleProviderAction.EXTERN
        first = next((p for p in self.patterns if p.glob.matches(module_name)), None)
        if first is None:
            return None
        first.was_matched = True
        return first.action

    def _intern(self, module_name: str, dependencies: bool) -> None:
        module = self.importer.import_module(module_name)
        source, reason = self._source_of(module)
        if source is None:
            context = f"extension module: {getattr(module, '__file__', '')}"
            extra = {"error_context": context} if reason is None else {}
            self.dependency_graph.add_node(
                module_name, error=reason or PackagingErrorReason.SOURCE_FILE_NOT_FOUND, **extra
            )
            return
        is_package = hasattr(module, "__path__")
        self.dependency_graph.add_node(
            module_name, source=source, is_package=is_package, provided=True
        )
        if dependencies:
            self._follow(module_name, source, is_package)

    def _source_of(self, module: ModuleType) -> tuple[str | None, PackagingErrorReason | None]:
        file = getattr(module, "__file__", None)
        if file is None:
            return None, PackagingErrorReason.NO_DUNDER_FILE
        if file.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
            return None, PackagingErrorReason.IS_EXTENSION_MODULE
        loader = getattr(module, "__loader__", None)
        if is_mangled(module.__name__):
            # From another package, which has the text.
            return loader.get_source(demangle(module.__name__)), None  # type: ignore[union-attr]
        name = module.__name__
        if hasattr(loader, "get_filename"):
            file = loader.get_filename(name)  # type: ignore[union-attr]
        lines = linecache.getlines(file, module.__dict__)
        if not lines and not Path(file).exists():
            return None, PackagingErrorReason.SOURCE_FILE_NOT_FOUND
        return "".join(lines), None

    # ---- the end
    def __enter__(self) -> PackageExporter:
        return self

    def __exit__(
        self, kind: type | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._zip.close()

    def close(self) -> None:
        """Checks the dependencies and writes what is left."""
        try:
            self._accept_folders()
            if any("error" in a for a in self.dependency_graph.nodes.values()):
                raise PackagingError(self.dependency_graph, debug=self.debug)
            for pattern in self.patterns:
                if not pattern.allow_empty and not pattern.was_matched:
                    kind = pattern.action.name.lower()
                    raise EmptyMatchError(
                        f"Exporter did not match any modules to {pattern.glob}, which was marked "
                        f"as allow_empty=False ({kind})"
                    )
            self._write_modules()
            self._write(".data/python_version", platform.python_version().encode())
            self._write(".data/version", b"6\n")
            self._write("byteorder", sys.byteorder.encode())
            self._write(".data/serialization_id", checksum(self._digest).encode())
        finally:
            self._zip.close()

    def _accept_folders(self) -> None:
        """A folder with files is a module, though no pattern speaks of it."""
        for name, node in self.dependency_graph.nodes.items():
            front = str(name).replace(".", "/") + "/"
            no_action = node.get("error") == PackagingErrorReason.NO_ACTION
            if no_action and any(path.startswith(front) for path in self._written):
                del node["error"]
                node["action"] = _ModuleProviderAction.SKIP

    def _write_modules(self) -> None:
        externs = []
        for name, node in list(self.dependency_graph.nodes.items()):
            action = node.get("action")
            for hook in list(self._hooks[action].values()) if action else ():  # type: ignore[index]
                hook(self, name)
            if action == _ModuleProviderAction.EXTERN:
                externs.append(name)
            elif action == _ModuleProviderAction.MOCK:
                self._write_mock(str(name))
            elif action == _ModuleProviderAction.INTERN:
                self._write_source(str(name), str(node["source"]), bool(node.get("is_package")))
        self._write(".data/extern_modules", ("\n".join(map(str, externs)) + "\n").encode())

    def _write_source(self, name: str, source: str, is_package: bool) -> None:
        path = name.replace(".", "/")
        self._write(f"{path}/__init__.py" if is_package else f"{path}.py", source.encode())

    def _write_mock(self, name: str) -> None:
        text = Path(_mock.__file__).read_text()
        if "_mock.py" not in self._written:
            self._write_source("_mock", text, False)
        is_package = (
            hasattr(self.importer.import_module(name), "__path__") if self._has(name) else False
        )
        self._write_source(name, _MOCKED.format(name=name), is_package)

    def _has(self, name: str) -> bool:
        try:
            self.importer.import_module(name)
        except Exception:
            return False
        return True

    def _write(self, path: str, data: bytes) -> None:
        if path in self._written:
            raise AssertionError(
                f"Tried to write file '{path}', but it already exists in this archive. "
                "Please choose a different name."
            )
        if is_mangled(path):
            raise AssertionError(f"{path} has the name of a module of another package")
        self._written[path] = None
        self._digest = (self._digest + path.encode() + data[:64])[-4096:]
        # A fixed date, so that equal contents give equal archives.
        info = zipfile.ZipInfo(f"{self._folder}/{path}", (1980, 1, 1, 0, 0, 0))
        self._zip.writestr(info, data)

    # ---- questions
    def _with_action(self, action: _ModuleProviderAction) -> list[str]:
        nodes = self.dependency_graph.nodes.items()
        return [
            str(n) for n, a in nodes if a.get("action") == action and not _is_of_environment(str(n))
        ]

    def interned_modules(self) -> list[str]:
        return self._with_action(_ModuleProviderAction.INTERN)

    def externed_modules(self) -> list[str]:
        return self._with_action(_ModuleProviderAction.EXTERN)

    def mocked_modules(self) -> list[str]:
        return self._with_action(_ModuleProviderAction.MOCK)

    def denied_modules(self) -> list[str]:
        return self._with_action(_ModuleProviderAction.DENY)

    def get_rdeps(self, module_name: str) -> list[str]:
        """The modules that need a module."""
        if module_name not in self.dependency_graph:
            return []
        nodes = self.dependency_graph.nodes
        found = self.dependency_graph.predecessors(module_name)
        return [str(n) for n in found if not nodes[n].get("is_pickle")]

    def all_paths(self, src: str, dst: str) -> str:
        return self.dependency_graph.all_paths(src, dst)

    def dependency_graph_string(self) -> str:
        return self.dependency_graph.to_dot()


_MOCKED = '''"""Left out of the package."""

from _mock import MockedObject

__torch_package_mocked__ = True


def __getattr__(name):
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return MockedObject("{name}." + name, _suppress_err=True)
'''
