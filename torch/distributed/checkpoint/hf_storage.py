"""Checkpoints in the form that the Hugging Face hub has: safetensors files and an index. One
process writes whole tensors; several write a part each, which `enable_consolidation` joins when all
are there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint import _safetensors as _files
from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter, _done
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_PARTS_FOLDER = "sharded"


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes safetensors files. `fqn_to_index_mapping` says which file, counted from 1, gets which
    tensor; without it there is one file."""

    def __init__(
        self,
        path: str,
        fqn_to_index_mapping: dict[str, int] | None = None,
        thread_count: int = 1,
        save_distributed: bool = False,
        enable_consolidation: bool = False,
        thread_count_consolidation: int = 1,
    ) -> None:
        if enable_consolidation and not save_distributed:
            raise ValueError("enable_consolidation needs save_distributed: whole tensors are whole")
        super().__init__(path, thread_count=thread_count)
        self.fqn_to_index_mapping = fqn_to_index_mapping
        self.save_distributed, self.enable_consolidation = save_distributed, enable_consolidation
        self.thread_count_consolidation = thread_count_consolidation

    @property
    def metadata_path(self) -> str:
        """The name of the index."""
        return _files.INDEX

    @property
    def _folder(self) -> Path:
        return self.path / _PARTS_FOLDER if self.enable_consolidation else self.path

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Makes the folder; objects that are no tensors have no place here."""
        self._folder.mkdir(parents=True, exist_ok=True)
        wrong = [item.index.fqn for item in plan.items if item.type == WriteItemType.BYTE_IO]
        if wrong:
            raise ValueError(f"safetensors holds tensors only; these are none: {wrong[:5]}")
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Tells each rank its number, with which the names of its files begin."""
        return [
            replace(plan, storage_data=number if self.save_distributed else None)
            for number, plan in enumerate(plans, 1)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Writes this rank's tensors, grouped by file."""
        count = max((self.fqn_to_index_mapping or {}).values(), default=1)
        groups: dict[int, list[WriteItem]] = {}
        for item in plan.items:
            index = (self.fqn_to_index_mapping or {}).get(item.index.fqn, 1)
            groups.setdefault(index, []).append(item)
        results = []
        for index, items in sorted(groups.items()):
            name = _files.file_name(index, count, plan.storage_data)
            tensors = [
                (item.index.fqn, planner.resolve_data(item), tuple(item.tensor_data.chunk.offsets))
                for item in items
            ]
            sizes = _files.write_file(self._folder / name, tensors, self.sync_files)
            results += [WriteResult(item.index, sizes[item.index.fqn], name) for item in items]
        return _done(results)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Writes the index; joins the parts where that is wanted."""
        every = [result for one in results for result in one]
        names = sorted({result.index.fqn for result in every})
        mapping = {name: (self.fqn_to_index_mapping or {}).get(name, 1) for name in names}
        metadata.storage_data = {result.index: result.storage_data for result in every}
        metadata.storage_meta = self.storage_meta()
        if self.enable_consolidation:
            consolidate_safetensors_files(
                str(self._folder), str(self.path), mapping, self.thread_count_consolidation
            )
        elif not self.save_distributed:
            files = {result.index.fqn: result.storage_data for result in every}
            total = sum(result.size_in_bytes for result in every)
            _files.write_index(self.path, files, total)


class HuggingFaceStorageReader(FileSystemReader):
    """Reads safetensors files, whole tensors or parts."""

    def __init__(self, path: str, thread_count: int = 1) -> None:
        super().__init__(path)
        self.thread_count = thread_count
        self._entries: dict[MetadataIndex, _files.Entry] = {}

    def _paths(self) -> list[Path]:
        """The files: those that the index names where there is one, else all."""
        index = self.path / _files.INDEX
        if index.exists():
            names = set(json.loads(index.read_text())["weight_map"].values())
            # A name is no way out of the folder.
            return sorted(self.path / Path(name).name for name in names)
        return sorted(self.path.glob(f"*{_files.SUFFIX}"))

    def read_metadata(self) -> Metadata:
        """What is there, from the headers of all files."""
        self._entries = {}
        tensors: dict[str, TensorStorageMetadata] = {}
        for path in self._paths():
            for name, entry in _files.read_entries(path).items():
                self._add(tensors, name, entry)
        meta = StorageMeta(checkpoint_id=str(self.path))
        return Metadata(tensors, storage_data=dict(self._entries), storage_meta=meta)

    def _add(
        self, tensors: dict[str, TensorStorageMetadata], name: str, entry: _files.Entry
    ) -> None:
        chunk = ChunkStorageMetadata(torch.Size(entry.offsets), torch.Size(entry.shape))
        known = tensors.get(name)
        if known is None:
            known = tensors[name] = TensorStorageMetadata(
                TensorProperties(dtype=entry.dtype), torch.Size([0] * len(entry.shape)), []
            )
        ends = [o + s for o, s in zip(entry.offsets, entry.shape, strict=True)]
        known.size = torch.Size(max(a, b) for a, b in zip(known.size, ends, strict=True))
        index = MetadataIndex(name, chunk.offsets, len(known.chunks))
        known.chunks.append(chunk)
        self._entries[index] = entry

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads this rank's tensors."""
        for item in plan.items:
            self._fill(item, self._values(item), planner)
        return _done(None)

    def _values(self, item: Any) -> torch.Tensor:
        return _files.read_tensor(self.path, self.storage_data[item.storage_index])

    def _fill(self, item: Any, tensor: torch.Tensor, planner: LoadPlanner) -> None:
        for dim, (begin, length) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
            tensor = tensor.narrow(dim, begin, length)
        target = planner.resolve_tensor(item).detach()
        target.copy_(tensor)
        planner.commit_tensor(item, target)
