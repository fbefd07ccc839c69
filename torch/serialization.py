"""torch.save and torch.load: objects with tensors in files that PyTorch reads and writes too.

Loading is safe unless the caller asks otherwise: the pickle in the file is executed by a machine
that can only build data (torch/_serialization/safe_unpickler.py), the container is checked in all
of its redundant fields, and storages are verified by size and checksum. Saving to a path replaces
the file atomically. Errors of a file are CheckpointError, which is both a RuntimeError and a
pickle.UnpicklingError."""

from __future__ import annotations

import contextlib
import copyreg
import io
import os
import pickle
import sys
import threading
from collections.abc import Callable
from enum import Enum

import torch
from torch._serialization.atomic_file import replacing
from torch._serialization.errors import (
    CheckpointError,
    UnsupportedCheckpointError,
    container_error,
)
from torch._serialization.file_reader import PyTorchFileReader
from torch._serialization.file_writer import PyTorchFileWriter
from torch._serialization.legacy import (  # noqa: F401
    MAGIC_NUMBER,
    PROTOCOL_VERSION,
    load_legacy,
    save_legacy,
)
from torch._serialization.locations import (
    default_restore_location,
    location_tag,
    register_package,
    restore_function,
    validate_cuda_device,
)
from torch._serialization.plain_pickle import StorageCollector, make_pickler, make_unpickler
from torch._serialization.safe_table import SafeTable, get_layout, global_name, user_globals
from torch._serialization.safe_unpickler import SafeUnpickler, room_for, steps_for
from torch._serialization.safetensors_file import load_safetensors, save_safetensors
from torch._serialization.settings import MAP_PRIVATE, MAP_SHARED, settings
from torch._serialization.sources import FileSource, ObjectSource, host_bytes
from torch._serialization.storages import ZipStorages
from torch._serialization.zip_reader import MAGIC, ZipArchive
from torch._serialization.zip_writer import ZipWriter, checked_alignment
from torch.storage import UntypedStorage

# What map_location may be, for annotations.
MAP_LOCATION = Callable[[UntypedStorage, str], UntypedStorage] | torch.device | str | dict | None

__all__ = [
    "CheckpointError",
    "LoadEndianness",
    "SourceChangeWarning",
    "UnsupportedCheckpointError",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_load_memory_limit",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "load_safetensors",
    "location_tag",
    "register_package",
    "safe_globals",
    "save",
    "save_safetensors",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "set_load_memory_limit",
    "skip_data",
    "validate_cuda_device",
]

DEFAULT_PROTOCOL = 2
STORAGE_KEY_SEPARATOR = ","
_FORMAT_VERSIONS = range(1, 11)
# Records that TorchScript's archives have, those for mobile devices among them.
_PROGRAM = frozenset(("constants.pkl", "bytecode.pkl", "mobile_debug_handles.pkl"))


class SourceChangeWarning(Warning):
    """The source of a pickled class has changed since it was saved."""


class LoadEndianness(Enum):
    """The byte order of files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


# Files written before this function had its name refer to layouts through it.
_get_layout = get_layout
copyreg.pickle(torch.layout, lambda layout: (_get_layout, (str(layout),)))
get_layout.__module__, get_layout.__name__, get_layout.__qualname__ = (
    __name__,
    "_get_layout",
    "_get_layout",
)


# ---- settings -----------------------------------------------------------------------------------


def get_default_load_endianness():
    """The byte order assumed for files that do not say theirs, or None."""
    return settings["load.endianness"]


def set_default_load_endianness(endianness) -> None:
    """Sets the byte order assumed for files that do not say theirs."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    settings["load.endianness"] = endianness


def get_default_mmap_options():
    """How torch.load(mmap=True) maps files: MAP_PRIVATE or MAP_SHARED."""
    return settings["load.mmap_flags"]


class set_default_mmap_options:
    """Chooses MAP_PRIVATE or MAP_SHARED for torch.load(mmap=True); also a context manager."""

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        self.prev, settings["load.mmap_flags"] = settings["load.mmap_flags"], flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        settings["load.mmap_flags"] = self.prev


def get_crc32_options() -> bool:
    """Whether torch.save computes the checksum of each record."""
    return settings["save.compute_crc32"]


def set_crc32_options(compute_crc32: bool) -> None:
    """Sets whether torch.save computes the checksum of each record."""
    settings["save.compute_crc32"] = bool(compute_crc32)


def get_load_memory_limit() -> int | None:
    """The bytes that the safe loader may use for objects other than storages, or None."""
    return settings["room"]


def set_load_memory_limit(nbytes: int | None) -> None:
    """Sets how many bytes the safe loader may use for objects other than storages. None, which is
    the default, derives them from the size of the file: enough for what torch.save writes, too few
    for a small file that swells in memory."""
    if nbytes is not None and (type(nbytes) is not int or nbytes < 0):
        raise ValueError(f"set_load_memory_limit: expected a number of bytes, got {nbytes!r}")
    settings["room"] = nbytes


