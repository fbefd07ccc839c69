"""A program in an archive: JSON for the graph, one uncompressed record of bytes for each memory
that weights and constants lie in, and example inputs as torch.save writes them. Reading executes
nothing: JSON is checked against the records of the format, sizes against the bytes that are there,
and pickles are read as weights only."""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import torch
from torch import Tensor
from torch._export.serde import schema
from torch._export.serde._numbers import DTYPES, invert
from torch._export.serde._write import tensor_meta
from torch._export.serde.serialize import (
    ExportedProgramDeserializer,
    ExportedProgramSerializer,
    SerializeError,
    _saved,
    from_bytes,
    load_values,
    to_bytes,
)
from torch.export.exported_program import ExportedProgram

__all__ = ["load_program", "save_program"]

File = str | os.PathLike | IO[bytes]
_MODEL = "models/model.json"
_WEIGHTS = ("data/weights", "model_weights_config.json", "weight")
_CONSTANTS = ("data/constants", "model_constants_config.json", "tensor")
_SAMPLES = "data/sample_inputs/model.pt"
_EXTRA = "extra/"


# ---- writing


def _raw(t: Tensor) -> bytes:
    """The bytes of the memory that a tensor lies in."""
    storage = t.detach().cpu().untyped_storage()
    return ctypes.string_at(storage.data_ptr(), storage.nbytes()) if storage.nbytes() else b""


class _Payloads:
    """Tensors of one kind; those that share memory share a record."""

    def __init__(self, place: tuple[str, str, str]) -> None:
        self.folder, self.config, self.prefix = place
        self.rows: dict[str, object] = {}
        self.records: dict[str, bytes] = {}
        self.known: dict[int, str] = {}

    def add(self, name: str, value: object) -> None:
        is_param = isinstance(value, torch.nn.Parameter)
        plain = (
            isinstance(value, Tensor)
            and type(value) in (Tensor, torch.nn.Parameter)
            and value.layout is torch.strided
            and value.device.type in ("cpu", "cuda")
        )
        if not plain:
            path = self._record(_saved(value))
            meta = None
            if isinstance(value, Tensor) and value.layout is torch.strided:
                meta = tensor_meta(value)
            self.rows[name] = schema.PayloadMeta(path, is_param, True, meta)
            return
        pointer = value.untyped_storage().data_ptr() or id(value)
        if pointer not in self.known:
            self.known[pointer] = self._record(_raw(value))
        path = self.known[pointer]
        self.rows[name] = schema.PayloadMeta(path, is_param, False, tensor_meta(value))

    def _record(self, data: bytes) -> str:
        name = f"{self.prefix}_{len(self.records)}"
        self.records[name] = data
        return name

    def write(self, put: object) -> None:
        for name, data in self.records.items():
            put(f"{self.folder}/{name}", data)
        put(f"{self.folder}/{self.config}", to_bytes(schema.PayloadConfig(self.rows)))


def _archive_name(f: File) -> str:
    if isinstance(f, (str, os.PathLike)):
        name = os.path.splitext(os.path.basename(os.fspath(f)))[0]
        return name or "archive"
    return "archive"


def save_program(
    ep: ExportedProgram,
    f: File,
    extra_files: dict[str, object] | None,
    opset_version: dict[str, int] | None,
) -> None:
    """Writes an archive."""
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            "The 'ep' parameter must be an instance of 'ExportedProgram', got "
            f"'{type(ep).__name__}' instead."
        )
    made = ExportedProgramSerializer(opset_version).serialize(ep)
    buffer = io.BytesIO()
    top = _archive_name(f)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:

        def put(name: str, data: bytes) -> None:
            info = zipfile.ZipInfo(f"{top}/{name}")
            archive.writestr(info, data)

        for place, tensors in ((_WEIGHTS, ep.state_dict), (_CONSTANTS, ep.constants)):
            payloads = _Payloads(place)
            for name, value in tensors.items():
                payloads.add(name, value)
            payloads.write(put)
        put(_MODEL, to_bytes(made.exported_program))
        put(_SAMPLES, made.example_inputs)
        for name, value in (extra_files or {}).items():
            put(_EXTRA + name, value.encode() if isinstance(value, str) else bytes(value))
        put("archive_format", b"pt2")
        put("archive_version", b"0")
        put(".data/version", b"6\n")
        put("byteorder", b"little")
        put(".data/serialization_id", b"0" * 40)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "wb") as out:
            out.write(buffer.getvalue())
    else:
        f.write(buffer.getvalue())


# ---- reading


@contextmanager
def _damaged() -> Iterator[None]:
    """What goes wrong while a file is read is said of the file."""
    try:
        yield
    except (zipfile.BadZipFile, EOFError, KeyError, NotImplementedError, zipfile.LargeZipFile) as e:
        raise SerializeError(f"the archive is damaged: {e}") from e
    except (schema.SchemaError, UnicodeDecodeError, pickle.UnpicklingError, OverflowError) as e:
        raise SerializeError(f"the archive is damaged: {e}") from e
    except RecursionError as e:
        raise SerializeError("the archive is damaged: nested too deeply") from e


