"""Pickles with names as an importer sees them, and back."""

from __future__ import annotations

import pickle
import types
from collections.abc import Callable
from struct import pack
from typing import IO

from torch.package.importer import Importer, ObjMismatchError, ObjNotFoundError, sys_importer


class PackagePickler(pickle._Pickler):  # type: ignore[name-defined]
    """Writes a global by the module that the importer finds it in, and notes all that it wrote."""

    dispatch = pickle._Pickler.dispatch.copy()  # type: ignore[attr-defined]

    def __init__(self, importer: Importer, file: IO[bytes], protocol: int) -> None:
        super().__init__(file, protocol)
        self.importer = importer
        self.globals: dict[tuple[str, str], None] = {}

    def save_global(self, obj: object, name: str | None = None) -> None:
        try:
            module, found = self.importer.get_name(obj, name)
        except (ObjNotFoundError, ObjMismatchError) as error:
            raise pickle.PicklingError(f"Can't pickle {obj}: {error}") from None
        self.globals[(module, found)] = None
        if self.proto >= 4:
            self.save(module)
            self.save(found)
            self.write(pickle.STACK_GLOBAL)
        elif "." in found:
            # Older protocols know names of modules only: the rest is a chain of attributes.
            outer, _, last = found.rpartition(".")
            parent = self.importer.import_module(module)
            for part in outer.split("."):
                parent = getattr(parent, part)
            self.save_reduce(getattr, (parent, last), obj=obj)
            return
        else:
            self.write(pickle.GLOBAL + f"{module}\n{found}\n".encode())
        self.memoize(obj)

    dispatch[types.FunctionType] = save_global


def create_pickler(data_buf: IO[bytes], importer: Importer, protocol: int = 4) -> PackagePickler:
    return PackagePickler(importer, data_buf, protocol)


class PackageUnpickler(pickle.Unpickler):
    """Reads globals from the modules of an importer."""

    def __init__(self, importer: Importer, file: IO[bytes], load: Callable | None = None) -> None:
        super().__init__(file)
        self._importer = importer
        self._load = load

    def persistent_load(self, pid: object) -> object:
        if self._load is None:
            raise pickle.UnpicklingError("the pickle refers to records of a package")
        return self._load(pid)

    def find_class(self, module: str, name: str) -> object:
        found: object = self._importer.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found


def checksum(data: bytes) -> str:
    """A number of forty digits that tells archives apart."""
    value = 0
    for k in range(0, len(data), 8):
        value = (value * 1000003) ^ int.from_bytes(data[k : k + 8] + pack("<Q", k), "little")
    return str(value % 10**40).zfill(40)


__all__ = ["PackagePickler", "PackageUnpickler", "checksum", "create_pickler", "sys_importer"]
