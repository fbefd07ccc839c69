"""Saving: plans from all ranks, one plan for all, data, and the metadata last."""

from __future__ import annotations

import concurrent.futures
import os
import warnings
from dataclasses import dataclass
from enum import Enum
from typing import Any

from torch.distributed.checkpoint._ranks import Ranks, takes_old_order
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.metadata import STATE_DICT_TYPE, Metadata
from torch.distributed.checkpoint.planner import SavePlanner
from torch.distributed.checkpoint.staging import BlockingAsyncStager
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.checkpoint.storage import Place, StorageWriter

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(Enum):
    """Where an asynchronous save runs."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """What is to be waited for: the copy of the state, and the save."""

    staging_completion: concurrent.futures.Future
    upload_completion: concurrent.futures.Future


def _state_of(state: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
    return {
        key: value.state_dict() if isinstance(value, Stateful) else value
        for key, value in state.items()
    }


def _writer(checkpoint_id: Place | None, writer: StorageWriter | None) -> StorageWriter:
    if writer is None:
        if checkpoint_id is None:
            raise RuntimeError(
                "`checkpoint_id` must be specified if storage_reader/storage_writer is None."
            )
        writer = FileSystemWriter(checkpoint_id)
    writer.reset(checkpoint_id)
    return writer


@takes_old_order("storage_writer")
def save(
    state_dict: STATE_DICT_TYPE,
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Saves a state dict of all ranks; each rank calls it."""
    writer = _writer(checkpoint_id, storage_writer)
    return _save(_state_of(state_dict), writer, planner, process_group, no_dist)


def _save(
    state: STATE_DICT_TYPE,
    writer: StorageWriter,
    planner: SavePlanner | None,
    group: Any,
    no_dist: bool,
    coordinator: int = 0,
) -> Metadata:
    ranks = Ranks(group, no_dist, coordinator)
    planner = DefaultSavePlanner() if planner is None else planner

    def local() -> Any:
        planner.set_up_planner(state, writer.storage_meta(), ranks.is_coordinator)
        writer.set_up_storage_writer(ranks.is_coordinator)
        return writer.prepare_local_plan(planner.create_local_plan())

    plans = ranks.everywhere("plan", local)
    held: dict[str, Metadata] = {}

    def shared() -> Any:
        made, held["metadata"] = planner.create_global_plan(plans)
        return writer.prepare_global_plan(made)

    mine = ranks.at_coordinator("plan", shared)[ranks.rank]

    def write() -> Any:
        return writer.write_data(planner.finish_plan(mine), planner).wait()

    results = ranks.everywhere("write", write)

    def finish() -> Metadata:
        writer.finish(held["metadata"], results)
        return held["metadata"]

    return ranks.at_coordinator("finish", finish)


def save_state_dict(
    state_dict: STATE_DICT_TYPE,
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    """The name that save had."""
    warnings.warn(
        "'save_state_dict' is deprecated and will be removed in future versions.Please use 'save' "
        "instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_writer.reset()
    return _save(state_dict, storage_writer, planner, process_group, no_dist, coordinator_rank)


_pool: list[concurrent.futures.ThreadPoolExecutor] = []


def async_save(
    state_dict: STATE_DICT_TYPE,
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> concurrent.futures.Future | AsyncSaveResponse:
    """Copies the state and saves the copy in a thread; the group must not be used otherwise until
    the future is done, hence one of its own is best. A stager may copy later, too: then what is
    returned says of both when they are done."""
    if async_checkpointer_type != AsyncCheckpointerType.THREAD:
        raise NotImplementedError("async_save is not implemented with a process")
    writer = _writer(checkpoint_id, storage_writer)
    stager = BlockingAsyncStager() if async_stager is None else async_stager
    staged = stager.stage(_state_of(state_dict))
    if not _pool:
        _pool.append(concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="checkpoint"))

    def finish() -> Metadata:
        state = staged.result() if isinstance(staged, concurrent.futures.Future) else staged
        return _save(state, writer, planner, process_group, no_dist)

    saved = _pool[0].submit(finish)
    if isinstance(staged, concurrent.futures.Future):
        return AsyncSaveResponse(staged, saved)
    if stager.should_synchronize_after_execute:
        stager.synchronize_staging()
    return saved
