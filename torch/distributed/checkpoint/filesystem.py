"""Checkpoints in a folder: one file of data per rank, then `.metadata`, which says what is where.
It is put in place last and in one step, and a save over an older checkpoint uses new names for its
data: whenever a process dies, the folder holds a whole checkpoint or none."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.storage import Place, StorageReader, StorageWriter, WriteResult
from torch.futures import Future

__all__ = ["FileSystemReader", "FileSystemWriter"]

_METADATA = ".metadata"
_SUFFIX = ".distcp"


@dataclass
class _StorageInfo:
    """Where something is: a file, and a part of it."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None


@dataclass
class _StoragePrefix:
    """How a rank's files are called."""

    prefix: str


def _done(value: Any) -> Future:
    future = Future()
    future.set_result(value)
    return future


class FileSystemWriter(StorageWriter):
    """Writes a checkpoint into a folder."""

    def __init__(
        self,
        path: Place,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
    ) -> None:
        self.path = Path(path)
        self.sync_files, self.overwrite = sync_files, overwrite
        self.single_file_per_rank = single_file_per_rank
        self.save_id = str(uuid.uuid4())
        self.is_coordinator = False

    @property
    def checkpoint_id(self) -> Place:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: Place | None = None) -> None:
        """A new checkpoint begins, in the folder given or the same."""
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Remembers whether this rank plans for all; nothing is written yet."""
        self.is_coordinator = is_coordinator

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Makes the folder."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.overwrite and (self.path / _METADATA).exists():
            raise RuntimeError(f"Checkpoint already exists and self.overwrite={self.overwrite}.")
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Gives each rank the beginning of its files' names; they must not be those of the files
        of the checkpoint that is there."""
        word = f"{self.save_id[:8]}_" if (self.path / _METADATA).exists() else ""
        return [
            replace(plan, storage_data=_StoragePrefix(f"__{word}{rank}_"))
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Writes this rank's items, objects first."""
        results: list[WriteResult] = []
        if not plan.items:
            return _done(results)
        # Objects are small: at the front they are read together.
        items = sorted(plan.items, key=lambda item: item.type != WriteItemType.BYTE_IO)
        groups = [items] if self.single_file_per_rank else [[item] for item in items]
        for number, group in enumerate(groups):
            name = f"{plan.storage_data.prefix}{number}{_SUFFIX}"
            results.extend(self._write_file(name, group, planner))
        return _done(results)

    def _write_file(
        self, name: str, items: list[WriteItem], planner: SavePlanner
    ) -> list[WriteResult]:
        results = []
        with open(self.path / name, "wb") as file:
            for item in items:
                begin = file.tell()
                data = planner.resolve_data(item)
                if item.type == WriteItemType.BYTE_IO:
                    file.write(data.getbuffer())
                else:
                    blob = io.BytesIO()
                    # A view would bring all of its storage along.
                    torch.save(data.detach().cpu().clone(), blob)
                    file.write(blob.getbuffer())
                length = file.tell() - begin
                info = _StorageInfo(name, begin, length)
                results.append(WriteResult(item.index, length, info))
            if self.sync_files:
                file.flush()
                os.fsync(file.fileno())
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Puts `.metadata` in place; then the files of an older checkpoint go."""
        metadata.storage_data = {
            result.index: result.storage_data for one in results for result in one
        }
        metadata.storage_meta = self.storage_meta()
        temporary = self.path / f"{_METADATA}.tmp"
        with open(temporary, "wb") as file:
            pickle.dump(metadata, file)
            if self.sync_files:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, self.path / _METADATA)
        kept = {info.relative_path for info in metadata.storage_data.values()}
        for old in self.path.glob(f"__*{_SUFFIX}"):
            if old.name not in kept:
                with contextlib.suppress(OSError):
                    old.unlink()

    def storage_meta(self) -> StorageMeta:
        """Which checkpoint it is."""
        return StorageMeta(checkpoint_id=str(self.path), save_id=self.save_id)


class FileSystemReader(StorageReader):
    """Reads a checkpoint from a folder."""

    def __init__(self, path: Place) -> None:
        self.path = Path(path)
        self.storage_data: dict[MetadataIndex, _StorageInfo] = {}

    @property
    def checkpoint_id(self) -> Place:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: Place | None = None) -> None:
        """Another folder is to be read."""
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)
        self.storage_data = {}

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What is in the checkpoint."""
        found = pickle.loads((self.path / _METADATA).read_bytes())
        # Files of older versions say nothing of themselves.
        found.storage_meta = vars(found).get("storage_meta") or StorageMeta()
        return found

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Remembers where everything is."""
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads this rank's items, file by file."""
        by_file: dict[str, list] = {}
        for item in plan.items:
            by_file.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        for name, items in by_file.items():
            with open(self.path / name, "rb") as file:
                for item in items:
                    info = self.storage_data[item.storage_index]
                    file.seek(info.offset)
                    blob = io.BytesIO(file.read(info.length))
                    if item.type == LoadItemType.BYTE_IO:
                        planner.load_bytes(item, blob)
                    else:
                        self._read_tensor(item, blob, planner)
        return _done(None)

    def _read_tensor(self, item: Any, blob: io.BytesIO, planner: LoadPlanner) -> None:
        tensor = torch.load(blob, map_location="cpu", weights_only=True)
        for dim, (begin, length) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
            tensor = tensor.narrow(dim, begin, length)
        target = planner.resolve_tensor(item).detach()
        if target.size() != tensor.size():
            raise AssertionError(
                f"req {item.storage_index} mismatch sizes {target.size()} vs {tensor.size()}"
            )
        target.copy_(tensor)
        planner.commit_tensor(item, target)
