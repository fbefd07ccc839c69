"""State of a model and its optimizers by the names of parameters, whatever wraps the model. Here it
is the state of one process: options that need several are refused where they would matter."""

from __future__ import annotations

import dataclasses

import torch

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

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


def _checked(options) -> StateDictOptions:
    options = StateDictOptions() if options is None else options
    if options.broadcast_from_rank0:
        raise NotImplementedError(
            "StateDictOptions.broadcast_from_rank0 is not implemented in this version"
        )
    return options


def _plain(name) -> str:
    for word in _WRAPPERS:
        name = name.replace(word, "")
    return name


def _on_host(value, options):
    if isinstance(value, torch.Tensor):
        value = value.detach()
        return value.cpu() if options.cpu_offload else value
    return value


def get_model_state_dict(model, *, submodules=None, options=None):
    """The state_dict of a model, with plain names; of some submodules only, where given."""
    options = _checked(options)
    state = model.state_dict()
    frozen = set()
    if options.ignore_frozen_params:
        frozen = {_plain(name) for name, p in model.named_parameters() if not p.requires_grad}
    plain = type(state)(
        (_plain(name), _on_host(value, options))
        for name, value in state.items()
        if _plain(name) not in frozen
    )
    if not submodules:
        return plain
    picked = type(state)()
    for name, module in model.named_modules():
        if module not in submodules:
            continue
        prefix = _plain(name) + "."
        for key, value in plain.items():
            if key.startswith(prefix):
                picked[key if options.keep_submodule_prefixes else key[len(prefix) :]] = value
    return picked


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Loads what get_model_state_dict gave; returns the keys that are missing or too many."""
    options = _checked(options)
    names = {_plain(name): name for name in model.state_dict()}
    state = {names.get(name, name): value for name, value in model_state_dict.items()}
    if options.full_state_dict:
        _materialize(model, state)
    return model.load_state_dict(state, strict=options.strict)


def _materialize(model, state) -> None:
    """Parameters without data take memory where their values are."""
    for name, module in model.named_modules():
        for store in (module._parameters, module._buffers):
            for key, tensor in store.items():
                value = state.get(f"{name}.{key}" if name else key)
                if tensor is None or not tensor.is_meta or not isinstance(value, torch.Tensor):
                    continue
                made = torch.empty_like(tensor, device=value.device)
                if isinstance(tensor, torch.nn.Parameter):
                    made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
                store[key] = made


# ---- optimizers


def _listed(optimizers):
    if isinstance(optimizers, torch.optim.Optimizer):
        return [optimizers]
    return list(optimizers)


def _names_of(model) -> dict[int, str]:
    return {id(p): _plain(name) for name, p in model.named_parameters(remove_duplicate=False)}


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None):
    """The state of optimizers, with names of parameters in the place of their numbers."""
    options = _checked(options)
    if submodules:
        raise NotImplementedError("get_optimizer_state_dict is not implemented for submodules")
    names = _names_of(model)
    state, groups = {}, []
    for optimizer in _listed(optimizers):
        for group in optimizer.param_groups:
            known = [names[id(p)] for p in group["params"]]
            settings = {k: v for k, v in group.items() if k not in ("params", "param_names")}
            groups.append({**settings, "params": known})
        for parameter, values in optimizer.state.items():
            kept = {key: _on_host(value, options) for key, value in values.items()}
            state[names[id(parameter)]] = kept
    found = {"state": state, "param_groups": groups}
    return _flattened(found) if options.flatten_optimizer_state_dict else found


def _flattened(found) -> dict[str, torch.Tensor]:
    flat = {}
    for name, values in found["state"].items():
        flat.update({f"state.{name}.{key}": value for key, value in values.items()})
    for group in found["param_groups"]:
        for name in group["params"]:
            settings = {key: value for key, value in group.items() if key != "params"}
            flat.update({f"param_groups.{name}.{key}": v for key, v in settings.items()})
    return flat


def _per_parameter(given):
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


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None) -> None:
    """Loads what get_optimizer_state_dict gave."""
    _checked(options)
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
                    packed[number] = state[name]
                numbers.append(number)
                number += 1
            groups.append({**rest, "params": numbers})
        optimizer.load_state_dict({"state": packed, "param_groups": groups})


def get_state_dict(model, optimizers, *, submodules=None, options=None):
    """The state of a model and that of its optimizers."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Loads what get_state_dict gave."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
