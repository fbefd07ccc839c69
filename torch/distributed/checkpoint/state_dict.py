"""State of a model and its optimizers by the names of parameters, whatever wraps the model.
Distributed tensors stay what they are, or become whole ones with full_state_dict; loading cuts
whole ones again, each rank its own copy or all of them that of rank 0."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor, distribute_tensor

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

_State = TypeVar("_State", bound=dict[str, Any])
_Optimizers = torch.optim.Optimizer | Iterable[torch.optim.Optimizer]

# What wrappers put into the names of parameters.
_WRAPPERS = ("_orig_mod.", "_checkpoint_wrapped_module.")


@dataclasses.dataclass
class StateDictOptions:
    """How state is taken and put back."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = StateDictOptions() if options is None else options
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _plain(name: str) -> str:
    for word in _WRAPPERS:
        name = name.replace(word, "")
    return name


def _names(model: nn.Module, name: str) -> str:
    """A name as it is without wrappers."""
    if isinstance(model, nn.parallel.DistributedDataParallel):
        name = name.removeprefix("module.")
    return _plain(name)


# ---- distributed tensors as whole ones, and back
def _taken(value: Any, options: StateDictOptions) -> Any:
    """A value as a state holds it. Whole tensors on the CPU are for rank 0 alone."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        if options.full_state_dict and isinstance(value, DTensor):
            value = value.full_tensor()
        return value.cpu() if options.cpu_offload else value
    return value


def _is_for_rank0(options: StateDictOptions) -> bool:
    return options.full_state_dict and options.cpu_offload and dist.is_initialized()


def _drop_elsewhere(state: _State, options: StateDictOptions) -> _State:
    if _is_for_rank0(options) and dist.get_rank() != 0:
        state.clear()
    return state


def _placed(value: Any, like: Any, source: int | None) -> Any:
    """A whole tensor, placed as the distributed one that it is for."""
    if not isinstance(like, DTensor) or not isinstance(value, torch.Tensor):
        return value
    if isinstance(value, DTensor) or value.shape != like.shape:
        return value
    whole = value.to(like.device_mesh.device_type)
    return distribute_tensor(whole, like.device_mesh, like.placements, src_data_rank=source)


def _own(value: Any) -> Any:
    """A copy of a tensor: an optimizer counts steps in place, and the state may be loaded again."""
    return value.clone() if isinstance(value, torch.Tensor) else value


def _from_rank0(state: dict[str, Any]) -> dict[str, Any]:
    """Rank 0's state on all ranks: its structure as objects, its tensors one by one."""
    device = torch.device("cpu")
    described: list[Any] = [None]
    if dist.get_rank() == 0:
        described = [
            {
                key: (value.shape, value.dtype) if isinstance(value, torch.Tensor) else [value]
                for key, value in state.items()
            }
        ]
    dist.broadcast_object_list(described, src=0)
    found: dict[str, Any] = {}
    for key, what in described[0].items():
        if isinstance(what, list):
            found[key] = what[0]
            continue
        shape, dtype = what
        mine = state[key].detach().to(device).contiguous() if dist.get_rank() == 0 else None
        value = torch.empty(shape, dtype=dtype, device=device) if mine is None else mine
        dist.broadcast(value, src=0)
        found[key] = value
    return found