class skip_data:
    """In a `with` block, torch.save leaves zeros where the bytes of storages belong, and torch.load
    makes storages of the right size without reading them: for files that something else fills."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        if materialize_fake_tensors:
            raise NotImplementedError("skip_data: materialize_fake_tensors needs fake tensors")
        self.materialize_fake_tensors = materialize_fake_tensors
        self._before = []

    def __enter__(self) -> None:
        self._before.append(settings["skip"])
        settings["skip"] = True

    def __exit__(self, type, value, tb) -> None:
        settings["skip"] = self._before.pop()


# ---- what programs allow ------------------------------------------------------------------------

_globals_lock = threading.Lock()


def _named(item):
    if isinstance(item, tuple):
        if len(item) != 2 or not isinstance(item[1], str):
            raise ValueError(f"Expected tuple of 2 items (object, name), got {item!r}")
        item, name = item
    else:
        name = None
    if not callable(item):
        raise TypeError(f"safe globals are classes or functions, not {type(item).__name__}")
    return name or global_name(item), item


def add_safe_globals(safe_globals) -> None:
    """Allows classes and functions, or pairs of one and the full name that files use, to the
    safe loader. They are called as files say: allow only what is harmless with any arguments."""
    named = [_named(item) for item in safe_globals]
    with _globals_lock:
        user_globals.update(named)


def get_safe_globals():
    """What the program has allowed."""
    with _globals_lock:
        items = list(user_globals.items())
    return [item if global_name(item) == name else (item, name) for name, item in items]


def clear_safe_globals() -> None:
    """Takes back everything that the program has allowed."""
    with _globals_lock:
        user_globals.clear()


class safe_globals:
    """Allows names to the safe loader for the length of a `with` block."""

    def __init__(self, safe_globals) -> None:
        self._named = [_named(item) for item in safe_globals]
        self._before = []

    def __enter__(self) -> None:
        with _globals_lock:
            self._before.append(dict(user_globals))
            user_globals.update(self._named)

    def __exit__(self, type, value, tb) -> None:
        with _globals_lock:
            user_globals.clear()
            user_globals.update(self._before.pop())


# ---- saving -------------------------------------------------------------------------------------


def normalize_storage_type(storage_type):
    """The class of storages by which a file names this one: torch.FloatStorage and the like."""
    return getattr(torch, storage_type.__name__)


def _is_path(f) -> bool:
    return isinstance(f, (str, os.PathLike))


def _check_pickle_module(pickle_module) -> None:
    for name in ("Pickler", "dump") if pickle_module is not None else ():
        if not hasattr(pickle_module, name):
            raise AttributeError(f"pickle_module {pickle_module!r} has no {name}")


def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol=DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization=True,
    _disable_byteorder_record=False,
) -> None:
    """Saves an object to a file.

    `f` is a path, whose file is replaced only when all of the new one is on the disk, or an object
    with a `write` method.
    """
    _check_pickle_module(pickle_module)
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    if not _use_new_zipfile_serialization:

        def write(file) -> None:
            save_legacy(obj, file, pickle_module, pickle_protocol)
    else:
        # Pickling comes first: an object that cannot be pickled touches no file.
        pickled, storages = io.BytesIO(), StorageCollector()
        make_pickler(pickle_module, pickled, pickle_protocol, storages).dump(obj)
        root = _root_name(f)

        def write(file) -> None:
            alignment = checked_alignment(settings["save.storage_alignment"])
            writer = ZipWriter(file, root, get_crc32_options(), alignment)
            _write_archive(writer, pickled.getbuffer(), storages, _disable_byteorder_record)

    if _is_path(f):
        with replacing(f) as file:
            write(file)
    else:
        write(f)
        # A writer that collects, to hand all of it on at once, waits for this.
        if hasattr(f, "flush"):
            f.flush()


def _root_name(f) -> str:
    """The folder inside of the archive: the file's name without its ending, as PyTorch has it."""
    stem = os.path.splitext(os.path.basename(os.fspath(f)))[0] if _is_path(f) else ""
    plain = stem and stem.isascii() and stem.isprintable() and "\\" not in stem
    return stem if plain and stem not in (".", "..") else "archive"


def _write_archive(writer, pickled, storages, without_byteorder) -> None:
    writer.add("data.pkl", pickled)
    writer.add(".format_version", b"1")
    writer.add(".storage_alignment", b"%d" % writer.alignment)
    if not without_byteorder:
        writer.add("byteorder", sys.byteorder.encode())
    for key, (untyped, _) in storages.by_key.items():
        host = UntypedStorage(untyped.nbytes()).fill_(0) if settings["skip"] else untyped.cpu()
        writer.add(f"data/{key}", host_bytes(host))
    writer.add("version", b"3\n")
    writer.add(".data/serialization_id", writer.serialization_id())
    writer.finish()


