"""Makes whole tensors out of the parts that processes have written each for itself."""

from __future__ import annotations

import concurrent.futures
import os
import re
from pathlib import Path

import torch
from torch.distributed.checkpoint import _safetensors as _files

__all__ = ["consolidate_safetensors_files", "consolidate_safetensors_files_on_every_rank"]

_PART = re.compile(r"^shard-\d+-")


def _parts(folder: Path) -> dict[str, list[_files.Entry]]:
    """The parts of each tensor, from all files of a folder."""
    found: dict[str, list[_files.Entry]] = {}
    for path in sorted(folder.glob(f"*{_files.SUFFIX}")):
        for name, entry in _files.read_entries(path).items():
            found.setdefault(name, []).append(entry)
    return found


def _size(parts: list[_files.Entry]) -> tuple[int, ...]:
    ends = [[o + s for o, s in zip(p.offsets, p.shape, strict=True)] for p in parts]
    return tuple(max(column) for column in zip(*ends, strict=True))


def _whole(folder: Path, name: str, parts: list[_files.Entry]) -> torch.Tensor:
    size = _size(parts)
    made = torch.empty(size, dtype=parts[0].dtype)
    filled = 0
    for part in parts:
        target = made
        for dim, (begin, length) in enumerate(zip(part.offsets, part.shape, strict=True)):
            target = target.narrow(dim, begin, length)
        target.copy_(_files.read_tensor(folder, part))
        filled += target.numel()
    if filled < made.numel():
        raise ValueError(f"{name}: the parts hold {filled} of its {made.numel()} elements")
    return made


def _write(
    source: Path, target: Path, name: str, names: list[str], parts: dict[str, list[_files.Entry]]
) -> dict[str, int]:
    tensors = ((one, _whole(source, one, parts[one]), None) for one in names)
    return _files.write_file(target / name, tensors, sync=True)


def consolidate_safetensors_files(
    input_dir: str,
    output_dir: str,
    fqn_to_index_mapping: dict[str, int],
    num_threads: int = 1,
) -> None:
    """Writes the tensors of a folder of parts as whole ones; the mapping says which file, counted
    from 1, gets which tensor."""
    _consolidate(input_dir, output_dir, fqn_to_index_mapping, num_threads, lambda index: True)


def _consolidate(source, target, mapping, threads, is_mine) -> None:
    source, target = Path(source), Path(target)
    os.makedirs(target, exist_ok=True)
    parts = _parts(source)
    missing = sorted(set(mapping) - set(parts))
    if missing:
        raise ValueError(f"{source} has no part of {', '.join(missing[:5])}")
    count = max(mapping.values(), default=1)
    files: dict[int, list[str]] = {}
    for name, index in mapping.items():
        files.setdefault(index, []).append(name)
    with concurrent.futures.ThreadPoolExecutor(max(1, threads)) as pool:
        jobs = [
            pool.submit(_write, source, target, _files.file_name(index, count), names, parts)
            for index, names in sorted(files.items())
            if is_mine(index)
        ]
        for job in jobs:
            job.result()
    if is_mine(min(files, default=1)):
        sizes = (_size(parts[name]) for name in mapping)
        total = sum(
            torch.Size(size).numel() * parts[name][0].dtype.itemsize
            for name, size in zip(mapping, sizes, strict=True)
        )
        where = {name: _files.file_name(index, count) for name, index in mapping.items()}
        _files.write_index(target, where, total)


def consolidate_safetensors_files_on_every_rank(
    input_dir: str,
    output_dir: str,
    fqn_to_index_mapping: dict[str, int],
    num_threads: int = 1,
    process_group: object = None,
) -> None:
    """The same with the files divided among the ranks; returns when all are written."""
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized():
        return consolidate_safetensors_files(
            input_dir, output_dir, fqn_to_index_mapping, num_threads
        )
    rank, size = dist.get_rank(process_group), dist.get_world_size(process_group)
    _consolidate(
        input_dir,
        output_dir,
        fqn_to_index_mapping,
        num_threads,
        lambda index: (index - 1) % size == rank,
    )
    dist.barrier(process_group)
    return None
