"""safetensors files as checkpoints of several processes need them: the header alone, and parts of
tensors, without reading a whole file."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch._serialization.safetensors_file import _CODES, _DTYPES, _checked_entry, _read_header
from torch._serialization.sources import FileSource

SUFFIX = ".safetensors"
INDEX = "model.safetensors.index.json"
# Under this name the header of a part says where in its tensor it begins; PyTorch reads it too.
PARTS = "DCP_SHARDING_INFO"
OFFSETS = "saved_offsets"


@dataclass
class Entry:
    """A tensor, or a part of one, in a file."""

    file: str
    begin: int  # byte in the file
    nbytes: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    offsets: tuple[int, ...]  # of the part within its tensor


def read_entries(path: Path) -> dict[str, Entry]:
    """What is in a file, by name."""
    source = FileSource(path)
    try:
        header, start = _read_header(source)
        size = source.size
    finally:
        source.close()
    texts = header.pop("__metadata__", {})
    try:
        parts = json.loads(texts[PARTS]) if PARTS in texts else {}
    except (ValueError, TypeError):
        parts = {}
    found = {}
    for name, record in header.items():
        dtype, shape, first, last = _checked_entry(name, record)
        if start + last > size:
            raise ValueError(f"{path}: {name} ends at byte {start + last} of a file of {size}")
        offsets = parts.get(name, {}).get(OFFSETS) or [0] * len(shape)
        if len(offsets) != len(shape) or not all(type(o) is int and o >= 0 for o in offsets):
            raise ValueError(
                f"{path}: the offsets {offsets} of {name} do not fit its shape {shape}"
            )
        found[name] = Entry(
            path.name, start + first, last - first, dtype, tuple(shape), tuple(offsets)
        )
    return found


def read_tensor(folder: Path, entry: Entry) -> torch.Tensor:
    """The values of an entry."""
    tensor = torch.empty(entry.shape, dtype=entry.dtype)
    if entry.nbytes:
        with open(folder / entry.file, "rb") as file:
            file.seek(entry.begin)
            data = file.read(entry.nbytes)
        if len(data) != entry.nbytes:
            raise ValueError(f"{entry.file} ends before byte {entry.begin + entry.nbytes}")
        raw = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        tensor.view(-1).view(torch.uint8).copy_(raw)
    return tensor


def write_file(
    path: Path, tensors: Iterable[tuple[str, torch.Tensor, tuple[int, ...] | None]], sync: bool
) -> dict[str, int]:
    """Writes tensors, each with its offsets if it is a part; puts the file in place in one step.
    Returns the bytes of each."""
    tensors = [(name, t.detach().cpu().contiguous(), at) for name, t, at in tensors]
    header: dict[str, Any] = {}
    end = 0
    for name, tensor, _ in tensors:
        nbytes = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _code(name, tensor.dtype),
            "shape": list(tensor.shape),
            "data_offsets": [end, end + nbytes],
        }
        end += nbytes
    parts = {name: {OFFSETS: list(at)} for name, _, at in tensors if at is not None}
    texts = {"format": "pt"}
    if parts:
        texts |= {"DCP_VERSION": "1.0", PARTS: json.dumps(parts)}
    raw = json.dumps({"__metadata__": texts, **header}).encode()
    raw += b" " * (-len(raw) % 8)
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(struct.pack("<Q", len(raw)) + raw)
        for _, tensor, _ in tensors:
            if tensor.numel():
                file.write(tensor.view(-1).view(torch.uint8).numpy().data)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    os.replace(temporary, path)
    return {name: math.prod(t.shape) * t.element_size() for name, t, _ in tensors}


def _code(name: str, dtype: torch.dtype) -> str:
    code = _CODES.get(dtype)
    if code is None:
        raise ValueError(
            f"{name} has dtype {dtype}, which safetensors does not have; known are "
            f"{', '.join(sorted(_DTYPES))}"
        )
    return code


def file_name(index: int, count: int, shard: int | None = None) -> str:
    """model-00001-of-00002.safetensors; with a shard, shard-00003-model-... ."""
    name = f"model-{index:05d}-of-{count:05d}{SUFFIX}"
    return name if shard is None else f"shard-{shard:05d}-{name}"


def write_index(folder: Path, files: dict[str, str], total: int) -> None:
    """The file that says which tensor is in which file."""
    text = json.dumps({"metadata": {"total_size": total}, "weight_map": files}, indent=2)
    temporary = folder / f"{INDEX}.tmp"
    temporary.write_text(text)
    os.replace(temporary, folder / INDEX)
