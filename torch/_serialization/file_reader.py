"""Single records of a file that torch.save wrote, for programs that load tensors one by one."""

from __future__ import annotations

import torch
from torch._serialization.errors import container_error
from torch._serialization.sources import FileSource, ObjectSource, host_bytes
from torch._serialization.zip_reader import ZipArchive

__all__ = ["PyTorchFileReader"]


class PyTorchFileReader:
    """The records of an archive by name: of a path, or of an open file."""

    def __init__(self, file) -> None:
        is_path = isinstance(file, (str, bytes)) or hasattr(file, "__fspath__")
        self._source = FileSource(file) if is_path else ObjectSource(file)
        self._archive = ZipArchive(self._source)

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return list(self._archive.records)

    def has_record(self, name) -> bool:
        """Whether there is a record of this name."""
        return name in self._archive.records

    def get_record(self, name) -> bytes:
        """The bytes of a record."""
        return self._archive.read(name)

    def get_record_offset(self, name):
        """Where in the file a record begins."""
        return self._archive.record(name).offset

    def get_storage_from_record(self, name, numel, dtype) -> torch.Tensor:
        """A record as a tensor of `numel` elements of a dtype; torch.UntypedStorage as the dtype
        stands for bytes."""
        is_dtype = isinstance(dtype, torch.dtype)
        itemsize = dtype.itemsize if is_dtype else 1
        record = self._archive.record(name)
        if numel < 0 or numel * itemsize > record.size:
            raise container_error(
                f"the record {name!r} has {record.size} bytes, {numel} elements of {itemsize} were "
                "asked for"
            )
        storage = torch.UntypedStorage(record.size)
        self._archive.read_into(name, host_bytes(storage))
        tensor = torch.empty(0, dtype=dtype if is_dtype else torch.uint8)
        return tensor.set_(storage, 0, (numel,), (1,))

    def version(self) -> int:
        """The number of the format."""
        return int(self._archive.read("version"))

    def archive_name(self):
        """The folder that the records are in."""
        return self._archive.root

    def serialization_id(self):
        """A number for the contents, where the writer gave one."""
        name = ".data/serialization_id"
        return self._archive.read(name).decode() if self.has_record(name) else ""