# ---- loading ------------------------------------------------------------------------------------


def _flag(name) -> bool:
    return os.environ.get(name, "0").lower() in ("1", "y", "yes", "true")


def _wants_safety(weights_only, pickle_module) -> bool:
    if _flag("TORCH_FORCE_WEIGHTS_ONLY_LOAD"):
        return True
    if weights_only is None:
        return pickle_module is None and not _flag("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    return bool(weights_only)


def load(
    f,
    map_location=None,
    pickle_module=None,
    *,
    weights_only=None,
    mmap=None,
    **pickle_load_args,
):
    """Loads an object that torch.save wrote, here or in PyTorch.

    `weights_only=False` executes the pickle in the file, which can do anything: only for files
    that you trust as you trust a program. `mmap=True` maps the storages instead of reading them
    (their checksums are then not verified, and the file must not be truncated while in use).
    `map_location` is a device, a dict of devices, or a function (storage, location) -> storage.
    """
    safe = _wants_safety(weights_only, pickle_module)
    if safe:
        if pickle_module is not None:
            raise RuntimeError(
                "Can not safely load weights when explicit pickle_module is specified"
            )
        unknown = set(pickle_load_args) - {"encoding"}
        if unknown:
            raise TypeError(f"load() got an unexpected keyword argument '{unknown.pop()}'")
    else:
        pickle_module = pickle_module or pickle
        pickle_load_args.setdefault("encoding", "utf-8")
    if mmap is None:
        mmap = settings["load.mmap"]
    if mmap and not _is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    source = _open_source(f)
    try:
        if source.size >= 4 and source.read_at(0, 4) == MAGIC:
            return _load_zip(source, map_location, pickle_module, bool(mmap), pickle_load_args)
        if mmap:
            raise RuntimeError(
                "mmap can only be used with files saved with the zip format, which "
                f"{source.path!r} is not"
            )
        _check_looks_like_legacy(source)
        restore = restore_function(map_location)
        result, end = load_legacy(
            source, restore, pickle_module, pickle_load_args, settings["room"]
        )
        if source.path is None:
            source.leave_at(end)
        elif end != source.size:
            raise CheckpointError(f"{source.size - end} bytes follow the last storage")
        return result
    finally:
        source.close()


def _open_source(f) -> FileSource | ObjectSource:
    if _is_path(f):
        return FileSource(f)
    for name in ("seek", "tell", "read"):
        if not hasattr(f, name):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{name}'. You can only torch.load "
                "from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead."
            )
    return ObjectSource(f)


_OTHER_KINDS = (
    (b"\x1f\x8b", "a gzip file"),
    (b"version https://git-lfs", "a pointer to a file in Git LFS, not the file itself"),
    (b"<", "HTML or XML text"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"GGUF", "a GGUF file"),
)


def _check_looks_like_legacy(source) -> None:
    """Says what the file is, if it is not one of torch.save's."""
    head = source.read_at(0, min(source.size, 512))
    if not head:
        raise CheckpointError("Ran out of input: the file is empty")
    kind = next((kind for magic, kind in _OTHER_KINDS if head.startswith(magic)), None)
    if head[257:262] == b"ustar":
        kind = "a tar archive, a format of torch.save that is no longer read"
    elif len(head) > 9 and head[8:9] == b"{" and head[5:8] == b"\0\0\0":
        kind = "a safetensors file, see torch.serialization.load_safetensors"
    elif kind is None and head[0] != 0x80:
        textual = all(32 <= byte < 127 or byte in b"\t\r\n" for byte in head)
        kind = "a text" if textual else "of an unknown kind"
    if kind is not None:
        raise CheckpointError(
            f"not a file written by torch.save: it is {kind}; it begins with {head[:16]!r}"
        )


def _open_archive(source) -> ZipArchive:
    archive = ZipArchive(source)
    if not _PROGRAM.isdisjoint(archive.records) or any(
        n.startswith("code/") for n in archive.records
    ):
        raise UnsupportedCheckpointError(
            "the file is a TorchScript archive: it holds a program, which torch.load does not run"
        )
    version = archive.read("version").strip()
    if not version.isdigit() or len(version) > 4 or int(version) not in _FORMAT_VERSIONS:
        raise container_error(f"its format version is {version[:20]!r}")
    if ".format_version" in archive.records and archive.read(".format_version") != b"1":
        raise container_error("its format version is unknown")
    return archive


