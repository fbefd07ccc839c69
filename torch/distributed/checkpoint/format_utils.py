"""Checkpoints of torch.save as distributed ones, and back. One process does it, without a group."""

from __future__ import annotations

import os

import torch
from torch.distributed.checkpoint._traverse import set_element
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import (
    STATE_DICT_TYPE,
    Metadata,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict
from torch.distributed.checkpoint.state_dict_saver import save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]

Path = str | os.PathLike


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads everything that a checkpoint has, or what begins with one of some names, into an empty
    dict."""

    def __init__(self, keys: set[str] | None = None, *args: bool, **kwargs: bool) -> None:
        super().__init__(*args, **kwargs)
        self.keys = keys

    def _is_wanted(self, name: str, path: tuple) -> bool:
        if self.keys is None or name in self.keys:
            return True
        words = [str(part) for part in path]
        return any(".".join(words[: i + 1]) in self.keys for i in range(len(words)))

    def set_up_planner(
        self,
        state_dict: STATE_DICT_TYPE,
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Fills the empty dict with room for what there is."""
        if state_dict:
            raise AssertionError("an empty dict is filled; this one has entries")
        if metadata is None:
            raise AssertionError("the checkpoint has no metadata")
        for name, entry in metadata.state_dict_metadata.items():
            path = (metadata.planner_data or {}).get(name, (name,))
            if not self._is_wanted(name, path):
                continue
            is_tensor = isinstance(entry, TensorStorageMetadata)
            room = torch.empty(entry.size, dtype=entry.properties.dtype) if is_tensor else entry
            set_element(state_dict, path, room)
        super().set_up_planner(state_dict, metadata, is_coordinator)


def dcp_to_torch_save(dcp_checkpoint_dir: Path, torch_save_path: Path) -> None:
    """Writes all of a distributed checkpoint as one file of torch.save."""
    state: STATE_DICT_TYPE = {}
    _load_state_dict(
        state,
        storage_reader=FileSystemReader(dcp_checkpoint_dir),
        planner=_EmptyStateDictLoadPlanner(),
        no_dist=True,
    )
    torch.save(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: Path, dcp_checkpoint_dir: Path) -> None:
    """Writes a file of torch.save as a distributed checkpoint."""
    state = torch.load(torch_save_path, map_location="cpu", weights_only=False)
    save(state, storage_writer=FileSystemWriter(dcp_checkpoint_dir), no_dist=True)
