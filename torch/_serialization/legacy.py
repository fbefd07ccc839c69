"""The format before zip archives: a magic number, a protocol version, facts about the machine, the
object, and the list of storage keys, each a pickle of its own, then for each storage its number of
elements and its bytes. The storages come last, so those that the object refers to are allocated
while it is read (never more than the file can fill) and filled afterwards."""

from __future__ import annotations

import inspect
import io
import struct
import warnings

import torch
from torch._serialization.deferred import deferring
from torch._serialization.errors import FAULTS, CheckpointError, brief, refused
from torch._serialization.plain_pickle import StorageCollector, make_pickler, make_unpickler
from torch._serialization.safe_table import SafeTable
from torch._serialization.safe_unpickler import SafeUnpickler
from torch._serialization.sources import host_bytes
from torch._serialization.storages import check_bools, check_persistent_id, typed
from torch.storage import UntypedStorage

__all__ = ["MAGIC_NUMBER", "PROTOCOL_VERSION", "load_legacy", "save_legacy"]

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_PICKLE_LIMIT = 1 << 28
_PART = 1 << 24  # bytes written at a time


def _word(item: object) -> object:
    """A text of a persistent id, which with encoding="bytes" arrives as bytes."""
    return item.decode("ascii", "replace") if type(item) is bytes else item


def _compare_source(cls: type, file: object, source: object) -> None:
    """Warns when a module's class is written otherwise now than when it was saved. Those of torch
    are written anew here, and meant to be."""
    if source is None or cls.__module__.split(".")[0] == "torch":
        return
    try:
        now = inspect.getsource(cls)
    except (OSError, TypeError):
        return
    if now != source:
        from torch.serialization import SourceChangeWarning

        warnings.warn(
            f"source code of class '{torch.typename(cls)}' has changed since it was saved from"
            f" {file}. The saved text is in the file; the class of today is used.",
            SourceChangeWarning,
            stacklevel=2,
        )


class _Storages:
    """The storages that the object refers to, allocated as their persistent ids appear."""

    def __init__(self, restore, available, *, classes=False) -> None:
        self._restore = restore
        self._classes = classes
        self._available = available
        self._known = {}
        self._views = {}

    def load(self, pid):
        """The storage of a persistent id, without its content as yet; or the class of a module,
        which PyTorch writes with its source beside it."""
        if type(pid) is tuple:
            pid = tuple(_word(item) for item in pid)
            if self._classes and len(pid) == 4 and pid[0] == "module":
                _compare_source(*pid[1:])
                return pid[1]
        fields = check_persistent_id(pid, 6)
        dtype, key, location, nbytes = fields
        known = self._known.get(key)
        if known is None:
            self._available -= nbytes
            if self._available < 0:
                raise refused(f"storage {key} of {nbytes} bytes is larger than the file")
            host = UntypedStorage(nbytes)
            restored = self._restore(host, location)
            known = self._known[key] = (fields, host, restored, typed(restored, dtype))
        elif known[0] != fields:
            raise refused(f"storage {key} is used with two types, sizes or devices")
        return known[3] if pid[5] is None else self._view(known, pid[5])

    def _view(self, known, view):
        """A part of a storage, as early versions of PyTorch wrote them."""
        dtype = known[0][0]
        if type(view) is not tuple or len(view) != 3:
            raise refused("a view of a storage that is not (key, offset, size)")
        key, offset, size = _word(view[0]), *view[1:]
        if type(key) is not str or type(offset) is not int or type(size) is not int:
            raise refused("a view of a storage that is not (key, offset, size)")
        first, last = offset * dtype.itemsize, (offset + size) * dtype.itemsize
        if not 0 <= first <= last <= known[2].nbytes():
            raise refused("a view lies outside of its storage")
        found = self._views.get((known[0][1], *view))
        if found is None:
            found = typed(known[2][first:last], dtype)
            self._views[(known[0][1], *view)] = found
        return found

    def fill(self, keys, source, offset, swap) -> int:
        """Reads the contents; gives the offset behind them."""
        if type(keys) is not list or not all(type(key) is str for key in keys):
            raise CheckpointError("the list of storages is damaged")
        if len(set(keys)) != len(keys) or set(keys) != set(self._known):
            raise CheckpointError("the list of storages is not that of the object")
        for key in keys:
            (dtype, _, _, nbytes), host, restored, _ = self._known[key]
            (count,) = struct.unpack("<q", source.read_at(offset, 8))
            if count < 0 or count * dtype.itemsize != nbytes:
                raise CheckpointError(
                    f"storage {key} should have {nbytes // dtype.itemsize} elements, the file "
                    f"says {count}"
                )
            source.read_into(offset + 8, host_bytes(host))
            offset += 8 + nbytes
            if dtype is torch.bool:
                check_bools(host_bytes(host))
            if swap:
                host.byteswap(dtype)
            if restored is not host and restored.device.type != "meta":
                restored.copy_(host)
        return offset