class _Archive:
    """The records of a file by name, below the folder that all are in."""

    def __init__(self, file: IO[bytes]) -> None:
        self.zip = zipfile.ZipFile(file)
        self.names = self.zip.namelist()
        self._check_old()
        tops = {name.split("/", 1)[0] for name in self.names if name.endswith("/archive_format")}
        if len(tops) != 1:
            raise SerializeError("not a .pt2 archive: it has no archive_format")
        self.top = next(iter(tops))
        if self.read("archive_format") != b"pt2":
            raise SerializeError("not a .pt2 archive: its format is another")

    def _check_old(self) -> None:
        if "version" not in self.names:
            return
        version = self.zip.read("version").decode(errors="replace").split(".")
        current = [str(n) for n in schema.SCHEMA_VERSION]
        raise RuntimeError(
            f"Serialized version {version} does not match our current schema version {current}."
        )

    def has(self, name: str) -> bool:
        return f"{self.top}/{name}" in self.names

    def read(self, name: str) -> bytes:
        info = self.zip.getinfo(f"{self.top}/{name}")
        if info.compress_type != zipfile.ZIP_STORED and info.file_size > 1 << 30:
            raise SerializeError(f"the archive is damaged: {name} is too large")
        return self.zip.read(info)

    def tensors(self, place: tuple[str, str, str]) -> dict[str, object]:
        folder, config, _ = place
        if not self.has(f"{folder}/{config}"):
            return {}
        rows = from_bytes("PayloadConfig", self.read(f"{folder}/{config}")).config
        memory: dict[str, Tensor] = {}
        made: dict[tuple, object] = {}
        found: dict[str, object] = {}
        for name, row in rows.items():
            if "/" in row.path_name or ".." in row.path_name:
                raise SerializeError(f"the archive is damaged: {row.path_name!r:.80}")
            if row.use_pickle:
                data = self.read(f"{folder}/{row.path_name}")
                found[name] = load_values(data)
                continue
            key = (row.path_name, str(schema.to_json(row.tensor_meta)), row.is_param)
            if key not in made:
                if row.path_name not in memory:
                    memory[row.path_name] = _bytes(self.read(f"{folder}/{row.path_name}"))
                made[key] = _tensor(row, memory[row.path_name])
            found[name] = made[key]
        return found


def _bytes(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0).byte()


def _tensor(row: object, memory: Tensor) -> Tensor:
    """A tensor over bytes; it must lie inside them."""
    meta = row.tensor_meta
    if meta is None:
        raise SerializeError("the archive is damaged: a tensor without a description")
    dtype = invert(DTYPES, meta.dtype, "dtype")
    numbers = [*meta.sizes, *meta.strides, meta.storage_offset]
    if any(n.type != "as_int" or n.value < 0 for n in numbers):
        raise SerializeError("the archive is damaged: a tensor of no fixed size")
    sizes, strides = [n.value for n in meta.sizes], [n.value for n in meta.strides]
    if len(sizes) != len(strides):
        raise SerializeError("the archive is damaged: sizes and strides of a tensor differ")
    item = torch.empty((), dtype=dtype).element_size()
    last = meta.storage_offset.value
    last += sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    if 0 not in sizes and (last + 1) * item > memory.numel():
        raise SerializeError(
            f"the archive is damaged: a tensor of {sizes} needs {(last + 1) * item} bytes, "
            f"{memory.numel()} are there"
        )
    made = torch.empty(0, dtype=dtype)
    with torch.no_grad():
        made.set_(memory.untyped_storage(), meta.storage_offset.value, sizes, strides)
    if row.is_param:
        return torch.nn.Parameter(made, requires_grad=meta.requires_grad)
    return made.requires_grad_(meta.requires_grad) if meta.requires_grad else made


def _examples(archive: _Archive) -> tuple | None:
    """Example inputs; objects that are no plain values or tensors are left out."""
    if not archive.has(_SAMPLES):
        return None
    data = archive.read(_SAMPLES)
    if not data:
        return None
    try:
        found = load_values(data)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError):
        return None
    shaped = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], tuple)
    return found if shaped and isinstance(found[1], dict) else None


def load_program(
    f: File,
    extra_files: dict[str, object] | None,
    expected_opset_version: dict[str, int] | None,
) -> ExportedProgram:
    """Reads an archive."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return load_program(io.BytesIO(file.read()), extra_files, expected_opset_version)
    if hasattr(f, "seek"):
        f.seek(0)
    with _damaged():
        archive = _Archive(f)
        for name in extra_files or {}:
            if archive.has(_EXTRA + name):
                extra_files[name] = archive.read(_EXTRA + name).decode()
        record = from_bytes("ExportedProgram", archive.read(_MODEL))
        weights = archive.tensors(_WEIGHTS)
        constants = archive.tensors(_CONSTANTS)
        examples = _examples(archive)
        return ExportedProgramDeserializer(expected_opset_version).deserialize(
            record, weights, constants, examples
        )