def _needs_swap(archive) -> bool:
    if "byteorder" in archive.records:
        order = archive.read("byteorder")
        if order not in (b"little", b"big"):
            raise container_error(f"its byte order is {order[:20]!r}")
        return order.decode() != sys.byteorder
    assumed = {LoadEndianness.BIG: "big", LoadEndianness.LITTLE: "little"}
    return assumed.get(settings["load.endianness"], sys.byteorder) != sys.byteorder


def _load_zip(source, map_location, pickle_module, mapped, arguments):
    archive = _open_archive(source)
    mapping = None
    if mapped:
        shared = settings["load.mmap_flags"] == MAP_SHARED
        mapping = UntypedStorage.from_file(os.fspath(source.path), shared, source.size)
        source.check_place()
    target = str(map_location) if isinstance(map_location, (str, torch.device)) else None
    storages = ZipStorages(
        archive,
        restore_function(map_location),
        swap=_needs_swap(archive),
        mapped=mapping,
        to_meta=target == "meta",
        unread=settings["skip"],
    )
    if pickle_module is not None:
        file = io.BytesIO(archive.read("data.pkl"))
        return make_unpickler(pickle_module, file, storages.load, **arguments).load()
    length, steps = archive.record("data.pkl").size, steps_for(source.size)
    room = settings["room"]
    if room is None:
        room = room_for(length, source.size)
    else:
        steps = max(steps, room // 16)
    if length > room:
        raise CheckpointError(
            f"Weights only load failed. The pickle is {length} bytes long when inflated, too many "
            "for a file of this size. If you trust it, "
            "torch.serialization.set_load_memory_limit allows more"
        )
    pickled, encoding = archive.read("data.pkl"), arguments.get("encoding", "utf-8")
    unpickler = SafeUnpickler(pickled, SafeTable(), storages.load, 0, encoding, room, steps)
    result = unpickler.load()
    if unpickler.end != len(pickled):
        raise CheckpointError(
            f"Weights only load failed. {len(pickled) - unpickler.end} bytes follow the pickle"
        )
    return result


# ---- archives record by record --------------------------------------------------------------


def _is_zipfile(f) -> bool:
    """Whether an open file has the first record of an archive at its position, which stays. (The
    zip format is recognised by its end, which the bytes of a tensor can look like.)"""
    start = f.tell()
    magic = f.read(len(MAGIC))
    f.seek(start)
    return magic == MAGIC


def _open_zipfile_writer(name_or_buffer) -> PyTorchFileWriter:
    """An archive to write records to, in a `with` block."""
    return PyTorchFileWriter(name_or_buffer, get_crc32_options())


@contextlib.contextmanager
def _open_zipfile_reader(name_or_buffer):
    """The records of an archive, in a `with` block."""
    yield PyTorchFileReader(name_or_buffer)


# ---- looking into files -------------------------------------------------------------------------


def _globals_in(pickled):
    """(module, name) of each global that a pickle refers to, which is not executed for it: only
    the texts on its stack and in its memo are followed."""
    import pickletools

    before, last, memo = None, None, {}
    for opcode, argument, _ in pickletools.genops(pickled):
        kind = opcode.name
        if kind in ("FRAME", "PROTO"):
            continue
        if kind == "MEMOIZE" or kind.endswith("PUT"):
            memo[len(memo) if argument is None else argument] = last
            continue
        if kind == "GLOBAL":
            yield argument.split(" ", 1)
        elif kind == "STACK_GLOBAL" and type(before) is str and type(last) is str:
            yield before, last
        pushed = argument if "UNICODE" in kind or "STRING" in kind else None
        before, last = last, memo.get(argument) if kind.endswith("GET") else pushed


def get_unsafe_globals_in_checkpoint(f) -> list[str]:
    """The full names in a file that the safe loader would refuse."""
    source = _open_source(f)
    try:
        if source.size < 4 or source.read_at(0, 4) != MAGIC:
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        pickled = _open_archive(source).read("data.pkl")
    finally:
        source.close()
    table, missing = SafeTable(), {}
    try:
        for module, name in _globals_in(pickled):
            _note_unsafe(table, module, name, missing)
    except ValueError as error:
        raise CheckpointError(f"the pickle in the file is damaged: {error}") from None
    return list(missing)


def _note_unsafe(table, module, name, missing) -> None:
    try:
        table.find(module, name)
    except CheckpointError:
        missing[f"{module}.{name}"] = None


def check_module_version_greater_or_equal(module, req_version_tuple, error_if_malformed=True):
    """Whether a module's __version__ is at least the given one."""
    try:
        found = tuple(int(part) for part in module.__version__.split("."))
    except (AttributeError, ValueError) as error:
        if error_if_malformed:
            raise RuntimeError(f"'{module.__name__}' has no readable __version__") from error
        return True
    return found >= tuple(req_version_tuple)
