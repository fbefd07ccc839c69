"""Optimizer state whose tensors are cut like the parameters they belong to."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.checkpoint._traverse import set_element
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.metadata import (
    STATE_DICT_TYPE,
    BytesStorageMetadata,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadPlanner
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict
from torch.distributed.checkpoint.storage import StorageReader
from torch.distributed.tensor import DTensor

__all__ = ["load_sharded_optimizer_state_dict"]


def _parameter_of(way: tuple, model: STATE_DICT_TYPE) -> Any:
    """The parameter that a piece of state belongs to: its name is a step of the way."""
    for step in way:
        if isinstance(step, str) and step in model:
            return model[step]
    return None


def _empty(stored: TensorStorageMetadata, parameter: Any) -> torch.Tensor:
    """Memory for a stored tensor, cut like its parameter where it has the parameter's size."""
    if isinstance(parameter, DTensor) and parameter.shape == stored.size:
        local = parameter.to_local()
        made = torch.empty(local.shape, dtype=stored.properties.dtype, device=local.device)
        return DTensor.from_local(
            made,
            parameter.device_mesh,
            parameter.placements,
            run_check=False,
            shape=parameter.shape,
            stride=parameter.stride(),
        )
    device = parameter.device if isinstance(parameter, torch.Tensor) else "cpu"
    return torch.empty(stored.size, dtype=stored.properties.dtype, device=device)


def load_sharded_optimizer_state_dict(
    model_state_dict: STATE_DICT_TYPE,
    optimizer_key: str,
    storage_reader: StorageReader,
    planner: LoadPlanner | None = None,
) -> STATE_DICT_TYPE:
    """The optimizer state that a checkpoint has under a key, with tensors cut like the parameters
    of the model are now."""
    metadata = storage_reader.read_metadata()
    ways = metadata.planner_data or {}
    state: STATE_DICT_TYPE = {}
    for name, stored in metadata.state_dict_metadata.items():
        way = ways.get(name, tuple(name.split(".")))
        if way[0] != optimizer_key:
            continue
        if isinstance(stored, BytesStorageMetadata):
            value: Any = "<bytes_io>"
        else:
            value = _empty(stored, _parameter_of(way, model_state_dict))
        set_element(state, way, value)
    import torch.distributed as dist

    _load_state_dict(
        state,
        storage_reader,
        no_dist=not dist.is_initialized(),
        planner=planner or DefaultLoadPlanner(),
    )
    return state