def get_model_state_dict(
    model: nn.Module,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> _State:
    """The state_dict of a model, with plain names; of some submodules only, where given."""
    options = _checked(options)
    state = model.state_dict()
    frozen = set()
    if options.ignore_frozen_params:
        named = model.named_parameters()
        frozen = {_names(model, name) for name, p in named if not p.requires_grad}
    plain = type(state)()
    for name, value in state.items():
        if _names(model, name) not in frozen:
            plain[_names(model, name)] = _taken(value, options)
    if not submodules:
        return _drop_elsewhere(plain, options)
    picked = type(state)()
    for name, module in model.named_modules():
        if module not in submodules:
            continue
        prefix = _names(model, name) + "."
        for key, value in plain.items():
            if key.startswith(prefix):
                picked[key if options.keep_submodule_prefixes else key[len(prefix) :]] = value
    return _drop_elsewhere(picked, options)


def set_model_state_dict(
    model: nn.Module,
    model_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> Any:
    """Loads what get_model_state_dict gave; returns the keys that are missing or too many."""
    options = _checked(options)
    if options.broadcast_from_rank0:
        model_state_dict = _from_rank0(model_state_dict)
    own = model.state_dict()
    names = {_names(model, name): name for name in own}
    state = {names.get(name, name): value for name, value in model_state_dict.items()}
    if options.full_state_dict:
        _materialize(model, state)
        own = model.state_dict()
        state = {name: _placed(value, own.get(name), None) for name, value in state.items()}
    return model.load_state_dict(state, strict=options.strict)


def _materialize(model: nn.Module, state: dict[str, Any]) -> None:
    """Parameters without data take memory where their values are."""
    for name, module in model.named_modules():
        for store in (module._parameters, module._buffers):
            for key, tensor in store.items():
                value = state.get(f"{name}.{key}" if name else key)
                if tensor is None or not tensor.is_meta or not isinstance(value, torch.Tensor):
                    continue
                device = value.device
                if isinstance(tensor, DTensor):
                    device = tensor.device_mesh.device_type
                made = torch.empty_like(tensor, device=device)
                if isinstance(tensor, torch.nn.Parameter):
                    made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
                store[key] = made


# ---- optimizers


def _listed(
    optimizers: torch.optim.Optimizer | Iterable[torch.optim.Optimizer],
) -> list[torch.optim.Optimizer]:
    if isinstance(optimizers, torch.optim.Optimizer):
        return [optimizers]
    return list(optimizers)


def _init_optim_state(optim: torch.optim.Optimizer) -> None:
    """Makes the state that an optimizer has after its first step, so that one can be loaded into
    it. Parameters stay as they are: the step is one of zero gradients and rate zero. Optimizers
    that ask a closure for the loss are left alone."""
    parameters = [p for group in optim.param_groups for p in group["params"]]
    if optim.state or any(p.grad is not None for p in parameters):
        return
    closure = inspect.signature(optim.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        return
    rates = [group.get("lr") for group in optim.param_groups]
    for group in optim.param_groups:
        if "lr" in group:
            group["lr"] = torch.zeros_like(lr) if torch.is_tensor(lr := group["lr"]) else 0.0
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
    optim.step()
    for group, rate in zip(optim.param_groups, rates, strict=True):
        if "lr" in group:
            group["lr"] = rate
    optim.zero_grad(set_to_none=True)


def _names_of(model: nn.Module) -> dict[int, str]:
    named = model.named_parameters(remove_duplicate=False)
    return {id(p): _names(model, name) for name, p in named}


def get_optimizer_state_dict(
    model: nn.Module,
    optimizers: _Optimizers,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The state of optimizers, with names of parameters in the place of their numbers. Optimizers
    that made no step get the state of one first, so that a checkpoint can be loaded into it."""
    options = _checked(options)
    if submodules:
        raise NotImplementedError("get_optimizer_state_dict is not implemented for submodules")
    names = _names_of(model)
    state, groups = {}, []
    for optimizer in _listed(optimizers):
        _init_optim_state(optimizer)
        for group in optimizer.param_groups:
            known = [names[id(p)] for p in group["params"]]
            settings = {k: v for k, v in group.items() if k not in ("params", "param_names")}
            groups.append({**settings, "params": known})
        for parameter, values in optimizer.state.items():
            kept = {key: _taken(value, options) for key, value in values.items()}
            state[names[id(parameter)]] = kept
    found = {"state": state, "param_groups": groups}
    if options.flatten_optimizer_state_dict:
        found = _flattened(found)
    return _drop_elsewhere(found, options)


def _flattened(found: dict[str, Any]) -> dict[str, torch.Tensor]:
    flat = {}
    for name, values in found["state"].items():
        flat.update({f"state.{name}.{key}": value for key, value in values.items()})
    for group in found["param_groups"]:
        for name in group["params"]:
            settings = {key: value for key, value in group.items() if key != "params"}
            flat.update({f"param_groups.{name}.{key}": v for key, v in settings.items()})
    return flat


def _per_parameter(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """({name: state}, {name: settings}) of either form."""
    if "state" in given and "param_groups" in given:
        settings = {}
        for group in given["param_groups"]:
            rest = {key: value for key, value in group.items() if key != "params"}
            settings.update(dict.fromkeys(map(_plain, group["params"]), rest))
        return {_plain(name): values for name, values in given["state"].items()}, settings
    tables = {"state": {}, "param_groups": {}}
    for key, value in given.items():
        table, _, rest = key.partition(".")
        name, _, field = rest.rpartition(".")
        tables[table].setdefault(name, {})[field] = value
    return tables["state"], tables["param_groups"]


def set_optimizer_state_dict(
    model: nn.Module,
    optimizers: _Optimizers,
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Loads what get_optimizer_state_dict gave."""
    options = _checked(options)
    if options.broadcast_from_rank0:
        whole = optim_state_dict
        if "state" in whole and "param_groups" in whole:
            whole = _flattened(whole)
        optim_state_dict = _from_rank0(whole)
    names = _names_of(model)
    state, settings = _per_parameter(optim_state_dict)
    for optimizer in _listed(optimizers):
        packed, groups, number = {}, [], 0
        for group in optimizer.param_groups:
            rest = {key: value for key, value in group.items() if key != "params"}
            numbers = []
            for parameter in group["params"]:
                name = names[id(parameter)]
                rest.update(settings.get(name, {}))
                if name in state:
                    values = state[name].items()
                    packed[number] = {k: _own(_placed(v, parameter, None)) for k, v in values}
                numbers.append(number)
                number += 1
            groups.append({**rest, "params": numbers})
        optimizer.load_state_dict({"state": packed, "param_groups": groups})


def get_state_dict(
    model: nn.Module,
    optimizers: _Optimizers,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[_State, dict[str, Any]]:
    """The state of a model and that of its optimizers."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: nn.Module,
    optimizers: _Optimizers,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Loads what get_state_dict gave."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
