"""safetensors: a JSON header with name, dtype, shape and place of each tensor, then the bytes. The
format holds no code; what remains to be checked is that the places tile the file exactly, that
sizes match shapes, and that names are there once."""

from __future__ import annotations

import json
import os
import struct

import torch
from torch._serialization.atomic_file import replacing
from torch._serialization.errors import CheckpointError
from torch._serialization.sources import FileSource, ObjectSource, host_bytes
from torch._serialization.storages import check_bools
from torch.storage import UntypedStorage

__all__ = ["load_safetensors", "save_safetensors"]

_MAX_HEADER = 100_000_000
_MAX_RANK = 64
_NAMES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
}
_DTYPES = {name: getattr(torch, dtype) for name, dtype in _NAMES.items()}
_CODES = {dtype: name for name, dtype in _DTYPES.items()}


def _damaged(reason) -> CheckpointError:
    return CheckpointError(f"Error while deserializing safetensors: {reason}")


def _unique(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _damaged("a name is there twice in the header")
    return found


def _refuse_constant(text):
    raise _damaged(f"{text} in the header")


def _read_header(source):
    if source.size < 8:
        raise _damaged(f"the file has {source.size} bytes, the length of the header alone takes 8")
    (length,) = struct.unpack("<Q", source.read_at(0, 8))
    if length > _MAX_HEADER or length > source.size - 8:
        raise _damaged(f"a header of {length} bytes in a file of {source.size}")
    raw = source.read_at(8, length)
    if not raw.startswith(b"{"):
        raise _damaged("the header does not begin with '{'")
    # Each bracket becomes an object of 60 bytes; a tensor has three and its name may have some.
    if raw.count(b"[") + raw.count(b"{") > 6 * raw.count(b'"dtype"') + 1000:
        raise _damaged("the header nests more than the tensors in it ask for")
    try:
        header = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant
        )
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise _damaged(f"the header is not JSON: {error}") from None
    if type(header) is not dict:
        raise _damaged("the header is not an object")
    return header, 8 + length


def _checked_metadata(metadata) -> dict[str, str]:
    if type(metadata) is not dict or not all(type(v) is str for v in metadata.values()):
        raise _damaged("__metadata__ is not a table of texts")
    return metadata


def _natural(value, name) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise _damaged(f"{name!r} has the number {str(value)[:40]} where a size belongs")
    return value


def _checked_entry(name, entry) -> tuple[torch.dtype, list[int], int, int]:
    """(dtype, shape, first byte, last byte) of a tensor."""
    if type(entry) is not dict or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise _damaged(f"the entry of {name!r} is not that of a tensor")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    dtype = _DTYPES.get(code) if type(code) is str else None
    if dtype is None:
        raise _damaged(f"{name!r} has an unknown dtype {str(code)[:40]!r}")
    if type(shape) is not list or len(shape) > _MAX_RANK:
        raise _damaged(f"the shape of {name!r} is not a list of sizes")
    if type(offsets) is not list or len(offsets) != 2:
        raise _damaged(f"data_offsets of {name!r} are not two numbers")
    first, last = (_natural(value, name) for value in offsets)
    nbytes = dtype.itemsize
    for size in shape:
        nbytes *= _natural(size, name)
    if nbytes >= 1 << 63 or last - first != nbytes:
        raise _damaged(f"{name!r} has {last - first} bytes, its shape asks for {nbytes}")
    return dtype, shape, first, last


def load_safetensors(f, device=None, *, return_metadata=False):
    """The tensors of a safetensors file by name; with `return_metadata` also its texts.

    `f` is a path or a seekable file object.
    """
    is_path = isinstance(f, (str, os.PathLike))
    source = FileSource(f) if is_path else ObjectSource(f)
    try:
        header, start = _read_header(source)
        metadata = _checked_metadata(header.pop("__metadata__", {}))
        entries = [(name, *_checked_entry(name, entry)) for name, entry in header.items()]
        entries.sort(key=lambda e: e[3:5])
        end = 0
        for name, _, _, first, last in entries:
            if first != end:
                raise _damaged(f"{name!r} begins at byte {first} of the data instead of {end}")
            end = last
        if start + end != source.size:
            raise _damaged(f"{source.size - start} bytes of data, the header describes {end}")
        tensors = {}
        for name, dtype, shape, first, last in entries:
            tensors[name] = _read_tensor(source, dtype, shape, start + first, last - first)
    finally:
        source.close()
    if device is not None:
        tensors = {name: tensor.to(device) for name, tensor in tensors.items()}
    return (tensors, metadata) if return_metadata else tensors


def _read_tensor(source, dtype, shape, offset, nbytes) -> torch.Tensor:
    storage = UntypedStorage(nbytes)
    view = host_bytes(storage)
    source.read_into(offset, view)
    if dtype is torch.bool:
        check_bools(view)
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return torch.empty((0,), dtype=dtype).set_(storage, 0, shape, strides[::-1])


def _contiguous_bytes(name, tensor):
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"{name!r} is {type(tensor).__name__}, only tensors can be saved")
    if tensor.layout is not torch.strided:
        raise ValueError(f"{name!r} has layout {tensor.layout}; safetensors holds strided tensors")
    if tensor.dtype not in _CODES:
        raise ValueError(f"{name!r} is of {tensor.dtype}, which safetensors has no code for")
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    first = plain.storage_offset() * plain.dtype.itemsize
    view = host_bytes(plain.untyped_storage())
    return plain, view[first : first + plain.numel() * plain.dtype.itemsize]


def save_safetensors(tensors, f, metadata=None) -> None:
    """Writes a dict of tensors by name as a safetensors file, replacing a path atomically.

    Tensors that share memory are written once each. `metadata` is a dict of texts.
    """
    if not isinstance(tensors, dict):
        raise ValueError(f"expected a dict of tensors, got {type(tensors).__name__}")
    for name in tensors:
        if not isinstance(name, str) or name == "__metadata__":
            raise ValueError(f"{name!r} cannot be the name of a tensor")
    header = {}
    if metadata is not None:
        if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
            raise ValueError("metadata must be a dict of texts")
        header["__metadata__"] = dict(metadata)
    # Wide elements first: then each tensor is aligned to its own element size.
    names = sorted(tensors, key=lambda n: (-getattr(tensors[n], "itemsize", 0), n))
    prepared = [(name, *_contiguous_bytes(name, tensors[name])) for name in names]
    offset = 0
    for name, plain, view in prepared:
        header[name] = {
            "dtype": _CODES[plain.dtype],
            "shape": list(plain.shape),
            "data_offsets": [offset, offset + len(view)],
        }
        offset += len(view)
    raw = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    raw += b" " * (-len(raw) % 8)

    def write(file) -> None:
        file.write(struct.pack("<Q", len(raw)))
        file.write(raw)
        for _, _, view in prepared:
            file.write(view)

    if isinstance(f, (str, os.PathLike)):
        with replacing(f) as file:
            write(file)
    else:
        write(f)