class _Plain:
    """Values only: the first pickles and the list of keys name no storage."""

    @staticmethod
    def load(pid):
        raise refused("a storage where none can be")


def _pickle_bytes(source) -> bytes:
    """The beginning of the file, which holds the pickles. Where the storages begin is not known
    before they are executed, so this is all of the file up to a limit."""
    return source.read_at(0, min(source.size, _PICKLE_LIMIT))


def load_legacy(source, restore, pickle_module, arguments, room=None):
    """The object in a legacy file and the offset behind it; without a pickle module, safely."""
    data = _pickle_bytes(source)
    storages = _Storages(restore, source.size, classes=pickle_module is not None)
    if pickle_module is None:

        def read(offset, persistent_load, encoding="utf-8"):
            unpickler = SafeUnpickler(data, SafeTable(), persistent_load, offset, encoding, room)
            return unpickler.load(), unpickler.end
    else:

        def read(offset, persistent_load, encoding="utf-8"):
            file = io.BytesIO(data)
            file.seek(offset)
            named = {**arguments, "encoding": encoding}
            result = make_unpickler(pickle_module, file, persistent_load, **named).load()
            return result, file.tell()

    magic, offset = read(0, _Plain.load)
    if type(magic) is not int or magic != MAGIC_NUMBER:
        raise CheckpointError("Invalid magic number; corrupt file?")
    version, offset = read(offset, _Plain.load)
    if type(version) is not int or version != PROTOCOL_VERSION:
        raise CheckpointError(f"Invalid protocol version: {brief(version)}")
    system, offset = read(offset, _Plain.load)
    if type(system) is not dict or type(system.get("little_endian")) is not bool:
        raise CheckpointError("the description of the writing machine is damaged")
    with deferring() as check:
        # The encoding is that of the object's texts; the file's own words are ASCII.
        result, offset = read(offset, storages.load, arguments.get("encoding", "utf-8"))
    keys, offset = read(offset, _Plain.load)
    end = storages.fill(keys, source, offset, not system["little_endian"])
    try:
        check()
    except CheckpointError:
        raise
    except FAULTS as error:
        raise refused(f"{type(error).__name__}: {error}") from error
    return result, end


def save_legacy(obj, file, pickle_module, protocol) -> None:
    """Writes a legacy file."""
    system = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": True,
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for value in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        pickle_module.dump(value, file, protocol=protocol)
    collector = StorageCollector(legacy=True)
    make_pickler(pickle_module, file, protocol, collector).dump(obj)
    keys = sorted(collector.by_key)
    pickle_module.dump(keys, file, protocol=protocol)
    for key in keys:
        untyped, dtype = collector.by_key[key]
        host = untyped.cpu()
        file.write(struct.pack("<q", host.nbytes() // dtype.itemsize))
        content = host_bytes(host)
        for offset in range(0, len(content), _PART):  # between parts signals are handled
            file.write(content[offset : offset + _PART])
