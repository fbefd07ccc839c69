"""Where modules come from: the running program, a package, or several of them in order."""

from __future__ import annotations

import importlib
import pickle
from abc import ABC, abstractmethod
from types import ModuleType

from torch.package._mangling import demangle, get_mangle_prefix, is_mangled


class ObjNotFoundError(Exception):
    """An importer does not have the object."""


class ObjMismatchError(Exception):
    """An importer has another object of the same name."""


class Importer(ABC):
    """Gives modules by name, and names of objects."""

    modules: dict[str, ModuleType]

    @abstractmethod
    def import_module(self, module_name: str) -> ModuleType:
        """The module of that name in this environment."""

    def whichmodule(self, obj: object, name: str) -> str:
        return pickle.whichmodule(obj, name)

    def get_name(self, obj: object, name: str | None = None) -> tuple[str, str]:
        """(module, attribute) under which this importer finds the very object."""
        if name is None:
            reduced = getattr(type(obj), "__reduce__", None)
            if reduced is not None and not hasattr(obj, "__qualname__"):
                try:
                    found = obj.__reduce__()
                except Exception:
                    found = None
                name = found if isinstance(found, str) else None
        if name is None:
            name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
        if name is None:
            raise ObjNotFoundError(f"{obj!r} has no name")
        module_name = demangle(self.whichmodule(obj, name))
        try:
            found = self.import_module(module_name)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, KeyError, AttributeError):
            raise ObjNotFoundError(f"{obj} was not found as {module_name}.{name}") from None
        if found is obj:
            return module_name, name
        raise ObjMismatchError(self._mismatch(obj, found, module_name, name))

    def _mismatch(self, obj: object, found: object, module_name: str, name: str) -> str:
        def origin(value: object) -> str:
            held = getattr(value, "__module__", "") or ""
            if is_mangled(held):
                return (
                    f"the importer for {get_mangle_prefix(held)} ('{name}' from '{demangle(held)}')"
                )
            return "the current Python environment"

        return (
            f"\n\nThe object provided is from '{module_name}', which is coming from {origin(obj)}."
            f"\nHowever, when we import '{module_name}', it's coming from {origin(found)}."
            "\nTo fix this, make sure this 'PackageExporter's importer lists the importer that "
            "owns the object before the other one."
        )


class _SysImporter(Importer):
    """The modules of the running program."""

    def import_module(self, module_name: str) -> ModuleType:
        return importlib.import_module(module_name)


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """Asks several importers in order."""

    def __init__(self, *args: Importer) -> None:
        self._importers = list(args)

    def import_module(self, module_name: str) -> ModuleType:
        last: ModuleNotFoundError | None = None
        for importer in self._importers:
            if not isinstance(importer, Importer):
                raise TypeError(
                    f"{importer} is not a Importer. All importers in OrderedImporter must inherit "
                    "from Importer."
                )
            try:
                return importer.import_module(module_name)
            except ModuleNotFoundError as error:
                last = error
        raise last if last is not None else ModuleNotFoundError(module_name)

    def whichmodule(self, obj: object, name: str) -> str:
        for importer in self._importers:
            found = importer.whichmodule(obj, name)
            if found != "__main__":
                return found
        return "__main__"
