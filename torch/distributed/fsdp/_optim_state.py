"""The state of an optimizer over sharded parameters: by names, with whole or distributed tensors,
and back into what the optimizer loads."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed import distributed_c10d as _core
from torch.distributed.fsdp.api import OptimStateKeyType, StateDictType
from torch.distributed.tensor import DTensor, distribute_tensor

State = dict[str, Any]


def _names(model: nn.Module) -> dict[int, str]:
    """Clean names by parameter."""
    from torch.distributed.fsdp.fully_sharded_data_parallel import clean_name

    return {id(p): clean_name(name) for name, p in nn.Module.named_parameters(model)}


def _order(model: nn.Module, optim: torch.optim.Optimizer) -> list[str]:
    """The names of an optimizer's parameters in the order of their numbers."""
    names = _names(model)
    return [names[id(p)] for group in optim.param_groups for p in group["params"]]


def _by_name(model: nn.Module, optim: torch.optim.Optimizer, told: State | None) -> State:
    """An optimizer's state dict with names in the place of numbers."""
    told = optim.state_dict() if told is None else told
    order = _order(model, optim)

    def named(key: int | str) -> str:
        return order[key] if isinstance(key, int) else key

    return {
        "state": {named(key): values for key, values in told["state"].items()},
        "param_groups": [
            {**group, "params": [named(key) for key in group["params"]]}
            for group in told["param_groups"]
        ],
    }


def _collect(told: State, is_full: bool, to_cpu: bool, rank0_only: bool) -> State:
    """Values as whole tensors, or as they are. All processes call."""
    drops = rank0_only and _core.get_rank() != 0

    def one(value: Any) -> Any:
        if isinstance(value, DTensor) and is_full:
            value = value.full_tensor()
        return value.cpu() if to_cpu and isinstance(value, torch.Tensor) else value

    state = {
        name: {key: one(value) for key, value in sorted(values.items())}
        for name, values in told["state"].items()
    }
    return {} if drops else {"state": state, "param_groups": told["param_groups"]}


def optim_state_dict(
    model: nn.Module,
    optim: torch.optim.Optimizer,
    optim_state_dict: State | None = None,
    group: _core.ProcessGroup | None = None,
) -> State:
    """The optimizer's state by parameter names, as the model's state dict type says."""
    from torch.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel

    settings = FullyShardedDataParallel.get_state_dict_type(model)
    config = settings.optim_state_dict_config
    return _collect(
        _by_name(model, optim, optim_state_dict),
        settings.state_dict_type is StateDictType.FULL_STATE_DICT,
        config.offload_to_cpu,
        getattr(config, "rank0_only", False),
    )


def full_optim_state_dict(
    model: nn.Module,
    optim: torch.optim.Optimizer,
    optim_input: object = None,
    rank0_only: bool = True,
    group: _core.ProcessGroup | None = None,
) -> State:
    """The optimizer's state with whole tensors, on the CPU."""
    return _collect(_by_name(model, optim, None), True, True, rank0_only)


def sharded_optim_state_dict(
    model: nn.Module, optim: torch.optim.Optimizer, group: _core.ProcessGroup | None = None
) -> State:
    """The optimizer's state with distributed tensors."""
    return _collect(_by_name(model, optim, None), False, False, False)


def _loadable(told: State, model: nn.Module, order: list[str]) -> State:
    """A state by names as the optimizer of these parameters loads it: by numbers, cut."""
    names = _names(model)
    parameters = {names[id(p)]: p for p in model.parameters()}
    numbers = {name: number for number, name in enumerate(order)}

    def one(value: Any, like: torch.Tensor) -> Any:
        is_whole = isinstance(value, torch.Tensor) and not isinstance(value, DTensor)
        if is_whole and isinstance(like, DTensor) and value.shape == like.shape and value.ndim:
            return distribute_tensor(
                value.detach().to(like.device), like.device_mesh, like.placements,
                src_data_rank=None,
            )  # fmt: skip
        # The optimizer counts steps in place: two that load one state must not share it.
        return value.clone() if isinstance(value, torch.Tensor) else value

    def number(key: int | str) -> int:
        return numbers[key] if isinstance(key, str) else key

    state = {
        number(key): {k: one(v, parameters[order[number(key)]]) for k, v in values.items()}
        for key, values in told["state"].items()
    }
    groups = [
        {**group, "params": sorted(number(key) for key in group["params"])}
        for group in told["param_groups"]
    ]
    return {"state": state, "param_groups": groups}


def _from_first(told: State | None) -> State:
    """What rank 0 has, on all processes."""
    box = [told]
    _core.broadcast_object_list(box, 0)
    return box[0]


def optim_state_dict_to_load(
    model: nn.Module,
    optim: torch.optim.Optimizer,
    optim_state_dict: State,
    is_named_optimizer: bool = False,
    load_directly: bool = False,
    group: _core.ProcessGroup | None = None,
) -> State:
    """A state of `optim_state_dict` as the optimizer loads it."""
    from torch.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel

    config = FullyShardedDataParallel.get_state_dict_type(model).optim_state_dict_config
    if getattr(config, "rank0_only", False):
        optim_state_dict = _from_first(optim_state_dict)
    made = _loadable(optim_state_dict, model, _order(model, optim))
    if load_directly:
        optim.load_state_dict(made)
    return made


def shard_full_optim_state_dict(
    full_optim_state_dict: State,
    model: nn.Module,
    optim_input: object = None,
    optim: torch.optim.Optimizer | None = None,
) -> State:
    """A state with whole tensors, cut, as the optimizer loads it."""
    order = list(_names(model).values()) if optim is None else _order(model, optim)
    return _loadable(full_optim_state_dict, model, order)


def flatten_sharded_optim_state_dict(
    sharded_optim_state_dict: State, model: nn.Module, optim: torch.optim.Optimizer
) -> State:
    """A state with distributed tensors as the optimizer loads it."""
    return _loadable(sharded_optim_state_dict, model, _order(model, optim))


def scatter_full_optim_state_dict(
    full_optim_state_dict: State | None,
    model: nn.Module,
    optim_input: object = None,
    optim: torch.optim.Optimizer | None = None,
    group: _core.ProcessGroup | None = None,
) -> State:
    """A state with whole tensors that rank 0 has, cut on all processes."""
    return shard_full_optim_state_dict(
        _from_first(full_optim_state_dict), model, optim_input, optim
    )


def rekey_optim_state_dict(
    optim_state_dict: State,
    optim_state_key_type: OptimStateKeyType,
    model: nn.Module,
    optim_input: object = None,
    optim: torch.optim.Optimizer | None = None,
) -> State:
    """A state with names for numbers, or numbers for names."""
    order = list(_names(model).values()) if optim is None else _order(model, optim)
    numbers = {name: number for number, name in enumerate(order)}

    def key(one: int | str) -> int | str:
        if optim_state_key_type is OptimStateKeyType.PARAM_NAME:
            return order[one] if isinstance(one, int) else one
        return numbers[one] if isinstance(one, str) else one

    return {
        "state": {key(one): values for one, values in optim_state_dict["state"].items()},
        "param_groups": [
            {**group, "params": sorted(key(one) for one in group["params"])}
            for group in optim_state_dict["param_groups"]
        ],
    }
