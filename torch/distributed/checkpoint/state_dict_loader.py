"""Loading: every rank reads what it asks for, however the checkpoint was divided."""

from __future__ import annotations

import os
import warnings
from typing import Any

from torch.distributed.checkpoint._ranks import Ranks, takes_old_order
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import STATE_DICT_TYPE
from torch.distributed.checkpoint.planner import LoadPlanner
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.checkpoint.storage import StorageReader

__all__ = ["load", "load_state_dict"]


@takes_old_order("storage_reader")
def load(
    state_dict: STATE_DICT_TYPE,
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Fills a state dict, in place; each rank calls it."""
    if storage_reader is None:
        if checkpoint_id is None:
            raise RuntimeError(
                "`checkpoint_id` must be specified if storage_reader/storage_writer is None."
            )
        storage_reader = FileSystemReader(checkpoint_id)
    storage_reader.reset(checkpoint_id)
    plain = {
        key: value.state_dict() if isinstance(value, Stateful) else value
        for key, value in state_dict.items()
    }
    _load_state_dict(plain, storage_reader, process_group, no_dist=no_dist, planner=planner)
    for key, value in plain.items():
        if isinstance(state_dict[key], Stateful):
            state_dict[key].load_state_dict(value)
        else:
            state_dict[key] = value


def _load_state_dict(
    state_dict: STATE_DICT_TYPE,
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    ranks = Ranks(process_group, no_dist, coordinator_rank)
    planner = DefaultLoadPlanner() if planner is None else planner

    def local() -> Any:
        metadata = storage_reader.read_metadata()
        planner.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        storage_reader.set_up_storage_reader(metadata, ranks.is_coordinator)
        return storage_reader.prepare_local_plan(planner.create_local_plan())

    plans = ranks.everywhere("plan", local)

    def shared() -> Any:
        return storage_reader.prepare_global_plan(planner.create_global_plan(plans))

    mine = ranks.at_coordinator("plan", shared)[ranks.rank]

    def read() -> None:
        storage_reader.read_data(planner.finish_plan(mine), planner).wait()

    ranks.everywhere("read", read)


def load_state_dict(
    state_dict: STATE_DICT_TYPE,
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """The name that load had."""
    warnings.warn(
        "'load_state_dict' is deprecated and will be removed in future versions. Please use 'load' "
        "instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)
