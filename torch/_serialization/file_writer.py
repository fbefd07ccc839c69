"""Archives written record by record, for programs that lay out their own checkpoints."""

from __future__ import annotations

import io
import os
from types import TracebackType
from typing import BinaryIO

import torch
from torch._serialization.settings import settings
from torch._serialization.sources import host_bytes
from torch._serialization.zip_writer import ZipWriter, checked_alignment

__all__ = ["PyTorchFileWriter"]

_VERSION = b"3\n"


class PyTorchFileWriter:
    """An archive that records are added to by name: in a new file, or in an open one. It is
    complete after write_end_of_file, which leaving a `with` block calls."""

    def __init__(
        self,
        file: str | os.PathLike | BinaryIO,
        compute_crc32: bool = True,
        storage_alignment: int | None = None,
    ) -> None:
        is_path = isinstance(file, (str, bytes, os.PathLike))
        stem = os.path.splitext(os.path.basename(os.fspath(file)))[0] if is_path else ""
        self._root = stem if stem.isascii() and stem else "archive"
        self._opened = io.FileIO(file, "wb") if is_path else None
        wanted = settings["save.storage_alignment"] if storage_alignment is None else None
        alignment = checked_alignment(storage_alignment if wanted is None else wanted)
        self._file = self._opened or file
        self._writer = ZipWriter(self._file, self._root, compute_crc32, alignment)
        self._names: dict[str, None] = {}
        self._finished = False

    def write_record(
        self, name: str, data: bytes | str | torch.UntypedStorage, size: int | None = None
    ) -> None:
        """Adds `size` bytes (all by default) of bytes, a text or a storage on the CPU."""
        if self._finished:
            raise RuntimeError("write_record: the archive has been finished")
        if name in self._names:
            raise RuntimeError(f"write_record: the archive has a record {name!r} already")
        host = data.cpu() if isinstance(data, torch._C.StorageBase) else None
        if host is not None:
            view = host_bytes(host)
        else:
            view = memoryview(data.encode() if isinstance(data, str) else data)
        count = len(view) if size is None else size
        if not 0 <= count <= len(view):
            raise RuntimeError(f"write_record: {count} bytes asked for of {len(view)} in {name!r}")
        self._writer.add(name, view[:count])
        self._names[name] = None

    def write_end_of_file(self) -> None:
        """Adds the records that every archive has and the directory."""
        if self._finished:
            return
        self._finished = True
        if "version" not in self._names:
            self._writer.add("version", _VERSION)
        self._writer.add(".data/serialization_id", self._writer.serialization_id())
        self._writer.finish()
        if self._opened is not None:
            self._opened.close()
        elif hasattr(self._file, "flush"):
            self._file.flush()

    def archive_name(self) -> str:
        """The folder that the records are in."""
        return self._root

    def get_all_written_records(self) -> set[str]:
        """The names of the records so far."""
        return set(self._names)

    def serialization_id(self) -> str:
        """A number for the contents so far."""
        return self._writer.serialization_id().decode()

    def __enter__(self) -> PyTorchFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None
    ) -> None:
        self.write_end_of_file()
