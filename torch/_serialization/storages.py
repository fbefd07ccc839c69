"""Storages of a file: the persistent ids by which pickles refer to them, checked field by field,
and the memory they become, read or mapped. The length of a record must be exactly what its
persistent id says, and one key means one storage."""

from __future__ import annotations

import torch
from torch._serialization.errors import (
    CheckpointError,
    UnsupportedCheckpointError,
    brief,
    refused,
)
from torch._serialization.locations import is_location, meta_storage
from torch._serialization.safe_table import STORAGE_DTYPES
from torch._serialization.sources import host_bytes
from torch.storage import TypedStorage, UntypedStorage

__all__ = ["ZipStorages", "check_persistent_id", "check_bools", "typed"]

_CHUNK = 1 << 20
_INT64 = 1 << 63


def typed(untyped, dtype) -> TypedStorage:
    """A storage with the dtype that its class in the file had."""
    return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


def check_persistent_id(pid, length) -> tuple[torch.dtype, str, str, int]:
    """(dtype, key, location, bytes) of a persistent id of `length` fields."""
    if type(pid) is not tuple or len(pid) != length:
        raise refused("a persistent id that is not the tuple of a storage")
    kind, cls, key, location, numel = pid[:5]
    if type(kind) is not str or kind != "storage":
        raise refused(f"a persistent id of unknown kind {type(kind).__name__}")
    dtype = STORAGE_DTYPES.get(cls) if isinstance(cls, type) else None
    if dtype is None:
        raise refused(f"{brief(cls)} is no class of storages")
    if type(key) is not str or not (key.isascii() and key.isdecimal()) or len(key) > 20:
        raise refused(f"the key of a storage is not a decimal number: {brief(key)}")
    if not is_location(location):
        raise refused(f"the device of storage {key} is {brief(location)}")
    if type(numel) is not int or not 0 <= numel * dtype.itemsize < _INT64:
        raise refused(f"the size of storage {key} is not acceptable")
    return dtype, key, location, numel * dtype.itemsize


def check_bools(view) -> None:
    """Raises if a byte is neither 0 nor 1: code compiled for bool may do anything with others."""
    for start in range(0, len(view), _CHUNK):
        if bytes(view[start : start + _CHUNK]).translate(None, b"\0\1"):
            raise CheckpointError("a storage of torch.bool has bytes other than 0 and 1")


class ZipStorages:
    """Loads the storages of a zip archive on demand; `load` is the persistent_load of both
    unpicklers."""

    def __init__(
        self, archive, restore, *, swap=False, mapped=None, to_meta=False, unread=False
    ) -> None:
        self._archive = archive
        self._restore = restore
        self._swap = swap
        self._mapped = mapped
        self._to_meta = to_meta
        self._unread = unread
        self._loaded = {}

    def load(self, pid) -> TypedStorage:
        """The storage of a persistent id."""
        fields = check_persistent_id(pid, 5)
        dtype, key, location, nbytes = fields
        known = self._loaded.get(key)
        if known is not None:
            if known[0] != fields:
                raise refused(f"storage {key} is used with two types, sizes or devices")
            return known[1]
        record = self._archive.record(f"data/{key}")
        if record.size != nbytes:
            raise refused(f"storage {key} should have {nbytes} bytes, its record has {record.size}")
        if self._to_meta:
            untyped = meta_storage(nbytes)
        else:
            untyped = self._restore(self._read(record, key, dtype, pid[1]), location)
        storage = typed(untyped, dtype)
        self._loaded[key] = (fields, storage)
        return storage

    def _read(self, record, key, dtype, cls) -> UntypedStorage:
        if self._unread:
            return UntypedStorage(record.size).fill_(0)
        if self._mapped is not None:
            if record.method:
                raise UnsupportedCheckpointError(
                    f"storage {key} is compressed, so it cannot be mapped: load without mmap"
                )
            untyped = self._mapped[record.offset : record.offset + record.size]
        else:
            untyped = UntypedStorage(record.size)
            self._archive.read_into(f"data/{key}", host_bytes(untyped))
        if dtype is torch.bool:
            check_bools(host_bytes(untyped))
        if self._swap:
            if cls is UntypedStorage:
                raise UnsupportedCheckpointError(
                    f"storage {key} has the byte order of another machine and no dtype"
                )
            untyped = untyped.clone() if self._mapped is not None else untyped
            untyped.byteswap(dtype)
        return untyped
